// The bytes of what is written, copies of checkpoints, and .npy files.
#include "triax/checkpoint/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/checkpoint_folder.h"
#include "triax/checkpoint/npy.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TestFolder;
using testing::AllOf;
using testing::HasSubstr;

// Expected texts are those of Python's json module.
TEST(Writer, HeaderText) {
  const ShardPlan plan{"x",
                       {{"a.weight", DType::BF16, {2, 3}},
                        {"b\"\xc3\xa9\xf0\x9f\x98\x80\x7f", DType::F8_E8M0, {}},
                        {"c", DType::F32, {4, 1, 2}}}};
  const std::string text = safetensors_header_text(plan);
  const std::string json =
      R"({"__metadata__":{"format":"pt"},)"
      R"("a.weight":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
      R"("b\"\u00e9\ud83d\ude00\u007f":{"dtype":"F8_E8M0","shape":[],"data_offsets":[12,13]},)"
      R"("c":{"dtype":"F32","shape":[4,1,2],"data_offsets":[13,45]}})";
  ASSERT_EQ(text.size() % 8, 0u);
  EXPECT_EQ(text.substr(8, json.size()), json);
  EXPECT_EQ(text.find_first_not_of(' ', 8 + json.size()), std::string::npos);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  EXPECT_EQ(length, text.size() - 8);
  EXPECT_LT(text.size() - 8 - json.size(), 8u);
}

TEST(Writer, HeaderOfTheGoldenShardsIsTheSame) {
  const fs::path folder = TRIAX_GOLDEN_DIR "/text/tiny-c";
  const auto from = Checkpoint::open(folder);
  ShardPlan plan{"x", {}};
  for (const TensorEntry& e : from->tensors()) {
    if (e.shard == 0) {
      plan.tensors.push_back({std::string(e.name), e.dtype, {e.shape.begin(), e.shape.end()}});
    }
  }
  const std::string want = safetensors_header_text(plan);
  const auto have = read_prefix(from->shards()[0].path, want.size());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(have.data()), have.size()), want);
}

TEST(Writer, IndexText) {
  TestFolder folder;
  const std::vector<ShardPlan> plans{{"s1", {{"a", DType::U8, {3}}, {"b", DType::F32, {2}}}},
                                     {"s2", {{"c", DType::U8, {1}}}}};
  write_index(folder.path(), plans);
  EXPECT_EQ(folder.read("model.safetensors.index.json"),
            "{\n \"metadata\": {\n  \"total_size\": 12\n },\n \"weight_map\": {\n"
            "  \"a\": \"s1\",\n  \"b\": \"s1\",\n  \"c\": \"s2\"\n }\n}");
}

TEST(Writer, ShardNames) {
  EXPECT_EQ(shard_file_name(0, 96), "model-00001-of-00096.safetensors");
  EXPECT_EQ(shard_file_name(95, 96), "model-00096-of-00096.safetensors");
}

TEST(Writer, DataInPiecesOfAnySize) {
  TestFolder folder;
  const ShardPlan plan{"model.safetensors", {{"a", DType::U8, {3000000}}, {"b", DType::U8, {7}}}};
  const auto data = test::test_bytes("a", 3000007);
  ShardWriter writer(folder / plan.file_name, plan);
  const std::span<const std::byte> all(data);
  std::size_t at = 0;
  for (std::size_t piece = 1; at < all.size(); piece = piece * 5 + 1) {
    const std::size_t n = std::min(piece, all.size() - at);
    writer.write(all.subspan(at, n));
    at += n;
  }
  EXPECT_FALSE(fs::exists(folder / plan.file_name));
  writer.finish();
  const auto c = Checkpoint::open(folder.path());
  const auto a = c->data(*c->find("a"));
  EXPECT_TRUE(std::equal(a.begin(), a.end(), data.begin()));
  const auto b = c->data(*c->find("b"));
  EXPECT_TRUE(std::equal(b.begin(), b.end(), data.begin() + 3000000));
}

TEST(Writer, HolesReadAsZeros) {
  TestFolder folder;
  const ShardPlan plan{"model.safetensors",
                       {{"a", DType::U8, {5}}, {"b", DType::U8, {90000}}, {"c", DType::U8, {3}}}};
  ShardWriter writer(folder / plan.file_name, plan);
  writer.write(test::test_bytes("a", 5));
  writer.skip(90000);
  writer.write(test::test_bytes("c", 3));
  writer.finish();
  const auto c = Checkpoint::open(folder.path());
  const auto b = c->data(*c->find("b"));
  EXPECT_TRUE(std::all_of(b.begin(), b.end(), [](std::byte x) { return x == std::byte{0}; }));
  EXPECT_EQ(c->data(*c->find("c"))[1], test::test_bytes("c", 3)[1]);
}

