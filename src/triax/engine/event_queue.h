// Events of one request for a thread that waits for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "triax/engine/request.h"

namespace triax {

// Give sink() to submit(); keep the queue until RequestEnd came.
class EventQueue {
 public:
  EventSink sink() {
    return [this](const Event& event) {
      {
        const std::lock_guard lock(mutex_);
        events_.push_back(event);
      }
      changed_.notify_one();
      return Verdict::go_on;
    };
  }
  // The next event; waits for it.
  Event pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !events_.empty(); });
    return take();
  }
  // The next event, or nothing when none came in time.
  std::optional<Event> pop_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, time, [&] { return !events_.empty(); })) return std::nullopt;
    return take();
  }

 private:
  Event take() {
    Event out = std::move(events_.front());
    events_.pop_front();
    return out;
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Event> events_;
};

}  // namespace triax
