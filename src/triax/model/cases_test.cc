// Acceptance cases of the forward pass, on random checkpoints made from tests/cases/*.json.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <numeric>

#include "support/compare.h"
#include "support/test_model.h"
#include "triax/checkpoint/writer.h"
#include "triax/model/layer.h"
#include "triax/model/recorder.h"
#include "triax/weights/synth.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::close;
using test::random_ids;
using test::Runner;
using test::same_bits;
using test::TestModel;

// A folder that lives as long as the test program.
fs::path scratch(const std::string& name) {
  struct Root {
    fs::path path = fs::temp_directory_path() / fmt::format("triax-cases-{}", getpid());
    ~Root() { fs::remove_all(path); }
  };
  static const Root root;
  const fs::path out = root.path / name;
  fs::create_directories(out);
  return out;
}

std::string case_file(const std::string& name) {
  return fmt::format("{}/tests/cases/{}.json", TRIAX_SOURCE_DIR, name);
}

fs::path case_folder(const std::string& name) {
  const fs::path out = scratch(name);
  if (!fs::exists(out / "config.json")) {
    synthesize({.config = case_file(name), .seed = 4, .shards = 4, .threads = 1}, out);
  }
  return out;
}

const TestModel& case_model(const std::string& name) {
  static std::map<std::string, std::unique_ptr<TestModel>> models;
  auto& slot = models[name];
  if (!slot) slot = std::make_unique<TestModel>(case_folder(name));
  return *slot;
}

constexpr double kTolerance = 1e-4;  // of the largest magnitude, float32

std::vector<float> last_row(const std::vector<float>& logits, std::size_t vocab) {
  return {logits.end() - static_cast<std::ptrdiff_t>(vocab), logits.end()};
}

void expect_close_states(const TestModel& m, const SequenceState& a, const SequenceState& b,
                         const std::string& what) {
  for (std::size_t l = 0; l < m.config.num_hidden_layers; ++l) {
    if (!m.config.is_kda(l)) continue;
    EXPECT_TRUE(close(a.kda(l).matrix, b.kda(l).matrix, kTolerance)) << what << ", layer " << l;
    std::vector<float> ta(a.kda(l).tail.size() / 4), tb(ta.size());
    std::memcpy(ta.data(), a.kda(l).tail.data(), a.kda(l).tail.size());
    std::memcpy(tb.data(), b.kda(l).tail.data(), b.kda(l).tail.size());
    EXPECT_TRUE(close(ta, tb, kTolerance)) << what << ", layer " << l << " convolution";
  }
}

// P04: any split of a prompt gives the single pass's logits and states.
TEST(CaseP04, AnySplitOfAPrompt) {
  const TestModel& m = case_model("case-A");
  const std::size_t vocab = m.config.vocab_size;
  const auto ids = random_ids(40, 200, vocab);
  Runner runner(Precision::f32);
  SequenceState whole(m.config, Precision::f32);
  const std::vector<float> want = runner.run(m, whole, ids, {200});
  for (std::size_t k = 1; k < 200; ++k) {
    SequenceState state(m.config, Precision::f32);
    const std::vector<float> got = runner.run(m, state, ids, {k, 200 - k});
    EXPECT_TRUE(close(got, want, kTolerance)) << "split at " << k;
    expect_close_states(m, state, whole, fmt::format("split at {}", k));
  }
}

TEST(CaseP04, EveryLengthEqualsTokenByToken) {
  const TestModel& m = case_model("case-A");
  const std::size_t vocab = m.config.vocab_size;
  const auto ids = random_ids(41, 130, vocab);
  const std::span<const std::int32_t> all(ids);
  Runner runner(Precision::f32);
  SequenceState stepped(m.config, Precision::f32);
  for (std::size_t n = 1; n <= 130; ++n) {
    const std::vector<float> step = runner.run(m, stepped, all.subspan(n - 1, 1), {1});
    SequenceState state(m.config, Precision::f32);
    const std::vector<float> whole = runner.run(m, state, all.first(n), {n});
    EXPECT_TRUE(close(last_row(whole, vocab), step, kTolerance)) << n << " tokens";
    expect_close_states(m, state, stepped, fmt::format("{} tokens", n));
  }
}