TEST(Writer, PlanAndDataMustAgree) {
  TestFolder folder;
  const ShardPlan plan{"s", {{"a", DType::U8, {4}}}};
  ShardWriter less(folder / "s", plan);
  less.write(std::vector<std::byte>(3));
  EXPECT_THROW(less.finish(), LogicError);
  ShardWriter more(folder / "t", plan);
  EXPECT_THROW(more.write(std::vector<std::byte>(5)), LogicError);
  EXPECT_THAT(error_of([] { TensorToWrite{"a", DType::F32, {SIZE_MAX / 2, 4}}.bytes(); }),
              HasSubstr("overflow"));
}

TEST(Writer, FaultsNameThePathAndTheReason) {
  TestFolder folder;
  const ShardPlan plan{"s", {{"a", DType::U8, {4}}}};
  EXPECT_THAT(error_of([&] { ShardWriter(folder / "absent/s", plan); }),
              AllOf(HasSubstr("absent/s"), HasSubstr("No such file")));
  EXPECT_THAT(error_of([&] {
                const ShardPlan bad{"s", {{"\xff", DType::U8, {4}}}};
                ShardWriter(folder / "s", bad);
              }),
              HasSubstr("UTF-8"));
  folder.write("file", "x");
  EXPECT_THAT(error_of([&] { test::write_small(folder / "file"); }), HasSubstr("file"));
}

TEST(Writer, FullDisk) {
  TestFolder folder;
  fs::create_symlink("/dev/full", folder / "s.partial");
  const ShardPlan plan{"s", {{"a", DType::U8, {8000000}}}};
  ShardWriter writer(folder / "s", plan);
  EXPECT_THAT(error_of([&] { writer.write(std::vector<std::byte>(8000000)); }),
              AllOf(HasSubstr("s.partial"), HasSubstr("No space left")));
}

TEST(SaveCheckpoint, UntouchedTensorsKeepTheirBytes) {
  TestFolder folder;
  const fs::path source = TRIAX_GOLDEN_DIR "/text/tiny-c";
  const auto from = Checkpoint::open(source);
  save_checkpoint(*from, folder.path(), {});
  for (const ShardInfo& shard : from->shards()) {
    const std::string name = shard.path.filename().string();
    EXPECT_EQ(read_whole(shard.path, 1 << 30), folder.read(name)) << name;
  }
  EXPECT_EQ(read_whole(source / "config.json", 1 << 20), folder.read("config.json"));
  EXPECT_EQ(Checkpoint::open(folder.path())->tensors().size(), from->tensors().size());
}

TEST(SaveCheckpoint, OverridesReplaceOneTensorOnly) {
  TestFolder folder;
  const auto from = Checkpoint::open(TRIAX_GOLDEN_DIR "/text/tiny-c");
  const std::string name = "language_model.model.norm.weight";
  const std::size_t size = from->find(name)->bytes;
  save_checkpoint(*from, folder.path(), {{name, std::vector<std::byte>(size, std::byte{0x3f})}});
  const auto saved = Checkpoint::open(folder.path());
  for (const TensorEntry& entry : from->tensors()) {
    const auto before = from->data(entry), after = saved->data(*saved->find(entry.name));
    const bool same = std::equal(before.begin(), before.end(), after.begin(), after.end());
    EXPECT_EQ(same, entry.name != name) << entry.name;
  }
  EXPECT_EQ(saved->data(*saved->find(name))[0], std::byte{0x3f});
}

TEST(SaveCheckpoint, Refusals) {
  TestFolder folder;
  test::write_small(folder / "a");
  const auto from = Checkpoint::open(folder / "a");
  EXPECT_THAT(error_of([&] { save_checkpoint(*from, folder / "b", {{"nothing", {}}}); }),
              HasSubstr("\"nothing\""));
  EXPECT_THAT(error_of([&] {
                save_checkpoint(*from, folder / "b",
                                {{"language_model.model.norm.weight", std::vector<std::byte>(3)}});
              }),
              AllOf(HasSubstr("norm.weight"), HasSubstr("3 bytes"), HasSubstr("expected 16")));
  EXPECT_THAT(error_of([&] { save_checkpoint(*from, folder / "a", {}); }),
              HasSubstr("another folder"));
  EXPECT_EQ(Checkpoint::open(folder / "a")->tensors().size(), 6u);
}

