// Where the trunk's matrices lie and in what form: mapped as they are stored, or placed in memory
// of their own, as they are stored or as 8-bit codes (ADR 0009). Experts stay mapped in any case.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "triax/core/thread_pool.h"
#include "triax/weights/tensor_table.h"
#include "triax/weights/weights.h"

namespace triax {

using Components = std::bitset<kComponents>;

enum class TrunkFormat : std::uint8_t { stored, int8 };

struct TrunkOptions {
  TrunkFormat format = TrunkFormat::stored;
  // True: every matrix that a token reads from end to end is placed in huge pages, which two
  // threads read about twice as fast as a mapped file. False: only what becomes 8-bit takes memory.
  bool resident = true;
  // int8 only: which of the parts that may be 8-bit become so.
  Components components = Components().set();
};

// The components with matrices that may be 8-bit, in the order of Component.
Components packable_components();

struct TrunkPlaced {
  std::size_t bytes = 0;                               // of memory
  std::array<std::size_t, kComponents> saved_bytes{};  // stored less 8-bit, by component
};

// What place_trunk would need, without doing it.
TrunkPlaced plan_trunk(const K3Config& config, const K3Weights& weights,
                       const TrunkOptions& options);

// Bytes of the shards read so far and in all; called from the pool's threads, one call at a time.
using TrunkProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Moves the matrices of loaded weights as the options say and lets their views show the new place.
// Reads the shards past the mapping, so that the trunk is not in memory twice. The result is the
// same for any number of threads. The embedding stays mapped (a token reads one row of it) unless
// it is the output head too. Throws Error when there is no memory or a shard cannot be read, and
// names the tensor that holds what 8-bit weights cannot: a number that is not finite, a code of
// -128.
TrunkPlaced place_trunk(const K3Config& config, const TrunkOptions& options, ThreadPool& pool,
                        K3Weights& weights, const TrunkProgress& progress = {});

// Brings the pages of every matrix that a token reads from end to end into this process, reading
// from the disk what is not in memory, and tells whether most of them are huge pages: then
// the mapping is nearly as fast to read as a place of its own. When not, the pages are given back.
bool populate_trunk(const K3Config& config, const K3Weights& weights, ThreadPool& pool,
                    const TrunkProgress& progress = {});

// Matrices of these components as `from` has them: weights of which one part is 8-bit.
void take_components(const K3Config& config, const K3Weights& from, Components components,
                     K3Weights& into);

}  // namespace triax
