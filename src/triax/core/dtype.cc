#include "triax/core/dtype.h"

#include <array>

namespace triax {
namespace {

struct Row {
  DType type;
  std::string_view name;
  std::size_t size;
};
constexpr std::array<Row, 9> kRows{{{DType::F64, "F64", 8},
                                    {DType::F32, "F32", 4},
                                    {DType::BF16, "BF16", 2},
                                    {DType::F16, "F16", 2},
                                    {DType::I64, "I64", 8},
                                    {DType::I32, "I32", 4},
                                    {DType::U8, "U8", 1},
                                    {DType::F8_E8M0, "F8_E8M0", 1},
                                    {DType::I8, "I8", 1}}};

}  // namespace

std::size_t dtype_size(DType type) {
  return kRows[static_cast<std::size_t>(type)].size;
}
std::string_view dtype_name(DType type) {
  return kRows[static_cast<std::size_t>(type)].name;
}

bool dtype_from_name(std::string_view name, DType& out) {
  for (const Row& row : kRows) {
    if (row.name == name) {
      out = row.type;
      return true;
    }
  }
  return false;
}

}  // namespace triax
