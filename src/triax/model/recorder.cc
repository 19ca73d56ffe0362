#include "triax/model/recorder.h"

#include "triax/core/checked.h"

namespace triax {

Recorder::Array& Recorder::grow(std::string_view name, std::span<const std::size_t> shape) {
  Array& array = arrays_[std::string(name)];
  if (array.shape.empty() || name.ends_with("_after_prompt")) {
    array = Array{{shape.begin(), shape.end()}, {}, {}};
  } else {
    TRIAX_CHECK(array.shape.size() == shape.size());
    array.shape[0] += shape[0];
  }
  return array;
}

void Recorder::value(std::string_view name, std::span<const std::size_t> shape, const float* data) {
  if (!wants(name)) return;
  Array& array = grow(name, shape);
  array.values.insert(array.values.end(), data, data + checked_product(shape));
}

void Recorder::ids(std::string_view name, std::span<const std::size_t> shape,
                   const std::int32_t* data) {
  if (!wants(name)) return;
  Array& array = grow(name, shape);
  array.ids.insert(array.ids.end(), data, data + checked_product(shape));
}

}  // namespace triax
