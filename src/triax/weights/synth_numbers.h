// The numbers of synthetic tensors: every element is a function of seed, tensor name and index.
//
//   key      first 8 bytes, little endian, of SHA-256("{seed}/{name}")
//   h(i)     SplitMix64 number i of the stream `key` (core/rng.h)
//   normal   mean + (sum of the four 16-bit lanes of h(i) - 131070) * sigma,
//            sigma = std / sqrt(4 (65536^2 - 1) / 12)          (Irwin-Hall, n = 4)
//   uniform  lo + (h(i) >> 11) 2^-53 (hi - lo)
//   E2M1     of element i: code number byte (i mod 8) of h(i / 8), a fixed table of 256 codes that
//            has the frequencies of a quantised normal
//   E8M0     round(log2(std / rms of the codes)) + 127 + {-1, 0 (six times), +1}[h(i) mod 8]
//
// All in float64, rounded once to float32 and from there to BF16, both to nearest even: the bytes
// are the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "triax/core/dtype.h"
#include "triax/weights/tensor_table.h"

namespace triax::synth {

std::uint64_t stream_key(std::uint64_t seed, std::string_view name);

// One tensor's recipe.
struct Recipe {
  TensorRole role{};
  DType dtype{};
  std::uint64_t key = 0;
  std::size_t inputs = 1;  // columns of a matrix: of packed and scale tensors the decoded ones
  std::size_t live = 0;    // elements past this index are zero
};

// Elements [begin, end) of the tensor into `out`, which holds exactly their bytes. For packed
// experts `begin` is a multiple of four stored bytes.
void fill(const Recipe& recipe, std::size_t begin, std::size_t end, std::span<std::byte> out);

}  // namespace triax::synth
