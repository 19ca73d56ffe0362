// `triax logits` and `triax eval` against the golden values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "e2e/program.h"
#include "support/golden.h"
#include "triax/checkpoint/npy.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::Outcome;

struct GoldenFiles {
  explicit GoldenFiles(const std::string& variant)
      : folder(test::golden("text/" + variant)),
        values(folder + "/golden.safetensors"),
        manifest(nlohmann::json::parse(std::ifstream(folder + "/manifest.json"))) {}

  std::vector<std::int32_t> ids() const { return values["input_ids"].i32; }
  std::string json_ids(std::size_t count) const {
    const std::vector<std::int32_t> all = ids();
    return nlohmann::json(std::vector<std::int32_t>(
                              all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)))
        .dump();
  }

  std::string folder;
  test::Golden values;
  nlohmann::json manifest;
};

void expect_close(const GoldenFiles& g, const std::string& name, const NpyArray& have) {
  const test::GoldenArray& want = g.values[name];
  EXPECT_EQ(have.shape, want.shape) << name;
  if (want.dtype == "I32") {
    EXPECT_EQ(have.ints, want.i32) << name;
    return;
  }
  ASSERT_EQ(have.floats.size(), want.f32.size()) << name;
  const double tolerance = g.manifest["arrays"][name]["tolerance"].get<double>();
  double worst = 0;
  for (std::size_t i = 0; i < want.f32.size(); ++i) {
    const double d =
        std::fabs(static_cast<double>(have.floats[i]) - static_cast<double>(want.f32[i]));
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  EXPECT_LE(worst, tolerance) << name;
}

class Logits : public testing::TestWithParam<std::string> {};

TEST_P(Logits, EqualTheGoldenOnesInAnyChunk) {
  const GoldenFiles g(GetParam());
  for (const char* chunk : {"1", "7", "256"}) {
    const std::string out = (test::scratch() / "logits.npy").string();
    const Outcome o = test::run({"logits", "-m", g.folder, "--ids", "-", "--out", out,
                                 "--precision", "f32", "--chunk", chunk},
                                g.json_ids(g.ids().size()));
    ASSERT_EQ(o.code, 0) << o.err;
    expect_close(g, "logits", read_npy(out));
  }
}

// The states are those after the rows given, so the prompt alone is fed.
TEST_P(Logits, DumpHasEveryGoldenArrayUnderItsName) {
  const GoldenFiles g(GetParam());
  const std::size_t prompt = g.manifest["prompt_tokens"].get<std::size_t>();
  const fs::path dump = test::scratch() / ("dump-" + GetParam());
  const std::string out = (test::scratch() / "dumped.npy").string();
  for (const bool states : {true, false}) {
    const Outcome o = test::run({"logits", "-m", g.folder, "--ids", "-", "--out", out,
                                 "--precision", "f32", "--dump", dump.string()},
                                g.json_ids(states ? prompt : g.ids().size()));
    ASSERT_EQ(o.code, 0) << o.err;
    std::size_t compared = 0;
    for (const auto& [name, entry] : g.manifest["arrays"].items()) {
      if (name == "input_ids" || name == "logits") continue;
      if (name.ends_with("_after_prompt") != states) continue;
      const fs::path file = dump / (name + ".npy");
      ASSERT_TRUE(fs::exists(file)) << file;
      expect_close(g, name, read_npy(file));
      ++compared;
    }
    EXPECT_GT(compared, states ? 2u : 30u);
  }
}

TEST_P(Logits, Bf16StaysWithinItsLimit) {
  const GoldenFiles g(GetParam());
  const std::string out = (test::scratch() / "bf16.npy").string();
  const Outcome o =
      test::run({"logits", "-m", g.folder, "--ids", "-", "--out", out}, g.json_ids(g.ids().size()));
  ASSERT_EQ(o.code, 0) << o.err;
  const NpyArray have = read_npy(out);
  const std::vector<float>& want = g.values["logits"].f32;
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double w = static_cast<double>(want[i]), d = static_cast<double>(have.floats[i]) - w;
    error += d * d;
    norm += w * w;
  }
  EXPECT_LE(std::sqrt(error / norm), GetParam() == "tiny-a" ? 0.04 : 0.025);
  EXPECT_GT(error, 0) << "f32 was computed instead";
}

INSTANTIATE_TEST_SUITE_P(Variants, Logits, testing::Values("tiny-a", "tiny-b", "tiny-c"),
                         [](const auto& i) { return i.param.substr(5); });

// The loss by hand, from the golden logits.
TEST(Eval, LossIsTheMeanOfTheGoldenLogits) {
  const GoldenFiles g("tiny-c");
  const std::vector<std::int32_t> ids = g.ids();
  const test::GoldenArray& logits = g.values["logits"];
  const std::size_t vocab = logits.cols();
  double sum = 0;
  for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
    double z = 0;
    for (std::size_t v = 0; v < vocab; ++v)
      z += std::exp(static_cast<double>(logits.f32[t * vocab + v]));
    sum += std::log(z) -
           static_cast<double>(logits.f32[t * vocab + static_cast<std::size_t>(ids[t + 1])]);
  }
  const double want = sum / static_cast<double>(ids.size() - 1);
  for (const char* context : {"256", "5"}) {  // a text longer than a pass goes on in the next
    const Outcome o = test::run({"eval", "-", "--ids", "-m", g.folder, "--precision", "f32",
                                 "--context", context, "--json"},
                                g.json_ids(ids.size()));
    ASSERT_EQ(o.code, 0) << o.err;
    const auto json = o.json();
    EXPECT_NEAR(json["loss"].get<double>(), want, 1e-4);
    EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(want), 1e-2);
    EXPECT_EQ(json["predicted_tokens"], ids.size() - 1);
    EXPECT_TRUE(json["bits_per_byte"].is_null()) << "there is no tokenizer";
  }
}

TEST(Eval, AgainstComparesTwoWaysOfComputing) {
  const GoldenFiles g("tiny-a");
  const auto against = [&](const std::string& settings, const char* precision) {
    const Outcome o = test::run({"eval", "-", "--ids", "-m", g.folder, "--precision", precision,
                                 "--against", settings, "--json"},
                                g.json_ids(g.ids().size()));
    EXPECT_EQ(o.code, 0) << o.err;
    return o.json()["against"];
  };
  const auto same = against("precision=f32,threads=1", "f32");
  EXPECT_EQ(same["mean_kl"].get<double>(), 0) << "threads change no bit";
  EXPECT_EQ(same["top1_agreement"].get<double>(), 1);
  const auto rounded = against("bf16", "f32");
  EXPECT_GT(rounded["mean_kl"].get<double>(), 0);
  EXPECT_LT(rounded["mean_kl"].get<double>(), 0.05);
  EXPECT_GE(rounded["p99_kl"].get<double>(), rounded["mean_kl"].get<double>());
  EXPECT_GT(rounded["top1_agreement"].get<double>(), 0.8);
  const auto token_by_token = against("chunk=1", "f32");
  EXPECT_LT(token_by_token["mean_kl"].get<double>(), 1e-7);
}

}  // namespace
}  // namespace triax
