// Requests of the chat protocols in one form.
#pragma once

#include <string>
#include <vector>

#include "triax/chat/conversation.h"
#include "triax/server/settings.h"

namespace triax::server {

struct ChatRequest {
  chat::Conversation conversation;
  Settings settings;
  bool parallel_calls = true;
  std::vector<std::string> warnings;  // for the x-triax-warning field
};

// Each throws ApiError or chat::RequestError naming the field.
ChatRequest chat_request(const chat::JsonValue& body, Profile profile);       // chat/completions
ChatRequest messages_request(const chat::JsonValue& body, Profile profile);   // Anthropic's
ChatRequest responses_request(const chat::JsonValue& body, Profile profile);  // OpenAI's responses
// The members of a response object that repeat what was asked.
chat::JsonValue responses_settings(const chat::JsonValue& body, const ChatRequest& request);

// The text as JSON. Throws ApiError for what is none.
chat::JsonValue parse_body(const std::string& body);

}  // namespace triax::server
