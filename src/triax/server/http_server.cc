// HTTP/1.1 over sockets. The only file that includes Beast and Asio, which are slow to compile.
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "triax/core/error.h"
#include "triax/server/http.h"

namespace triax::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Parser = http::request_parser<http::string_body>;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr double kLingerSeconds = 2;
constexpr auto kTick = std::chrono::milliseconds(500);

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

std::string head_text(const HttpHead& head, bool keep_alive, std::string_view length) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", head.status, status_text(head.status));
  if (!head.content_type.empty()) out += "Content-Type: " + head.content_type + "\r\n";
  for (const auto& [name, value] : head.fields) {
    out += name + ": ";
    // A line end in a value would begin a field of its own.
    for (const char c : value) out += c == '\r' || c == '\n' ? ' ' : c;
    out += "\r\n";
  }
  out += length;
  out += keep_alive ? "Connection: keep-alive\r\n\r\n" : "Connection: close\r\n\r\n";
  return out;
}

class Connection;

// What connections share.
struct Shared {
  Shared(const HttpOptions& o, HttpHandler h, HttpServer::FaultText f)
      : options(o), handler(std::move(h)), fault(std::move(f)) {}

  HttpOptions options;
  HttpHandler handler;
  HttpServer::FaultText fault;
  std::atomic<bool> closing = false;
  std::atomic<std::uint64_t> accepted = 0, refused = 0, slow = 0, gone = 0, malformed = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::set<Connection*> connections;  // guarded by mutex
  asio::io_context io;                // goes first at the end: it holds connections
};

// The answer at hand. Its own lock keeps texts in the order in which they were written.
class SocketReply final : public Reply {
 public:
  SocketReply(std::shared_ptr<Connection> connection, std::size_t max_unsent, bool keep_alive,
              bool chunks, bool body)
      : connection_(std::move(connection)),
        max_unsent_(max_unsent),
        keep_alive_(keep_alive),
        chunks_(chunks),
        body_(body) {}

  bool send(HttpHead head, std::string body) override;
  void stream(HttpHead head, std::string idle) override;
  bool write(std::string text) override;
  void end() override;
  void on_gone(std::function<void()> call) override;

  // On the connection's strand.
  bool lose();  // true: it was not whole yet
  void sent(std::size_t bytes);
  void comment(double after_seconds);
  bool keeps_alive() const { return keep_alive_; }

 private:
  bool push(std::string text);  // locked
  void finish();                // locked

