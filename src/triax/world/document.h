// One document of the data: a text, or a conversation in the form of the OpenAI interface.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace triax::world {

using Json = nlohmann::ordered_json;

enum class Effort : std::uint8_t { low, high, max };
const char* effort_name(Effort effort);

// Builds the "messages" of a conversation.
class Chat {
 public:
  explicit Chat(Effort effort) : effort_(effort) {}

  void user(const std::string& text);
  void assistant(const std::string& thinking, const std::string& answer);
  // A turn that calls tools; `calls` are objects {name, arguments}. Ids count from "call_1".
  void assistant_calls(const std::string& thinking, const std::vector<Json>& calls);
  // Results of the calls of the last turn, in their order.
  void results(const std::vector<std::string>& texts);
  void tools(Json declarations) { tools_ = std::move(declarations); }

  Effort effort() const { return effort_; }
  const Json& messages() const { return messages_; }
  const Json& declarations() const { return tools_; }
  // {"source", "messages", "tools" (where there are any), "thinking_effort"}
  Json document(std::string_view source) const;

 private:
  Effort effort_;
  Json messages_ = Json::array();
  Json tools_ = Json::array();
  std::vector<std::string> open_calls_;
  int calls_ = 0;
};

Json text_document(std::string_view source, const std::string& text);

// What the words of a document are, for hashes and overlap: all contents, thinking and arguments.
std::string document_text(const Json& document);

}  // namespace triax::world