// P05 (a): MLA knows no positions; KDA does.
std::vector<float> last_logits_of(const TestModel& m, const std::vector<std::int32_t>& ids) {
  Runner runner(Precision::f32);
  return last_row(runner.run(m, ids, {ids.size()}), m.config.vocab_size);
}

TEST(CaseP05, PermutedPastChangesNothingInMlaAlone) {
  auto ids = random_ids(50, 40, 1024);
  for (const char* name : {"case-M1", "case-A"}) {
    const TestModel& m = case_model(name);
    const std::vector<float> want = last_logits_of(m, ids);
    std::size_t changed = 0;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      std::vector<std::int32_t> mixed = ids;
      for (std::size_t i = 38; i > 0; --i)
        std::swap(mixed[i], mixed[splitmix64_at(seed, i) % (i + 1)]);
      ASSERT_NE(mixed, ids);
      changed += close(last_logits_of(m, mixed), want, kTolerance) ? 0 : 1;
    }
    EXPECT_EQ(changed, std::string(name) == "case-A" ? 5u : 0u) << name;
  }
}

// P05 (c): cache bytes a token and MLA layer, whatever the number of heads.
TEST(CaseP05, CacheHoldsTheLatentAndTheSharedKeyChannelsOnly) {
  const K3Config& c = case_model("case-A").config;
  EXPECT_EQ(state_size(c, Precision::f32).latent_per_token, c.mla_layers() * (32 + 16) * 4);
  EXPECT_EQ(state_size(c, Precision::bf16).latent_per_token, c.mla_layers() * (32 + 16) * 2);
  K3Config wide = c;
  wide.num_attention_heads = 64;
  EXPECT_EQ(state_size(wide, Precision::f32).latent_per_token,
            state_size(c, Precision::f32).latent_per_token);
}

// P05 (d): the shared key channels take part.
TEST(CaseP05, ZeroedSharedKeyChannelsChangeTheLogits) {
  const TestModel& m = case_model("case-M1");
  const auto ids = random_ids(51, 40, 1024);
  const std::span<const std::int32_t> all(ids);
  Runner runner(Precision::f32);
  std::vector<std::vector<float>> logits;
  for (const bool zero : {false, true}) {
    SequenceState state(m.config, Precision::f32);
    runner.run(m, state, all.first(39), {39});
    for (std::size_t t = 0; zero && t < 39; ++t)
      std::memset(state.latent(0).row(t) + 32 * 4, 0, 16 * 4);
    logits.push_back(runner.run(m, state, all.last(1), {1}));
  }
  EXPECT_FALSE(close(logits[0], logits[1], kTolerance));
}

// The softmax mix of sources [S][N] in double.
std::vector<double> naive_mix(const std::vector<std::vector<double>>& sources,
                              const DepthMixWeights& w) {
  std::vector<double> scores, out(sources[0].size());
  for (const auto& v : sources) {
    double square = 0, dot = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      square += v[i] * v[i];
      dot += v[i] * static_cast<double>(w.norm[i]) * static_cast<double>(w.proj[i]);
    }
    scores.push_back(dot / std::sqrt(square / static_cast<double>(v.size()) + 1e-5));
  }
  double sum = 0;
  for (const double s : scores) sum += std::exp(s);
  for (std::size_t k = 0; k < sources.size(); ++k) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] += std::exp(scores[k]) / sum * sources[k][i];
  }
  return out;
}

