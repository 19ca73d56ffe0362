// `triax run`: the answer to a prompt, or the text after it, as it comes.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "triax/chat/render.h"
#include "triax/cli/answer_out.h"
#include "triax/cli/commands.h"
#include "triax/cli/default_model.h"
#include "triax/cli/format.h"
#include "triax/cli/ids_file.h"
#include "triax/cli/interrupt.h"
#include "triax/cli/load_model.h"
#include "triax/cli/memory.h"
#include "triax/cli/profile_table.h"
#include "triax/cli/progress.h"
#include "triax/engine/generate.h"
#include "triax/kernels/kernels.h"

namespace triax::cli {
namespace {

// What goes through the model first.
struct Prompt {
  std::vector<std::int32_t> ids;
  std::optional<chat::Channel> opened;  // in chat form: where the answer begins
};

// Ids as an answer in chat form, as text where there is a tokenizer, as numbers where there is
// none.
class TextOut {
 public:
  TextOut(const RunCommand& c, const LoadedModel& m, const Prompt& prompt) : stream_(!c.json) {
    if (prompt.opened) {
      answer_.emplace(*m.tokenizer, *prompt.opened,
                      AnswerStyle::standard(stream_, !c.hide_thinking));
    } else if (m.tokenizer) {
      decoder_.emplace(*m.tokenizer);
    }
  }
  void push(std::int32_t id, Progress& progress) {
    if (answer_) {
      answer_->push(id, progress);
    } else if (decoder_) {
      write(decoder_->push(id), &progress);
    } else {
      write((text_.empty() ? "" : " ") + std::to_string(id), &progress);
    }
  }
  // `cut`: by the limit or by the user.
  void finish(bool cut) {
    if (answer_) answer_->finish(cut);
    if (decoder_) write(decoder_->finish(), nullptr);
    if (stream_ && !text_.empty() && text_.back() != '\n') std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  const std::string& text() const { return answer_ ? answer_->turn().content : text_; }
  const chat::Turn* turn() const { return answer_ ? &answer_->turn() : nullptr; }

 private:
  void write(const std::string& piece, Progress* progress) {
    text_ += piece;
    if (!stream_ || piece.empty()) return;
    if (progress != nullptr) progress->text_follows();
    std::fwrite(piece.data(), 1, piece.size(), stdout);
    std::fflush(stdout);
    if (std::ferror(stdout) != 0) fail("cannot write to standard output");
  }

  std::optional<AnswerOut> answer_;
  std::optional<StreamDecoder> decoder_;
  bool stream_;
  std::string text_;
};

void check_use(const RunCommand& c) {
  const bool ids = !c.ids_file.empty();
  if (!c.prompt && !ids) {
    wrong_use("run: give a prompt, - to read standard input, or --ids FILE");
  }
  if (c.prompt && ids) wrong_use("run: a prompt and --ids do not go together; give one of them");
}

// A model with random weights answers nothing: text goes on as text there.
bool in_chat_form(const RunCommand& c, const LoadedModel& m) {
  return c.prompt && !c.raw && m.tokenizer && chat::has_chat_tokens(*m.tokenizer) &&
         !is_random_model(m.folder);
}

Prompt prompt_of(const RunCommand& c, const LoadedModel& m) {
  Prompt out;
  std::vector<std::int32_t>& ids = out.ids;
  std::string where = "the prompt";
  if (!c.ids_file.empty()) {
    where = input_name(c.ids_file);
    ids = read_ids(c.ids_file);
  } else {
    const std::string text = *c.prompt == "-" ? read_input("-") : *c.prompt;
    if (in_chat_form(c, m) && !text.empty()) {
      chat::Conversation conversation;
      conversation.messages.push_back(chat::user_message(text));
      conversation.thinking = c.effort != "none";
      conversation.effort = c.effort;
      const chat::Rendered rendered = chat::render(conversation);
      ids = chat::encode(rendered, *m.tokenizer).ids;
      out.opened = rendered.opened;
      return out;
    }
    ids = m.required_tokenizer("give ids with --ids FILE").encode(text);
  }
  if (ids.empty()) wrong_use("run: {} is empty; there is nothing to go on from", where);
  check_ids(ids, m.config.vocab_size, where);
  return out;
}

std::uint64_t drawn_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32 | device()) >> 1;  // positive in any reader's integer
}

double per_second(std::size_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0;
}

const char* finish_name(Finish finish) {
  switch (finish) {
    case Finish::stop:
      return "stop";
    case Finish::length:
      return "length";
    case Finish::cancelled:
      break;
  }
  return "interrupted";
}

// What --stats asks for: one profile of the prompt's passes, one of what follows.
class RunProfiles {
 public:
  explicit RunProfiles(Context& ctx) : ctx_(ctx) {
    ctx_.profile = &prompt_;
    prompt_.start();
  }
  ~RunProfiles() { ctx_.profile = nullptr; }
  RunProfiles(const RunProfiles&) = delete;
  RunProfiles& operator=(const RunProfiles&) = delete;

