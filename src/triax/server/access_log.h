// What happened to each request: one JSON line each, and counts for /metrics.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "triax/core/clock.h"
#include "triax/engine/engine.h"
#include "triax/server/framing.h"
#include "triax/server/http.h"

namespace triax::server {

struct Record {
  std::string id, method, path, peer, finish, error;
  std::string route;  // what the path was taken for; empty: nothing that is here
  int status = 0;
  bool stream = false, gone = false;
  AnswerUsage usage;
  double seconds = 0, queue_seconds = 0, prompt_seconds = 0, decode_seconds = 0;
};
std::string record_json(const Record& record, std::int64_t unix_milliseconds);

// Times in buckets, as Prometheus has them.
class Histogram {
 public:
  explicit Histogram(std::initializer_list<double> bounds) : bounds_(bounds) {
    counts_.resize(bounds_.size() + 1);
  }
  void add(double x);
  void write(std::string& out, const char* name, const char* help) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
};

// Thread-safe.
class AccessLog {
 public:
  // Lines go to `file`, which stays open; null: nowhere.
  explicit AccessLog(std::FILE* file) : file_(file) {}

  void add(const Record& record);
  void first_token(double seconds);
  void token_gap(double seconds);
  // Prometheus text.
  std::string metrics(const EngineStats& engine, const HttpCounts& http) const;

 private:
  mutable std::mutex mutex_;
  std::FILE* file_;
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;  // by path and status
  std::uint64_t prompt_ = 0, cached_ = 0, completion_ = 0;
  Histogram first_{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120};
  Histogram gaps_{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5};
  Histogram whole_{0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
};

}  // namespace triax::server
