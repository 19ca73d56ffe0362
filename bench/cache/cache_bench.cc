// A history of so many tokens: read cold, gone on from in memory, and gone on from on disk.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/clock.h"
#include "triax/core/rng.h"
#include "triax/engine/engine.h"
#include "triax/engine/event_queue.h"
#include "triax/experts/mapped_experts.h"

namespace {

using namespace triax;

struct Timed {
  double seconds = 0;  // from submit() to the first token
  std::size_t cached = 0;
  std::vector<std::int32_t> ids;
};

Timed first_token(Engine& engine, const std::vector<std::int32_t>& prompt) {
  Request r;
  r.prompt = prompt;
  r.sampling.temperature = 0;
  r.max_tokens = 2;
  EventQueue events;
  const Stopwatch watch;
  engine.submit(std::move(r), events.sink());
  Timed out;
  for (;;) {
    const Event e = events.pop();
    if (const auto* t = std::get_if<TokenOut>(&e)) {
      if (out.ids.empty()) out.seconds = watch.seconds();
      out.ids.push_back(t->id);
    }
    if (const auto* end = std::get_if<RequestEnd>(&e)) {
      out.cached = end->usage.cached_tokens;
      return out;
    }
  }
}

int run(const std::filesystem::path& model, std::size_t tokens, std::size_t threads,
        const std::filesystem::path& folder) {
  const K3Config config = K3Config::load(model);
  const auto checkpoint = Checkpoint::open(model);
  const K3Weights weights = K3Weights::load(config, checkpoint);
  const auto experts = config.moe_layers() > 0 ? open_mapped_experts(config, checkpoint) : nullptr;
  const Model loaded{config, weights, experts.get()};
  ThreadPool pool(threads == 0 ? ThreadPool::available_cores() : threads);
  std::vector<std::int32_t> prompt(tokens);
  for (std::size_t i = 0; i < tokens; ++i) {
    prompt[i] = static_cast<std::int32_t>(splitmix64_at(1, i) % config.vocab_size);
  }
  EngineOptions options;
  options.cache_folder = folder;
  options.model_identity = std::filesystem::absolute(model).string();
  double cold = 0;
  std::vector<std::int32_t> longer = prompt;
  {
    Engine engine(loaded, pool, nullptr, options);
    std::fputs(engine.capacity().text().c_str(), stdout);
    engine.start();
    first_token(engine, {prompt.begin(), prompt.begin() + 64});  // weights mapped, threads awake
    const Timed first = first_token(engine, prompt);
    cold = first.seconds;
    longer.insert(longer.end(), first.ids.begin(), first.ids.end());
    fmt::print("cold prefill of {} tokens: {:.3f} s, {:.1f} tokens/s\n", tokens, cold,
               static_cast<double>(tokens) / cold);
    for (int i = 0; i < 3; ++i) {
      const Timed warm = first_token(engine, prompt);
      fmt::print("from memory: {} cached, {:.2f} ms, {:.3f} % of the cold prefill\n", warm.cached,
                 1e3 * warm.seconds, 100 * warm.seconds / cold);
    }
    engine.stop();
    const EngineStats s = engine.stats();
    fmt::print("to disk: {} bytes in {:.3f} s, {:.2f} GB/s with sync\n", s.disk_bytes_written,
               s.disk_write_seconds,
               1e-9 * static_cast<double>(s.disk_bytes_written) / s.disk_write_seconds);
  }
  Engine engine(loaded, pool, nullptr, options);
  engine.start();
  const Timed disk = first_token(engine, longer);
  engine.stop();
  const EngineStats s = engine.stats();
  fmt::print(
      "from disk: {} of {} cached, read {} bytes in {:.1f} ms, {:.2f} GB/s, {:.3f} % of the cold "
      "prefill; first token after {:.1f} ms\n",
      disk.cached, longer.size(), s.disk_bytes_read, 1e3 * s.disk_read_seconds,
      1e-9 * static_cast<double>(s.disk_bytes_read) / s.disk_read_seconds,
      100 * s.disk_read_seconds / cold, 1e3 * disk.seconds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("restoring a history beside reading it cold");
  std::string model, folder = "triax-cache-bench";
  std::size_t tokens = 4000, threads = 0;
  app.add_option("-m,--model", model, "model folder")->required();
  app.add_option("--tokens", tokens, "length of the history")->capture_default_str();
  app.add_option("--threads", threads, "0: all cores")->capture_default_str();
  app.add_option("--folder", folder, "for states on disk; removed at the end")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    const int code = run(model, tokens, threads, folder);
    std::filesystem::remove_all(folder);
    return code;
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 1;
  }
}
