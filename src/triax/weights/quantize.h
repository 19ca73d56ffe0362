// 8-bit trunk matrices: symmetric codes with one scale for 32 columns of a row.
//
// A group's scale is max|w| / 127, rounded up to BF16, so that no code passes 127; its code is
// w / scale rounded to nearest, ties to even. The weight it stands for is code * scale, at most
// scale / 2 away. What follows from a group depends on the group alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "triax/checkpoint/checkpoint.h"
#include "triax/core/dtype.h"
#include "triax/core/matrix.h"

namespace triax {

// The scale of a group whose largest magnitude is `largest` (finite). A group of zeros gets 1: its
// codes are 0 under any scale, and a reader that divides by it stays safe. No scale is below
// 2^-126, the smallest normal number, since passes count subnormal numbers as zero (ADR 0004).
bf16 quant_scale(float largest);

// Quantises `rows` rows of `cols` numbers (cols a multiple of 32) into codes [rows, cols] in
// [-127, 127] and scales [rows, cols / 32]. Subnormal numbers count as zero. Returns false, with
// codes and scales undefined, when a number is not finite.
[[nodiscard]] bool quantize_rows(const bf16* weights, std::size_t rows, std::size_t cols,
                                 std::int8_t* codes, bf16* scales);
[[nodiscard]] bool quantize_rows(const float* weights, std::size_t rows, std::size_t cols,
                                 std::int8_t* codes, bf16* scales);

// Rows [begin, end) of a stored matrix (BF16 or F32), read past the mapping into `scratch`, which
// grows to what it needs. Throws Error naming the tensor when a number is not finite.
void quantize_stored(const Checkpoint& checkpoint, const TensorEntry& matrix, std::size_t begin,
                     std::size_t end, std::vector<std::byte>& scratch, std::int8_t* codes,
                     bf16* scales);

}  // namespace triax
