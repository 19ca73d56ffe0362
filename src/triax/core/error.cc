#include "triax/core/error.h"

namespace triax {

void check_failed(const char* expression, const char* file, int line, std::string_view message) {
  throw LogicError(fmt::format("internal error at {}:{}: {}{}{}", file, line, expression,
                               message.empty() ? "" : ": ", message));
}

}  // namespace triax
