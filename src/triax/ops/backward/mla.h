// Gradient of MLA in the expanded form, over whole packed sequences.
#pragma once

#include <span>

#include "triax/core/context.h"
#include "triax/core/view.h"
#include "triax/ops/mla.h"
#include "triax/ops/segments.h"

namespace triax::ops {

// Forward as mla_attend() of ops/mla.h in the expanded form, each segment a whole sequence:
//   key_s = [Wk c_s, r_s], v_s = Wv c_s, p = softmax_s<=t(q_t . key_s scale), a_t = sum_s p v_s
// Per head, recomputing p by blocks of rows: dv = p^T da; dscore = p (da v^T - da . a) scale;
// dq = dscore key; dkey = dscore^T q. Then dc and dkv_b are those of one product with kv_b, and the
// shared key channels r collect every head's part in order.
// q, dq [T, H * (nope + rope)]; latent, dlatent [T, rank + rope] (normed c, then r); kv_b, dkv_b
// [H * (nope + value), rank]; attended, d_attended [T, H * value]. dq, dlatent are written (zero
// outside the segments), dkv_b is added to. max_logits [H], when not empty: raised to the largest
// scaled score of each head (QK-clip). F is float or double.
template <class F>
void mla_backward(Context& ctx, const MlaShape& shape, Mat<const F> q, Mat<const F> latent,
                  Mat<const F> kv_b, std::span<const Segment> segments, Mat<const F> attended,
                  Mat<const F> d_attended, Mat<F> dq, Mat<F> dlatent, Mat<F> dkv_b,
                  Vec<F> max_logits);

}  // namespace triax::ops
