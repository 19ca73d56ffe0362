// Opening folders: the golden ones, quirks of the layout, and each kind of damage.
#include "triax/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/checkpoint_folder.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TestFolder;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kIndex = "model.safetensors.index.json";

std::string refusal(const TestFolder& folder) {
  return error_of([&] { Checkpoint::open(folder.path()); });
}

void replace(const TestFolder& folder, std::string_view file, std::string_view from,
             std::string_view to) {
  std::string text = folder.read(file);
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  folder.write(file, text.replace(at, from.size(), to));
}

class DamagedFolder : public testing::Test {
 protected:
  void SetUp() override { test::write_small(folder_.path()); }
  TestFolder folder_;
  const std::string shard1_ = shard_file_name(0, 3), shard2_ = shard_file_name(1, 3),
                    shard3_ = shard_file_name(2, 3);
};

TEST(CheckpointOpen, GoldenFolders) {
  struct Row {
    const char* name;
    std::size_t tensors, bytes;
  };
  for (const Row& row :
       {Row{"tiny-a", 1002, 3914944}, Row{"tiny-b", 320, 2489024}, Row{"tiny-c", 298, 769756}}) {
    const auto c = Checkpoint::open(fs::path(TRIAX_GOLDEN_DIR "/text") / row.name);
    EXPECT_EQ(c->tensors().size(), row.tensors);
    EXPECT_EQ(c->total_bytes(), row.bytes);
    EXPECT_EQ(c->shards().size(), 3u);
    EXPECT_EQ(c->root(), "language_model.");
    EXPECT_TRUE(c->has_index());
    for (const TensorEntry& entry : c->tensors()) EXPECT_EQ(c->find(entry.name), &entry);
  }
}

TEST(CheckpointOpen, EntriesAndData) {
  const auto c = Checkpoint::open(TRIAX_GOLDEN_DIR "/text/tiny-b");
  const TensorEntry* a_log = c->find("language_model.model.layers.0.self_attn.A_log");
  ASSERT_NE(a_log, nullptr);
  EXPECT_EQ(a_log->dtype, DType::F32);
  EXPECT_EQ(a_log->shape, (std::vector<std::size_t>{128}));
  EXPECT_EQ(c->data(*a_log).size(), 512u);
  EXPECT_EQ(c->find("language_model.model.layers.0.self_attn.A_lo"), nullptr);
  EXPECT_EQ(c->find(""), nullptr);
}

TEST(CheckpointOpen, TensorsAreInShardOrderThenByOffset) {
  const auto c = Checkpoint::open(TRIAX_GOLDEN_DIR "/text/tiny-a");
  EXPECT_TRUE(std::is_sorted(c->tensors().begin(), c->tensors().end(),
                             [](const TensorEntry& a, const TensorEntry& b) {
                               return std::pair(a.shard, a.offset) < std::pair(b.shard, b.offset);
                             }));
}

TEST(CheckpointOpen, DataAreTheFileBytes) {
  TestFolder folder;
  test::write_small(folder.path());
  const auto c = Checkpoint::open(folder.path());
  ASSERT_EQ(c->tensors().size(), 6u);
  for (const TensorEntry& entry : c->tensors()) {
    const auto data = c->data(entry);
    const auto want = test::test_bytes(entry.name, entry.bytes);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), want.begin(), want.end())) << entry.name;
    advise(data, Access::will_need);
    advise(data, Access::dont_need);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), want.begin(), want.end())) << entry.name;
  }
}

TEST(CheckpointOpen, SingleFile) {
  TestFolder folder;
  const ShardPlan plan{"model.safetensors", {{"model.norm.weight", DType::F32, {4}}}};
  write_checkpoint(folder.path(), {&plan, 1}, test::write_test_bytes, "{}");
  EXPECT_FALSE(fs::exists(folder / kIndex));
  const auto c = Checkpoint::open(folder.path());
  EXPECT_EQ(c->root(), "");
  EXPECT_FALSE(c->has_index());
  EXPECT_EQ(c->tensors().size(), 1u);
  EXPECT_EQ(Checkpoint::open_file(folder / "model.safetensors")->tensors().size(), 1u);
}

TEST(CheckpointOpen, ScalesTypedU8OrE8M0) {
  TestFolder folder;
  test::write_small(folder.path());
  const auto c = Checkpoint::open(folder.path());
  EXPECT_EQ(c->find("language_model.model.layers.0.w1.weight_scale")->dtype, DType::F8_E8M0);
  EXPECT_EQ(c->find("language_model.model.layers.0.w1.weight_packed")->dtype, DType::U8);
}

