// Multi-head Latent Attention over the compact cache; no positions anywhere.
#pragma once

#include <span>

#include "triax/core/context.h"
#include "triax/core/matrix.h"
#include "triax/core/view.h"
#include "triax/ops/segments.h"

namespace triax::ops {

struct MlaShape {
  std::size_t heads = 0;
  std::size_t nope = 0;    // qk_nope_head_dim
  std::size_t rope = 0;    // qk_rope_head_dim: shared key channels, never rotated
  std::size_t value = 0;   // v_head_dim
  std::size_t latent = 0;  // kv_lora_rank
};

enum class MlaPath { automatic, absorbed, expanded };

// attended[t, h] = sum_s softmax_s(q . key_s (nope+rope)^-1/2) v_s over the tokens of its sequence
// up to itself. q [T, H * (nope + rope)], per head nope channels first; kv_b [H * (nope + value),
// latent], per head key rows, then value rows; caches[s] belongs to segments[s] and already holds
// this pass's rows as its last `rows` tokens. attended [T, H * value].
//   absorbed: q' = q_nope Wk, score = q'.c + q_rope.k_rope, r = sum p c, attended = Wv r
//   expanded: keys and values of a head's context made once, then used for all rows of the segment
// Automatic: the cheaper one by operation count, from the segment's own rows and context. Softmax
// is computed in tiles with running maximum and sum; no rows x context buffer. In bf16 mode inputs
// of products with kv_b are rounded to BF16; scores, softmax and p.c stay float32.
void mla_attend(Context& ctx, const MlaShape& shape, Mat<const float> q, const MatrixView& kv_b,
                std::span<const Segment> segments, std::span<const LatentView> caches,
                Mat<float> attended, MlaPath path = MlaPath::automatic);

}  // namespace triax::ops
