// Pieces that both ways of computing MLA share: the paged latent cache as a matrix operand, and the
// running softmax. Internal to ops.
#pragma once

#include <cstddef>

#include "triax/core/dtype.h"
#include "triax/core/matrix.h"
#include "triax/ops/mla.h"
#include "triax/ops/segments.h"

namespace triax::ops {

inline constexpr std::size_t kMlaTile = 64;  // keys between two updates of the running softmax

// f(pointer to token `begin` of the piece, offset of the piece in the range, tokens) for every
// contiguous stretch of [begin, end), in order. Pieces end at page ends.
template <class T, class F>
void for_pieces(const LatentView& cache, std::size_t begin, std::size_t end, F&& f) {
  for (std::size_t t = begin; t < end;) {
    const std::size_t row = t % cache.page_tokens;
    const std::size_t n = std::min(end - t, cache.page_tokens - row);
    f(static_cast<const T*>(cache.pages[t / cache.page_tokens]) + row * cache.width, t - begin, n);
    t += n;
  }
}

// Rows [0, rows) of head h's key block of kv_b; value rows follow them.
inline MatrixView key_block(const MlaShape& s, const MatrixView& kv_b, std::size_t h) {
  const std::size_t first = h * (s.nope + s.value);
  return kv_b.row_slice(first, first + s.nope);
}
inline MatrixView value_block(const MlaShape& s, const MatrixView& kv_b, std::size_t h) {
  const std::size_t first = h * (s.nope + s.value) + s.nope;
  return kv_b.row_slice(first, first + s.value);
}

// The running softmax of one row: `largest` starts at -infinity, `sum` at 0, acc (n values) at 0.
struct Running {
  float largest;
  float sum;
};
// Scores of one more tile (count >= 1) become exp(score - new maximum); what was gathered before is
// rescaled. The caller then adds the tile's p-weighted rows to acc.
void softmax_tile(Running& state, float* scores, std::size_t count, float* acc, std::size_t n);

// Rows [first, first + rows) of a segment with `before` tokens before it, against tokens [begin,
// end).
struct MlaBlock {
  std::size_t before, first, rows, begin, end;
};
// Products q.k of a block, scores [rows, ld], become the probabilities of the running softmax, with
// zeros for the tokens that a row does not see and from there to the end of its ld. `state` and acc
// [rows of the segment, value] are those of the whole segment.
void causal_softmax(const MlaShape& shape, const MlaBlock& block, float* scores, std::size_t ld,
                    Running* state, float* acc);

// The segments of one path; `index` counts in the caller's arrays.
struct MlaBatch {
  std::span<const Segment> segments;
  std::span<const LatentView> caches;
  std::span<const std::size_t> index;
};
void mla_absorbed(Context& ctx, const MlaShape& shape, Mat<const float> q, const MatrixView& kv_b,
                  const MlaBatch& batch, Mat<float> attended);
void mla_expanded(Context& ctx, const MlaShape& shape, Mat<const float> q, const MatrixView& kv_b,
                  const MlaBatch& batch, Mat<float> attended);

// The expanded form by the matrix unit, for segments whose shapes suit it.
bool mla_suits_matrix(const Context& ctx, const MlaShape& shape, const MatrixView& kv_b,
                      const LatentView& cache);
void mla_expanded_matrix(Context& ctx, const MlaShape& shape, Mat<const float> q,
                         const MatrixView& kv_b, const MlaBatch& batch, Mat<float> attended);

float mla_scale(const MlaShape& s);  // (nope + rope)^-1/2

}  // namespace triax::ops
