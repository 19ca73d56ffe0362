// Inside the engine: what its thread works on. Only `shared` is touched by other threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "triax/core/clock.h"
#include "triax/engine/disk_cache.h"
#include "triax/engine/engine.h"
#include "triax/engine/schedule.h"
#include "triax/engine/sequence.h"

namespace triax {

// One sequence's logits in the pass at hand, and what was drawn from them.
struct DrawnRow {
  Sequence* sequence = nullptr;
  std::span<const float> logits;
  std::int32_t id = -1;
  TokenOut out = {};
  std::string error = {};
};

struct Engine::Impl {
  Impl(const Model& m, ThreadPool& p, const Tokenizer* t, EngineOptions o);
  ~Impl();

  // ---- from any thread (engine.cc)
  Submitted submit(Request request, EventSink sink);
  void check(const Request& request) const;
  void cancel(RequestId id);
  void drain(std::chrono::milliseconds grace);
  void stop();

  // ---- the engine's thread: engine.cc
  void run();
  bool wait_for_work();  // false: stop
  void take_inbox();
  void take_from_disk();
  void fail_all(const std::string& what);
  void sweep();  // ends what was cancelled or is past its deadline
  void publish();
  Verdict emit(Group& group, const Event& event);
  void finish(Sequence& s, ChoiceEnd end);
  void end_choice(Group& group, ChoiceEnd end);
  void drop_done();

  // ---- admission and memory: engine_admit.cc
  void admit();
  bool admit_one(Sequence& s, double waited);
  bool waits_for_sibling(Sequence& s, std::size_t hit);
  bool waits_for_disk(Sequence& s, std::size_t hit);
  void begin(Sequence& s, std::shared_ptr<const Snapshot> hit, std::size_t tokens);
  std::size_t tokens_wanted(const Sequence& s) const;
  bool reserve(Sequence& s, std::size_t tokens);
  void release(Sequence& s);
  void put_back(Sequence& s);  // gives up its state; it will be computed again
  bool make_memory(Sequence& s);
  std::size_t cache_limit() const;
  void keep_state(Sequence& s, std::span<const float> row, bool for_others);
  void keep_turn(Sequence& s);

  // ---- passes: engine_pass.cc
  void pass();
  std::vector<Sequence*> choose();
  bool feed(std::span<Sequence* const> chosen);  // false: a fault, which was dealt with
  void fed_one(Sequence& s, std::size_t end);
  void after_piece(Sequence& s, std::span<const float> row);
  void fault(std::span<Sequence* const> chosen, const std::string& what);
  void split(Sequence& leader);  // makes the other choices
  void draw(DrawnRow& row);
  void take(DrawnRow& row);
  bool tell(Sequence& s, TokenOut token);  // false: the sink wants the choice to end
  bool tell_held(Sequence& s, std::size_t count);

  const Model model;
  ThreadPool& pool;
  const Tokenizer* tokenizer;
  const EngineOptions options;
  const CapacityPlan plan;
  const StateCost cost;
  const std::size_t longest;
  std::size_t interval = 0;
  TurnMemory turns;

  Arena arena;
  Context ctx;
  PrefixCache cache;
  std::unique_ptr<DiskCache> disk;
  PromptShares shares;
  std::vector<std::unique_ptr<Sequence>> queue, running;
  std::unordered_map<RequestId, std::shared_ptr<Group>> groups;
  std::size_t reserved = 0;
  std::uint64_t order = 0;
  std::vector<float> logits;  // [rows, vocab]
  std::vector<DrawnRow> rows;
  EngineStats counts;
  double request_seconds = 1;  // of a request, lately

  struct Shared {
    std::mutex mutex;
    std::condition_variable work, idle;
    std::deque<std::shared_ptr<Group>> inbox;
    std::vector<RequestId> cancelled;
    bool woken = false;  // a state came from the disk
    bool stopping = false, closed = false, started = false, ended = false;
    RequestId next_id = 1;
    std::size_t waiting = 0;  // requests accepted and not started
    std::size_t open = 0;     // requests accepted and not ended
    std::uint64_t refused = 0, requests = 0;
    double retry_after = 1;
    EngineStats stats;
  };
  mutable Shared shared;
  std::thread thread;
};

}  // namespace triax
