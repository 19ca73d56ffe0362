// Training form of the KDA recurrence: a forward pass that keeps states, and its gradient.
#pragma once

#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/segments.h"

namespace triax::ops {

inline constexpr std::size_t kKdaKeepRows = 32;  // rows from one kept state to the next

template <class F>
struct KdaArrays {
  View<const F, 3> q;  // [T, H, K], L2-normalised, not yet scaled
  View<const F, 3> k;  // [T, H, K], L2-normalised
  View<const F, 3> v;  // [T, H, V]
  View<const F, 3> g;  // [T, H, K], log decay <= 0
  Mat<const F> beta;   // [T, H]
};

template <class F>
struct KdaGradients {  // shapes as above; written
  View<F, 3> q, k, v, g;
  Mat<F> beta;
};

// States kept of these segments: the sum of ceil(rows / kKdaKeepRows).
std::size_t kda_kept_states(std::span<const Segment> segments);

// As kda() of ops/kda.h by the recurrence (equal bit for bit in float32), every segment from a zero
// state or from starts[s] [H, K, V]; kept [kda_kept_states, H, K, V] receives the state before
// every kKdaKeepRows-th row of each segment.
template <class F>
void kda_forward_keep(Context& ctx, const KdaArrays<F>& in, std::span<const Segment> segments,
                      std::span<const F* const> starts, View<F, 3> o, View<F, 4> kept);

// From the last row down, dS [K, V] the gradient of a head's state (S decayed: S', u = v - S'^T k):
//   dS += q do^T;  dq = S do;  dv = beta dS^T k;  dbeta = (dS^T k) . u
//   dk = dS (beta u) - S' dv;  dS -= k dv^T;  dg = rowsum(dS * S');  dS <- diag(e^g) dS
// States inside a stretch of kKdaKeepRows rows are recomputed from the kept ones; the recurrence is
// never inverted. d_ends[s] [H, K, V], when given, is the gradient of a segment's last state and
// receives that of its first. spec: text model, section 8.
template <class F>
void kda_backward(Context& ctx, const KdaArrays<F>& in, std::span<const Segment> segments,
                  View<const F, 4> kept, View<const F, 3> d_o, std::span<F* const> d_ends,
                  const KdaGradients<F>& out);

}  // namespace triax::ops