TEST(CheckpointOpen, VisionTensorsHaveNoPartInTheRoot) {
  TestFolder folder;
  const ShardPlan plan{"model.safetensors",
                       {{"vision_tower.x", DType::U8, {4}}, {"model.norm.weight", DType::U8, {4}}}};
  write_checkpoint(folder.path(), {&plan, 1}, test::write_test_bytes, "{}");
  EXPECT_EQ(Checkpoint::open(folder.path())->root(), "");
}

TEST(CheckpointOpen, MixedRoots) {
  TestFolder folder;
  const ShardPlan plan{"model.safetensors",
                       {{"language_model.model.a", DType::U8, {4}}, {"model.b", DType::U8, {4}}}};
  write_checkpoint(folder.path(), {&plan, 1}, test::write_test_bytes, "{}");
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr("language_model.model.a"), HasSubstr("model.b")));
}

TEST(CheckpointOpen, NoModelThere) {
  TestFolder folder;
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr(kIndex), HasSubstr("model.safetensors")));
  EXPECT_THAT(error_of([&] { Checkpoint::open(folder / "absent"); }), HasSubstr("not a folder"));
  EXPECT_THAT(error_of([&] { Checkpoint::open_file(folder / "absent"); }),
              AllOf(HasSubstr("absent"), HasSubstr("No such file")));
  EXPECT_THAT(error_of([&] { Checkpoint::open_file(folder.path()); }), HasSubstr("regular file"));
}

// Many shards of a terabyte each: only the headers take room and time.
TEST(CheckpointOpen, SparseShardsBeyondMemory) {
  TestFolder folder;
  std::vector<ShardPlan> plans;
  constexpr std::size_t kShards = 96, kExperts = 20, kRow = std::size_t{1} << 29;
  for (std::size_t s = 0; s < kShards; ++s) {
    plans.push_back({shard_file_name(s, kShards), {}});
    for (std::size_t e = 0; e < kExperts; ++e) {
      plans.back().tensors.push_back(
          {fmt::format("model.layers.{}.experts.{}", s, e), DType::U8, {2, kRow}});
    }
    ShardWriter(folder / plans.back().file_name, plans.back(), true).finish();
  }
  write_index(folder.path(), plans);
  const auto c = Checkpoint::open(folder.path());
  EXPECT_EQ(c->total_bytes(), kShards * kExperts * 2 * kRow);  // 2 TB
  const auto data = c->data(*c->find("model.layers.95.experts.19"));
  EXPECT_EQ(data.size(), 2 * kRow);
  EXPECT_EQ(data.back(), std::byte{0});
}

// Damage.

TEST_F(DamagedFolder, CutShard) {
  const auto size = fs::file_size(folder_ / shard2_);
  fs::resize_file(folder_ / shard2_, size - 50);
  EXPECT_THAT(refusal(folder_),
              AllOf(HasSubstr(shard2_), HasSubstr(fmt::format("expected {} bytes", size)),
                    HasSubstr(fmt::format("found {}", size - 50))));
  fs::resize_file(folder_ / shard2_, 100);  // inside the header
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr(shard2_), HasSubstr("found 100")));
  fs::resize_file(folder_ / shard2_, 0);
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr(shard2_), HasSubstr("found 0")));
}

TEST_F(DamagedFolder, LongShard) {
  fs::resize_file(folder_ / shard2_, fs::file_size(folder_ / shard2_) + 1);
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr(shard2_), HasSubstr("too long")));
}

TEST_F(DamagedFolder, AllMissingShardsInOneMessage) {
  fs::remove(folder_ / shard1_);
  fs::remove(folder_ / shard3_);
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr(shard1_), HasSubstr(shard3_), HasSubstr("2 of 3")));
}

TEST_F(DamagedFolder, HeaderLengthZeroOrNonsense) {
  std::string bytes = folder_.read(shard1_);
  folder_.write(shard1_, bytes.replace(0, 8, std::string(8, '\0')));
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr(shard1_), HasSubstr("header")));
  folder_.write(shard1_, bytes.replace(0, 8, std::string(8, '\x7f')));
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr(shard1_), HasSubstr("header")));
}

TEST_F(DamagedFolder, TensorOfTheIndexIsAbsent) {
  replace(folder_, kIndex, "\"language_model.model.norm.weight\"",
          "\"language_model.model.gone.weight\"");
  EXPECT_THAT(refusal(folder_),
              AllOf(HasSubstr(shard3_), HasSubstr("language_model.model.gone.weight")));
}

