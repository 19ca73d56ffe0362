// Looking inside a forward pass. Names are those of the golden files: "layer12.kda.g".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "triax/core/view.h"

namespace triax {

class Probe {
 public:
  virtual ~Probe() = default;
  // Does anyone want this value? Lets a caller skip work that only serves the probe.
  virtual bool wants(std::string_view name) const = 0;
  // A float32 value, row-major, of this shape. The data are valid during the call only.
  virtual void value(std::string_view name, std::span<const std::size_t> shape,
                     const float* data) = 0;
  virtual void ids(std::string_view name, std::span<const std::size_t> shape,
                   const std::int32_t* data) = 0;
};

}  // namespace triax
