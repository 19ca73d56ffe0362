// See golden.h.
#include "support/golden.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "triax/core/error.h"

namespace triax::test {
namespace {

template <class T>
std::vector<T> copy_elements(const char* bytes, std::size_t size, const std::string& what) {
  if (size % sizeof(T) != 0) fail("{}: {} bytes are no whole number of elements", what, size);
  std::vector<T> out(size / sizeof(T));
  if (size != 0) std::memcpy(out.data(), bytes, size);
  return out;
}

}  // namespace

std::size_t GoldenArray::cols() const {
  std::size_t n = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) n *= shape[i];
  return n;
}

Golden::Golden(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("{}: cannot be opened", path);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::uint64_t header = 0;
  if (all.size() < sizeof header) fail("{}: shorter than a header", path);
  std::memcpy(&header, all.data(), sizeof header);
  if (header > all.size() - sizeof header) fail("{}: header passes the end of the file", path);
  const std::size_t base = sizeof header + header;
  const auto json = nlohmann::json::parse(all.substr(sizeof header, header));
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") continue;
    const std::string what = path + ", " + name;
    const std::size_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
    if (begin > end || end > all.size() - base) fail("{}: offsets outside the file", what);
    GoldenArray a;
    a.dtype = entry.at("dtype");
    a.shape = entry.at("shape").get<std::vector<std::size_t>>();
    const char* at = all.data() + base + begin;
    if (a.dtype == "F32") {
      a.f32 = copy_elements<float>(at, end - begin, what);
    } else if (a.dtype == "I32") {
      a.i32 = copy_elements<std::int32_t>(at, end - begin, what);
    } else if (a.dtype == "U8") {
      a.u8 = copy_elements<std::uint8_t>(at, end - begin, what);
    } else {
      fail("{}: dtype {} is not read here", what, a.dtype);
    }
    arrays_.emplace(name, std::move(a));
  }
}

const GoldenArray& Golden::operator[](const std::string& name) const {
  const auto it = arrays_.find(name);
  if (it == arrays_.end()) fail("golden array {} is missing", name);
  return it->second;
}

}  // namespace triax::test
