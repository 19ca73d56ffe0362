#include "load_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "triax/core/error.h"

namespace triax::bench {
namespace {

using nlohmann::json;

int connected_socket(std::uint16_t port, bool blocking) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0);
  if (fd < 0) fail("no socket: too many files are open; `ulimit -n` gives more");
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto* address = static_cast<const sockaddr*>(static_cast<const void*>(&at));
  if (::connect(fd, address, sizeof at) != 0 && errno != EINPROGRESS) {
    ::close(fd);
    fail("cannot connect to port {}", port);
  }
  return fd;
}

}  // namespace

struct LoadClient::Connection {
  int fd = -1;
  std::string out;
  std::size_t out_at = 0;
  std::string in;     // not parsed
  std::string lines;  // of the body, not yet whole
  bool head = false, chunked = false, stream = false, whole = false;
  std::size_t length = 0;  // of a body with a length
  Answer answer;
};

LoadClient::LoadClient(std::uint16_t port) : port_(port), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (epoll_ < 0) fail("no epoll");
}

LoadClient::~LoadClient() {
  for (const auto& [fd, c] : connections_) ::close(fd);
  ::close(epoll_);
}

void LoadClient::start(std::size_t tag, const std::string& path, const std::string& body) {
  auto c = std::make_unique<Connection>();
  c->fd = connected_socket(port_, false);
  c->answer.tag = tag;
  c->answer.sent = c->answer.first = c->answer.last = Clock::now();
  c->out = fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
      path, body.size(), body);
  epoll_event wanted{};
  wanted.events = EPOLLIN | EPOLLOUT;
  wanted.data.fd = c->fd;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, c->fd, &wanted);
  const int fd = c->fd;
  connections_[fd] = std::move(c);
}

void LoadClient::leave(std::size_t tag) {
  for (auto at = connections_.begin(); at != connections_.end(); ++at) {
    if (at->second->answer.tag != tag) continue;
    ::close(at->first);
    connections_.erase(at);
    return;
  }
}

const Answer* LoadClient::peek(std::size_t tag) const {
  for (const auto& [fd, c] : connections_) {
    if (c->answer.tag == tag) return &c->answer;
  }
  return nullptr;
}

std::vector<Answer> LoadClient::wait(Clock::time_point until) {
  std::vector<Answer> out;
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  std::array<epoll_event, 256> ready;
  const int n = ::epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()),
                             left <= 0 ? 0 : static_cast<int>(left));
  for (int i = 0; i < n; ++i) {
    const epoll_event& e = ready[static_cast<std::size_t>(i)];
    const auto found = connections_.find(e.data.fd);
    if (found == connections_.end()) continue;
    Connection& c = *found->second;
    if ((e.events & EPOLLOUT) != 0) write(c);
    bool open = true;
    if ((e.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) open = read(c);
    if (open && !c.whole) continue;
    out.push_back(std::move(c.answer));
    ::close(e.data.fd);
    connections_.erase(found);
  }
  return out;
}

void LoadClient::write(Connection& c) {
  while (c.out_at < c.out.size()) {
    const ssize_t n = ::send(c.fd, c.out.data() + c.out_at, c.out.size() - c.out_at, MSG_NOSIGNAL);
    if (n <= 0) return;
    c.out_at += static_cast<std::size_t>(n);
  }
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = c.fd;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, c.fd, &wanted);
}

bool LoadClient::read(Connection& c) {
  std::array<char, 16384> buffer;
  for (;;) {
    const ssize_t n = ::recv(c.fd, buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (n > 0) c.in.append(buffer.data(), static_cast<std::size_t>(n));
    if (n <= 0) {
      parse(c);
      return false;
    }
  }
  parse(c);
  return true;
}

void LoadClient::parse(Connection& c) {
  if (!c.head) {
    const std::size_t end = c.in.find("\r\n\r\n");
    if (end == std::string::npos) return;
    const std::string head = c.in.substr(0, end + 2);
    c.in.erase(0, end + 4);
    c.head = true;
    c.answer.status = head.size() > 12 ? std::atoi(head.c_str() + 9) : 0;
    c.chunked = head.find("Transfer-Encoding: chunked") != std::string::npos;
    c.stream = head.find("text/event-stream") != std::string::npos;
    if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos) {
      c.length = std::stoul(head.substr(at + 16));
    }
  }
  if (!c.chunked) {
    c.answer.body += c.in;
    c.in.clear();
    c.whole = c.answer.body.size() >= c.length;
    return;
  }
  for (std::size_t end = 0; (end = c.in.find("\r\n")) != std::string::npos;) {
    const std::size_t size = std::stoul("0" + c.in.substr(0, end), nullptr, 16);
    if (c.in.size() < end + 2 + size + 2) return;
    if (size == 0) {
      c.whole = true;
      return;
    }
    (c.stream ? c.lines : c.answer.body).append(c.in, end + 2, size);
    c.in.erase(0, end + 2 + size + 2);
    for (std::size_t line = 0; (line = c.lines.find('\n')) != std::string::npos;) {
      if (c.lines.starts_with("data: ")) event(c, c.lines.substr(6, line - 6));
      c.lines.erase(0, line + 1);
    }
  }
}

void LoadClient::event(Connection& c, const std::string& data) {
  Answer& a = c.answer;
  if (data == "[DONE]") {
    a.done = true;
    return;
  }
  const json chunk = json::parse(data, nullptr, false);
  if (!chunk.is_object() || !chunk.contains("choices")) {
    a.body = data;
    return;
  }
  if (const auto usage = chunk.find("usage"); usage != chunk.end() && usage->is_object()) {
    a.prompt_tokens = usage->value("prompt_tokens", std::size_t{0});
    a.completion_tokens = usage->value("completion_tokens", std::size_t{0});
    a.cached_tokens = usage->value("cached_tokens", std::size_t{0});
  }
  bool said = false;
  for (const json& choice : chunk["choices"]) {
    if (choice.contains("text") && choice["text"].is_string()) {
      const auto& text = choice["text"].get_ref<const std::string&>();
      a.text += text;
      said |= !text.empty();
    }
    const auto delta = choice.find("delta");
    if (delta == choice.end()) continue;
    for (const char* key : {"reasoning_content", "content"}) {
      if (!delta->contains(key) || !(*delta)[key].is_string()) continue;
      const auto& text = (*delta)[key].get_ref<const std::string&>();
      a.text += text;
      said |= !text.empty();
    }
  }
  if (!said) return;
  const auto now = Clock::now();
  if (a.events++ == 0) {
    a.first = now;
  } else {
    a.gaps.push_back(std::chrono::duration<float>(now - a.last).count());
  }
  a.last = now;
  ++events_;
}

std::pair<int, std::string> http_get(std::uint16_t port, const std::string& path) {
  const int fd = connected_socket(port, true);
  const std::string out =
      "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  std::string in;
  std::array<char, 16384> buffer;
  if (::send(fd, out.data(), out.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(out.size())) {
    for (ssize_t n = 0; (n = ::recv(fd, buffer.data(), buffer.size(), 0)) > 0;) {
      in.append(buffer.data(), static_cast<std::size_t>(n));
    }
  }
  ::close(fd);
  const std::size_t end = in.find("\r\n\r\n");
  if (end == std::string::npos) return {0, ""};
  return {std::atoi(in.c_str() + 9), in.substr(end + 4)};
}

}  // namespace triax::bench
