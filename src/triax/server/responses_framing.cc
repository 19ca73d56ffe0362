// OpenAI's responses: items, and the events that build them.
#include <algorithm>

#include "triax/server/framing.h"

namespace triax::server {
namespace {

using chat::TurnEvent;

JsonValue usage(const AnswerUsage& u) {
  return object(
      {{"input_tokens", num(u.prompt)},
       {"input_tokens_details", object({{"cached_tokens", num(std::min(u.cached, u.prompt))}})},
       {"output_tokens", num(u.completion)},
       {"output_tokens_details", object({{"reasoning_tokens", num(u.reasoning)}})},
       {"total_tokens", num(u.prompt + u.completion)}});
}

// One thing of the output.
struct Item {
  enum class Kind : std::uint8_t { reasoning, message, call };
  Kind kind = Kind::message;
  std::string id;
  std::string text = {};                // thinking, answer or arguments
  std::string name = {}, call_id = {};  // of a call
  std::vector<JsonValue> logprobs = {};
};

JsonValue text_part(const Item& item) {
  JsonValue logprobs = list();
  for (const JsonValue& l : item.logprobs) logprobs.push(l);
  return object({{"type", str("output_text")},
                 {"text", str(item.text)},
                 {"annotations", list()},
                 {"logprobs", logprobs}});
}
JsonValue reasoning_part(const std::string& text) {
  return object({{"type", str("reasoning_text")}, {"text", str(text)}});
}

JsonValue item_json(const Item& item, const char* status, bool with_content) {
  switch (item.kind) {
    case Item::Kind::reasoning:
      return object({{"id", str(item.id)},
                     {"type", str("reasoning")},
                     {"summary", list()},
                     {"content", with_content ? list({reasoning_part(item.text)}) : list()},
                     {"encrypted_content", {}},
                     {"status", str(status)}});
    case Item::Kind::message:
      return object({{"id", str(item.id)},
                     {"type", str("message")},
                     {"role", str("assistant")},
                     {"status", str(status)},
                     {"content", with_content ? list({text_part(item)}) : list()}});
    case Item::Kind::call:
      break;
  }
  return object({{"id", str(item.id)},
                 {"type", str("function_call")},
                 {"call_id", str(item.call_id)},
                 {"name", str(item.name)},
                 {"arguments", str(with_content ? item.text : "")},
                 {"status", str(status)}});
}

class ResponsesFraming final : public Framing {
 public:
  ResponsesFraming(AnswerName name, JsonValue settings)
      : name_(std::move(name)), settings_(std::move(settings)) {}

  std::string whole(const std::vector<ChoiceDone>& choices, const AnswerUsage& u) override {
    const ChoiceDone& c = choices.front();
    const bool cut = c.turn.finish == chat::TurnFinish::length;
    items_.clear();
    if (c.turn.reasoning && !c.turn.reasoning->empty()) {
      begin(Item::Kind::reasoning).text = *c.turn.reasoning;
    }
    if (!c.turn.content.empty()) {
      Item& item = begin(Item::Kind::message);
      item.text = c.turn.content;
      item.logprobs = c.logprobs;
    }
    for (std::size_t i = 0; i < c.turn.calls.size(); ++i) {
      Item& item = begin(Item::Kind::call);
      item.name = c.turn.calls[i].name;
      item.call_id = c.call_ids[i];
      item.text = c.turn.calls[i].arguments;
    }
    return compact(response(cut ? "incomplete" : "completed", output(cut), usage(u)));
  }

  std::string open(const AnswerUsage&) override {
    const JsonValue now = response("in_progress", list(), {});
    std::string out = event("response.created", object({{"response", now}}));
    out += event("response.in_progress", object({{"response", now}}));
    return out;
  }

  std::string piece(const AnswerPiece& p) override {
    switch (p.event.kind) {
      case TurnEvent::Kind::reasoning:
        return text(Item::Kind::reasoning, "response.reasoning_text.delta", p);
      case TurnEvent::Kind::content:
        return text(Item::Kind::message, "response.output_text.delta", p);
      case TurnEvent::Kind::call: {
        const std::string out = leave("completed");
        Item& item = begin(Item::Kind::call);
        item.name = p.event.text;
        item.call_id = p.call_id;
        return out + added();
      }
      case TurnEvent::Kind::arguments:
        break;
    }
    items_.back().text += p.event.text;
    return event("response.function_call_arguments.delta", place({{"delta", str(p.event.text)}}));
  }

  std::string close(const std::vector<ChoiceDone>& choices, const AnswerUsage& u) override {
    const bool cut = choices.front().turn.finish == chat::TurnFinish::length;
    std::string out = leave(cut ? "incomplete" : "completed");
    const JsonValue last = response(cut ? "incomplete" : "completed", output(cut), usage(u));
    return out +
           event(cut ? "response.incomplete" : "response.completed", object({{"response", last}}));
  }

