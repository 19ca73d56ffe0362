// MXFP4 (OCP microscaling, E2M1 elements, E8M0 scales), as compressed-tensors packs it:
// byte j of a row holds columns 2j (low nibble) and 2j+1 (high nibble); one scale byte, 2^(e-127),
// for each 32 consecutive columns. A nibble is a sign bit and an index into {0, .5, 1, 1.5, 2, 3,
// 4, 6}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "triax/core/matrix.h"
#include "triax/core/view.h"

namespace triax {

inline constexpr std::size_t kMxfp4Group = 32;
inline constexpr std::uint8_t kMxfp4ScaleNan = 255;

// The value of a code (0..15) before scaling.
float mxfp4_code_value(std::uint8_t code);

// Exact value of element (row, col), in float32.
float mxfp4_at(const Mxfp4View& m, std::size_t row, std::size_t col);

// Row `row` to float32: out has m.cols elements. Scale 0 is 2^-127 (subnormal results stay exact).
void mxfp4_decode_row(const Mxfp4View& m, std::size_t row, std::span<float> out);

// values [rows, cols] -> packed [rows, cols/2], scale [rows, cols/32]. The exponent follows the
// "even" rule: floor(log2 amax) - 2, one more when the mantissa of amax is at least 1.75, and
// never above 125, so that every value stays finite. Codes round to nearest, ties to the even code,
// and saturate at 6. An all-zero group gets scale 0
// (2^-127) and codes 0. Decoding, then encoding, changes no byte except where no value tells the
// scale (an all-zero group, or one whose values fit a smaller exponent): values never change.
void mxfp4_encode(Mat<const float> values, std::uint8_t* packed, std::uint8_t* scale);

// First group whose scale byte is 255 (NaN): true and its row, or false.
bool mxfp4_find_nan_scale(const Mxfp4View& m, std::size_t& row);

}  // namespace triax
