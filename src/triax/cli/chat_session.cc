#include "triax/cli/chat_session.h"

#include <algorithm>
#include <memory>

#include "triax/cli/interrupt.h"
#include "triax/core/clock.h"

namespace triax::cli {
namespace {

using Ids = std::vector<std::int32_t>;

bool is_prefix(const std::optional<SequenceState>& state, const Ids& ids) {
  if (!state || state->tokens() >= ids.size()) return false;
  return std::equal(state->ids().begin(), state->ids().end(), ids.begin());
}

bool ends_with(const Ids& ids, const Ids& tail) {
  return ids.size() >= tail.size() && std::equal(tail.rbegin(), tail.rend(), ids.rbegin());
}

}  // namespace

const Tokenizer& required_chat_tokenizer(const LoadedModel& model) {
  const Tokenizer& tokenizer =
      model.required_tokenizer("chat needs one; `triax run --ids FILE` takes ids");
  if (!chat::has_chat_tokens(tokenizer)) {
    fail(
        "{}: its vocabulary has no chat tokens (<|open|>, <|close|>, <|sep|>, <|end_of_msg|>); "
        "`triax run --raw` goes on from plain text",
        model.folder.string());
  }
  return tokenizer;
}

ChatSession::ChatSession(Session& session)
    : session_(session), tokenizer_(required_chat_tokenizer(*session.loaded)) {
  conversation_.effort = "max";
}

void ChatSession::replace(chat::Conversation conversation) {
  chat::render(conversation);  // what cannot be rendered is refused here
  conversation_ = std::move(conversation);
  bodies_.assign(conversation_.messages.size(), {});
}

void ChatSession::set_effort(const std::string& effort) {
  chat::Conversation changed;
  changed.thinking = effort != "none";
  changed.effort = changed.thinking ? std::optional(effort) : std::nullopt;
  chat::render(changed);
  conversation_.thinking = changed.thinking;
  conversation_.effort = changed.effort;
}

std::string ChatSession::effort() const {
  return conversation_.thinking ? conversation_.effort.value_or("not set") : "none";
}

void ChatSession::set_system(const std::string& text) {
  auto& messages = conversation_.messages;
  if (!messages.empty() && messages.front().author == chat::Author::system) {
    messages.erase(messages.begin());
    bodies_.erase(bodies_.begin());
  }
  if (text.empty()) return;
  messages.insert(messages.begin(), chat::system_message(text));
  bodies_.insert(bodies_.begin(), Body());
}

void ChatSession::clear() {
  auto& messages = conversation_.messages;
  const bool system = !messages.empty() && messages.front().author == chat::Author::system;
  messages.resize(system ? 1 : 0);
  bodies_.resize(messages.size());
}

void ChatSession::ask(std::string text) {
  conversation_.messages.push_back(chat::user_message(std::move(text)));
  bodies_.emplace_back();
}

bool ChatSession::take_back_answer() {
  auto& messages = conversation_.messages;
  if (messages.empty() || messages.back().author != chat::Author::assistant) return false;
  messages.pop_back();
  bodies_.pop_back();
  return true;
}

bool ChatSession::take_back_turn() {
  auto& messages = conversation_.messages;
  const bool answer = take_back_answer();
  if (messages.empty() || messages.back().author != chat::Author::user) return answer;
  messages.pop_back();
  bodies_.pop_back();
  return true;
}

std::size_t ChatSession::state_bytes() const {
  return (live_ ? live_->bytes() : 0) + (base_ ? base_->bytes() : 0);
}

std::vector<chat::KnownBody> ChatSession::known() const {
  std::vector<chat::KnownBody> out;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    if (!bodies_[i].ids.empty() && bodies_[i].thinking == conversation_.thinking) {
      out.push_back({i, bodies_[i].ids});
    }
  }
  return out;
}

// The longer one of the states that the prompt goes on from, or a new one.
SequenceState ChatSession::state_for(const Ids& ids) {
  if (recompute) {
    live_.reset();
    base_.reset();
  }
  std::optional<SequenceState> live = std::move(live_);
  live_.reset();
  if (!is_prefix(base_, ids)) base_.reset();
  if (is_prefix(live, ids)) return *std::move(live);
  if (base_) return base_->fork();
  return {session_.config(), session_.ctx.precision};
}

// An answer that closed its message, or that can be closed where it was cut, stands in later
// prompts as it was generated. Any other is written anew.
ChatSession::Body ChatSession::body_of(const AnswerOut& out, const Ids& ids,
                                       chat::Channel open) const {
  Body body;
  body.thinking = conversation_.thinking;
  Ids tail = chat::encode_segments(chat::closing(chat::Channel::none), tokenizer_);
  tail.pop_back();  // <|end_of_msg|>
  if (ends_with(ids, tail)) {
    body.ids = ids;
    body.ids.push_back(tokenizer_.required_id(Role::EndOfMsg));
  } else if (open != chat::Channel::none && out.turn().calls.empty()) {
    body.ids = ids;
    const Ids close = chat::encode_segments(chat::closing(open), tokenizer_);
    body.ids.insert(body.ids.end(), close.begin(), close.end());
  }
  return body;
}

AnswerResult ChatSession::answer(const GenerateOptions& options, const AnswerStyle& style) {
  const chat::Rendered rendered = chat::render(conversation_);
  const chat::Encoded prompt = chat::encode(rendered, tokenizer_, known());
  AnswerResult result;
  result.prompt_tokens = prompt.ids.size();
  SequenceState state = state_for(prompt.ids);
  result.reused_tokens = state.tokens();

  const Stopwatch watch;
  std::optional<Progress> progress(std::in_place, "prompt", Unit::tokens,
                                   prompt.ids.size() - state.tokens());
  const std::size_t reused = state.tokens();
  const auto shown = [&](std::size_t, std::size_t) {
    progress->update(state.tokens() - reused);
    return !interrupted();
  };
  const std::span<const std::int32_t> ids = prompt.ids;
  if (state.tokens() < prompt.history_end) {
    const auto history = ids.subspan(state.tokens(), prompt.history_end - state.tokens());
    const bool whole =
        prefill(session_.ctx, session_.model(), state, history, options.chunk, {}, shown);
    base_ = state.fork();
    if (!whole) throw Interrupted();
  }
  AnswerOut out(tokenizer_, rendered.opened, style);
  std::size_t count = 0;
  GenerateCallbacks callbacks;
  callbacks.on_prompt = shown;
  callbacks.on_token = [&](std::int32_t id) {
    if (count++ == 0) {
      result.prompt_seconds = watch.seconds();
      progress.emplace("generating", Unit::tokens, options.max_tokens,
                       ProgressStyle::standard(style.stream));
    }
    out.push(id, *progress);
    progress->update(count);
    return !interrupted() && !out.reader().ended();
  };
  result.generated = generate(session_.ctx, session_.model(), state, ids.subspan(state.tokens()),
                              options, callbacks);
  progress.reset();
  if (count == 0) result.prompt_seconds = watch.seconds();
  const bool ended = out.reader().ended();
  result.interrupted = result.generated.finish == Finish::cancelled && !ended;
  const chat::Channel open = out.reader().in_text();
  out.finish(!ended && result.generated.finish != Finish::stop);
  result.finish = out.turn().finish;
  bodies_.push_back(body_of(out, result.generated.ids, open));
  conversation_.messages.push_back(chat::message_of(out.turn()));
  live_ = std::move(state);
  return result;
}

}  // namespace triax::cli