  std::string error(const ApiError& e) override {
    JsonValue failed = response("failed", output(true), {});
    failed.set("error", object({{"code", str("server_error")}, {"message", str(e.what())}}));
    return event("response.failed", object({{"response", failed}}));
  }

 private:
  std::string event(const char* kind, const JsonValue& members) {
    JsonValue out = object({{"type", str(kind)}, {"sequence_number", num(sequence_++)}});
    for (const auto& [key, value] : members.members()) out.set(key, value);
    return fmt::format("event: {}\ndata: {}\n\n", kind, compact(out));
  }

  JsonValue response(const char* status, const JsonValue& output, const JsonValue& counts) const {
    const bool cut = std::string_view(status) == "incomplete";
    JsonValue out = object(
        {{"id", str(name_.id)},
         {"object", str("response")},
         {"created_at", JsonValue::number(name_.created)},
         {"status", str(status)},
         {"error", {}},
         {"incomplete_details", cut ? object({{"reason", str("max_output_tokens")}}) : JsonValue()},
         {"model", str(name_.model)},
         {"output", output}});
    for (const auto& [key, value] : settings_.members()) out.set(key, value);
    out.set("usage", counts);
    return out;
  }

  // The last item may have been cut.
  JsonValue output(bool cut) const {
    JsonValue out = list();
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const bool last = i + 1 == items_.size();
      out.push(item_json(items_[i], cut && last ? "incomplete" : "completed", true));
    }
    return out;
  }

  Item& begin(Item::Kind kind) {
    const char* prefix = kind == Item::Kind::reasoning ? "rs_"
                         : kind == Item::Kind::message ? "msg_"
                                                       : "fc_";
    items_.push_back({kind, fresh_id(prefix)});
    open_ = true;
    return items_.back();
  }
  std::size_t index() const { return items_.size() - 1; }
  JsonValue place(std::initializer_list<std::pair<const char*, JsonValue>> more) const {
    JsonValue out = object({{"item_id", str(items_.back().id)}, {"output_index", num(index())}});
    if (items_.back().kind != Item::Kind::call) out.set("content_index", num(0));
    for (const auto& [key, value] : more) out.set(key, value);
    return out;
  }
  std::string added() {
    return event("response.output_item.added",
                 object({{"output_index", num(index())},
                         {"item", item_json(items_.back(), "in_progress", false)}}));
  }
  JsonValue part() const {
    const Item& item = items_.back();
    return item.kind == Item::Kind::reasoning ? reasoning_part(item.text) : text_part(item);
  }
  std::string enter(Item::Kind kind) {
    if (open_ && items_.back().kind == kind) return "";
    std::string out = leave("completed");
    begin(kind);
    out += added();
    return out + event("response.content_part.added", place({{"part", part()}}));
  }
  std::string text(Item::Kind of, const char* kind, const AnswerPiece& p) {
    const std::string begun = enter(of);
    Item& item = items_.back();
    item.text += p.event.text;
    item.logprobs.insert(item.logprobs.end(), p.logprobs.begin(), p.logprobs.end());
    JsonValue members = place({{"delta", str(p.event.text)}});
    if (item.kind == Item::Kind::message) {
      JsonValue logprobs = list();
      for (const JsonValue& l : p.logprobs) logprobs.push(l);
      members.set("logprobs", logprobs);
    }
    return begun + event(kind, members);
  }
  std::string leave(const char* status) {
    if (!open_) return "";
    open_ = false;
    const Item& item = items_.back();
    std::string out;
    if (item.kind == Item::Kind::call) {
      out = event("response.function_call_arguments.done",
                  place({{"name", str(item.name)}, {"arguments", str(item.text)}}));
    } else {
      const bool thinking = item.kind == Item::Kind::reasoning;
      JsonValue members = place({{"text", str(item.text)}});
      if (!thinking) members.set("logprobs", *text_part(item).find("logprobs"));
      out = event(thinking ? "response.reasoning_text.done" : "response.output_text.done", members);
      out += event("response.content_part.done", place({{"part", part()}}));
    }
    return out +
           event("response.output_item.done",
                 object({{"output_index", num(index())}, {"item", item_json(item, status, true)}}));
  }

  AnswerName name_;
  JsonValue settings_;
  std::vector<Item> items_;
  bool open_ = false;  // the last item goes on
  std::size_t sequence_ = 0;
};

}  // namespace

std::unique_ptr<Framing> responses_framing(AnswerName name, JsonValue settings) {
  return std::make_unique<ResponsesFraming>(std::move(name), std::move(settings));
}

}  // namespace triax::server