  std::mutex mutex_;
  std::shared_ptr<Connection> connection_;
  const std::size_t max_unsent_;
  bool keep_alive_;
  const bool chunks_, body_;
  std::optional<HttpHead> head_;  // of a stream, until it is sent
  std::string idle_;
  bool streaming_ = false, head_sent_ = false, ended_ = false, gone_ = false;
  std::size_t unsent_ = 0;
  Clock::time_point written_ = Clock::now();
  std::function<void()> on_gone_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Shared& shared, tcp::socket socket)
      : shared_(shared), socket_(std::move(socket)), timer_(socket_.get_executor()) {
    const std::lock_guard lock(shared_.mutex);
    shared_.connections.insert(this);
  }
  ~Connection() {
    const std::lock_guard lock(shared_.mutex);
    shared_.connections.erase(this);
    shared_.changed.notify_all();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // On the strand, as everything here but push(), done() and cut_later().
  void start(bool refuse) {
    error_code ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    const auto peer = socket_.remote_endpoint(ignored);
    if (!ignored) peer_ = peer.address().to_string();
    idle_since_ = Clock::now();
    tick();
    if (refuse) {
      answer_fault(503, "too many connections; try again later");
    } else {
      read();
    }
  }

  tcp::socket::executor_type executor() { return socket_.get_executor(); }

  void push(std::string text) {
    asio::post(socket_.get_executor(), [self = shared_from_this(), t = std::move(text)]() mutable {
      self->append(std::move(t));
    });
  }
  void done() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] { self->reply_done(); });
  }
  void cut_later(bool slow) {
    asio::post(socket_.get_executor(), [self = shared_from_this(), slow] {
      if (slow && !self->closed_) ++self->shared_.slow;
      self->cut(false);
    });
  }
  // The server ends: an idle connection is closed.
  void close_soon() {
    asio::post(socket_.get_executor(), [self = shared_from_this()] {
      if (!self->reply_ && !self->parser_ && self->in_.empty()) self->close_when_sent();
    });
  }

 private:
  void read() {
    if (reading_ || closed_ || (reply_ && in_.size() >= kReadBytes)) return;
    reading_ = true;
    socket_.async_read_some(asio::buffer(chunk_),
                            [self = shared_from_this()](error_code error, std::size_t n) {
                              self->reading_ = false;
                              self->on_read(error, n);
                            });
  }

  void on_read(error_code error, std::size_t n) {
    if (closed_) return;
    if (error) {
      // Answers that are whole still go out to a client that only stopped sending.
      if (!reply_ && (writing_ || !out_.empty()) && error == asio::error::eof) {
        closing_ = true;
        return;
      }
      return cut();
    }
    if (!lingering_) in_.append(chunk_.data(), n);
    if (!reply_ && !closing_) parse();
    read();
  }

  void parse() {
    while (!in_.empty() && !reply_ && !closing_) {
      if (!parser_) {
        parser_.emplace();
        parser_->header_limit(static_cast<std::uint32_t>(shared_.options.max_header_bytes));
        parser_->body_limit(shared_.options.max_body_bytes);
        request_since_ = Clock::now();
        header_seen_ = false;
      }
      error_code error;
      const std::size_t n = parser_->put(asio::buffer(in_), error);
      in_.erase(0, n);
      if (error == http::error::need_more) {
        if (in_.size() <= shared_.options.max_header_bytes) return go_on();
        error = http::error::header_limit;
      }
      if (error) return refuse(error);
      if (parser_->is_done()) {
        take_request();
      } else {
        go_on();
        if (n == 0) return;
      }
    }
  }

  // The header may ask whether the body is wanted.
  void go_on() {
    if (header_seen_ || !parser_->is_header_done()) return;
    header_seen_ = true;
    const auto expect = parser_->get()[http::field::expect];
    if (boost::beast::iequals({expect.data(), expect.size()}, "100-continue")) {
      append("HTTP/1.1 100 Continue\r\n\r\n");
    }
  }

  void refuse(error_code error) {
    ++shared_.malformed;
    if (error == http::error::body_limit) {
      answer_fault(413, fmt::format("the body is larger than {} bytes, which is the limit here",
                                    shared_.options.max_body_bytes));
    } else if (error == http::error::header_limit) {
      answer_fault(431, fmt::format("the header is larger than {} bytes, which is the limit here",
                                    shared_.options.max_header_bytes));
    } else {
      answer_fault(400, "this is no HTTP request: " + error.message());
    }
  }

  void answer_fault(int status, const std::string& message) {
    HttpHead head;
    head.status = status;
    if (status == 503) head.fields.emplace_back("Retry-After", "1");
    const std::string body = shared_.fault(status, message);
    append(head_text(head, false, fmt::format("Content-Length: {}\r\n", body.size())) + body);
    close_when_sent();
  }

  void take_request() {
    auto message = parser_->release();
    const bool keep_alive = message.keep_alive() && !shared_.closing;
    const bool chunks = message.version() >= 11;
    parser_.reset();
    HttpRequest request;
    request.method = std::string(message.method_string());
    const std::string target(message.target());
    request.path = target.substr(0, target.find_first_of("?#"));
    for (const auto& field : message) {
      std::string name(field.name_string());
      std::transform(name.begin(), name.end(), name.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      });
      request.fields.emplace_back(std::move(name), std::string(field.value()));
    }
    request.body = std::move(message.body());
    request.peer = peer_;
    reply_ = std::make_shared<SocketReply>(shared_from_this(), shared_.options.max_unsent_bytes,
                                           keep_alive, chunks, request.method != "HEAD");
    shared_.handler(std::move(request), reply_);
  }

  void append(std::string text) {
    if (closed_) return;
    if (out_.empty() && !writing_) {
      out_ = std::move(text);
    } else {
      out_ += text;
    }
    send_some();
  }

  void send_some() {
    if (writing_ || closed_) return;
    if (sending_at_ == sending_.size()) {
      sending_.clear();
      sending_.swap(out_);
      sending_at_ = 0;
    }
    if (sending_.empty()) {
      if (closing_) shut_down();
      return;
    }
    writing_ = true;
    write_since_ = Clock::now();
    socket_.async_write_some(
        asio::buffer(sending_.data() + sending_at_, sending_.size() - sending_at_),
        [self = shared_from_this()](error_code error, std::size_t n) {
          self->writing_ = false;
          if (self->closed_) return;
          if (error) return self->cut();
          self->sending_at_ += n;
          if (self->reply_) self->reply_->sent(n);
          self->send_some();
        });
  }

  void reply_done() {
    if (!reply_) return;
    const bool keep = reply_->keeps_alive() && !shared_.closing;
    reply_.reset();
    idle_since_ = Clock::now();
    if (!keep) return close_when_sent();
    parse();
    read();
  }

  void close_when_sent() {
    closing_ = true;
    send_some();
  }

  // All is sent. What still comes in is read for a moment, or the client might never see the
  // answer.
  void shut_down() {
    if (lingering_ || closed_) return;
    if (shared_.closing) return cut();
    lingering_ = true;
    linger_since_ = Clock::now();
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    in_.clear();
    read();
  }

  void cut(bool by_client = true) {
    if (closed_) return;
    closed_ = true;
    error_code ignored;
    socket_.close(ignored);
    timer_.cancel();
    const std::shared_ptr<SocketReply> reply = std::move(reply_);
    reply_.reset();
    if (reply && reply->lose() && by_client) ++shared_.gone;
  }

  void tick() {
    if (closed_) return;
    check_times();
    if (closed_) return;
    timer_.expires_after(kTick);
    timer_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->tick();
    });
  }

  void check_times() {
    const HttpOptions& o = shared_.options;
    if (writing_ && seconds_since(write_since_) > o.write_seconds) {
      ++shared_.slow;
      return cut(false);
    }
    if (lingering_) {
      if (seconds_since(linger_since_) > kLingerSeconds) cut();
    } else if (reply_) {
      reply_->comment(o.comment_seconds);
    } else if (parser_ && !closing_) {
      if (seconds_since(request_since_) < o.request_seconds) return;
      ++shared_.slow;
      parser_.reset();
      answer_fault(408, fmt::format("the request took longer than {} s", o.request_seconds));
    } else if (!writing_ && seconds_since(idle_since_) > o.idle_seconds) {
      cut();
    }
  }

  Shared& shared_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  std::string peer_;

  std::array<char, kReadBytes> chunk_{};
  std::string in_;  // read and not parsed
  std::optional<Parser> parser_;
  bool header_seen_ = false, reading_ = false;
  std::shared_ptr<SocketReply> reply_;

  std::string sending_, out_;
  std::size_t sending_at_ = 0;
  bool writing_ = false, closing_ = false, lingering_ = false, closed_ = false;
  Clock::time_point idle_since_, request_since_, write_since_, linger_since_;
};

