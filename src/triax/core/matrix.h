// Weight matrices as they lie in the checkpoint: [out, in], never transposed, never copied.
#pragma once

#include <cstddef>
#include <cstdint>

#include "triax/core/dtype.h"

namespace triax {

// Columns of an 8-bit or MXFP4 matrix that share a scale.
inline constexpr std::size_t kQuantGroup = 32;

// A trunk matrix [rows = out, cols = in], rows dense. `data` needs no alignment beyond the
// element's. An I8 matrix stands for code * scale, codes in [-127, 127], cols a multiple of 32.
struct MatrixView {
  const void* data = nullptr;
  DType dtype = DType::BF16;  // BF16, F32 or I8
  std::size_t rows = 0;
  std::size_t cols = 0;
  const bf16* scale = nullptr;  // I8 only: [rows, cols / 32]

  bool present() const { return data != nullptr; }
  const bf16* as_bf16() const { return static_cast<const bf16*>(data); }
  const float* as_f32() const { return static_cast<const float*>(data); }
  const std::int8_t* as_i8() const { return static_cast<const std::int8_t*>(data); }
  // Of the weights, scales included.
  std::size_t bytes() const {
    return rows * cols * dtype_size(dtype) +
           (scale == nullptr ? 0 : rows * (cols / kQuantGroup) * sizeof(bf16));
  }
  // Rows [begin, end): a head's block of a projection, for example.
  MatrixView row_slice(std::size_t begin, std::size_t end) const {
    const char* at = static_cast<const char*>(data) + begin * cols * dtype_size(dtype);
    const bf16* scales = scale == nullptr ? nullptr : scale + begin * (cols / kQuantGroup);
    return {at, dtype, end - begin, cols, scales};
  }
};

// An MXFP4 matrix in the released nibble order: byte j of a row holds columns 2j (low nibble) and
// 2j+1; one E8M0 scale byte for each 32 consecutive columns. spec: compressed-tensors
// mxfp4-pack-quantized.
struct Mxfp4View {
  const std::uint8_t* packed = nullptr;  // [rows, cols / 2]
  const std::uint8_t* scale = nullptr;   // [rows, cols / 32]
  std::size_t rows = 0;
  std::size_t cols = 0;
};

// One routed expert: gate w1 and up w3 [moe_intermediate, latent], down w2 [latent,
// moe_intermediate].
struct ExpertView {
  Mxfp4View w1, w2, w3;
};

}  // namespace triax