// P06: sums are stored at layers 0, 4 and 8; a reference that keeps every module's output, sums and
// mixes, agrees at every site, the last included: so no stored sum was changed after it was made.
TEST(CaseP06, StoredSumsAreImmutable) {
  const TestModel& m = case_model("case-A");
  const std::size_t T = 30, H = m.config.hidden_size;
  Recorder recorder;
  Runner runner(Precision::f32, 2, &recorder);
  runner.run(m, random_ids(60, T, 1024), {T});
  const auto& arrays = recorder.arrays();
  const auto row = [&](const std::string& name, std::size_t t) {
    const std::vector<float>& v = arrays.at(name).values;
    return std::vector<double>(v.begin() + static_cast<std::ptrdiff_t>(t * H),
                               v.begin() + static_cast<std::ptrdiff_t>((t + 1) * H));
  };
  const auto expect_near = [&](const std::vector<double>& want, const std::string& name,
                               std::size_t t) {
    const std::vector<double> got = row(name, t);
    std::vector<float> narrow(got.begin(), got.end());
    EXPECT_TRUE(close(narrow, want, kTolerance)) << name << " row " << t;
  };
  EXPECT_TRUE(arrays.contains("block2"));
  EXPECT_FALSE(arrays.contains("block3"));
  for (std::size_t t = 0; t < T; ++t) {
    std::vector<std::vector<double>> blocks;
    std::vector<double> s = row("block0", t);  // the embedding
    for (std::size_t l = 0; l < m.config.num_hidden_layers; ++l) {
      const std::string layer = fmt::format("layer{}.", l);
      const LayerWeights& w = m.weights.layers[l];
      auto sources = blocks;
      sources.push_back(s);
      if (l > 0) expect_near(naive_mix(sources, w.self_attention_res), layer + "attn_mix", t);
      const std::vector<double> a = row(layer + (m.config.is_kda(l) ? "kda.out" : "mla.out"), t);
      if (l % 4 == 0) {
        expect_near(s, fmt::format("block{}", l / 4), t);
        blocks.push_back(s);
        s.assign(H, 0.0);
      }
      for (std::size_t i = 0; i < H; ++i) s[i] += a[i];
      sources = blocks;
      sources.push_back(s);
      expect_near(naive_mix(sources, w.mlp_res), layer + "mlp_mix", t);
      const std::vector<double> out = row(layer + "out", t), after = row(layer + "after_attn", t);
      for (std::size_t i = 0; i < H; ++i) s[i] += out[i] - after[i];  // the feed-forward's output
    }
    auto sources = blocks;
    sources.push_back(s);
    expect_near(naive_mix(sources, m.weights.output_attn_res), "output_mix", t);
  }
}

// P03, second part: SwiGLU for SiTU in the dense layer alone, or in the shared experts alone,
// shows.
TEST(CaseP03, AnotherActivationShows) {
  const TestModel& m = case_model("case-A");
  const std::size_t T = 8, H = m.config.hidden_size;
  Recorder recorder;
  Runner runner(Precision::f32, 2, &recorder);
  runner.run(m, random_ids(30, T, 1024), {T});
  K3Config silu = m.config;
  silu.act_situ = false;
  const auto differs = [&](const std::string& in, const MlpWeights& w) {
    Runner plain(Precision::f32);
    const Mat<const float> x(recorder.arrays().at(in).values.data(), {T, H});
    std::vector<float> situ(T * H), swiglu(T * H);
    gated_mlp(plain.ctx, m.config, w, x, Mat<float>(situ.data(), {T, H}));
    gated_mlp(plain.ctx, silu, w, x, Mat<float>(swiglu.data(), {T, H}));
    return !close(swiglu, situ, 10 * kTolerance);
  };
  EXPECT_TRUE(differs("layer0.mlp_in", m.weights.layers[0].mlp));
  EXPECT_TRUE(differs("layer1.mlp_in", m.weights.layers[1].moe.shared_experts));
}

