// `triax serve`: the model over HTTP.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "triax/chat/render.h"
#include "triax/cli/commands.h"
#include "triax/cli/default_model.h"
#include "triax/cli/format.h"
#include "triax/cli/load_model.h"
#include "triax/cli/memory.h"
#include "triax/engine/engine.h"
#include "triax/kernels/kernels.h"
#include "triax/server/api.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;

int stop_pipe = -1;  // a signal handler can reach nothing but a global

void on_stop(int) {
  const char byte = 1;
  const auto ignored = ::write(stop_pipe, &byte, 1);
  static_cast<void>(ignored);
}

// While it lives, the first SIGINT or SIGTERM ends wait(); a second one ends the program.
class StopSignal {
 public:
  StopSignal() {
    if (::pipe2(ends_, O_CLOEXEC) != 0) fail("cannot make a pipe; are too many files open?");
    stop_pipe = ends_[1];
    struct sigaction action{};
    action.sa_handler = on_stop;
    action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before_[0]);
    sigaction(SIGTERM, &action, &before_[1]);
  }
  ~StopSignal() {
    sigaction(SIGINT, &before_[0], nullptr);
    sigaction(SIGTERM, &before_[1], nullptr);
    stop_pipe = -1;
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  void wait() const {
    char byte = 0;
    while (::read(ends_[0], &byte, 1) < 0 && errno == EINTR) {
    }
  }

 private:
  int ends_[2] = {-1, -1};
  struct sigaction before_[2] = {};
};

// Half of what is free, unless the command says otherwise.
std::size_t state_bytes(const ServeCommand& c) {
  if (c.memory_mib != 0) return c.memory_mib << 20;
  const std::uint64_t free = available_memory().value_or(std::uint64_t{4} << 30);
  return std::max<std::size_t>(free / 2, std::size_t{64} << 20);
}

// Changes when the weights do, as far as names, sizes and times tell.
std::string identity_of(const LoadedModel& m) {
  std::error_code ignored;
  std::string out = fs::canonical(m.folder, ignored).string();
  out += fmt::format("; {} bytes", m.checkpoint->total_bytes());
  for (const char* name : {"config.json", "model.safetensors.index.json"}) {
    const auto time = fs::last_write_time(m.folder / name, ignored);
    if (!ignored) out += fmt::format("; {}", time.time_since_epoch().count());
  }
  return out + "; trunk " + trunk_name(m.trunk);
}

EngineOptions engine_options(const ServeCommand& c, const LoadedModel& m) {
  EngineOptions o;
  o.precision = c.precision;
  o.chunk = c.chunk;
  o.prompt_budget = std::max<std::size_t>(c.chunk, o.prompt_budget);
  o.max_context = c.context;
  o.max_sequences = c.users;
  o.max_queue = c.queue;
  o.state_bytes = state_bytes(c);
  o.cache_folder = c.cache_folder;
  o.cache_disk_bytes = c.cache_disk_mib << 20;
  o.model_identity = identity_of(m);
  o.warn = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
  return o;
}

std::vector<std::string> keys_of(const ServeCommand& c) {
  std::vector<std::string> out = c.api_keys;
  if (const char* key = std::getenv("TRIAX_API_KEY"); key != nullptr && *key != '\0') {
    out.emplace_back(key);
  }
  if (!c.api_key_file.empty()) {
    std::ifstream file(c.api_key_file);
    if (!file) fail("{}: cannot read the keys", c.api_key_file);
    for (std::string line; std::getline(file, line);) {
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (!line.empty() && line[0] != '#') out.push_back(line);
    }
  }
  return out;
}

std::string name_of(const ServeCommand& c, const LoadedModel& m) {
  if (!c.name.empty()) return c.name;
  std::error_code ignored;
  const std::string name = fs::canonical(m.folder, ignored).filename().string();
  return name.empty() ? "model" : name;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using LogFile = std::unique_ptr<std::FILE, CloseFile>;

LogFile open_log(const std::string& path) {
  if (path.empty() || path == "none") return nullptr;
  LogFile file(std::fopen(path.c_str(), "ae"));
  if (!file) fail("{}: cannot write the log", path);
  return file;
}

void check_use(const ServeCommand& c) {
  if (c.chunk % 64 != 0) wrong_use("serve: --chunk {}: expected a multiple of 64", c.chunk);
}

void tell(const ServeCommand& c, const LoadedModel& m, const Engine& engine,
          const server::ApiOptions& api, std::uint16_t port) {
  fmt::print(stderr, "{}", engine.capacity().text());
  const bool loopback = c.host == "localhost" || c.host.starts_with("127.") || c.host == "::1";
  if (!loopback && api.api_keys.empty()) {
    fmt::print(stderr, "anyone who reaches {} may use this model: --api-key asks for a key\n",
               c.host);
  }
  if (!chat::has_chat_tokens(*m.tokenizer)) {
    fmt::print(stderr, "the vocabulary has no chat tokens: only /v1/completions answers\n");
  }
  const bool v6 = c.host.find(':') != std::string::npos;
  const std::string at =
      fmt::format("http://{}{}{}:{}/", v6 ? "[" : "", c.host, v6 ? "]" : "", port);
  fmt::print(stderr, "chat page at {}\n", at);
  fmt::print("model {} at {}v1\n", api.model, at);
  std::fflush(stdout);
}

}  // namespace

int execute(const ServeCommand& c) {
  check_use(c);
  // A quota of file sizes is an error of the write then, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  server::ApiOptions api_options;
  api_options.profile = c.profile == "kimi" ? server::Profile::kimi : server::Profile::open;
  api_options.api_keys = keys_of(c);
  api_options.cors = c.cors;
  api_options.remember_turns = !c.no_turn_memory;
  const LogFile log_file = open_log(c.log);
  server::AccessLog log(c.log.empty() ? stderr : log_file.get());

  Session session(c, c.precision);
  const LoadedModel& m = *session.loaded;
  const Tokenizer& tokenizer =
      m.required_tokenizer("a server needs one; `triax run --ids FILE` takes ids");
  api_options.model = name_of(c, m);
  api_options.stop_ids = m.stop_ids();

  Engine engine(m.model(), session.pool, &tokenizer, engine_options(c, m));
  server::Api api(engine, tokenizer, api_options, log);
  server::HttpOptions http_options;
  http_options.address = c.host;
  http_options.port = static_cast<std::uint16_t>(c.port);
  http_options.max_connections = c.connections;
  http_options.max_body_bytes = c.body_mib << 20;
  const StopSignal stop;
  server::HttpServer http(
      http_options,
      [&api](server::HttpRequest request, std::shared_ptr<server::Reply> reply) {
        api.handle(std::move(request), std::move(reply));
      },
      [](int status, std::string_view message) {
        return server::error_body({status, status < 500 ? "invalid_request_error" : "server_error",
                                   "", "", std::string(message)});
      });
  api.set_http_counts([&http] { return http.counts(); });
  engine.start();
  tell(c, m, engine, api_options, http.port());

  stop.wait();
  const EngineStats stats = engine.stats();
  fmt::print(stderr, "stopping: {} requests are finished first, for {} s at most\n",
             stats.running + stats.queued, c.grace_seconds);
  api.stopping();
  http.close();
  engine.drain(std::chrono::seconds(c.grace_seconds));
  http.stop(5);
  return 0;
}

}  // namespace triax::cli
