// Hundreds of streams over loopback in one thread: requests go out, events come in with their
// times.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace triax::bench {

using Clock = std::chrono::steady_clock;

// What came back on one request.
struct Answer {
  std::size_t tag = 0;     // of its caller
  int status = 0;          // 0: the connection failed
  std::string text;        // of all deltas, reasoning and content in the order of their coming
  std::string body;        // where it is no stream
  bool done = false;       // [DONE] came
  std::size_t events = 0;  // with text
  std::size_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
  Clock::time_point sent, first, last;  // of events with text
  std::vector<float> gaps;              // seconds between events with text
};

class LoadClient {
 public:
  explicit LoadClient(std::uint16_t port);
  ~LoadClient();
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;

  // A POST on a connection of its own.
  void start(std::size_t tag, const std::string& path, const std::string& body);
  // Closes the connection of a request; its answer does not come.
  void leave(std::size_t tag);
  std::size_t open() const { return connections_.size(); }
  // Waits for events until `until`, at most; answers that are whole now.
  std::vector<Answer> wait(Clock::time_point until);
  // Events with text so far, over all requests; and by one that is open.
  std::uint64_t events() const { return events_; }
  const Answer* peek(std::size_t tag) const;

 private:
  struct Connection;
  void write(Connection& c);
  bool read(Connection& c);  // false: it ended
  void parse(Connection& c);
  void event(Connection& c, const std::string& data);

  std::uint16_t port_;
  int epoll_ = -1;
  std::uint64_t events_ = 0;
  std::unordered_map<int, std::unique_ptr<Connection>> connections_;  // by descriptor
};

// A whole answer at once: (status, body).
std::pair<int, std::string> http_get(std::uint16_t port, const std::string& path);

}  // namespace triax::bench
