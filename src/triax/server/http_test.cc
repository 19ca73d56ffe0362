// Connections against the clock: each limit cuts its own kind of slow client, and no other.
#include "triax/server/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "support/http_client.h"

namespace triax::server {
namespace {

using test::HttpClient;
using ::testing::HasSubstr;

// A server with short limits. /large sends 64 MiB at once; /quiet opens a stream and says nothing
// until it is let go.
class Timed : public testing::Test {
 protected:
  HttpServer& serve(const HttpOptions& options) {
    server_ = std::make_unique<HttpServer>(
        options,
        [this](HttpRequest request, const std::shared_ptr<Reply>& reply) {
          if (request.path == "/large") {
            reply->send({}, std::string(std::size_t{64} << 20, 'x'));
          } else if (request.path == "/quiet") {
            reply->stream({}, ": idle\n\n");
            const std::lock_guard lock(mutex_);
            quiet_ = reply;
            came_.notify_all();
          } else {
            reply->send({}, "{}");
          }
        },
        [](int, std::string_view message) { return std::string(message); });
    return *server_;
  }
  void TearDown() override {
    quiet_.reset();
    server_.reset();
  }

  std::shared_ptr<Reply> quiet() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return quiet_ != nullptr; });
    return quiet_;
  }
  bool reaches(const std::function<bool(const HttpCounts&)>& wanted) const {
    for (int i = 0; i < 3000; ++i) {
      if (wanted(server_->counts())) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::unique_ptr<HttpServer> server_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::shared_ptr<Reply> quiet_;
};

TEST_F(Timed, AnAnswerThatIsNotReadIsCutWhenNothingMovesAnyMore) {
  HttpOptions options;
  options.write_seconds = 0.5;
  HttpServer& server = serve(options);
  HttpClient client(server.port());
  client.send(HttpClient::request("GET", "/large", ""));
  EXPECT_TRUE(reaches([](const HttpCounts& c) { return c.slow == 1 && c.connections == 0; }));
  while (client.receive()) {
  }
  EXPECT_LT(client.received().size(), std::size_t{64} << 20);
}

TEST_F(Timed, AnAnswerThatIsReadSlowlyIsWhole) {
  HttpOptions options;
  options.write_seconds = 0.5;
  HttpServer& server = serve(options);
  HttpClient client(server.port());
  client.send(HttpClient::request("GET", "/large", ""));
  // Longer than the limit in all, but something moves all the time.
  for (int i = 0; i < 1500; ++i) {
    ASSERT_TRUE(client.receive());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(client.answer().body.size(), std::size_t{64} << 20);
  EXPECT_EQ(server.counts().slow, 0u);
}

TEST_F(Timed, ARequestThatDoesNotEndIsToldSo) {
  HttpOptions options;
  options.request_seconds = 0.5;
  HttpServer& server = serve(options);
  HttpClient client(server.port());
  client.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf");
  const test::HttpAnswer answer = client.answer();
  EXPECT_EQ(answer.status, 408);
  EXPECT_THAT(answer.body, HasSubstr("0.5 s"));
  EXPECT_TRUE(reaches([](const HttpCounts& c) { return c.slow == 1; }));
}

TEST_F(Timed, AnIdleConnectionIsClosedAndAnsweredOnesStayOpenUntilThen) {
  HttpOptions options;
  options.idle_seconds = 0.5;
  HttpServer& server = serve(options);
  HttpClient client(server.port());
  EXPECT_EQ(client.ask("GET", "/").status, 200);
  EXPECT_EQ(client.ask("GET", "/").status, 200);
  EXPECT_FALSE(client.receive()) << "the server closes";
  EXPECT_TRUE(reaches([](const HttpCounts& c) { return c.connections == 0; }));
  EXPECT_EQ(server.counts().slow, 0u) << "nobody was slow";
}

TEST_F(Timed, ASilentStreamGetsComments) {
  HttpOptions options;
  options.comment_seconds = 0.5;
  options.idle_seconds = 0.5;
  options.request_seconds = 0.5;
  HttpServer& server = serve(options);
  HttpClient client(server.port());
  client.send(HttpClient::request("GET", "/quiet", ""));
  const std::shared_ptr<Reply> reply = quiet();
  while (client.received().find(": idle", client.received().find(": idle") + 1) ==
         std::string::npos) {
    ASSERT_TRUE(client.receive());
  }
  EXPECT_TRUE(reply->write("data: end\n\n"));
  reply->end();
  EXPECT_THAT(client.answer().body, HasSubstr("data: end"));
}

TEST_F(Timed, AClientThatLeavesIsToldToWhoeverAnswers) {
  HttpServer& server = serve({});
  HttpClient client(server.port());
  client.send(HttpClient::request("GET", "/quiet", ""));
  const std::shared_ptr<Reply> reply = quiet();
  std::atomic<bool> gone = false;
  reply->on_gone([&] { gone = true; });
  client.leave();
  EXPECT_TRUE(reaches([&](const HttpCounts& c) { return gone && c.gone == 1; }));
  EXPECT_FALSE(reply->write("data: late\n\n"));
}

}  // namespace
}  // namespace triax::server
