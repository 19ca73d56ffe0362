// Kimi Delta Attention: the gated delta rule, one state matrix for each head.
#pragma once

#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/segments.h"

namespace triax::ops {

inline constexpr std::size_t kKdaChunk = 64;  // rows of a chunk
inline constexpr std::size_t kKdaTile =
    16;  // rows of a tile: 16 * 5 < 87, the float32 exponent range

struct KdaInputs {
  View<const float, 3> q;  // [T, H, K], L2-normalised, not yet scaled
  View<const float, 3> k;  // [T, H, K], L2-normalised
  View<const float, 3> v;  // [T, H, V]
  View<const float, 3> g;  // [T, H, K], log decay <= 0
  Mat<const float> beta;   // [T, H]
};

enum class KdaPath { automatic, recurrent, chunked };

// o[t] = S_t^T (q_t K^-1/2) with  S <- diag(e^g) S;  S <- S + k (beta (v - S^T k))^T.
// states[s] [H, K, V] float32 belongs to segments[s] and is updated in place. Automatic: the
// recurrence for a segment of one row, chunks of 64 otherwise. `bounded_decay`: every g >= -5,
// which the tile scaling of the chunked form needs; without it chunks are computed by a form that
// is safe for any decay. spec: text model, section 8 (UT transform, forward substitution).
void kda(Context& ctx, const KdaInputs& in, std::span<const Segment> segments,
         std::span<float* const> states, bool bounded_decay, View<float, 3> o,
         KdaPath path = KdaPath::automatic);

}  // namespace triax::ops
