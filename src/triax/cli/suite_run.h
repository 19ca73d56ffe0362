// Runs a model on the items of a suite: greedy, many sequences in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "triax/cli/load_model.h"
#include "triax/core/probe.h"
#include "triax/world/suite.h"

namespace triax::cli {

// Counts how often each routed expert is chosen, over all passes that it watches.
class LoadProbe : public Probe {
 public:
  bool wants(std::string_view) const override { return false; }
  void value(std::string_view, std::span<const std::size_t>, const float*) override {}
  void ids(std::string_view name, std::span<const std::size_t> shape,
           const std::int32_t* data) override;

  struct Load {
    std::size_t layers = 0, experts = 0;
    std::size_t dead = 0;      // experts of all layers that nothing chose
    double max_over_mean = 0;  // the worst layer's
  };
  Load load(std::size_t experts) const;

 private:
  std::vector<std::pair<std::string, std::vector<std::uint64_t>>> layers_;
};

struct SuiteRunOptions {
  std::size_t batch = 32;
  std::size_t max_tokens = 512;  // of a turn
  std::size_t chunk = 512;       // rows of a prompt in one pass
};

struct SuiteRunResult {
  std::vector<world::SuiteAnswer> answers;   // in the order of the items
  std::vector<std::size_t> thinking_tokens;  // of each
  std::size_t prompt_tokens = 0, generated_tokens = 0;
};

// Answers all items. A sequence's answer does not depend on what it shares passes with.
// `progress(done)` after each finished item; it returns false to stop, and the rest stays empty.
SuiteRunResult run_suite(Session& session, const std::vector<world::SuiteItem>& items,
                         const SuiteRunOptions& options,
                         const std::function<bool(std::size_t done)>& progress);

}  // namespace triax::cli