// Writes case-A again with other names, dtypes or padding.
fs::path rewrite(const std::string& name,
                 const std::function<void(TensorToWrite&, std::vector<std::byte>&)>& change) {
  const fs::path from = case_folder("case-A"), to = scratch(name);
  const auto checkpoint = Checkpoint::open(from);
  ShardPlan plan{"model.safetensors", {}};
  std::map<std::string, std::vector<std::byte>> data;
  for (const TensorEntry& e : checkpoint->tensors()) {
    TensorToWrite tensor{std::string(e.name), e.dtype, {e.shape.begin(), e.shape.end()}};
    const auto bytes = checkpoint->data(e);
    std::vector<std::byte> copy(bytes.begin(), bytes.end());
    change(tensor, copy);
    data[tensor.name] = std::move(copy);
    plan.tensors.push_back(std::move(tensor));
  }
  std::ifstream config(from / "config.json");
  const std::string text((std::istreambuf_iterator<char>(config)), {});
  write_checkpoint(
      to, {&plan, 1}, [&](const TensorToWrite& t, ShardWriter& out) { out.write(data.at(t.name)); },
      text);
  return to;
}

void pad_a_log(TensorToWrite& t, std::vector<std::byte>& bytes, std::size_t entries) {
  if (!t.name.ends_with("A_log")) return;
  std::vector<float> values(2);
  std::memcpy(values.data(), bytes.data(), 8);
  values.resize(entries, 999.0f);
  t.shape = {entries};
  bytes.resize(4 * entries);
  std::memcpy(bytes.data(), values.data(), bytes.size());
}

// P02: what differs between folders of the same weights changes no bit.
TEST(CaseP02, QuirksOfTheCheckpointChangeNoBit) {
  const auto ids = random_ids(20, 70, 1024);
  Runner runner(Precision::f32);
  const std::vector<float> want = runner.run(case_model("case-A"), ids, {64, 6});
  const std::map<std::string, std::function<void(TensorToWrite&, std::vector<std::byte>&)>>
      variants{
          {"a-log-padded", [](auto& t, auto& bytes) { pad_a_log(t, bytes, 32); }},
          {"a-log-exact", [](auto& t, auto& bytes) { pad_a_log(t, bytes, 2); }},
          {"root-model",
           [](auto& t, auto&) {
             const std::string root = "language_model.";
             if (t.name.starts_with(root)) t.name = t.name.substr(root.size());
           }},
          {"scales-e8m0",
           [](auto& t, auto&) {
             if (t.name.ends_with("weight_scale")) t.dtype = DType::F8_E8M0;
           }},
      };
  for (const auto& [name, change] : variants) {
    const TestModel m(rewrite(name, change));
    EXPECT_TRUE(same_bits(runner.run(m, ids, {64, 6}), want)) << name;
  }
}

TEST(CaseP02, TooFewALogEntriesAreNamed) {
  const fs::path folder =
      rewrite("a-log-short", [](auto& t, auto& bytes) { pad_a_log(t, bytes, 1); });
  try {
    const TestModel m(folder);
    FAIL() << "loaded";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("A_log"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("[1]"), std::string::npos) << e.what();
  }
}

// Resident and mapped experts are the same numbers.
TEST(Experts, ResidentEqualsMapped) {
  const TestModel& mapped = case_model("case-A");
  TestModel resident(case_folder("case-A"));
  resident.experts = std::make_unique<ResidentExperts>(resident.config, resident.checkpoint);
  EXPECT_GT(resident.experts->resident_bytes(), 0u);
  const auto ids = random_ids(21, 70, 1024);
  for (const Precision p : {Precision::f32, Precision::bf16}) {
    Runner runner(p);
    EXPECT_TRUE(same_bits(runner.run(resident, ids, {64, 6}), runner.run(mapped, ids, {64, 6})));
  }
}

// P08: a scale byte of 255 is refused when the folder is opened, with tensor and row.
TEST(Experts, NanScaleIsALoadError) {
  const fs::path folder = rewrite("nan-scale", [](auto& t, auto& bytes) {
    if (t.name.ends_with("layers.3.block_sparse_moe.experts.5.w2.weight_scale")) {
      bytes[3 * t.shape[1]] = std::byte{255};
    }
  });
  try {
    const TestModel m(folder);
    FAIL() << "loaded";
  } catch (const Error& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("experts.5.w2.weight_scale"), std::string::npos) << what;
    EXPECT_NE(what.find("row 3"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace triax