bool SocketReply::push(std::string text) {
  if (gone_) return false;
  unsent_ += text.size();
  written_ = Clock::now();
  connection_->push(std::move(text));
  return true;
}

void SocketReply::finish() {
  ended_ = true;
  on_gone_ = nullptr;
  connection_->done();
  connection_.reset();
}

bool SocketReply::send(HttpHead head, std::string body) {
  const std::lock_guard lock(mutex_);
  if (head_sent_) return false;
  if (gone_ || ended_) return true;
  head_sent_ = true;
  // These have no body, and a length would speak of another answer's.
  const bool bare = head.status == 204 || head.status == 304;
  std::string text =
      head_text(head, keep_alive_, bare ? "" : fmt::format("Content-Length: {}\r\n", body.size()));
  if (body_ && !bare) text += body;
  push(std::move(text));
  finish();
  return true;
}

void SocketReply::stream(HttpHead head, std::string idle) {
  const std::lock_guard lock(mutex_);
  streaming_ = true;
  head_ = std::move(head);
  idle_ = std::move(idle);
}

bool SocketReply::write(std::string text) {
  const std::lock_guard lock(mutex_);
  if (gone_ || ended_ || !streaming_) return false;
  std::string out;
  if (!head_sent_) {
    head_sent_ = true;
    if (!chunks_) keep_alive_ = false;
    out = head_text(*head_, keep_alive_, chunks_ ? "Transfer-Encoding: chunked\r\n" : "");
  }
  if (unsent_ > max_unsent_) {
    gone_ = true;
    connection_->cut_later(true);
    return false;
  }
  if (body_ && !text.empty()) {
    if (chunks_) {
      out += fmt::format("{:x}\r\n", text.size()) + text + "\r\n";
    } else {
      out += text;
    }
  }
  return push(std::move(out));
}

void SocketReply::end() {
  const std::lock_guard lock(mutex_);
  if (gone_ || ended_ || !streaming_) return;
  std::string out;
  if (!head_sent_) {
    head_sent_ = true;
    out = head_text(*head_, keep_alive_, chunks_ ? "Transfer-Encoding: chunked\r\n" : "");
  }
  if (body_ && chunks_) out += "0\r\n\r\n";
  if (!out.empty()) push(std::move(out));
  finish();
}

void SocketReply::on_gone(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!gone_) {
      on_gone_ = std::move(call);
      return;
    }
  }
  call();
}

bool SocketReply::lose() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    gone_ = true;
    call.swap(on_gone_);
    connection_.reset();
  }
  if (call) call();
  return true;
}

void SocketReply::sent(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  unsent_ -= std::min(unsent_, bytes);
}

void SocketReply::comment(double after_seconds) {
  std::string text;
  {
    const std::lock_guard lock(mutex_);
    if (!streaming_ || ended_ || gone_ || idle_.empty()) return;
    if (seconds_since(written_) < after_seconds) return;
    text = idle_;
  }
  write(std::move(text));
}

