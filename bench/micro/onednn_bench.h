// Comparison with oneDNN, in builds that have it.
#pragma once

namespace triax::bench {

// Registers dense_bf16/triax and dense_bf16/onednn. Threads: OMP_NUM_THREADS=1 for oneDNN.
void register_onednn();

}  // namespace triax::bench
