// Routes of the other chat protocols.
#include "triax/server/api.h"

namespace triax::server {

void Api::messages(const HttpRequest& http, std::unique_ptr<Exchange>& exchange) {
  const chat::JsonValue body = parse_body(http.body);
  ChatRequest request = messages_request(body, options_.profile);
  if (request.settings.n != 1) bad_request("n", "is not known here");
  const std::string id = fresh_id("msg_");
  exchange->fields.emplace_back("request-id", id);
  answer_chat(http, std::move(request), messages_framing(name(id)), id, exchange);
}

void Api::count_tokens(const HttpRequest& http, std::unique_ptr<Exchange>& exchange) {
  chat::JsonValue body = parse_body(http.body);
  body.set("max_tokens", num(1));
  const ChatRequest request = messages_request(body, options_.profile);
  const std::size_t tokens = prompt_of(request.conversation).prompt_tokens();
  exchange->send(200, compact(object({{"input_tokens", num(tokens)}})));
}

void Api::responses(const HttpRequest& http, std::unique_ptr<Exchange>& exchange) {
  const chat::JsonValue body = parse_body(http.body);
  ChatRequest request = responses_request(body, options_.profile);
  if (request.settings.n != 1) bad_request("n", "is not known here");
  const std::string id = fresh_id("resp_");
  auto framing = responses_framing(name(id), responses_settings(body, request));
  answer_chat(http, std::move(request), std::move(framing), id, exchange);
}

}  // namespace triax::server
