// The loops compute what they say; nothing here is timed.
#include "triax/machine/limits.h"

#include <gtest/gtest.h>

#include <vector>

#include "triax/core/buffer.h"
#include "triax/core/rng.h"

namespace triax {
namespace {

std::vector<Isa> available_sets() {
  std::vector<Isa> out;
  for (int i = 0; i < kIsaCount; ++i) {
    if (isa_available(static_cast<Isa>(i))) out.push_back(static_cast<Isa>(i));
  }
  return out;
}

TEST(LimitLoops, AreThoseOfTheSetAndCountByRounds) {
  for (const Isa isa : available_sets()) {
    const LimitLoops& loops = limit_loops(isa);
    EXPECT_EQ(loops.name, isa_name(isa));
    const double once = loops.multiply_add(1);
    EXPECT_GT(once, 0) << loops.name;
    EXPECT_EQ(loops.multiply_add(7), 7 * once) << loops.name;
  }
}

// A bit changed in what the result shows of each register changes it: nothing is left unread.
TEST(LimitLoops, ReadEveryRegister) {
  constexpr std::size_t kWordsInRegister[] = {2, 4, 8};  // the result is one of them
  for (const Isa isa : available_sets()) {
    const LimitLoops& loops = limit_loops(isa);
    if (loops.read == nullptr) continue;
    Buffer<std::uint64_t> words(2 * kReadBlock / sizeof(std::uint64_t));
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = splitmix64_at(1, i);
    const std::uint64_t before = loops.read(words.data(), words.bytes());
    std::size_t seen = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] ^= 1;
      seen += loops.read(words.data(), words.bytes()) != before;
      words[i] ^= 1;
    }
    EXPECT_EQ(seen, words.size() / kWordsInRegister[static_cast<std::size_t>(isa)]) << loops.name;
  }
}

TEST(Limits, ArePositiveAndNameTheirInstruction) {
  ThreadPool pool(2);
  const Peak peak = measure_peak(pool, Isa::scalar);
  EXPECT_GT(peak.operations_per_second, 0);
  EXPECT_STREQ(peak.instruction, limit_loops(Isa::scalar).instruction);
  EXPECT_GT(measure_read_bandwidth(pool, 1 << 20, 2), 0);
  EXPECT_GT(measure_read_bandwidth(pool, 1, 1), 0) << "a buffer has one block at least";
}

}  // namespace
}  // namespace triax
