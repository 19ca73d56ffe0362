// Passes over whatever sequences are under way: prompts and single tokens side by side.
#include "triax/cli/suite_run.h"

#include <algorithm>
#include <memory>

#include "triax/chat/reader.h"
#include "triax/core/error.h"
#include "triax/distill/prompts.h"
#include "triax/model/forward.h"
#include "triax/sampling/sampler.h"

namespace triax::cli {
namespace {

using world::SuiteItem;

// One sequence under way.
struct Slot {
  Slot(const Session& session, std::size_t number, std::vector<std::int32_t> ids,
       const Tokenizer& tokenizer)
      : item(number),
        state(session.config(), session.ctx.precision),
        prompt(std::move(ids)),
        reader(tokenizer) {}

  // The ids of the next pass.
  std::span<const std::int32_t> next(std::size_t chunk) const {
    if (fed == prompt.size()) return {&last, 1};
    return std::span(prompt).subspan(fed, std::min(chunk, prompt.size() - fed));
  }

  std::size_t item;
  SequenceState state;
  std::vector<std::int32_t> prompt;
  std::size_t fed = 0;
  std::int32_t last = 0;
  std::size_t generated = 0, thinking = 0;
  chat::TurnReader reader;
};

class Runner {
 public:
  Runner(Session& session, const std::vector<SuiteItem>& items, const SuiteRunOptions& options,
         const std::function<bool(std::size_t)>& progress)
      : session_(session),
        tokenizer_(session.loaded->required_tokenizer("the suite needs text")),
        stop_ids_(session.loaded->stop_ids()),
        items_(items),
        options_(options),
        progress_(progress) {
    result_.answers.resize(items.size());
    result_.thinking_tokens.resize(items.size());
  }

  SuiteRunResult run() {
    while (!stopped_) {
      while (slots_.size() < options_.batch && next_ < items_.size()) open(next_++);
      if (slots_.empty()) break;
      pass();
    }
    return std::move(result_);
  }

 private:
  void open(std::size_t number) {
    std::vector<std::int32_t> ids = distill::suite_prompt(items_[number], tokenizer_);
    result_.prompt_tokens += ids.size();
    slots_.push_back(std::make_unique<Slot>(session_, number, std::move(ids), tokenizer_));
  }

  void pass() {
    std::vector<BatchEntry> entries;
    std::vector<Slot*> with_logits;
    for (const auto& slot : slots_) {
      const auto ids = slot->next(options_.chunk);
      const bool last =
          slot->fed == slot->prompt.size() || slot->fed + ids.size() == slot->prompt.size();
      entries.push_back({&slot->state, Vec<const std::int32_t>(ids.data(), {ids.size()}),
                         last ? LogitRows::last : LogitRows::none});
      if (last) with_logits.push_back(slot.get());
      if (slot->fed < slot->prompt.size()) slot->fed += ids.size();
    }
    const std::size_t vocab = session_.config().vocab_size;
    logits_.resize(with_logits.size() * vocab);
    forward(session_.ctx, session_.model(), entries,
            Mat<float>(logits_.data(), {with_logits.size(), vocab}));
    for (std::size_t i = 0; i < with_logits.size(); ++i) {
      take(*with_logits[i], argmax(std::span(logits_).subspan(i * vocab, vocab)));
    }
    close_finished();
  }

  void take(Slot& slot, std::int32_t id) {
    slot.last = id;
    ++slot.generated;
    ++result_.generated_tokens;
    if (slot.reader.in_text() == chat::Channel::think) ++slot.thinking;
    slot.reader.push(id);
  }

  bool finished(const Slot& slot) const {
    if (slot.generated == 0) return false;
    return slot.reader.ended() || slot.generated >= options_.max_tokens ||
           std::find(stop_ids_.begin(), stop_ids_.end(), slot.last) != stop_ids_.end();
  }

  void close_finished() {
    for (auto& slot : slots_) {
      if (!finished(*slot)) continue;
      const bool ended = slot->reader.ended();
      slot->reader.finish(!ended && slot->generated >= options_.max_tokens);
      result_.answers[slot->item] = distill::suite_answer(slot->reader.turn(), ended);
      result_.thinking_tokens[slot->item] = slot->thinking;
      slot.reset();
      if (!progress_(++done_)) stopped_ = true;
    }
    std::erase(slots_, nullptr);
  }

  Session& session_;
  const Tokenizer& tokenizer_;
  std::vector<std::int32_t> stop_ids_;
  const std::vector<SuiteItem>& items_;
  const SuiteRunOptions& options_;
  const std::function<bool(std::size_t)>& progress_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<float> logits_;  // [sequences, vocab]
  SuiteRunResult result_;
  std::size_t next_ = 0, done_ = 0;
  bool stopped_ = false;
};

}  // namespace

void LoadProbe::ids(std::string_view name, std::span<const std::size_t> shape,
                    const std::int32_t* data) {
  if (!name.ends_with("moe.ids")) return;
  auto place = std::find_if(layers_.begin(), layers_.end(),
                            [&](const auto& layer) { return layer.first == name; });
  if (place == layers_.end()) {
    layers_.emplace_back(std::string(name), std::vector<std::uint64_t>());
    place = layers_.end() - 1;
  }
  std::size_t count = 1;
  for (const std::size_t n : shape) count *= n;
  for (std::size_t i = 0; i < count; ++i) {
    const auto expert = static_cast<std::size_t>(data[i]);
    if (place->second.size() <= expert) place->second.resize(expert + 1);
    ++place->second[expert];
  }
}

LoadProbe::Load LoadProbe::load(std::size_t experts) const {
  Load out;
  out.layers = layers_.size();
  out.experts = experts;
  for (const auto& [name, counts] : layers_) {
    std::uint64_t sum = 0, most = 0;
    std::size_t used = 0;
    for (const std::uint64_t n : counts) {
      sum += n;
      most = std::max(most, n);
      used += n > 0 ? 1 : 0;
    }
    out.dead += experts - used;
    if (sum == 0) continue;
    const double mean = static_cast<double>(sum) / static_cast<double>(experts);
    out.max_over_mean = std::max(out.max_over_mean, static_cast<double>(most) / mean);
  }
  return out;
}

SuiteRunResult run_suite(Session& session, const std::vector<SuiteItem>& items,
                         const SuiteRunOptions& options,
                         const std::function<bool(std::size_t done)>& progress) {
  return Runner(session, items, options, progress).run();
}

}  // namespace triax::cli
