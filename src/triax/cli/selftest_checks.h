// The checks of `triax selftest`.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "triax/checkpoint/checkpoint.h"
#include "triax/cli/embedded.h"
#include "triax/cli/load_model.h"
#include "triax/kernels/kernels.h"

namespace triax::cli {

struct CheckResult {
  std::string name;
  bool passed = false;
  std::string detail;  // how close it was, or what differs
};

// A golden checkpoint from inside the binary, written to a temporary folder and opened as any
// model, with the values that a float64 implementation computed for it.
class GoldenModel {
 public:
  explicit GoldenModel(const std::string& variant);  // "tiny-a" or "tiny-c"

  const std::string& name() const { return name_; }
  const LoadedModel& loaded() const { return *loaded_; }
  LoadedModel& loaded() { return *loaded_; }  // for tests that make it wrong
  const std::vector<std::int32_t>& ids() const { return ids_; }
  std::size_t prompt() const { return prompt_; }
  // Largest relative Frobenius error of the logits in bf16.
  double bf16_limit() const { return name_ == "tiny-a" ? 0.04 : 0.025; }
  const nlohmann::json& arrays() const { return manifest_["arrays"]; }
  std::vector<float> floats(const std::string& array) const;
  std::vector<std::int32_t> integers(const std::string& array) const;

 private:
  TemporaryFolder folder_;
  std::string name_;
  std::unique_ptr<LoadedModel> loaded_;
  std::shared_ptr<const Checkpoint> golden_;
  nlohmann::json manifest_;
  std::vector<std::int32_t> ids_;
  std::size_t prompt_ = 0;
};

// Every intermediate value in f32, whole, token by token and split; instruction set in use.
CheckResult check_f32(const GoldenModel& golden, ThreadPool& pool);
// The same experts and close logits in bf16.
CheckResult check_bf16(const GoldenModel& golden, ThreadPool& pool);

// What must agree to the bit.
CheckResult check_threads(const GoldenModel& golden, Precision precision, std::size_t most);
CheckResult check_batch(const GoldenModel& golden, Precision precision, ThreadPool& pool);
CheckResult check_fork(const GoldenModel& golden, Precision precision, ThreadPool& pool);

CheckResult check_tokenizer();

}  // namespace triax::cli
