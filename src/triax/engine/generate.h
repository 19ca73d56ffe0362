// One sequence from prompt to stop: prefill in chunks, then decode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "triax/model/forward.h"
#include "triax/sampling/sampler.h"

namespace triax {

// Rows of a prompt that go through the model at a time. A multiple of the KDA chunk (64), so that
// the cuts fall on chunk borders.
inline constexpr std::size_t kPrefillChunk = 512;

// Feeds `ids` in chunks of `chunk` rows; logits of the last row (vocab values) into `logits`, which
// may be empty. `progress(done, total)` after each chunk; it returns false to stop early, and then
// the function returns false with the chunks so far in the state.
bool prefill(Context& ctx, const Model& model, SequenceState& state,
             std::span<const std::int32_t> ids, std::size_t chunk, std::span<float> logits,
             const std::function<bool(std::size_t done, std::size_t total)>& progress = {});

struct GenerateOptions {
  SamplingParams sampling = {};
  std::size_t max_tokens = 256;
  std::size_t chunk = kPrefillChunk;
  std::vector<std::int32_t> stop_ids = {};
};

enum class Finish : std::uint8_t { stop, length, cancelled };

struct GenerateResult {
  std::vector<std::int32_t> ids;  // the stop id is not among them
  Finish finish = Finish::length;
  std::size_t prompt_tokens = 0;
  double prompt_seconds = 0;  // until the logits of the prompt's last row
  double decode_seconds = 0;  // passes after the first token
  std::size_t decode_steps = 0;
};

struct GenerateCallbacks {
  std::function<bool(std::size_t done, std::size_t total)> on_prompt = {};  // false: cancel
  std::function<bool(std::int32_t id)> on_token = {};                       // false: cancel
};

GenerateResult generate(Context& ctx, const Model& model, SequenceState& state,
                        std::span<const std::int32_t> prompt, const GenerateOptions& options,
                        const GenerateCallbacks& callbacks = {});

}  // namespace triax
