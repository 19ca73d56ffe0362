// Requests and answers over HTTP/1.1, as the rest of the server sees them; http_server.cc has the
// sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace triax::server {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method;  // "POST"
  std::string path;    // without the query
  HttpFields fields;   // names in lower case
  std::string body;
  std::string peer;  // the client's address

  // The first field of that (lower-case) name; empty where there is none.
  std::string_view field(std::string_view name) const;
};

struct HttpHead {
  int status = 200;
  std::string content_type = "application/json";
  HttpFields fields = {};
};
std::string_view status_text(int status);

// The answer to one request. All calls from any thread; none waits. Exactly one whole answer is
// given: send(), or write() up to end().
class Reply {
 public:
  virtual ~Reply() = default;

  // A whole answer. False when a stream's head has gone out already: the fault must be told within
  // the stream then.
  virtual bool send(HttpHead head, std::string body) = 0;

  // The answer will be a stream with this head, which goes out with the first text. While nothing
  // is written for some seconds, `idle` is.
  virtual void stream(HttpHead head, std::string idle) = 0;
  // False when the client is gone, or does not take what was written before: then nothing more is.
  virtual bool write(std::string text) = 0;
  virtual void end() = 0;

  // Called once, when the client goes away before the answer is whole (at once if it is gone).
  virtual void on_gone(std::function<void()> call) = 0;
};

// Must not throw. It may give the answer later, from another thread.
using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<Reply> reply)>;

struct HttpOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: a free one
  std::size_t threads = 4;
  std::size_t max_connections = 1024;  // more are told 503
  std::size_t max_header_bytes = std::size_t{64} << 10;
  std::size_t max_body_bytes = std::size_t{32} << 20;
  std::size_t max_unsent_bytes = std::size_t{4} << 20;  // of a stream; beyond it the client is slow
  double request_seconds = 60;                          // from a request's first byte to its last
  double idle_seconds = 120;                            // between requests of a connection
  double write_seconds = 30;                            // without any progress
  double comment_seconds = 10;                          // of silence in a stream
};

// How many there are, and how many were turned away or dropped.
struct HttpCounts {
  std::size_t connections = 0;  // now
  std::uint64_t accepted = 0, refused = 0, slow = 0, gone = 0, malformed = 0;
};

class HttpServer {
 public:
  // Opens the port and serves. Throws Error when the address cannot be had. What is no HTTP, too
  // large or too slow is answered here, in the form that `fault` gives a status and a message.
  using FaultText = std::function<std::string(int status, std::string_view message)>;
  HttpServer(const HttpOptions& options, HttpHandler handler, FaultText fault);
  ~HttpServer();  // stop(0)
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;
  HttpCounts counts() const;
  // Takes no more connections; those that are idle are closed, others after their answer.
  void close();
  // close(), and returns when all answers are out, or after `seconds`; what is left is cut.
  void stop(double seconds);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace triax::server
