// Quantisation-aware training: the numbers a checkpoint would hold, as the forward pass sees them.
#pragma once

#include "triax/core/context.h"
#include "triax/train/parameters.h"

namespace triax::train {

// What the forward pass of a step computes with, from the masters: tensors that the tensor table
// stores as BF16 rounded to BF16, routed experts through MXFP4 (blocks of 32, "even" rule,
// mxfp4_encode), the float32 ones as they are. Made once a step; its gradients are applied to the
// masters as they are (straight-through), clipped elements included. A checkpoint written from the
// masters holds exactly these numbers, so inference on it equals this forward pass bit for bit.
// Numbers below 1e-37 count as zero (ADR 0004). Parts that are not chosen are copied.
struct Exported {
  bool trunk = true;    // BF16
  bool experts = true;  // MXFP4; columns must be multiples of 32
};
void exported_values(Context& ctx, const Parameters<float>& masters, Exported what,
                     Parameters<float>& out);

}  // namespace triax::train