TEST_F(DamagedFolder, TensorInAnotherShardThanTheIndexSays) {
  replace(folder_, kIndex, "norm.weight\": \"" + shard3_, "norm.weight\": \"" + shard1_);
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr("language_model.model.norm.weight"),
                                      HasSubstr(shard1_), HasSubstr(shard3_)));
}

TEST_F(DamagedFolder, TensorThatTheIndexDoesNotName) {
  replace(folder_, kIndex, "  \"language_model.model.norm.weight\": \"" + shard3_ + "\",\n", "");
  EXPECT_THAT(refusal(folder_),
              AllOf(HasSubstr(shard3_), HasSubstr("\"language_model.model.norm.weight\""),
                    HasSubstr("not in model.safetensors.index.json")));
}

TEST_F(DamagedFolder, TensorInTwoShards) {
  auto plans = test::small_plans();
  plans[2].tensors[0] = plans[0].tensors[1];
  write_checkpoint(folder_.path(), plans, test::write_test_bytes, "{}");
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr("A_log"), HasSubstr(shard1_), HasSubstr(shard3_)));
}

TEST_F(DamagedFolder, IndexNamesATensorTwice) {
  replace(folder_, kIndex, "\"weight_map\": {",
          "\"weight_map\": {\n  \"language_model.model.norm.weight\": \"" + shard3_ + "\",");
  EXPECT_THAT(refusal(folder_),
              AllOf(HasSubstr("language_model.model.norm.weight"), HasSubstr("twice")));
}

TEST_F(DamagedFolder, TotalSize) {
  const std::string index = folder_.read(kIndex);
  const std::size_t bytes = Checkpoint::open(folder_.path())->total_bytes();
  const std::string said = fmt::format("\"total_size\": {}", bytes);
  replace(folder_, kIndex, said, fmt::format("\"total_size\": {}", bytes + 1));
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr("total_size"), HasSubstr(std::to_string(bytes))));
  folder_.write(kIndex, index);
  replace(folder_, kIndex, said, "\"other\": 1");  // may be absent
  EXPECT_EQ(refusal(folder_), "(no error)");
  folder_.write(kIndex, index);
  replace(folder_, kIndex, said, "\"total_size\": \"big\"");
  EXPECT_THAT(refusal(folder_), HasSubstr("total_size"));
}

TEST_F(DamagedFolder, NamesThatLeaveTheFolder) {
  const std::string index = folder_.read(kIndex);
  for (const std::string& bad :
       std::vector<std::string>{"../" + shard3_, "/etc/passwd", "..", ".", "", "a/" + shard3_,
                                "..\\\\" + shard3_, shard3_ + "\\u0000"}) {
    folder_.write(kIndex, index);
    replace(folder_, kIndex, "norm.weight\": \"" + shard3_, "norm.weight\": \"" + bad);
    EXPECT_THAT(refusal(folder_),
                AllOf(HasSubstr(kIndex), HasSubstr("norm.weight"), HasSubstr("without a path")))
        << bad;
  }
}

TEST_F(DamagedFolder, IndexThatIsNoIndex) {
  for (const char* text : {"", "{", "[]", "{}", "{\"weight_map\":[]}", "{\"weight_map\":{}}",
                           "{\"weight_map\":{\"a\":1}}", "{\"weight_map\":{\"a\":\"b\"}} x",
                           "{\"metadata\":3,\"weight_map\":{\"a\":\"b\"}}"}) {
    folder_.write(kIndex, text);
    EXPECT_THAT(refusal(folder_), HasSubstr(kIndex)) << text;
  }
}

TEST_F(DamagedFolder, ShardThatIsAFolder) {
  fs::remove(folder_ / shard2_);
  fs::create_directory(folder_ / shard2_);
  EXPECT_THAT(refusal(folder_), AllOf(HasSubstr(shard2_), HasSubstr("regular file")));
}

// Half-written shards keep their temporary name.
TEST_F(DamagedFolder, InterruptedWriteLeavesNothing) {
  fs::remove(folder_ / shard2_);
  {
    ShardWriter writer(folder_ / shard2_, test::small_plans()[1]);
    writer.write(std::vector<std::byte>(10));
    EXPECT_THAT(refusal(folder_), HasSubstr("missing"));
  }
  EXPECT_FALSE(fs::exists(folder_ / shard2_));
  EXPECT_FALSE(fs::exists(folder_ / (shard2_ + ".partial")));
}

}  // namespace
}  // namespace triax
