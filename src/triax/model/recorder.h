// A probe that keeps what it is shown, pass after pass.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "triax/core/probe.h"

namespace triax {

// Values with one entry a token are put behind those of earlier passes; state values (their names
// end in "_after_prompt") replace the earlier ones.
class Recorder : public Probe {
 public:
  struct Array {
    std::vector<std::size_t> shape;
    std::vector<float> values;      // float32 values, or
    std::vector<std::int32_t> ids;  // ids
  };

  // Without a filter everything is kept.
  explicit Recorder(std::function<bool(std::string_view)> filter = {})
      : filter_(std::move(filter)) {}

  bool wants(std::string_view name) const override { return !filter_ || filter_(name); }
  void value(std::string_view name, std::span<const std::size_t> shape, const float* data) override;
  void ids(std::string_view name, std::span<const std::size_t> shape,
           const std::int32_t* data) override;

  const std::map<std::string, Array, std::less<>>& arrays() const { return arrays_; }

 private:
  Array& grow(std::string_view name, std::span<const std::size_t> shape);

  std::function<bool(std::string_view)> filter_;
  std::map<std::string, Array, std::less<>> arrays_;
};

}  // namespace triax
