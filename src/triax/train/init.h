// The numbers that a training from scratch starts with.
#pragma once

#include <cstdint>

#include "triax/train/parameters.h"

namespace triax::train {

// Published (Kimi K3 technical report): A_log = 0; decay biases as in Mamba, so that heads begin
// with a memory of 10 to 1000 tokens. Queries of depth mixes are 0 (a mix begins as the mean of its
// sources), norms 1, the router's bias 0. Our choice: matrices normal with deviation
// 1 / sqrt(inputs), embedding 0.5, head 0.1 / sqrt(inputs) (the first loss is then within 1 % of
// ln vocabulary); KDA begins as a memory that answers what came after (init.cc). Every number
// follows from the seed and the tensor's name alone.
void init_parameters(std::uint64_t seed, Parameters<float>& out);

}  // namespace triax::train
