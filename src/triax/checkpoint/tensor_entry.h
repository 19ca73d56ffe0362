// One tensor of a safetensors file, as its header describes it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "triax/core/dtype.h"

namespace triax {

// A shape without an allocation of its own: half a million of them are held at once.
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 5;

  Shape() = default;
  Shape(std::initializer_list<std::size_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // More than kMaxRank dimensions are cut off; whoever reads a file checks the rank first.
  Shape(std::span<const std::size_t> dims) : rank_(std::min(dims.size(), kMaxRank)) {
    std::copy_n(dims.begin(), rank_, dims_.begin());
  }
  std::size_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::size_t operator[](std::size_t i) const { return dims_[i]; }
  const std::size_t* begin() const { return dims_.data(); }
  const std::size_t* end() const { return dims_.data() + rank_; }
  operator std::span<const std::size_t>() const { return {dims_.data(), rank_}; }
  friend bool operator==(const Shape& a, std::span<const std::size_t> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator==(const Shape& a, const Shape& b) {
    return a == std::span<const std::size_t>(b);
  }

 private:
  std::array<std::size_t, kMaxRank> dims_{};
  std::size_t rank_ = 0;
};

// "[3072, 1792]"
std::string to_string(const Shape& shape);

struct TensorEntry {
  std::string_view name;  // full name, as in the file; lives as long as its owner
  DType dtype = DType::F32;
  Shape shape;
  std::size_t shard = 0;   // index into Checkpoint::shards()
  std::size_t offset = 0;  // from the start of the file, in bytes
  std::size_t bytes = 0;
};

}  // namespace triax
