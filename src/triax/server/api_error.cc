#include "triax/server/api_error.h"

#include <new>

#include "triax/chat/conversation.h"

namespace triax::server {

ApiError api_error_of(const std::exception& error) {
  if (const auto* known = dynamic_cast<const ApiError*>(&error)) return *known;
  if (const auto* request = dynamic_cast<const chat::RequestError*>(&error)) {
    const bool effort = request->code() == chat::RequestError::Code::unsupported_effort;
    return {400, "invalid_request_error", effort ? "unsupported_effort" : "", request->field(),
            request->what()};
  }
  if (dynamic_cast<const Error*>(&error) != nullptr) {
    return {400, "invalid_request_error", "", "", error.what()};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    ApiError out(503, "server_error", "no_memory", "", "no memory for this request; try again");
    out.retry_after = 5;
    return out;
  }
  return {500, "server_error", "", "", "a fault of this server; its log says more"};
}

}  // namespace triax::server
