#include "triax/engine/generate.h"

#include <algorithm>

#include "triax/core/clock.h"

namespace triax {

bool prefill(Context& ctx, const Model& model, SequenceState& state,
             std::span<const std::int32_t> ids, std::size_t chunk, std::span<float> logits,
             const std::function<bool(std::size_t, std::size_t)>& progress) {
  TRIAX_CHECK(chunk > 0);
  for (std::size_t begin = 0; begin < ids.size(); begin += chunk) {
    const std::size_t end = std::min(ids.size(), begin + chunk);
    const bool want = end == ids.size() && !logits.empty();
    const BatchEntry entry{&state, ids.subspan(begin, end - begin),
                           want ? LogitRows::last : LogitRows::none};
    Mat<float> out;
    if (want) out = Mat<float>(logits.data(), {1, logits.size()});
    forward(ctx, model, {&entry, 1}, out);
    if (progress && !progress(end, ids.size()) && end < ids.size()) return false;
  }
  return true;
}

GenerateResult generate(Context& ctx, const Model& model, SequenceState& state,
                        std::span<const std::int32_t> prompt, const GenerateOptions& options,
                        const GenerateCallbacks& callbacks) {
  if (prompt.empty()) fail("the prompt has no tokens: give at least one");
  GenerateResult out;
  out.prompt_tokens = prompt.size();
  Sampler sampler(options.sampling);
  std::vector<float> logits(model.config.vocab_size);
  Stopwatch watch;
  if (!prefill(ctx, model, state, prompt, options.chunk, logits, callbacks.on_prompt)) {
    out.finish = Finish::cancelled;
    return out;
  }
  out.prompt_seconds = watch.seconds();
  watch.restart();
  while (out.ids.size() < options.max_tokens) {
    const std::int32_t id = [&] {
      const ProfileScope profile(ctx.profile, Family::sampling);
      return sampler.sample(logits);
    }();
    TRIAX_CHECK(id >= 0, "no logit is a number");
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), id) != options.stop_ids.end()) {
      out.finish = Finish::stop;
      break;
    }
    out.ids.push_back(id);
    if (callbacks.on_token && !callbacks.on_token(id)) {
      out.finish = Finish::cancelled;
      break;
    }
    if (out.ids.size() == options.max_tokens) break;
    const BatchEntry entry{&state, std::span<const std::int32_t>(&out.ids.back(), 1),
                           LogitRows::last};
    forward(ctx, model, {&entry, 1}, Mat<float>(logits.data(), {1, logits.size()}));
    ++out.decode_steps;
  }
  out.decode_seconds = watch.seconds();
  return out;
}

}  // namespace triax