tcp::endpoint endpoint_of(const HttpOptions& options) {
  const std::string name = options.address == "localhost" ? "127.0.0.1" : options.address;
  error_code error;
  const auto address = asio::ip::make_address(name, error);
  if (error) {
    fail("{} is no address to listen on; give one of this machine, such as 127.0.0.1 or 0.0.0.0",
         in_quotes(options.address));
  }
  return {address, options.port};
}

}  // namespace

struct HttpServer::Impl {
  Impl(const HttpOptions& options, HttpHandler handler, FaultText fault)
      : shared(options, std::move(handler), std::move(fault)),
        strand(asio::make_strand(shared.io)),
        acceptor(strand),
        retry(strand) {
    const tcp::endpoint at = endpoint_of(options);
    try {
      acceptor.open(at.protocol());
      acceptor.set_option(asio::socket_base::reuse_address(true));
      acceptor.bind(at);
      acceptor.listen();
      port = acceptor.local_endpoint().port();
    } catch (const boost::system::system_error& error) {
      fail("cannot listen on {} port {}: {}; choose another with --host and --port",
           options.address, options.port, error.code().message());
    }
    asio::post(strand, [this] { accept(); });
    for (std::size_t i = 0; i < std::max<std::size_t>(options.threads, 1); ++i) {
      threads.emplace_back([this] { serve(); });
    }
  }

  // What one connection's work throws (no memory) must not end the others.
  void serve() {
    for (bool again = true; again;) {
      again = false;
      try {
        shared.io.run();
      } catch (const std::exception&) {
        again = true;
      }
    }
  }

  void accept() {
    acceptor.async_accept(asio::make_strand(shared.io),
                          [this](error_code error, tcp::socket socket) {
                            if (!acceptor.is_open()) return;
                            if (!error) {
                              take(std::move(socket));
                              return accept();
                            }
                            // No descriptors left, or a client that is gone already.
                            retry.expires_after(std::chrono::milliseconds(50));
                            retry.async_wait([this](error_code cancelled) {
                              if (!cancelled && acceptor.is_open()) accept();
                            });
                          });
  }

  void take(tcp::socket socket) {
    ++shared.accepted;
    auto connection = std::make_shared<Connection>(shared, std::move(socket));
    bool refuse = false;
    {
      const std::lock_guard lock(shared.mutex);
      refuse = shared.connections.size() > shared.options.max_connections;
    }
    if (refuse) ++shared.refused;
    const auto executor = connection->executor();
    asio::post(executor, [connection, refuse] { connection->start(refuse); });
  }

  std::vector<std::shared_ptr<Connection>> open() {
    std::vector<std::shared_ptr<Connection>> out;
    const std::lock_guard lock(shared.mutex);
    for (Connection* c : shared.connections) {
      if (auto kept = c->weak_from_this().lock()) out.push_back(std::move(kept));
    }
    return out;
  }

  void close() {
    if (shared.closing.exchange(true)) return;
    asio::post(strand, [this] {
      error_code ignored;
      acceptor.close(ignored);
      retry.cancel();
    });
    for (const auto& connection : open()) connection->close_soon();
  }

  void stop(double seconds) {
    if (stopped) return;
    stopped = true;
    close();
    {
      std::unique_lock lock(shared.mutex);
      shared.changed.wait_for(lock, std::chrono::duration<double>(seconds),
                              [this] { return shared.connections.empty(); });
    }
    for (const auto& connection : open()) connection->cut_later(false);
    {
      std::unique_lock lock(shared.mutex);
      shared.changed.wait_for(lock, std::chrono::seconds(2),
                              [this] { return shared.connections.empty(); });
    }
    shared.io.stop();
    for (std::thread& thread : threads) thread.join();
  }

  Shared shared;
  asio::strand<asio::io_context::executor_type> strand;
  tcp::acceptor acceptor;
  asio::steady_timer retry;
  std::uint16_t port = 0;
  std::vector<std::thread> threads;
  bool stopped = false;
};

HttpServer::HttpServer(const HttpOptions& options, HttpHandler handler, FaultText fault)
    : impl_(std::make_unique<Impl>(options, std::move(handler), std::move(fault))) {}
HttpServer::~HttpServer() {
  stop(0);
}
std::uint16_t HttpServer::port() const {
  return impl_->port;
}
void HttpServer::close() {
  impl_->close();
}
void HttpServer::stop(double seconds) {
  impl_->stop(seconds);
}

HttpCounts HttpServer::counts() const {
  Shared& s = impl_->shared;
  HttpCounts out;
  {
    const std::lock_guard lock(s.mutex);
    out.connections = s.connections.size();
  }
  out.accepted = s.accepted;
  out.refused = s.refused;
  out.slow = s.slow;
  out.gone = s.gone;
  out.malformed = s.malformed;
  return out;
}

}  // namespace triax::server
