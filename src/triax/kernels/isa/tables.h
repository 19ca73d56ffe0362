// The table of each instruction set. Each getter is the only symbol its object file exports.
#pragma once

#include "triax/kernels/kernels.h"

namespace triax {

const KernelTable* table_scalar();
const KernelTable* table_avx2();
const KernelTable* table_avx512();
const KernelTable* table_avx512bf16();
// The amx table is avx512bf16 with these.
const MatrixKernels* table_amx();

}  // namespace triax
