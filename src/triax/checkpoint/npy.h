// Arrays in NumPy's .npy format, version 1.0: little-endian float32 and int32, row-major.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "triax/checkpoint/file.h"
#include "triax/core/dtype.h"

namespace triax {

// Writes an array in pieces, so that the logits of a long text need not be in memory at once.
class NpyWriter {
 public:
  // dtype F32 or I32.
  NpyWriter(const std::filesystem::path& path, DType dtype, std::span<const std::size_t> shape);
  void write(std::span<const float> values);
  void write(std::span<const std::int32_t> values);
  void finish();  // the file appears; every element must have been written

 private:
  void append(DType dtype, std::span<const std::byte> bytes);
  AtomicFile file_;
  DType dtype_;
  std::size_t left_ = 0;  // bytes still to come
};

void write_npy(const std::filesystem::path& path, std::span<const std::size_t> shape,
               std::span<const float> values);
void write_npy(const std::filesystem::path& path, std::span<const std::size_t> shape,
               std::span<const std::int32_t> values);

struct NpyArray {
  std::vector<std::size_t> shape;
  DType dtype = DType::F32;        // F32 or I32
  std::vector<float> floats;       // filled for F32
  std::vector<std::int32_t> ints;  // filled for I32
};

// Reads what write_npy or numpy.save wrote ('<f4' or '<i4', C order); anything else is an Error.
NpyArray read_npy(const std::filesystem::path& path);

}  // namespace triax
