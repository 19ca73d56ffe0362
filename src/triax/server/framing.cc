// OpenAI's chat completions and completions.
#include "triax/server/framing.h"

#include <algorithm>
#include <atomic>

#include "triax/core/rng.h"

namespace triax::server {
namespace {

using chat::TurnEvent;

std::string sse(const JsonValue& value) {
  return "data: " + compact(value) + "\n\n";
}

JsonValue calls_json(const ChoiceDone& choice) {
  JsonValue out = JsonValue::array();
  for (std::size_t i = 0; i < choice.turn.calls.size(); ++i) {
    const auto& call = choice.turn.calls[i];
    out.push(object(
        {{"id", str(choice.call_ids[i])},
         {"type", str("function")},
         {"function", object({{"name", str(call.name)}, {"arguments", str(call.arguments)}})}}));
  }
  return out;
}

JsonValue logprobs_json(bool wanted, const std::vector<JsonValue>& tokens) {
  if (!wanted) return {};
  JsonValue content = JsonValue::array();
  for (const JsonValue& token : tokens) content.push(token);
  return object({{"content", content}});
}

AnswerUsage usage_of(const ChoiceDone& choice, const AnswerUsage& all) {
  return {all.prompt, all.cached, choice.tokens, choice.reasoning_tokens};
}

JsonValue envelope(const AnswerName& name, const char* kind) {
  return object({{"id", str(name.id)},
                 {"object", str(kind)},
                 {"created", JsonValue::number(name.created)},
                 {"model", str(name.model)},
                 {"system_fingerprint", str("triax")}});
}

// What include_usage asks for: a chunk without choices.
std::string usage_chunk(const AnswerName& name, const char* kind, const AnswerUsage& usage) {
  JsonValue all = envelope(name, kind);
  all.set("choices", list());
  all.set("usage", usage_json(usage));
  return sse(all);
}

class ChatFraming final : public Framing {
 public:
  explicit ChatFraming(ChatForm form) : form_(std::move(form)) {}

  std::string whole(const std::vector<ChoiceDone>& choices, const AnswerUsage& usage) override {
    JsonValue list = JsonValue::array();
    for (const ChoiceDone& c : choices) {
      JsonValue message = object({{"role", str("assistant")}});
      message.set("content", c.turn.content_null() ? JsonValue() : str(c.turn.content));
      if (c.turn.reasoning) message.set("reasoning_content", str(*c.turn.reasoning));
      if (!c.turn.calls.empty()) message.set("tool_calls", calls_json(c));
      message.set("refusal", {});
      list.push(object({{"index", num(c.choice)},
                        {"message", message},
                        {"logprobs", logprobs_json(form_.logprobs, c.logprobs)},
                        {"finish_reason", str(chat::finish_name(c.turn.finish))},
                        {"usage", usage_json(usage_of(c, usage))}}));
    }
    JsonValue out = envelope(form_.name, "chat.completion");
    out.set("choices", std::move(list));
    out.set("usage", usage_json(usage));
    return compact(out);
  }

  std::string open(const AnswerUsage&) override {
    std::string out;
    for (std::size_t i = 0; i < form_.choices; ++i) {
      JsonValue delta = object({{"role", str("assistant")}, {"content", str("")}});
      if (form_.thinking) delta.set("reasoning_content", str(""));
      out += chunk(choice(i, std::move(delta), {}));
    }
    return out;
  }

  std::string piece(const AnswerPiece& p) override {
    JsonValue delta;
    switch (p.event.kind) {
      case TurnEvent::Kind::reasoning:
        delta = object({{"reasoning_content", str(p.event.text)}});
        break;
      case TurnEvent::Kind::content:
        delta = object({{"content", str(p.event.text)}});
        break;
      case TurnEvent::Kind::call:
        delta =
            call_delta(p.event.index, object({{"name", str(p.event.text)}, {"arguments", str("")}}),
                       p.call_id);
        break;
      case TurnEvent::Kind::arguments:
        delta = call_delta(p.event.index, object({{"arguments", str(p.event.text)}}), "");
        break;
    }
    return chunk(choice(p.choice, std::move(delta), p.logprobs));
  }

  std::string close(const std::vector<ChoiceDone>& choices, const AnswerUsage& usage) override {
    std::string out;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      JsonValue last = choice(choices[i].choice, object(), {});
      last.set("finish_reason", str(chat::finish_name(choices[i].turn.finish)));
      last.set("usage", usage_json(usage_of(choices[i], usage)));
      JsonValue all = envelope(form_.name, kKind);
      all.set("choices", list({last}));
      if (i + 1 == choices.size()) all.set("usage", usage_json(usage));
      out += sse(all);
    }
    if (form_.include_usage) out += usage_chunk(form_.name, kKind, usage);
    return out + "data: [DONE]\n\n";
  }

  std::string error(const ApiError& e) override { return "data: " + error_body(e) + "\n\n"; }

 private:
  static constexpr const char* kKind = "chat.completion.chunk";

  std::string chunk(JsonValue choice) const {
    JsonValue out = envelope(form_.name, kKind);
    out.set("choices", list({std::move(choice)}));
    return sse(out);
  }
  JsonValue choice(std::size_t index, JsonValue delta,
                   const std::vector<JsonValue>& logprobs) const {
    return object({{"index", num(index)},
                   {"delta", delta},
                   {"logprobs", logprobs_json(form_.logprobs && !logprobs.empty(), logprobs)},
                   {"finish_reason", {}}});
  }
  static JsonValue call_delta(std::size_t index, JsonValue function, const std::string& id) {
    JsonValue call = object({{"index", num(index)}});
    if (!id.empty()) {
      call.set("id", str(id));
      call.set("type", str("function"));
    }
    call.set("function", std::move(function));
    return object({{"tool_calls", list({call})}});
  }

