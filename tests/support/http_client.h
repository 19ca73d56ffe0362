// A plain HTTP/1.1 client over a loopback socket. Header only.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "triax/core/error.h"

namespace triax::test {

struct HttpAnswer {
  int status = 0;
  std::string head, body;

  nlohmann::json json() const { return nlohmann::json::parse(body); }
  // The data of each event of a stream; comments are left out.
  std::vector<std::string> events() const {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = std::min(body.find('\n', at), body.size());
      const std::string line = body.substr(at, end - at);
      if (line.starts_with("data: ")) out.push_back(line.substr(6));
      at = end + 1;
    }
    return out;
  }
};

class HttpClient {
 public:
  explicit HttpClient(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* address = static_cast<const sockaddr*>(static_cast<const void*>(&at));
    if (::connect(socket_, address, sizeof at) != 0) fail("cannot connect to port {}", port);
  }
  ~HttpClient() { leave(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void leave() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  // False when the other side does not take it.
  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }
  static std::string request(const std::string& method, const std::string& path,
                             const std::string& body, const std::string& fields = "") {
    return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + fields +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  // More of what comes in; false at the end.
  bool receive() {
    pollfd ready{socket_, POLLIN, 0};
    if (::poll(&ready, 1, 60000) <= 0) return false;
    char buffer[16384];
    const ssize_t n = ::recv(socket_, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    in_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  const std::string& received() const { return in_; }

  HttpAnswer answer() {
    HttpAnswer out;
    std::size_t end = 0;
    while ((end = in_.find("\r\n\r\n")) == std::string::npos) {
      if (!receive()) return out;
    }
    out.head = in_.substr(0, end + 2);
    in_.erase(0, end + 4);
    out.status = std::stoi(out.head.substr(9, 3));
    if (out.status == 100) return answer();
    if (out.head.find("Transfer-Encoding: chunked") != std::string::npos) {
      while (chunk(out.body)) {
      }
      return out;
    }
    const std::size_t at = out.head.find("Content-Length: ");
    const std::size_t size = at == std::string::npos ? 0 : std::stoul(out.head.substr(at + 16));
    while (in_.size() < size && receive()) {
    }
    out.body = in_.substr(0, size);
    in_.erase(0, size);
    return out;
  }
  HttpAnswer ask(const std::string& method, const std::string& path, const std::string& body = "",
                 const std::string& fields = "") {
    send(request(method, path, body, fields));
    return answer();
  }

 private:
  bool chunk(std::string& body) {
    std::size_t end = 0;
    while ((end = in_.find("\r\n")) == std::string::npos) {
      if (!receive()) return false;
    }
    const std::size_t size = std::stoul(in_.substr(0, end), nullptr, 16);
    while (in_.size() < end + 2 + size + 2) {
      if (!receive()) return false;
    }
    body += in_.substr(end + 2, size);
    in_.erase(0, end + 2 + size + 2);
    return size > 0;
  }

  int socket_;
  std::string in_;
};

inline HttpAnswer http(std::uint16_t port, const std::string& method, const std::string& path,
                       const std::string& body = "", const std::string& fields = "") {
  return HttpClient(port).ask(method, path, body, fields);
}

}  // namespace triax::test
