// The smaller commands: inspect, synth, tokenize, selftest, doctor.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "e2e/program.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using testing::HasSubstr;

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The figures of spec/text-model section 7 and of the release's index.
TEST(Inspect, FiguresOfTheRelease) {
  const Outcome o = test::run({"inspect", test::golden("k3/config.json"), "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const auto json = o.json();
  EXPECT_EQ(json["total"]["tensors"], 497220);
  EXPECT_EQ(json["total"]["bytes"], 1560860324864);
  EXPECT_EQ(json["total"]["parameters"], 2779931837184);
  EXPECT_EQ(json["language_model"]["parameters"], 2779484478208);
  EXPECT_EQ(json["active_with_embedding"], 105364019968);
  EXPECT_EQ(json["active_without_embedding"], 104189614848);
  EXPECT_EQ(json["trunk_bytes"], 113509540864);
  EXPECT_EQ(json["routed_bytes"], 1446456066048);
  EXPECT_EQ(test::run({"inspect", "k3", "--json"}).json(), json) << "the built-in configuration";
  const Outcome text = test::run({"inspect", test::golden("k3/config.json")});
  EXPECT_THAT(text.out, HasSubstr("2,779,931,837,184"));
}

TEST(Inspect, FolderIsCountedFromItsFiles) {
  const Outcome o = test::run({"inspect", test::golden("text/tiny-c"), "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.json()["source"], "files");
  const Outcome by_m = test::run({"inspect", "-m", test::golden("text/tiny-c"), "--json"});
  EXPECT_EQ(by_m.out, o.out);
}

TEST(Synth, SameSeedSameBytesAndNoSurprises) {
  const fs::path a = test::scratch() / "synth-a", b = test::scratch() / "synth-b";
  const auto synth = [](const fs::path& out, std::vector<std::string> more) {
    std::vector<std::string> args{"synth", "--config", "tiny", "--out", out.string()};
    args.insert(args.end(), more.begin(), more.end());
    return test::run(args);
  };
  ASSERT_EQ(synth(a, {"--seed", "7", "--shards", "3"}).code, 0);
  ASSERT_EQ(synth(b, {"--seed", "7", "--shards", "3", "--threads", "1"}).code, 0);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(a)) {
    EXPECT_EQ(bytes_of(entry.path()), bytes_of(b / entry.path().filename())) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 5u) << "three shards, index, configuration";

  const Outcome refused = synth(a, {"--seed", "8"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.error_line(), HasSubstr("not empty"));
  EXPECT_EQ(bytes_of(a / "config.json"), bytes_of(b / "config.json"));
  EXPECT_EQ(synth(a, {"--seed", "8", "--force", "--shards", "3"}).code, 0);
  const char* shard = "model-00001-of-00003.safetensors";
  EXPECT_NE(bytes_of(a / shard), bytes_of(b / shard)) << "another seed, other bytes";
}

TEST(Synth, SparseHasTrueHeadersAndTakesNoRoom) {
  const fs::path out = test::scratch() / "sparse";
  const Outcome o =
      test::run({"synth", "--config", "small", "--out", out.string(), "--sparse", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(test::run({"inspect", out.string(), "--json"}).json()["total"]["tensors"],
            o.json()["tensors"]);
}

TEST(Tokenize, RoundTrip) {
  const std::string text =
      "Grüße, 世界!\n\tif (x) return 2026; // 👩‍👩‍👧 <|end_of_msg|>\n";
  const Outcome ids = test::run({"tokenize", "-"}, text);
  ASSERT_EQ(ids.code, 0) << ids.err;
  EXPECT_EQ(test::run({"detokenize", "-"}, ids.out).out, text);
  const auto json = test::run({"tokenize", "-", "--json", "--pieces"}, text).json();
  EXPECT_EQ(test::run({"detokenize", "--file", "-", "--json"}, json["ids"].dump()).json()["text"],
            text);
  EXPECT_EQ(json["ids"].size(), json["pieces"].size());
}

TEST(Tokenize, NamesOfSpecialTokensAreTextUnlessAskedFor) {
  const auto plain = test::run({"tokenize", "<|end_of_msg|>", "--json"}).json();
  EXPECT_GT(plain["ids"].size(), 1u);
  const auto special = test::run({"tokenize", "<|end_of_msg|>", "--json", "--special"}).json();
  EXPECT_EQ(special["ids"], nlohmann::json({163586}));
  EXPECT_EQ(test::run({"detokenize", "163586"}).out, "<|end_of_msg|>");
}

TEST(Tokenize, PiecesAreOneLineEach) {
  const Outcome o = test::run({"tokenize", "a\nb", "--pieces"});
  EXPECT_EQ(std::count(o.out.begin(), o.out.end(), '\n'), 3);
  EXPECT_THAT(o.out, HasSubstr("\\n"));
}

TEST(Selftest, SaysThatThisBuildIsRight) {
  const Outcome o = test::run({"selftest"});
  EXPECT_EQ(o.code, 0) << o.out;
  EXPECT_THAT(o.out, HasSubstr("this build computes K3 right on this machine"));
  EXPECT_EQ(o.out.find("✗"), std::string::npos) << o.out;
  EXPECT_TRUE(fs::is_empty(test::scratch() / "tmp")) << "temporary folders are removed";
}

TEST(Doctor, ReadsAModelIntoHugePagesWhereThereAreSome) {
  const Outcome o =
      test::run({"doctor", "--huge-pages", "--json", "-m", test::golden("text/tiny-a")});
  ASSERT_EQ(o.code, 0) << o.err;
  const auto json = o.json();
  EXPECT_GT(json["bytes"].get<std::uint64_t>(), 0u) << "the files are in memory now";
  EXPECT_LE(json["huge_bytes"].get<std::uint64_t>(), json["bytes"].get<std::uint64_t>());
  const Outcome missing = test::run({"doctor", "--huge-pages", "-m", "nowhere"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("nowhere"));
}

TEST(Doctor, NamesTheProcessorAndWhatItMayUse) {
  const Outcome o = test::run({"doctor", "--json"});
  ASSERT_EQ(o.code, 0) << o.err;
  const auto json = o.json();
  EXPECT_FALSE(json["processor"]["instruction_sets"].empty());
  EXPECT_GE(json["processor"]["cores_used"].get<int>(), 1);
  EXPECT_GT(json["memory"]["total_bytes"].get<std::uint64_t>(), 0u);
  const Outcome scalar =
      test::run({{"doctor", "--json"}, "", {{"TRIAX_ISA", "scalar"}}, TRIAX_BINARY, 0});
  EXPECT_EQ(scalar.json()["processor"]["chosen"], "scalar");
}

}  // namespace
}  // namespace triax
