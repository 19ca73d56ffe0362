// Conversations as JSON.
#include "triax/world/document.h"

#include "triax/core/error.h"

namespace triax::world {

const char* effort_name(Effort effort) {
  return effort == Effort::low ? "low" : effort == Effort::high ? "high" : "max";
}

void Chat::user(const std::string& text) {
  messages_.push_back({{"role", "user"}, {"content", text}});
}

void Chat::assistant(const std::string& thinking, const std::string& answer) {
  messages_.push_back(
      {{"role", "assistant"}, {"reasoning_content", thinking}, {"content", answer}});
}

void Chat::assistant_calls(const std::string& thinking, const std::vector<Json>& calls) {
  Json list = Json::array();
  open_calls_.clear();
  for (const Json& call : calls) {
    open_calls_.push_back("call_" + std::to_string(++calls_));
    list.push_back(
        {{"id", open_calls_.back()},
         {"type", "function"},
         {"function", {{"name", call.at("name")}, {"arguments", call.at("arguments").dump()}}}});
  }
  messages_.push_back({{"role", "assistant"},
                       {"reasoning_content", thinking},
                       {"content", ""},
                       {"tool_calls", list}});
}

void Chat::results(const std::vector<std::string>& texts) {
  TRIAX_CHECK(texts.size() == open_calls_.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    messages_.push_back(
        {{"role", "tool"}, {"tool_call_id", open_calls_[i]}, {"content", texts[i]}});
  }
}

Json Chat::document(std::string_view source) const {
  Json out;
  out["source"] = source;
  out["messages"] = messages_;
  if (!tools_.empty()) out["tools"] = tools_;
  out["thinking_effort"] = effort_name(effort_);
  return out;
}

Json text_document(std::string_view source, const std::string& text) {
  Json out;
  out["source"] = source;
  out["text"] = text;
  return out;
}

std::string document_text(const Json& document) {
  if (document.contains("text")) return document["text"].get<std::string>();
  std::string out;
  for (const Json& message : document.at("messages")) {
    for (const char* key : {"reasoning_content", "content"}) {
      if (message.contains(key) && message[key].is_string()) {
        out += message[key].get<std::string>() + "\n";
      }
    }
    if (!message.contains("tool_calls")) continue;
    for (const Json& call : message["tool_calls"]) {
      out += call["function"]["name"].get<std::string>() + " " +
             call["function"]["arguments"].get<std::string>() + "\n";
    }
  }
  return out;
}

}  // namespace triax::world
