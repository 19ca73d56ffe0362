// The data that `triax data` writes, and texts from outside.
#include "triax/cli/data_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "triax/core/error.h"
#include "triax/tokenizer/rank_file.h"
#include "triax/world/arithmetic.h"
#include "triax/world/corpus.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;
using world::Json;

std::vector<Json> lines_of(const fs::path& file) {
  std::vector<Json> out;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) out.push_back(Json::parse(line));
  return out;
}

class DataWriter : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / "triax_data_writer";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Json write(DataPlan plan, const char* name) {
    plan.out = (folder_ / name).string();
    return write_data(plan, [](std::uint64_t, std::uint64_t) {});
  }

  fs::path folder_;
};

TEST_F(DataWriter, WritesAboutTheTokensAskedForAndSharesNothing) {
  DataPlan plan;
  plan.tokens = 150'000;
  plan.heldout = 200;
  plan.seed = 4;
  const Json manifest = write(plan, "all");
  std::uint64_t tokens = 0;
  std::set<std::string> training;
  for (const world::Kind& kind : world::kinds()) {
    const auto documents = lines_of(folder_ / "all/train" / (kind.name + ".jsonl"));
    EXPECT_EQ(manifest["train"][kind.name]["documents"], documents.size());
    tokens += manifest["train"][kind.name]["tokens_about"].get<std::uint64_t>();
    for (const Json& document : documents) {
      EXPECT_EQ(document["source"], kind.name);
      EXPECT_FALSE(document.contains("meta"));
      training.insert(document.dump());
    }
  }
  EXPECT_NEAR(static_cast<double>(tokens), 150'000, 15'000);
  for (const world::Kind& kind : world::kinds()) {
    for (Json document : lines_of(folder_ / "all/heldout" / (kind.name + ".jsonl"))) {
      document.erase("meta");
      EXPECT_EQ(training.count(document.dump()), 0u) << kind.name;
    }
  }
  EXPECT_LT(manifest["heldout_long_story_questions"]["last_mention_right"], 0.4);
  EXPECT_LT(manifest["heldout_long_story_questions"]["most_frequent_mention_right"], 0.4);
  EXPECT_EQ(manifest, Json::parse(read_text_file(folder_ / "all/manifest.json")));
  EXPECT_EQ(manifest, write(plan, "again"));
}

TEST_F(DataWriter, OnlyTheKindsAskedFor) {
  DataPlan plan;
  plan.documents = 50;
  plan.kinds = {"arithmetic"};
  const Json manifest = write(plan, "sums");
  EXPECT_EQ(manifest["train"].size(), 1u);
  EXPECT_NEAR(manifest["train"]["arithmetic"]["documents"].get<double>(), 50, 3);
  plan.kinds = {"novels"};
  EXPECT_THROW(write(plan, "novels"), Error);
}

TEST_F(DataWriter, ReadsWordNetAndKeepsItsLicence) {
  const fs::path wordnet = folder_ / "wordnet";
  fs::create_directories(wordnet);
  write_text_file(
      wordnet / "data.noun",
      "  1 This is the licence.\n  2 Keep it.\n"
      "00001740 03 n 01 grey_whale 0 001 ~ 00001930 n 0000 | a large whale; \"it swam\"  \n"
      "00001741 03 n 02 oak 0 tree 0 000 | a tree with acorns  \n");
  const auto documents = wordnet_documents(wordnet.string());
  ASSERT_EQ(documents.size(), 1u);
  EXPECT_EQ(documents[0]["text"], "grey whale: a large whale\noak: a tree with acorns");
  DataPlan plan;
  plan.documents = 20;
  plan.wordnet = wordnet.string();
  const Json manifest = write(plan, "with");
  EXPECT_EQ(manifest["train"]["wordnet"]["documents"], 1);
  EXPECT_EQ(read_text_file(folder_ / "with/LICENSE.wordnet"),
            "  1 This is the licence.\n  2 Keep it.\n");
  EXPECT_THROW(wordnet_documents(folder_.string()), Error);
}

TEST_F(DataWriter, CutsProseAtParagraphs) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "A sentence of the old book that goes\non in the next line.\n\n";
  write_text_file(folder_ / "book.txt", text);
  const auto documents = prose_documents((folder_ / "book.txt").string());
  ASSERT_GT(documents.size(), 1u);
  std::size_t bytes = 0;
  for (const Json& document : documents) {
    EXPECT_EQ(document["source"], "prose:book.txt");
    bytes += document["text"].get<std::string>().size();
    EXPECT_EQ(document["text"].get<std::string>().find('\n'), std::string::npos);
  }
  EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(text.size()), 200);
}

}  // namespace
}  // namespace triax::cli
