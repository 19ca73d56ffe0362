#include "triax/server/access_log.h"

#include <chrono>

namespace triax::server {
namespace {

void line(std::string& out, const char* kind, const char* name, const char* help, double value) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, kind, value);
}
void counter(std::string& out, const char* name, const char* help, std::uint64_t value) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} counter\n{0} {2}\n", name, help, value);
}
void gauge(std::string& out, const char* name, const char* help, std::uint64_t value) {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n{0} {2}\n", name, help, value);
}

void engine_metrics(std::string& out, const EngineStats& e) {
  gauge(out, "triax_requests_waiting", "Requests in the queue.", e.queued);
  gauge(out, "triax_sequences_running", "Sequences that run.", e.running);
  gauge(out, "triax_sequence_bytes", "Memory reserved for running sequences.", e.sequences_bytes);
  gauge(out, "triax_cache_bytes", "Memory of states that nobody runs.", e.cache_bytes);
  gauge(out, "triax_cache_entries", "States that nobody runs.", e.cache_entries);
  gauge(out, "triax_cache_disk_bytes", "States on disk.", e.disk_bytes);
  counter(out, "triax_requests_accepted_total", "Requests that the engine took.", e.requests);
  counter(out, "triax_requests_busy_total", "Requests told to come back later.", e.refused);
  static constexpr std::array kReasons = {"stop", "length", "cancelled", "expired", "failed"};
  out +=
      "# HELP triax_choices_finished_total Choices by how they ended.\n"
      "# TYPE triax_choices_finished_total counter\n";
  for (std::size_t i = 0; i < kReasons.size(); ++i) {
    out += fmt::format("triax_choices_finished_total{{reason=\"{}\"}} {}\n", kReasons[i],
                       e.finished[i]);
  }
  counter(out, "triax_passes_total", "Passes of the model.", e.passes);
  line(out, "counter", "triax_pass_seconds_total", "Time in passes.", e.pass_seconds);
  counter(out, "triax_prompt_tokens_total", "Prompt tokens of started requests.", e.prompt_tokens);
  counter(out, "triax_cached_tokens_total", "Of them, taken from the cache.", e.cached_tokens);
  counter(out, "triax_prefill_tokens_total", "Prompt tokens through the model.",
          e.forwarded_prompt_tokens);
  counter(out, "triax_decode_tokens_total", "Generated tokens through the model.",
          e.decoded_tokens);
  counter(out, "triax_replayed_tokens_total", "Tokens computed again after memory ran short.",
          e.replayed_tokens);
  counter(out, "triax_cache_hits_total", "Requests that found a state.", e.cache_hits);
  counter(out, "triax_cache_misses_total", "Requests that found none.", e.cache_misses);
  counter(out, "triax_cache_evictions_total", "States that were given up.", e.cache_evictions);
  counter(out, "triax_cache_disk_writes_total", "States written to disk.", e.disk_writes);
  counter(out, "triax_cache_disk_reads_total", "States read from disk.", e.disk_reads);
  counter(out, "triax_cache_disk_faults_total", "Files of states that failed.", e.disk_faults);
}

}  // namespace

std::string record_json(const Record& r, std::int64_t unix_milliseconds) {
  JsonValue out =
      object({{"time", JsonValue::number(fmt::format("{}.{:03}", unix_milliseconds / 1000,
                                                     unix_milliseconds % 1000))},
              {"method", str(r.method)},
              {"path", str(r.path)},
              {"peer", str(r.peer)},
              {"status", num(static_cast<std::size_t>(r.status))},
              {"seconds", real(r.seconds)}});
  if (!r.id.empty()) {
    out.set("id", str(r.id));
    out.set("stream", flag(r.stream));
    out.set("finish", str(r.finish));
    out.set("prompt_tokens", num(r.usage.prompt));
    out.set("cached_tokens", num(r.usage.cached));
    out.set("completion_tokens", num(r.usage.completion));
    out.set("queue_seconds", real(r.queue_seconds));
    out.set("prompt_seconds", real(r.prompt_seconds));
    out.set("decode_seconds", real(r.decode_seconds));
  }
  if (r.gone) out.set("gone", flag(true));
  if (!r.error.empty()) out.set("error", str(r.error));
  return compact(out);
}

void Histogram::add(double x) {
  std::size_t i = 0;
  while (i < bounds_.size() && x > bounds_[i]) ++i;
  ++counts_[i];
  ++count_;
  sum_ += x;
}

void Histogram::write(std::string& out, const char* name, const char* help) const {
  out += fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    below += counts_[i];
    out += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bounds_[i], below);
  }
  out += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name, count_,
                     sum_);
}

void AccessLog::add(const Record& record) {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::string text = record_json(record, now.count()) + "\n";
  const std::lock_guard lock(mutex_);
  // Paths that do not exist are one kind, or a client could make as many as it likes.
  ++requests_[{record.route.empty() ? "(other)" : record.route, record.status}];
  if (!record.id.empty()) {
    prompt_ += record.usage.prompt;
    cached_ += record.usage.cached;
    completion_ += record.usage.completion;
    whole_.add(record.seconds);
  }
  if (file_ == nullptr) return;
  std::fwrite(text.data(), 1, text.size(), file_);
  std::fflush(file_);
}

void AccessLog::first_token(double seconds) {
  const std::lock_guard lock(mutex_);
  first_.add(seconds);
}
void AccessLog::token_gap(double seconds) {
  const std::lock_guard lock(mutex_);
  gaps_.add(seconds);
}

std::string AccessLog::metrics(const EngineStats& engine, const HttpCounts& http) const {
  std::string out;
  engine_metrics(out, engine);
  gauge(out, "triax_http_connections", "Open connections.", http.connections);
  counter(out, "triax_http_accepted_total", "Connections that were opened.", http.accepted);
  counter(out, "triax_http_refused_total", "Connections beyond the limit.", http.refused);
  counter(out, "triax_http_slow_total", "Clients dropped for being slow.", http.slow);
  counter(out, "triax_http_gone_total", "Clients that left before their answer.", http.gone);
  counter(out, "triax_http_malformed_total", "Requests that were no HTTP, or too large.",
          http.malformed);
  const std::lock_guard lock(mutex_);
  out +=
      "# HELP triax_http_requests_total Requests by path and status.\n"
      "# TYPE triax_http_requests_total counter\n";
  for (const auto& [key, count] : requests_) {
    out += fmt::format("triax_http_requests_total{{path=\"{}\",status=\"{}\"}} {}\n", key.first,
                       key.second, count);
  }
  counter(out, "triax_answer_prompt_tokens_total", "Prompt tokens of answers.", prompt_);
  counter(out, "triax_answer_cached_tokens_total", "Cached prompt tokens of answers.", cached_);
  counter(out, "triax_answer_tokens_total", "Tokens of answers.", completion_);
  first_.write(out, "triax_first_token_seconds", "From a request to its first token.");
  gaps_.write(out, "triax_token_gap_seconds", "Between two tokens of an answer.");
  whole_.write(out, "triax_answer_seconds", "From a request to the end of its answer.");
  return out;
}

}  // namespace triax::server
