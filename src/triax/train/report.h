// report.html: plots of a training, from its metrics.
#pragma once

#include <filesystem>

#include "triax/train/train_config.h"

namespace triax::train {

// Reads metrics.jsonl and writes one page without references to anything outside of it.
void write_report(const std::filesystem::path& metrics, const TrainConfig& config,
                  const std::filesystem::path& report);

}  // namespace triax::train
