// `triax train --plan`: what a configuration would train, with what, in how much memory and time.
#pragma once

#include "triax/cli/options.h"
#include "triax/train/train_config.h"

namespace triax::cli {

// Prints parameters, optimiser of each tensor, memory, stages and the expected time, which a pass
// on random tokens is measured for where it takes seconds.
void print_train_plan(const train::TrainConfig& config, std::size_t threads, bool json);

}  // namespace triax::cli