TEST(SaveCheckpoint, SingleFileStaysOne) {
  TestFolder folder;
  const ShardPlan plan{"model.safetensors", {{"model.norm.weight", DType::F32, {4}}}};
  write_checkpoint(folder / "a", {&plan, 1}, test::write_test_bytes, "{}");
  save_checkpoint(*Checkpoint::open(folder / "a"), folder / "b", {});
  EXPECT_FALSE(fs::exists(folder / "b/model.safetensors.index.json"));
  EXPECT_EQ(Checkpoint::open(folder / "b")->tensors().size(), 1u);
}

// The header is what numpy.save writes for the same array (numpy 1.24).
TEST(Npy, HeaderBytes) {
  TestFolder folder;
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  write_npy(folder / "a.npy", std::vector<std::size_t>{2, 3}, values);
  const std::string file = folder.read("a.npy");
  ASSERT_EQ(file.size(), 128u + 24u);
  EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_TRUE(file.substr(10).starts_with(
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   "));
  EXPECT_EQ(file[127], '\n');
  float last = 0;
  std::memcpy(&last, file.data() + 128 + 20, 4);
  EXPECT_EQ(last, 6.0f);
}

TEST(Npy, RoundTripOfAnyRank) {
  TestFolder folder;
  for (const std::vector<std::size_t>& shape :
       std::vector<std::vector<std::size_t>>{{}, {1}, {4}, {2, 0}, {2, 3, 4}, {1, 2, 1, 3, 2}}) {
    std::size_t count = 1;
    for (const std::size_t dim : shape) count *= dim;
    std::vector<std::int32_t> ints(count);
    std::vector<float> floats(count);
    for (std::size_t i = 0; i < count; ++i) {
      ints[i] = static_cast<std::int32_t>(i) - 3;
      floats[i] = static_cast<float>(i) / 3;
    }
    write_npy(folder / "i.npy", shape, ints);
    write_npy(folder / "f.npy", shape, floats);
    const NpyArray i = read_npy(folder / "i.npy"), f = read_npy(folder / "f.npy");
    EXPECT_EQ(i.shape, shape);
    EXPECT_EQ(i.dtype, DType::I32);
    EXPECT_EQ(i.ints, ints);
    EXPECT_EQ(f.shape, shape);
    EXPECT_EQ(f.floats, floats);
    EXPECT_EQ(fs::file_size(folder / "f.npy") % 4, 0u);
  }
}

TEST(Npy, WrittenInPieces) {
  TestFolder folder;
  NpyWriter writer(folder / "a.npy", DType::F32, std::vector<std::size_t>{3, 2});
  for (float row = 0; row < 3; ++row) writer.write(std::vector<float>{row, row + 0.5f});
  EXPECT_THROW(writer.write(std::vector<float>{1}), LogicError);
  EXPECT_THROW(writer.write(std::vector<std::int32_t>{}), LogicError);
  writer.finish();
  EXPECT_EQ(read_npy(folder / "a.npy").floats, (std::vector<float>{0, 0.5f, 1, 1.5f, 2, 2.5f}));
}

TEST(Npy, OtherFilesAreRefused) {
  TestFolder folder;
  const std::string good = [&] {
    write_npy(folder / "a.npy", std::vector<std::size_t>{2}, std::vector<float>{1, 2});
    return folder.read("a.npy");
  }();
  const auto refusal = [&](const std::string& bytes) {
    folder.write("b.npy", bytes);
    return error_of([&] { read_npy(folder / "b.npy"); });
  };
  EXPECT_EQ(refusal(good), "(no error)");
  EXPECT_THAT(refusal(""), HasSubstr("b.npy"));
  EXPECT_THAT(refusal("hello, this is text"), HasSubstr("not a .npy file"));
  EXPECT_THAT(refusal(good.substr(0, 40)), HasSubstr("inside its header"));
  EXPECT_THAT(refusal(good.substr(0, good.size() - 1)), HasSubstr("7 bytes"));
  std::string other = good;
  other.replace(other.find("<f4"), 3, "<f8");
  EXPECT_THAT(refusal(other), HasSubstr("float32 or int32"));
  other = good;
  other.replace(other.find("False"), 5, "True ");
  EXPECT_THAT(refusal(other), HasSubstr("C order"));
  other = good;
  other.replace(other.find("(2,)"), 4, "(-2)");
  EXPECT_THAT(refusal(other), HasSubstr("header"));
}

}  // namespace
}  // namespace triax
