// Samples of a model from the serving engine, and what two models say about them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "triax/core/context.h"
#include "triax/distill/prompts.h"
#include "triax/experts/expert_store.h"
#include "triax/model/forward.h"
#include "triax/tokenizer/tokenizer.h"

namespace triax::distill {

// A model folder for passes.
struct OpenModel {
  explicit OpenModel(const std::filesystem::path& folder);
  OpenModel(const OpenModel&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;
  Model model() const { return {config, weights, experts.get()}; }

  K3Config config;
  K3Weights weights;
  std::unique_ptr<ExpertStore> experts;
};

struct RolloutOptions {
  float temperature = 1;  // 0: greedy
  std::uint64_t seed = 0;
  std::size_t max_tokens = 384;
  std::size_t sequences = 64;  // at once
};

// Called from the calling thread now and then; false gives up.
using RolloutProgress = std::function<bool(std::size_t done, std::size_t total)>;

// An answer to each prompt, its end token included (missing where max_tokens cut it). Number i
// follows from prompt i and seed alone. Empty when `progress` gave up. Throws Error when a sequence
// fails.
std::vector<std::vector<std::int32_t>> rollout(ThreadPool& pool, const OpenModel& model,
                                               const Tokenizer& tokenizer,
                                               std::span<const Prompt> prompts,
                                               const RolloutOptions& options,
                                               const RolloutProgress& progress = {});

// Two models on a sampled token, of the distributions before it.
struct TokenScore {
  float student = 0, teacher = 0;  // log probability of the token
  float divergence = 0;            // KL(student || teacher), over the whole vocabulary
};

// Both models read prompts and samples, many sequences in a pass. [samples][tokens]
std::vector<std::vector<TokenScore>> compare(
    Context& ctx, const OpenModel& student, const OpenModel& teacher,
    std::span<const Prompt* const> prompts,
    std::span<const std::vector<std::int32_t>* const> samples);

// clip(log teacher - log student, +-limit): the reward of a sampled token (Kimi K3 technical
// report, equation 15).
float reward(const TokenScore& score, double limit);

}  // namespace triax::distill
