// A fault as a client is told it.
#pragma once

#include <string>
#include <utility>

#include "triax/core/error.h"

namespace triax::server {

// The message is one line and names the field.
class ApiError : public Error {
 public:
  ApiError(int status, std::string type, std::string code, std::string field,
           const std::string& message)
      : Error(field.empty() || message.starts_with(field) ? message : field + ": " + message),
        status_(status),
        type_(std::move(type)),
        code_(std::move(code)),
        field_(std::move(field)) {}

  int status() const { return status_; }
  const std::string& type() const { return type_; }  // OpenAI's
  const std::string& code() const { return code_; }  // empty: null
  const std::string& field() const { return field_; }
  double retry_after = 0;  // seconds; 0: not said

 private:
  int status_;
  std::string type_, code_, field_;
};

// 400: the request is wrong.
template <class... Args>
[[noreturn]] void bad_request(const std::string& field, fmt::format_string<Args...> format,
                              Args&&... args) {
  throw ApiError(400, "invalid_request_error", "", field,
                 fmt::format(format, std::forward<Args>(args)...));
}

// Any exception as what a client may be told of it.
ApiError api_error_of(const std::exception& error);

}  // namespace triax::server
