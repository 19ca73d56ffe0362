// Configurations: TOML and JSON mean the same, every wrong key is named, what is resolved reads
// back.
#include "triax/train/train_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/model_folder.h"
#include "triax/train/config_reader.h"

namespace triax::train {
namespace {

using test::error_of;
using testing::HasSubstr;

constexpr const char* kToml = R"(
seed = 7
precision = "f32"
[model]
shape = "nano"
hidden_size = 96
linear_attn_config = {num_heads = 3}
[tokenizer]
vocabulary = 1024
[[data]]
name = "stories"
files = ["a.txt", "/abs/b.txt"]
weight = 2.5
[[data]]
files = ["chat.jsonl"]
learn = "all"
[[data]]
files = ["talk.jsonl"]
substitute = 0.5
substitute_keep = ["one"]
[[data]]
kind = "repeats"
documents = 300
[[held_out]]
files = ["c.txt"]
split = "blank_lines"
[[stage]]
tokens = 2e6
context = 128
[[stage]]
tokens = 1000000
context = 512
batch_tokens = 8192
micro_batch_tokens = 2048
[optimizer]
peak_rate = 3e-3
)";

TrainConfig parse(const std::string& text) {
  return parse_train_config(text, false, "test.toml", "/data");
}

TEST(TrainConfig, ReadsToml) {
  const TrainConfig c = parse(kToml);
  EXPECT_EQ(c.seed, 7u);
  EXPECT_EQ(c.precision, Precision::f32);
  EXPECT_EQ(c.shape, "nano");
  EXPECT_THAT(c.shape_changes, HasSubstr("\"hidden_size\":96"));
  ASSERT_EQ(c.data.size(), 4u);
  EXPECT_EQ(c.data[2].substitute, 0.5);
  EXPECT_EQ(c.data[2].substitute_keep, std::vector<std::string>{"one"});
  EXPECT_EQ(c.data[3].kind, SourceKind::repeats);
  EXPECT_EQ(c.data[3].name, "repeats");
  EXPECT_EQ(c.data[3].documents, 300u);
  EXPECT_EQ(c.data[0].files[0], "/data/a.txt");
  EXPECT_EQ(c.data[0].files[1], "/abs/b.txt");
  EXPECT_EQ(c.data[0].weight, 2.5);
  EXPECT_EQ(c.data[0].kind, SourceKind::text);
  EXPECT_EQ(c.data[1].name, "chat");
  EXPECT_EQ(c.data[1].kind, SourceKind::jsonl);
  EXPECT_EQ(c.data[1].learn, Learn::all);
  EXPECT_EQ(c.held_out[0].split, Split::blank_lines);
  EXPECT_EQ(c.stages[0].tokens, 2000000u);
  EXPECT_EQ(c.stages[0].micro_batch_tokens, 4096u);
  EXPECT_EQ(c.total_tokens(), 3000000u);
  EXPECT_EQ(c.last_context(), 512u);
  EXPECT_EQ(c.peak_rate, 3e-3);
  EXPECT_EQ(c.optimizer.weight_decay, 0.1);
}

TEST(TrainConfig, ResolvedReadsBackToTheSame) {
  const TrainConfig c = parse(kToml);
  const std::string text = resolved_text(c);
  const TrainConfig again = parse_train_config(text, true, "train.json", "/elsewhere");
  EXPECT_EQ(resolved_text(again), text);
  EXPECT_EQ(first_difference(c, again), "");
}

TEST(TrainConfig, DifferencesThatMatterAreNamed) {
  const TrainConfig a = parse(kToml);
  TrainConfig b = a;
  b.checkpoint.every_steps = 1;
  b.evaluation.tokens = 99;
  EXPECT_EQ(first_difference(a, b), "");
  b.peak_rate = 1e-4;
  EXPECT_EQ(first_difference(a, b), "optimizer");
  b = a;
  b.init_from = "/model";
  EXPECT_EQ(first_difference(a, b), "init_from");
}

TEST(TrainConfig, FaultsNameTheKey) {
  const std::string good = kToml;
  const std::pair<std::string, const char*> cases[] = {
      {good + "momentum = 1\n", "optimizer.momentum: there is no such key"},
      {"sed = 1\n" + good, "sed: there is no such key"},
      {good + "[[stage]]\ncontext = 64\n", "stage[2].tokens is missing"},
      {good + "[[stage]]\ntokens = 1\ncontxt = 64\n", "stage[2].contxt: there is no such key"},
      {good + "[[stage]]\ntokens = 1\ncontext = 64\nmicro_batch_tokens = 32\n",
       "stage[2].micro_batch_tokens is 32"},
      {good + "[[data]]\nname = \"x\"\n", "data[4].files is missing"},
      {good + "[[data]]\nfiles = [\"x\"]\nkind = \"csv\"\n", "data[4].kind is \"csv\""},
      {good + "[[data]]\nfiles = [\"x\"]\nweight = -1\n", "data[4].weight is -1"},
      {good + "[[data]]\nkind = \"repeats\"\nfiles = [\"x\"]\n", "data[4].files are given"},
      {good + "[[data]]\nfiles = [\"x.txt\"]\nsubstitute = 0.5\n", "data[4].substitute needs"},
      {good + "[[data]]\nfiles = [\"x.jsonl\"]\nlearn = \"all\"\nsubstitute = 0.5\n",
       "data[4].substitute needs"},
      {good + "[[data]]\nfiles = [\"x.jsonl\"]\nsubstitute = 2\n", "data[4].substitute is 2"},
      {good + "[[data]]\nkind = \"repeats\"\ndocuments = 4000000\nlength = 4000\n",
       "data[4].length is 4000, with 4000000 documents"},
      {good + "[[data]]\nkind = \"repeats\"\nlength = 7\n", "data[4].length is 7"},
      {good + "[[data]]\nfiles = [\"x\"]\nlength = 9\n", "data[4].length: there is no such key"},
      {good + "[qat]\nfrom = \"late\"\n", "qat.from is \"late\""},
      {good + "[guard]\nskips = 0.5\n", "guard.skips is 0.5"},
      {good + "warmup = 2\n", "optimizer.warmup is 2"},
      {"seed = 1\n", "model.shape is missing"},
      {"[model]\nshape = \"mini\"\n", "data is missing"},
      {"seed = \n", "test.toml: line 1"},
  };
  for (const auto& [text, want] : cases) {
    const std::string got = error_of([&] { parse(text); });
    EXPECT_THAT(got, HasSubstr(want));
    EXPECT_THAT(got, HasSubstr("test.toml"));
  }
  EXPECT_THAT(error_of([] { parse_train_config("{", true, "x.json", ""); }),
              HasSubstr("x.json: not JSON"));
  EXPECT_THAT(error_of([] { parse_train_config("[1]", true, "x.json", ""); }),
              HasSubstr("expected a table"));
}

TEST(TrainConfig, TokensScaleOverAllStages) {
  TrainConfig c = parse(kToml);
  scale_tokens(c, 300000);
  EXPECT_EQ(c.stages[0].tokens, 200000u);
  EXPECT_EQ(c.stages[1].tokens, 100000u);
}

}  // namespace
}  // namespace triax::train
