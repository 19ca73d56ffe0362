#include "triax/cli/http_client.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <system_error>

#include "triax/core/error.h"

namespace triax::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // of an answer

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::optional<std::size_t> number_of(std::string_view text, int base) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

class Socket {
 public:
  Socket(const ServerAddress& address, Clock::time_point until) : until_(until) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const int code = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
    if (code != 0) fail("{}: no such host: {}", address.host, ::gai_strerror(code));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
    int why = 0;
    for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
      fd_ = ::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
      if (fd_ >= 0 && ::connect(fd_, a->ai_addr, a->ai_addrlen) == 0) return;
      why = errno;
      if (fd_ >= 0) ::close(fd_);
      fd_ = -1;
    }
    fail("cannot connect to {} port {}: {}; is the server running?", address.host, address.port,
         std::generic_category().message(why));
  }
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void send(std::string_view text) const {
    while (!text.empty()) {
      wait(POLLOUT);
      const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;  // it may have answered without reading all
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  // Appends what comes; false at the end.
  bool receive(std::string& in) const {
    wait(POLLIN);
    char buffer[16384];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    if (in.size() + static_cast<std::size_t>(n) > kMostBytes) {
      fail("the answer has more than {} bytes", kMostBytes);
    }
    in.append(buffer, static_cast<std::size_t>(n));
    return true;
  }

 private:
  void wait(short what) const {
    for (;;) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until_ - Clock::now());
      pollfd ready{fd_, what, 0};
      const int n = left.count() <= 0 ? 0 : ::poll(&ready, 1, static_cast<int>(left.count()));
      if (n > 0) return;
      if (n == 0) fail("no answer in time; --timeout gives more");
    }
  }

  int fd_ = -1;
  Clock::time_point until_;
};

HttpAnswer head_of(std::string_view head) {
  HttpAnswer out;
  const std::string_view first = head.substr(0, head.find("\r\n"));
  const auto status = first.size() > 9 ? number_of(first.substr(9, 3), 10) : std::nullopt;
  if (!first.starts_with("HTTP/1.") || !status) {
    fail("the answer is no HTTP: it begins {}", in_quotes(first));
  }
  out.status = static_cast<int>(*status);
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos;) {
    const std::size_t end = head.find("\r\n", at + 2);
    const std::string_view line = head.substr(at + 2, end - at - 2);
    if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
      const std::size_t value = line.find_first_not_of(' ', colon + 1);
      out.fields.emplace_back(lower(line.substr(0, colon)),
                              value == std::string_view::npos ? "" : line.substr(value));
    }
    at = end;
  }
  return out;
}

std::string chunked_body(const Socket& socket, std::string in) {
  std::string out;
  for (;;) {
    std::size_t end = 0;
    while ((end = in.find("\r\n")) == std::string::npos) {
      if (!socket.receive(in)) fail("the answer ends within its chunks");
    }
    const auto size = number_of(in, 16);
    if (!size || *size > kMostBytes) fail("a chunk has no size: {}", in_quotes(in.substr(0, end)));
    if (*size == 0) return out;
    while (in.size() < end + 2 + *size + 2) {
      if (!socket.receive(in)) fail("the answer ends within its chunks");
    }
    out.append(in, end + 2, *size);
    in.erase(0, end + 2 + *size + 2);
  }
}

}  // namespace

std::string_view HttpAnswer::field(std::string_view name) const {
  for (const auto& [key, value] : fields) {
    if (key == name) return value;
  }
  return {};
}

ServerAddress ServerAddress::parse(const std::string& url) {
  std::string_view rest = url;
  if (rest.starts_with("https://")) {
    fail("{}: no TLS here; give an http address, or a proxy on this machine", in_quotes(url));
  }
  if (rest.starts_with("http://")) rest.remove_prefix(7);
  ServerAddress out;
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  out.base = std::string(rest.substr(slash));
  rest = rest.substr(0, slash);
  while (out.base.ends_with('/')) out.base.pop_back();
  if (out.base.ends_with("/v1")) out.base.resize(out.base.size() - 3);
  const std::size_t colon = rest.rfind(':'), bracket = rest.rfind(']');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  out.port = has_port ? std::string(rest.substr(colon + 1)) : "80";
  out.host = std::string(has_port ? rest.substr(0, colon) : rest);
  if (out.host.starts_with('[') && out.host.ends_with(']')) {
    out.host = out.host.substr(1, out.host.size() - 2);
  }
  const auto port = number_of(out.port, 10);
  if (out.host.empty() || out.port.empty() || !port || *port > 65535) {
    fail("{} is no server's address; give one such as http://127.0.0.1:8080", in_quotes(url));
  }
  return out;
}

HttpAnswer HttpClient::ask(const std::string& method, const std::string& path,
                           const std::string& body) const {
  return ask(method, path, body, key_);
}

HttpAnswer HttpClient::ask(const std::string& method, const std::string& path,
                           const std::string& body, const std::string& key) const {
  const Socket socket(address_, Clock::now() + timeout_);
  std::string request = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}:{}\r\nConnection: close\r\n",
                                    method, address_.base, path, address_.host, address_.port);
  if (!key.empty()) request += "Authorization: Bearer " + key + "\r\n";
  if (method != "GET") {
    request += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  socket.send(request + "\r\n" + body);
  std::string in;
  std::size_t end = 0;
  HttpAnswer out;
  do {
    in.erase(0, out.status == 0 ? 0 : end + 4);
    while ((end = in.find("\r\n\r\n")) == std::string::npos) {
      if (!socket.receive(in)) fail("the connection ended before an answer came");
    }
    out = head_of(std::string_view(in).substr(0, end));
  } while (out.status == 100);
  in.erase(0, end + 4);
  if (lower(out.field("transfer-encoding")).find("chunked") != std::string::npos) {
    out.body = chunked_body(socket, std::move(in));
    return out;
  }
  const auto size = number_of(out.field("content-length"), 10);
  while ((!size || in.size() < *size) && socket.receive(in)) {
  }
  if (size && in.size() < *size) fail("the answer ends after {} of {} bytes", in.size(), *size);
  out.body = size ? in.substr(0, *size) : std::move(in);
  return out;
}

}  // namespace triax::cli
