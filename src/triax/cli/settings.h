// A way of computing, as `eval --against` names it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "triax/core/context.h"
#include "triax/kernels/kernels.h"
#include "triax/weights/trunk.h"

namespace triax::cli {

struct Settings {
  Precision precision = Precision::bf16;
  Isa isa = Isa::scalar;
  std::size_t chunk = 256;
  std::size_t threads = 1;
  Components int8{};  // parts of the trunk that are 8-bit; none: the trunk as it is stored
};

// "precision=f32,isa=scalar,chunk=1,threads=2,trunk=int8:kda+mla": what is not named is as in
// `base`; trunk=int8 alone means every family that may be 8-bit. Throws UsageError for a key or
// value that does not exist, or an instruction set that cannot run here.
Settings parse_settings(std::string_view text, const Settings& base);

std::string to_string(const Settings& settings);

// "stored", "int8", "int8:kda+mla".
std::string trunk_text(const Components& int8);

}  // namespace triax::cli
