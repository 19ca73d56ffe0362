// Views: non-owning, shaped pointers. Owners are Buffer (buffer.h) and Arena (arena.h).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "triax/core/error.h"

namespace triax {

// A tensor of rank R whose inner axes are dense; entries of the first axis lie `stride` elements
// apart (for R = 1 the stride is 1). Copying a view copies no data.
template <class T, std::size_t R>
struct View {
  static_assert(R >= 1);
  T* data = nullptr;
  std::array<std::size_t, R> shape{};
  std::size_t stride = 0;

  View() = default;
  View(T* d, std::array<std::size_t, R> s) : data(d), shape(s), stride(inner_size()) {}
  View(T* d, std::array<std::size_t, R> s, std::size_t first_stride)
      : data(d), shape(s), stride(first_stride) {}
  // View<T> -> View<const T>
  template <class U>
    requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>)
  View(const View<U, R>& o) : data(o.data), shape(o.shape), stride(o.stride) {}
  // Rank one from anything contiguous.
  template <class U>
    requires(R == 1 && std::is_convertible_v<U (*)[], T (*)[]>)
  View(std::span<U> s) : data(s.data()), shape{s.size()}, stride(1) {}
  template <class U>
    requires(R == 1 && std::is_same_v<const U, T>)
  View(const std::vector<U>& v) : data(v.data()), shape{v.size()}, stride(1) {}
  template <class U>
    requires(R == 1 && std::is_same_v<U, T>)
  View(std::vector<U>& v) : data(v.data()), shape{v.size()}, stride(1) {}

  std::size_t inner_size() const {
    std::size_t n = 1;
    for (std::size_t i = 1; i < R; ++i) n *= shape[i];
    return n;
  }
  std::size_t size() const { return shape[0] * inner_size(); }
  bool empty() const { return size() == 0; }
  bool dense() const { return R == 1 || stride == inner_size() || shape[0] <= 1; }

  // Entry i of the first axis: an element for rank one, a view below that otherwise.
  decltype(auto) operator[](std::size_t i) const {
    if constexpr (R == 1) {
      return (data[i]);
    } else {
      std::array<std::size_t, R - 1> rest{};
      for (std::size_t a = 1; a < R; ++a) rest[a - 1] = shape[a];
      return View<T, R - 1>(data + i * stride, rest);
    }
  }
  // Entries [begin, end) of the first axis.
  View slice(std::size_t begin, std::size_t end) const {
    std::array<std::size_t, R> s = shape;
    s[0] = end - begin;
    return View(data + begin * (R == 1 ? 1 : stride), s, stride);
  }
  std::span<T> span() const {
    TRIAX_CHECK(dense());
    return {data, size()};
  }
  T* begin() const
    requires(R == 1)
  {
    return data;
  }
  T* end() const
    requires(R == 1)
  {
    return data + shape[0];
  }
};

template <class T>
using Vec = View<T, 1>;
template <class T>
using Mat = View<T, 2>;  // [rows, cols], rows may be strided

}  // namespace triax