  ChatForm form_;
};

// OpenAI's older form of log probabilities.
class CompletionFraming final : public Framing {
 public:
  explicit CompletionFraming(CompletionForm form)
      : form_(std::move(form)), offsets_(form_.choices, 0) {
    for (std::size_t i = 0; i < form_.echo.size() && i < offsets_.size(); ++i) {
      offsets_[i] = form_.echo[i].size();
    }
  }

  std::string whole(const std::vector<ChoiceDone>& choices, const AnswerUsage& usage) override {
    JsonValue out = envelope(form_.name, kKind);
    JsonValue all = JsonValue::array();
    for (const ChoiceDone& c : choices) {
      all.push(object({{"text", str(echo(c.choice) + c.turn.content)},
                       {"index", num(c.choice)},
                       {"logprobs", logprobs(c.choice, c.logprobs)},
                       {"finish_reason", str(chat::finish_name(c.turn.finish))}}));
    }
    out.set("choices", std::move(all));
    out.set("usage", usage_json(usage));
    return compact(out);
  }
  std::string open(const AnswerUsage&) override {
    std::string out;
    for (std::size_t i = 0; i < form_.choices; ++i) {
      if (!echo(i).empty()) out += chunk(i, echo(i), {}, {});
    }
    return out;
  }
  std::string piece(const AnswerPiece& p) override {
    return chunk(p.choice, p.event.text, p.logprobs, {});
  }
  std::string close(const std::vector<ChoiceDone>& choices, const AnswerUsage& usage) override {
    std::string out;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const JsonValue total = i + 1 == choices.size() ? usage_json(usage) : JsonValue();
      out +=
          chunk(choices[i].choice, "", {}, str(chat::finish_name(choices[i].turn.finish)), total);
    }
    if (form_.include_usage) out += usage_chunk(form_.name, kKind, usage);
    return out + "data: [DONE]\n\n";
  }
  std::string error(const ApiError& e) override { return "data: " + error_body(e) + "\n\n"; }

 private:
  static constexpr const char* kKind = "text_completion";

  std::string echo(std::size_t i) const { return i < form_.echo.size() ? form_.echo[i] : ""; }
  std::string chunk(std::size_t index, const std::string& text,
                    const std::vector<JsonValue>& tokens, const JsonValue& finish,
                    const JsonValue& usage = {}) {
    JsonValue out = envelope(form_.name, kKind);
    out.set("choices",
            list({object({{"text", str(text)},
                          {"index", num(index)},
                          {"logprobs", tokens.empty() ? JsonValue() : logprobs(index, tokens)},
                          {"finish_reason", finish}})}));
    if (!usage.is_null()) out.set("usage", usage);
    return sse(out);
  }
  JsonValue logprobs(std::size_t index, const std::vector<JsonValue>& tokens) {
    if (!form_.logprobs) return {};
    JsonValue texts = list(), values = list(), tops = list(), offsets = list();
    for (const JsonValue& token : tokens) {
      texts.push(*token.find("token"));
      values.push(*token.find("logprob"));
      JsonValue top = object();
      for (const JsonValue& t : token.find("top_logprobs")->items()) {
        top.set(t.find("token")->text(), *t.find("logprob"));
      }
      tops.push(top);
      offsets.push(num(offsets_[index]));
      offsets_[index] += token.find("token")->text().size();
    }
    return object({{"tokens", texts},
                   {"token_logprobs", values},
                   {"top_logprobs", tops},
                   {"text_offset", offsets}});
  }

  CompletionForm form_;
  std::vector<std::size_t> offsets_;  // bytes of text so far, by choice
};

}  // namespace

JsonValue usage_json(const AnswerUsage& usage) {
  const std::size_t cached = std::min(usage.cached, usage.prompt);
  return object(
      {{"prompt_tokens", num(usage.prompt)},
       {"completion_tokens", num(usage.completion)},
       {"total_tokens", num(usage.prompt + usage.completion)},
       {"cached_tokens", num(cached)},
       {"prompt_tokens_details", object({{"cached_tokens", num(cached)}})},
       {"completion_tokens_details", object({{"reasoning_tokens", num(usage.reasoning)}})}});
}

std::string error_body(const ApiError& e) {
  return compact(
      object({{"error", object({{"message", str(e.what())},
                                {"type", str(e.type())},
                                {"param", e.field().empty() ? JsonValue() : str(e.field())},
                                {"code", e.code().empty() ? JsonValue() : str(e.code())}})}}));
}

std::string fresh_id(std::string_view prefix) {
  static const std::uint64_t key = drawn_seed();
  static std::atomic<std::uint64_t> count = 0;
  static constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string out(prefix);
  const std::uint64_t number = count++;
  for (std::uint64_t part = 0; part < 3; ++part) {
    std::uint64_t bits = splitmix64_at(key, number * 3 + part);
    for (int i = 0; i < 8; ++i, bits /= kLetters.size()) out += kLetters[bits % kLetters.size()];
  }
  return out;
}

std::unique_ptr<Framing> chat_framing(ChatForm form) {
  return std::make_unique<ChatFraming>(std::move(form));
}
std::unique_ptr<Framing> completion_framing(CompletionForm form) {
  return std::make_unique<CompletionFraming>(std::move(form));
}

}  // namespace triax::server
