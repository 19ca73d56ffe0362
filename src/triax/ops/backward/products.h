// How products with weights are computed in training.
#pragma once

#include <cstdint>

namespace triax::ops {

// f32: as they are. bf16: both factors rounded to BF16 (nearest even), sums in float32; with AMX or
// AVX-512 BF16 several times as fast. Which products that are stands in docs/math/training.md.
enum class Products : std::uint8_t { f32, bf16 };

}  // namespace triax::ops
