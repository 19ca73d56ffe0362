// The training loops of the instruction set in use.
#include "triax/ops/backward/kernels.h"

#include "triax/kernels/kernels.h"

namespace triax {
namespace {

const TrainingKernels& with_rounded(const RoundedKernels* (*rounded)(), TrainingKernels& table) {
  table = *training_avx512();
  table.rounded = rounded();
  return table;
}

}  // namespace

const TrainingKernels& training_kernels() {
  switch (kernels().isa) {
    case Isa::scalar:
      return *training_scalar();
    case Isa::avx2:
      return *training_avx2();
    case Isa::avx512:
      return *training_avx512();
    case Isa::avx512bf16: {
      static TrainingKernels table;
      static const TrainingKernels& made = with_rounded(training_avx512bf16, table);
      return made;
    }
    case Isa::amx:
      break;
  }
  static TrainingKernels table;
  static const TrainingKernels& made = with_rounded(training_amx, table);
  return made;
}

}  // namespace triax
