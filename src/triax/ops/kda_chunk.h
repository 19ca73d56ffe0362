// One chunk of one KDA head, in two parts: what does not depend on the state, and what does.
// spec: text model, section 8. Internal to ops and to the tests of the single terms.
#pragma once

#include <cstddef>

#include "triax/ops/kda.h"

namespace triax::ops {

// The rows of one chunk of one head; rows lie `ld*` elements apart.
struct KdaRows {
  const float *q, *k, *v, *g, *beta;
  std::size_t ldq, ldk, ldv, ldg, ldbeta;
  std::size_t rows;  // at most kKdaChunk
};

// Scratch of one worker, as pieces of one allocation of `size(K, V)` floats.
struct KdaScratch {
  float* G;       // [64, K] sums of g from the chunk's start
  float* K_plus;  // [64, K] k e^G
  float* Q_plus;  // [64, K] q e^G
  float* K_end;   // [64, K] k e^(G_C - G)
  float* Akk;     // [64, 64] strictly lower
  float* Aqk;     // [64, 64] lower
  float* U;       // [64, V] u_t of the recurrence
  float* left;    // [32, K] q and k of one row tile, scaled
  float* right;   // [64, K] k of the columns, scaled
  float* sums;    // [64, K] exponents
  float* decay;   // [K] e^(G_C)
  float* row;     // [max(K, V)] for one row

  static std::size_t size(std::size_t K, std::size_t V);
  KdaScratch(float* memory, std::size_t K, std::size_t V);
};

// G, K+, Q+, Ke, Akk, Aqk, e^(G_C). q is multiplied by `q_scale`.
void kda_chunk_terms(const KdaRows& in, std::size_t K, float q_scale, bool bounded_decay,
                     KdaScratch& s);

// U by block forward substitution, then o [rows, V] and the state S [K, V] after the chunk.
void kda_chunk_apply(const KdaRows& in, std::size_t K, std::size_t V, KdaScratch& s, float* S,
                     float* o, std::size_t ldo);

}  // namespace triax::ops
