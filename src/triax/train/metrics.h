// metrics.jsonl: one JSON object a line, for steps and evaluations.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "triax/train/records.h"
#include "triax/train/train_config.h"

namespace triax::train {

std::string to_json_line(const StepRecord& record, const TrainConfig& config);
std::string to_json_line(const EvaluationRecord& record);

class MetricsLog {
 public:
  // Lines of steps after `last_step`, and what a killed program left half-written, are dropped.
  MetricsLog(const std::filesystem::path& file, std::size_t last_step);
  void add(const std::string& line);
  // Waits until all lines are on the disk.
  void sync();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace triax::train
