// What every operation is given first: threads, scratch memory, number mode, and who is watching.
#pragma once

#include <cstddef>
#include <cstdint>

#include "triax/core/arena.h"
#include "triax/core/probe.h"
#include "triax/core/profile.h"
#include "triax/core/thread_pool.h"

namespace triax {

// f32: activations float32 throughout. bf16: the inputs of weight products are rounded to BF16,
// sums and everything between are float32 (docs/numerics.md lists what stays float32 in both).
enum class Precision : std::uint8_t { f32, bf16 };

struct Context {
  ThreadPool& pool;
  Arena& arena;
  Precision precision = Precision::bf16;
  Probe* probe = nullptr;
  Profile* profile = nullptr;

  // Bytes and operations of what is being computed, for whoever profiles.
  void count(std::uint64_t bytes, std::uint64_t operations) const {
    if (profile != nullptr) profile->count(bytes, operations);
  }
};

}  // namespace triax