  void prompt_done() {
    prompt_.stop();
    decode_.start();
    ctx_.profile = &decode_;
  }
  void all_done() { (ctx_.profile == &decode_ ? decode_ : prompt_).stop(); }

  Profiled prompt(const GenerateResult& r) const {
    return {prompt_, r.prompt_seconds, r.prompt_tokens};
  }
  Profiled decode(const GenerateResult& r) const {
    return {decode_, r.decode_seconds, r.decode_steps};
  }

 private:
  Context& ctx_;
  Profile prompt_, decode_;
};

struct Outcome {
  const RunCommand& command;
  const Session& session;
  const SequenceState& state;
  const GenerateResult& result;
  const TextOut& text;
  std::uint64_t seed;
  const RunProfiles* profiles;  // null without --stats
};

void print_json(const Outcome& o) {
  const GenerateResult& r = o.result;
  const MemoryUse memory = memory_use();
  nlohmann::ordered_json out;
  out["model"] = o.session.loaded->folder.string();
  if (o.session.loaded->tokenizer) out["text"] = o.text.text();
  if (const chat::Turn* turn = o.text.turn()) {
    if (turn->reasoning) out["reasoning"] = *turn->reasoning;
    for (const chat::Turn::Call& call : turn->calls) {
      out["tool_calls"].push_back({{"name", call.name}, {"arguments", call.arguments}});
    }
  }
  out["ids"] = r.ids;
  out["finish"] = finish_name(r.finish);
  out["seed"] = o.seed;
  out["prompt_tokens"] = r.prompt_tokens;
  out["generated_tokens"] = r.ids.size();
  out["load_seconds"] = o.session.load_seconds;
  out["prompt_seconds"] = r.prompt_seconds;
  out["prompt_tokens_per_second"] = per_second(r.prompt_tokens, r.prompt_seconds);
  out["decode_seconds"] = r.decode_seconds;
  out["decode_tokens_per_second"] = per_second(r.decode_steps, r.decode_seconds);
  out["precision"] = o.command.precision == Precision::f32 ? "f32" : "bf16";
  out["isa"] = kernels().name;
  out["threads"] = o.session.threads;
  out["trunk"] = trunk_name(o.session.loaded->trunk);
  out["memory"] = {
      {"peak_bytes", memory.peak},      {"own_bytes", memory.own},
      {"mapped_bytes", memory.mapped},  {"trunk_bytes", o.session.loaded->trunk_bytes},
      {"state_bytes", o.state.bytes()}, {"scratch_bytes", o.session.arena.peak_bytes()}};
  if (o.profiles != nullptr) {
    out["profile"] = {{"prompt", profile_json(o.profiles->prompt(r))},
                      {"decode", profile_json(o.profiles->decode(r))}};
  }
  fmt::print("{}\n", out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

void print_summary(const Outcome& o) {
  const GenerateResult& r = o.result;
  const char* why = r.finish == Finish::stop     ? "at an end token"
                    : r.finish == Finish::length ? "at the limit of -n"
                                                 : "interrupted";
  fmt::print(
      stderr,
      "\n{} prompt tokens ({} tokens/s), {} generated ({} tokens/s), {}; memory {}; seed {}\n",
      grouped(r.prompt_tokens), human_rate(per_second(r.prompt_tokens, r.prompt_seconds)),
      grouped(r.ids.size()), human_rate(per_second(r.decode_steps, r.decode_seconds)), why,
      human_bytes(memory_use().peak), o.seed);
}

void print_stats(const Outcome& o) {
  const GenerateResult& r = o.result;
  const MemoryUse memory = memory_use();
  const StateSize size = state_size(o.session.config(), o.command.precision);
  fmt::print(stderr, "  opening        {}\n", human_seconds(o.session.load_seconds));
  fmt::print(stderr, "  prompt         {} for {} tokens\n", human_seconds(r.prompt_seconds),
             grouped(r.prompt_tokens));
  fmt::print(stderr, "  decoding       {} for {} passes\n", human_seconds(r.decode_seconds),
             grouped(r.decode_steps));
  fmt::print(stderr, "  computed with  {}, {}, {} threads\n",
             o.command.precision == Precision::f32 ? "f32" : "bf16", kernels().name,
             o.session.threads);
  fmt::print(stderr, "  weights        {} mapped; {} of files in memory\n",
             human_bytes(o.session.loaded->checkpoint->total_bytes()), human_bytes(memory.mapped));
  fmt::print(stderr, "  trunk          {}{}\n", trunk_name(o.session.loaded->trunk),
             o.session.loaded->trunk_bytes == 0
                 ? std::string()
                 : ", " + human_bytes(o.session.loaded->trunk_bytes));
  fmt::print(stderr, "  state          {}: KDA {}, convolutions {}, latent {} a token\n",
             human_bytes(o.state.bytes()), human_bytes(size.kda_matrices),
             human_bytes(size.conv_tails), human_bytes(size.latent_per_token));
  fmt::print(stderr, "  scratch        {}\n", human_bytes(o.session.arena.peak_bytes()));
  fmt::print(stderr, "  own memory     {}\n", human_bytes(memory.own));
  fmt::print(stderr, "prompt\n{}", profile_table(o.profiles->prompt(r)));
  if (r.decode_steps > 0) {
    fmt::print(stderr, "decoding\n{}", profile_table(o.profiles->decode(r)));
  }
}

// Prompt and decoding under their status lines.
GenerateResult generate_shown(Session& s, SequenceState& state,
                              const std::vector<std::int32_t>& prompt,
                              const GenerateOptions& options, TextOut& text, bool stream,
                              RunProfiles* profiles) {
  auto progress = std::make_unique<Progress>("prompt", Unit::tokens, prompt.size());
  bool decoding = false;
  std::size_t count = 0;
  GenerateCallbacks callbacks;
  callbacks.on_prompt = [&](std::size_t done, std::size_t total) {
    progress->update(done, total);
    if (profiles != nullptr && done == total) profiles->prompt_done();
    return !interrupted();
  };
  callbacks.on_token = [&](std::int32_t id) {
    if (!decoding) {
      decoding = true;
      progress.reset();
      progress = std::make_unique<Progress>("generating", Unit::tokens, options.max_tokens,
                                            ProgressStyle::standard(stream));
    }
    text.push(id, *progress);
    progress->update(++count);
    return !interrupted();
  };
  GenerateResult result = generate(s.ctx, s.model(), state, prompt, options, callbacks);
  if (profiles != nullptr) profiles->all_done();
  progress.reset();
  text.finish(result.finish != Finish::stop);
  return result;
}

}  // namespace

int execute(const RunCommand& c) {
  check_use(c);
  GenerateOptions options;
  const std::uint64_t seed = c.seed ? *c.seed : drawn_seed();
  options.sampling = {c.temperature, c.top_p, c.top_k, c.min_p, seed};
  options.max_tokens = c.max_tokens;
  check_sampling(options.sampling);

  Session session(c, c.precision);
  const LoadedModel& m = *session.loaded;
  options.stop_ids = m.stop_ids();
  const Prompt prompt = prompt_of(c, m);
  SequenceState state(m.config, c.precision);
  TextOut text(c, m, prompt);

  const InterruptGuard guard;
  std::optional<RunProfiles> profiles;
  if (c.stats) profiles.emplace(session.ctx);
  RunProfiles* const watched = profiles ? &*profiles : nullptr;
  const GenerateResult result =
      generate_shown(session, state, prompt.ids, options, text, !c.json, watched);
  const Outcome outcome{c, session, state, result, text, seed, watched};
  if (c.json) {
    print_json(outcome);
  } else {
    print_summary(outcome);
    if (c.stats) print_stats(outcome);
  }
  return result.finish == Finish::cancelled ? kInterruptedExit : 0;
}

}  // namespace triax::cli
