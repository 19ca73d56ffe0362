// Opens a small model for a test and runs it in every way that must agree.
#pragma once

#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/rng.h"
#include "triax/experts/mapped_experts.h"
#include "triax/kernels/kernels.h"
#include "triax/model/forward.h"

namespace triax::test {

struct TestModel {
  K3Config config;
  std::shared_ptr<const Checkpoint> checkpoint;
  K3Weights weights;
  std::unique_ptr<ExpertStore> experts;

  explicit TestModel(const std::filesystem::path& folder)
      : config(K3Config::load(folder)),
        checkpoint(Checkpoint::open(folder)),
        weights(K3Weights::load(config, checkpoint)),
        experts(config.moe_layers() > 0 ? open_mapped_experts(config, checkpoint) : nullptr) {}

  Model model() const { return {config, weights, experts.get()}; }
};

// Threads, scratch memory and number mode of a run.
struct Runner {
  ThreadPool pool;
  Arena arena;
  Context ctx;

  explicit Runner(Precision precision, std::size_t threads = 2, Probe* probe = nullptr)
      : pool(threads), ctx{pool, arena, precision, probe} {}

  // Feeds ids in pieces of the given sizes; logits of every row, [ids, vocab].
  std::vector<float> run(const TestModel& m, SequenceState& state,
                         std::span<const std::int32_t> ids,
                         const std::vector<std::size_t>& pieces) {
    const std::size_t vocab = m.config.vocab_size;
    std::vector<float> logits(ids.size() * vocab);
    std::size_t at = 0;
    for (const std::size_t n : pieces) {
      const BatchEntry entry{&state, ids.subspan(at, n), LogitRows::all};
      forward(ctx, m.model(), {&entry, 1}, Mat<float>(logits.data() + at * vocab, {n, vocab}));
      at += n;
    }
    TRIAX_CHECK(at == ids.size());
    return logits;
  }
  std::vector<float> run(const TestModel& m, std::span<const std::int32_t> ids,
                         const std::vector<std::size_t>& pieces) {
    SequenceState state(m.config, ctx.precision);
    return run(m, state, ids, pieces);
  }
};

inline std::vector<std::size_t> one_by_one(std::size_t n) {
  return std::vector<std::size_t>(n, 1);
}

// The kernel tables that this processor can run.
inline std::vector<Isa> available_isas() {
  std::vector<Isa> out;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512bf16, Isa::amx}) {
    if (isa_available(isa)) out.push_back(isa);
  }
  return out;
}

// The same for a seed everywhere.
inline std::vector<std::int32_t> random_ids(std::uint64_t seed, std::size_t n, std::size_t vocab) {
  std::vector<std::int32_t> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::int32_t>(splitmix64_at(seed, i) % vocab);
  }
  return out;
}

}  // namespace triax::test
