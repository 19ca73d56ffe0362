// Any bytes on a connection: requests within the limits, or an answer that says what is wrong.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "triax/server/http.h"

namespace {

using namespace triax::server;

constexpr std::size_t kMostHeader = 2048, kMostBody = 4096;

void check(bool good) {
  if (!good) std::abort();
}

// The fuzzer's own clock is a signal, which interrupts poll() always.
bool readable(int fd) {
  pollfd ready{fd, POLLIN, 0};
  int n = 0;
  do {
    n = ::poll(&ready, 1, 10000);
  } while (n < 0 && errno == EINTR);
  return n > 0;
}

void handle(HttpRequest request, const std::shared_ptr<Reply>& reply) {
  check(request.body.size() <= kMostBody);
  std::size_t header = 0;
  for (const auto& [name, value] : request.fields) {
    header += name.size() + value.size();
    check(value.find_first_of("\r\n") == std::string::npos);
  }
  check(header <= kMostHeader && request.path.size() <= kMostHeader);
  reply->send({200, "text/plain", {}}, request.body);
}

std::uint16_t port() {
  static HttpServer* const server = [] {
    HttpOptions options;
    options.threads = 1;
    options.max_header_bytes = kMostHeader;
    options.max_body_bytes = kMostBody;
    return new HttpServer(options, handle,
                          [](int, std::string_view message) { return std::string(message); });
  }();
  return server->port();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port());
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
    ::close(fd);
    return 0;
  }
  // Connections that the client resets leave no port behind to wait.
  const linger now{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  const auto sent = ::send(fd, data, size, MSG_NOSIGNAL);
  ::shutdown(fd, SHUT_WR);
  std::string in;
  char buffer[4096];
  for (;;) {
    check(readable(fd));  // it answers, or it closes
    const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0) break;
    in.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(fd);
  check(in.empty() || sent <= 0 || in.starts_with("HTTP/1."));
  return 0;
}
