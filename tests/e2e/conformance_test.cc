// `triax selftest --server`: a good server passes, and what a server gets wrong is named.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <thread>

#include "e2e/program.h"
#include "e2e/server.h"
#include "support/http_client.h"

namespace triax {
namespace {

using test::HttpAnswer;
using test::Outcome;
using test::Server;
using testing::HasSubstr;
using testing::Not;

struct Asked {
  std::string method, path, body;
};

// Stands between a client and a good server, and changes what goes through.
class StandIn {
 public:
  using Change = std::function<void(Asked&, HttpAnswer*)>;  // the answer: null before it is asked

  StandIn(std::uint16_t to, Change change)
      : to_(to), change_(std::move(change)), listener_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* address = static_cast<sockaddr*>(static_cast<void*>(&at));
    if (::bind(listener_, address, size) != 0 || ::listen(listener_, 16) != 0 ||
        ::getsockname(listener_, address, &size) != 0) {
      fail("no port for the stand-in");
    }
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~StandIn() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;
  std::uint16_t port() const { return port_; }

 private:
  void serve() {
    for (int fd = 0; (fd = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      answer(fd);
      ::close(fd);
    }
  }
  void answer(int fd) {
    std::string in;
    const auto more = [&] {
      char buffer[16384];
      const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
      if (n > 0) in.append(buffer, static_cast<std::size_t>(n));
      return n > 0;
    };
    while (in.find("\r\n\r\n") == std::string::npos) {
      if (!more()) return;
    }
    const std::size_t head = in.find("\r\n\r\n") + 4, mark = in.find("Content-Length: ");
    const std::size_t size = mark < head ? std::stoul(in.substr(mark + 16)) : 0;
    while (in.size() < head + size) {
      if (!more()) return;
    }
    const std::size_t path = in.find(' ') + 1;
    Asked asked{in.substr(0, path - 1), in.substr(path, in.find(' ', path) - path),
                in.substr(head)};
    change_(asked, nullptr);
    HttpAnswer a = test::http(to_, asked.method, asked.path, asked.body);
    change_(asked, &a);
    const bool stream = a.head.find("event-stream") != std::string::npos;
    const std::string out = fmt::format(
        "HTTP/1.1 {} X\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
        a.status, stream ? "text/event-stream" : "application/json", a.body.size(), a.body);
    for (std::size_t at = 0; at < out.size();) {
      const ssize_t n = ::send(fd, out.data() + at, out.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  }

  std::uint16_t to_;
  Change change_;
  int listener_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

void replace(std::string& in, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = in.find(what, at)) != std::string::npos; at += by.size()) {
    in.replace(at, what.size(), by);
  }
}

Outcome selftest(std::uint16_t port, std::vector<std::string> more = {}) {
  std::vector<std::string> words{"selftest", "--server",
                                 fmt::format("http://127.0.0.1:{}/v1", port)};
  words.insert(words.end(), more.begin(), more.end());
  return test::run(std::move(words));
}

TEST(Conformance, AServerPassesInBothProfiles) {
  for (const char* profile : {"open", "kimi"}) {
    Server server({"--profile", profile, "--api-key", "secret"});
    const Outcome o = selftest(server.port(), {"--api-key", "secret"});
    EXPECT_EQ(o.code, 0) << o.out;
    EXPECT_THAT(o.out, HasSubstr(" passed, 0 failed\n"));
    EXPECT_THAT(o.out, HasSubstr(std::string("profile ") + profile));
    EXPECT_THAT(o.out, HasSubstr("a wrong key is 401"));
  }
}

TEST(Conformance, WhatAServerGetsWrongIsNamed) {
  Server server;
  const StandIn wrong(server.port(), [](Asked& asked, HttpAnswer* answer) {
    if (answer == nullptr) {
      replace(asked.body, "\"temperature\":-0.1", "\"temperature\":1");
      replace(asked.body, "\"include_usage\":true", "\"include_usage\":false");
      return;
    }
    replace(answer->body, "\"name\":\"listen\"", "\"name\":\"look\"");
    if (asked.body.find("\"max_tokens\":0") != std::string::npos) answer->body = "no";
    if (asked.path == "/v1/nothing-here") answer->status = 200;
  });
  const Outcome o = selftest(wrong.port(), {"--json"});
  EXPECT_EQ(o.code, 1) << o.err;
  const auto json = o.json();
  EXPECT_EQ(json["passed"], false);
  std::vector<std::string> failed;
  for (const auto& check : json["checks"]) {
    if (check["passed"] == false) failed.push_back(check["name"]);
  }
  EXPECT_THAT(failed,
              testing::UnorderedElementsAre("temperature -0.1 is refused",
                                            "include_usage adds a chunk without choices",
                                            "a named tool is the one that is called",
                                            "a named tool is the one that is called, streamed",
                                            "max_tokens 0 is refused", "an unknown path is 404"))
      << o.out;
}

TEST(Conformance, NobodyThereIsOneLine) {
  const Outcome o = test::run({"selftest", "--server", "http://127.0.0.1:1"});
  EXPECT_EQ(o.code, 1);
  EXPECT_THAT(o.error_line(), HasSubstr("cannot connect to 127.0.0.1 port 1"));
  EXPECT_THAT(test::run({"selftest", "--server", "https://x"}).error_line(), HasSubstr("no TLS"));
}

}  // namespace
}  // namespace triax
