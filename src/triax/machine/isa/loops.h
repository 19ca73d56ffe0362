// The loops of each instruction set. Each getter is the only symbol its object file exports.
#pragma once

#include "triax/machine/limits.h"

namespace triax {

const LimitLoops* limits_scalar();
const LimitLoops* limits_avx2();
const LimitLoops* limits_avx512();
const LimitLoops* limits_avx512bf16();
const LimitLoops* limits_amx();

}  // namespace triax
