// Reading and encoding documents.
#include "triax/train/documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/model_folder.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax::train {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

struct Files : testing::Test {
  test::TempFolder folder;
  ThreadPool pool{2};
  DataSource source(const std::string& name, const std::string& text) {
    test::write_text(folder / name, text);
    DataSource out;
    out.name = name;
    out.files = {folder / name};
    if (name.ends_with(".jsonl")) out.kind = SourceKind::jsonl;
    return out;
  }
  static std::vector<RawDocument> read(const DataSource& s) {
    std::string digest;
    return read_documents(s, digest);
  }
  static std::vector<std::string> texts(const std::vector<RawDocument>& documents) {
    std::vector<std::string> out;
    for (const RawDocument& d : documents) out.push_back(d.text);
    return out;
  }
  Tokenizer tokenizer() {
    write_byte_tokenizer(folder / "tokenizer", 40);
    return Tokenizer::load(folder / "tokenizer");
  }
};

TEST_F(Files, TextIsOneDocumentOrCutAtBlankLines) {
  DataSource s = source("a.txt", "\none\ntwo\n\n  \nthree\n");
  EXPECT_THAT(texts(read(s)), ElementsAre("one\ntwo\n\n  \nthree"));
  s.split = Split::blank_lines;
  EXPECT_THAT(texts(read(s)), ElementsAre("one\ntwo", "three"));
  EXPECT_THAT(read(s)[1].where, HasSubstr("a.txt:6"));
}

TEST_F(Files, JsonLinesAreDocuments) {
  const DataSource s = source("a.jsonl", "{\"text\": \"one\", \"id\": 3}\n\n{\"text\": \"two\"}");
  EXPECT_THAT(texts(read(s)), ElementsAre("one", "two"));
}

TEST_F(Files, FaultsNameFileAndLine) {
  EXPECT_THAT(error_of([&] { read(source("a.jsonl", "{\"text\": \"x\"}\n{\"txt\": 1}\n")); }),
              HasSubstr("a.jsonl:2: expected an object"));
  EXPECT_THAT(error_of([&] { read(source("b.jsonl", "{\n")); }), HasSubstr("b.jsonl:1: not JSON"));
  EXPECT_THAT(error_of([&] { read(source("c.txt", " \n\n")); }), HasSubstr("c.txt: nothing"));
  DataSource missing;
  missing.files = {folder / "nowhere.txt"};
  EXPECT_THAT(error_of([&] { read(missing); }), HasSubstr("nowhere.txt"));
}

TEST_F(Files, TextEndsWithEosAndLearnsAllButItsFirstToken) {
  const Tokenizer t = tokenizer();
  const DataSource s = source("a.txt", "some words");
  const DocumentSet set = tokenize_documents(s, read(s), "d", t, pool, 1);
  std::vector<std::int32_t> want = t.encode("some words");
  want.push_back(t.required_id(Role::Eos));
  EXPECT_EQ(set.ids, want);
  EXPECT_EQ(set.targets(), want.size() - 1);
  EXPECT_EQ(set.rows(), want.size() - 1);
}

TEST_F(Files, ConversationsLearnWhatTheAssistantWrites) {
  const Tokenizer t = tokenizer();
  DataSource s = source(
      "a.jsonl", R"({"messages": [{"role": "user", "content": "what is it"},)"
                 R"({"role": "assistant", "content": "a ball"}], "thinking_effort": "low"})");
  const std::vector<RawDocument> raw = read(s);
  const DocumentSet set = tokenize_documents(s, raw, "d", t, pool, 1);
  std::vector<std::int32_t> learned, others;
  for (std::size_t i = 0; i < set.ids.size(); ++i) {
    (set.learn[i] ? learned : others).push_back(set.ids[i]);
  }
  EXPECT_THAT(t.decode(learned), HasSubstr("a ball"));
  EXPECT_THAT(t.decode(learned), testing::Not(HasSubstr("what is it")));
  EXPECT_THAT(t.decode(others), HasSubstr("what is it"));
  EXPECT_THAT(t.decode(others), HasSubstr("low"));
  EXPECT_EQ(set.ids.back(), t.required_id(Role::EndOfMsg));
  EXPECT_TRUE(set.learn.back());
  EXPECT_THAT(plain_text(raw[0]), HasSubstr("what is it\na ball"));
  s.learn = Learn::all;
  const DocumentSet all = tokenize_documents(s, raw, "d", t, pool, 1);
  EXPECT_EQ(all.targets(), all.ids.size() - 1);
}

TEST_F(Files, WithoutAnythingToLearnASourceIsRefused) {
  const DataSource s =
      source("a.jsonl", R"({"messages": [{"role": "user", "content": "what is it"}]})");
  EXPECT_THAT(error_of([&] { tokenize_documents(s, read(s), "d", tokenizer(), pool, 1); }),
              HasSubstr("none of its 1 documents"));
}

}  // namespace
}  // namespace triax::train
