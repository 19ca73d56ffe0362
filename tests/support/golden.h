// A small reader of the golden files (safetensors), for tests only: the product's reader is
// triax/checkpoint, which modules below it may not use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace triax::test {

struct GoldenArray {
  std::string dtype;  // "F32", "I32", "U8"
  std::vector<std::size_t> shape;
  std::vector<float> f32;  // exactly one of the three is filled
  std::vector<std::int32_t> i32;
  std::vector<std::uint8_t> u8;

  std::size_t rows() const { return shape.at(0); }
  std::size_t cols() const;  // elements of one row
};

class Golden {
 public:
  // Throws triax::Error when the file is not there or not what it says.
  explicit Golden(const std::string& path);
  const GoldenArray& operator[](const std::string& name) const;  // throws when it is not there
  bool has(const std::string& name) const { return arrays_.contains(name); }
  const std::map<std::string, GoldenArray>& arrays() const { return arrays_; }

 private:
  std::map<std::string, GoldenArray> arrays_;
};

}  // namespace triax::test
