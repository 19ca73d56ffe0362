// Replaced words: the same everywhere in a document, and only where an answer can be copied.
#include "triax/train/substitute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "support/model_folder.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax::train {
namespace {

using nlohmann::json;
using testing::Each;
using testing::HasSubstr;

// Twenty documents without the words under test make those rare.
const std::string kOther =
    R"({"messages":[{"role":"user","content":"Where is it?"},{"role":"assistant","content":"Here."}]})";

struct Substitute : testing::Test {
  test::TempFolder folder;
  Tokenizer tokenizer = bytes(folder);
  DataSource source;

  static Tokenizer bytes(const test::TempFolder& folder) {
    write_byte_tokenizer(folder / "tokenizer", 40);
    return Tokenizer::load(folder / "tokenizer");
  }
  std::string apply(const json& conversation, std::uint64_t seed) const {
    std::vector<RawDocument> documents(20, RawDocument{"", kOther, "x:1"});
    documents.push_back({"", conversation.dump(), "x:21"});
    Rng rng(seed);
    return WordSubstitution(source, documents, tokenizer).apply(documents.back().conversation, rng);
  }
  // What the word `first` of the user's text became, over several seeds.
  template <class Read>
  std::set<std::string> seen(const json& conversation, Read read) const {
    std::set<std::string> out;
    for (std::uint64_t seed = 0; seed < 30; ++seed)
      out.insert(read(json::parse(apply(conversation, seed))));
    return out;
  }
};

json conversation(const std::string& user, const std::string& assistant) {
  return {
      {"messages",
       {{{"role", "user"}, {"content", user}}, {{"role", "assistant"}, {"content", assistant}}}}};
}
std::string content(const json& value, std::size_t message) {
  return value["messages"][message]["content"].get<std::string>();
}

TEST_F(Substitute, AWordIsTheSameThroughoutItsDocument) {
  const json asked = conversation("zoltan\n\tZoltan", "Zoltan.");
  const auto answers = seen(asked, [](const json& v) {
    const std::string answer = content(v, 1), question = content(v, 0);
    const std::string name = answer.substr(0, answer.size() - 1);
    std::string small = name;
    small[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(small[0])));
    EXPECT_EQ(question, small + "\n\t" + name) << "escapes stay, and so do capitals";
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(name[0])));
    return name;
  });
  EXPECT_GT(answers.size(), 10u) << "drawn anew for every document";
  EXPECT_EQ(apply(asked, 5), apply(asked, 5));
}

TEST_F(Substitute, NamesOfToolsAndTheirArgumentsToo) {
  json asked = conversation("Look for gherkins", "");
  asked["messages"][1]["tool_calls"] = {
      {{"id", "call_1"},
       {"type", "function"},
       {"function", {{"name", "seek_it"}, {"arguments", R"({"whatever":"gherkins"})"}}}}};
  asked["tools"] = {{{"type", "function"},
                     {"function",
                      {{"name", "seek_it"},
                       {"parameters", {{"properties", {{"whatever", {{"type", "string"}}}}}}}}}}};
  const auto names = seen(asked, [](const json& v) {
    const json& call = v["messages"][1]["tool_calls"][0]["function"];
    const json& tool = v["tools"][0]["function"];
    EXPECT_EQ(call["name"], tool["name"]);
    const json arguments = json::parse(call["arguments"].get<std::string>());
    EXPECT_TRUE(tool["parameters"]["properties"].contains(arguments.begin().key()));
    EXPECT_THAT(content(v, 0), HasSubstr(arguments.begin().value().get<std::string>()));
    return call["name"].get<std::string>();
  });
  EXPECT_GT(names.size(), 10u);
}

TEST_F(Substitute, WhatACopyCannotKnowStays) {
  // said by the assistant first, a relative of such a word, a word to keep, a frequent one
  source.substitute_keep = {"seven"};
  const json asked = conversation("apple seven where", "apples seven where");
  EXPECT_THAT(seen(asked, [](const json& v) { return content(v, 0); }), Each("apple seven where"));
  EXPECT_THAT(seen(asked, [](const json& v) { return content(v, 1); }), Each("apples seven where"));
  source.substitute_keep.clear();
  EXPECT_GT(seen(asked, [](const json& v) { return content(v, 0); }).size(), 1u);
}

TEST_F(Substitute, AShareOfTheDocumentsOfASource) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += kOther + "\n";
  lines += "{\"text\": \"a text is left as it is\"}\n";
  lines += conversation("Say xylophone", "xylophone").dump() + "\n";
  test::write_text(folder / "a.jsonl", lines);
  source.files = {folder / "a.jsonl"};
  source.kind = SourceKind::jsonl;
  std::string digest;
  const auto raw = read_documents(source, digest);
  ThreadPool pool{2};
  const auto tokens = [&](double share, std::uint64_t seed) {
    source.substitute = share;
    return tokenize_documents(source, raw, digest, tokenizer, pool, seed);
  };
  EXPECT_EQ(tokens(0, 1).substituted, 0u);
  EXPECT_EQ(tokens(1, 1).substituted, 101u);
  const std::size_t half = tokens(0.5, 1).substituted;
  EXPECT_GT(half, 25u);
  EXPECT_LT(half, 75u);
  EXPECT_EQ(tokens(1, 1).ids, tokens(1, 1).ids);
  EXPECT_NE(tokens(1, 1).ids, tokens(1, 2).ids);
}

}  // namespace
}  // namespace triax::train
