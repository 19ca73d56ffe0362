// The serving engine: many requests over one model, in one pass after the other.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "triax/core/thread_pool.h"
#include "triax/engine/capacity.h"
#include "triax/engine/request.h"
#include "triax/engine/turn_memory.h"
#include "triax/model/forward.h"
#include "triax/tokenizer/tokenizer.h"

namespace triax {

struct EngineOptions {
  Precision precision = Precision::bf16;
  std::size_t chunk = 512;          // longest piece of a prompt: a multiple of 64
  std::size_t prompt_budget = 512;  // prompt tokens of a pass, over all sequences; at least chunk
  std::size_t max_context = std::size_t{1} << 20;  // tokens of a sequence
  std::size_t max_sequences = 64;                  // that run at once
  std::size_t max_queue = 256;                     // requests that wait; more are told "busy"
  // Memory for the states of running sequences and of the cache together.
  std::size_t state_bytes = std::size_t{4} << 30;
  // Of it, at most so much for states that nobody runs; kNone: all that running ones leave.
  std::size_t cache_bytes = kNone;
  std::size_t cache_interval = 0;  // tokens between states kept along a prompt; 0: by the budget
  // States and remembered turns on disk; empty: none.
  std::filesystem::path cache_folder = {};
  std::size_t cache_disk_bytes = std::size_t{8} << 30;
  // Names the weights: a state on disk is used only by an engine with the same identity.
  std::string model_identity = {};
  std::size_t turn_memory_tokens = std::size_t{1} << 22;  // of remembered turns
  // Told once a kind, in one line, from any thread: files that are damaged, a disk that is full.
  std::function<void(const std::string&)> warn = {};
};

struct EngineStats {
  std::size_t queued = 0, running = 0;  // requests waiting; sequences
  std::size_t sequences_bytes = 0;      // reserved for running sequences
  std::size_t cache_bytes = 0, cache_entries = 0;
  std::size_t disk_bytes = 0, disk_entries = 0;
  std::uint64_t requests = 0, refused = 0;  // accepted; told "busy"
  std::uint64_t finished[5] = {};           // choices by FinishReason
  std::uint64_t passes = 0;
  std::uint64_t prompt_tokens = 0;            // of all started requests
  std::uint64_t cached_tokens = 0;            // of them, taken from the cache
  std::uint64_t forwarded_prompt_tokens = 0;  // through the model
  std::uint64_t decoded_tokens = 0;           // through the model
  std::uint64_t replayed_tokens = 0;          // computed again after memory ran short
  std::uint64_t cache_hits = 0, cache_misses = 0, cache_evictions = 0;
  std::uint64_t disk_writes = 0, disk_reads = 0, disk_faults = 0;
  std::uint64_t disk_bytes_written = 0, disk_bytes_read = 0;
  double disk_write_seconds = 0, disk_read_seconds = 0;
  double pass_seconds = 0;
};

// Guarantees:
// - Greedy output, and sampled output with its seed, is the same alone and in any company: pieces
//   of a prompt depend on the request alone, and a pass computes each sequence as if it were alone.
// - A cancelled request's sequence is gone after the pass at hand.
// - Every accepted request ends with exactly one RequestEnd, also when the engine stops.
// - A fault (no memory, NaN logits, an unreadable weight) ends the requests that it hits, with an
//   error; the others go on.
// Thread-safe. The pool must not be used by anyone else while the engine runs.
class Engine {
 public:
  // All arguments outlive the engine; `tokenizer` may be null (then no stop strings). Throws Error
  // for options that make no sense, and when not even one sequence of one piece fits.
  Engine(const Model& model, ThreadPool& pool, const Tokenizer* tokenizer, EngineOptions options);
  ~Engine();  // stop()
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  void start();
  // Takes no new requests and returns when all have ended; those that are left after `grace` are
  // cancelled.
  void drain(std::chrono::milliseconds grace);
  // Cancels everything and ends the thread; states waiting for the disk are written first.
  void stop();

  // Throws Error for a request that can never be served (a 400). Busy when the queue is full or the
  // engine does not take requests any more.
  Submitted submit(Request request, EventSink sink);
  void cancel(RequestId id);  // nothing for one that has ended

  // Ids of turns as they were generated, by their text.
  TurnMemory& turns();

  EngineStats stats() const;
  const EngineOptions& options() const;
  // How many users at which context fit, and what binds.
  const CapacityPlan& capacity() const;
  // Tokens of the longest request that can be served: max_context, or less where memory binds.
  std::size_t longest_sequence() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace triax
