#include "triax/checkpoint/npy.h"

#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "triax/core/checked.h"
#include "triax/core/error.h"

namespace triax {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kPreamble = 10;  // magic, version, two bytes of header length
constexpr std::size_t kAlign = 64;     // preamble and header together

std::string header_text(DType dtype, std::span<const std::size_t> shape) {
  std::string dims;
  for (const std::size_t dim : shape) dims += fmt::format("{}{}", dims.empty() ? "" : ", ", dim);
  if (shape.size() == 1) dims += ',';
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 dtype == DType::F32 ? "<f4" : "<i4", dims);
  dict.append((kAlign - (kPreamble + dict.size() + 1) % kAlign) % kAlign, ' ');
  dict += '\n';
  TRIAX_CHECK(dict.size() < 65536, "too many dimensions");
  std::string out(kMagic);
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(dict.size() & 0xFF);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

// The small Python literal of a header, read front to back.
class Literal {
 public:
  Literal(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  bool take(std::string_view token) {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) wrong();
  }
  std::string_view string() {
    expect("'");
    const std::size_t end = text_.find('\'');
    if (end == std::string_view::npos) wrong();
    const std::string_view out = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return out;
  }
  std::size_t number() {
    take("");
    std::size_t out = 0;
    const auto [end, code] = std::from_chars(text_.data(), text_.data() + text_.size(), out);
    if (code != std::errc()) wrong();
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return out;
  }
  [[noreturn]] void wrong() const {
    fail("{}: the header of the .npy file is not one that triax reads (float32 or int32, C order)",
         where_);
  }

 private:
  std::string_view text_;
  const std::string& where_;
};

DType read_descr(Literal& in) {
  const std::string_view descr = in.string();
  if (descr == "<f4") return DType::F32;
  if (descr == "<i4") return DType::I32;
  in.wrong();
}

void read_header(std::string_view text, const std::string& where, NpyArray& out) {
  Literal in(text, where);
  in.expect("{");
  bool descr = false, order = false, shape = false;
  while (!in.take("}")) {
    const std::string_view key = in.string();
    in.expect(":");
    if (key == "descr" && !descr) {
      out.dtype = read_descr(in);
      descr = true;
    } else if (key == "fortran_order" && !order) {
      in.expect("False");
      order = true;
    } else if (key == "shape" && !shape) {
      in.expect("(");
      while (!in.take(")")) {
        out.shape.push_back(in.number());
        if (!in.take(",")) {
          in.expect(")");
          break;
        }
      }
      shape = true;
    } else {
      in.wrong();
    }
    if (!in.take(",")) {
      in.expect("}");
      break;
    }
  }
  if (!descr || !order || !shape) in.wrong();
}

}  // namespace

NpyWriter::NpyWriter(const std::filesystem::path& path, DType dtype,
                     std::span<const std::size_t> shape)
    : file_(path), dtype_(dtype) {
  TRIAX_CHECK(dtype == DType::F32 || dtype == DType::I32, ".npy files are float32 or int32");
  left_ = checked_mul(checked_product(shape), dtype_size(dtype));
  file_.write(header_text(dtype, shape));
}

void NpyWriter::append(DType dtype, std::span<const std::byte> bytes) {
  TRIAX_CHECK(dtype == dtype_ && bytes.size() <= left_, "values beyond dtype or shape");
  left_ -= bytes.size();
  file_.write(bytes);
}

void NpyWriter::write(std::span<const float> values) {
  append(DType::F32, std::as_bytes(values));
}
void NpyWriter::write(std::span<const std::int32_t> values) {
  append(DType::I32, std::as_bytes(values));
}

void NpyWriter::finish() {
  TRIAX_CHECK(left_ == 0, "fewer values than the shape has");
  file_.commit(false);
}

void write_npy(const std::filesystem::path& path, std::span<const std::size_t> shape,
               std::span<const float> values) {
  NpyWriter writer(path, DType::F32, shape);
  writer.write(values);
  writer.finish();
}

void write_npy(const std::filesystem::path& path, std::span<const std::size_t> shape,
               std::span<const std::int32_t> values) {
  NpyWriter writer(path, DType::I32, shape);
  writer.write(values);
  writer.finish();
}

NpyArray read_npy(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string where = path.string();
  const std::string_view all(reinterpret_cast<const char*>(file.bytes().data()),
                             file.bytes().size());
  if (all.size() < kPreamble || !all.starts_with(kMagic) || all[6] != 1 || all[7] != 0) {
    fail("{}: is not a .npy file of version 1.0", where);
  }
  const std::size_t length =
      static_cast<unsigned char>(all[8]) + std::size_t{256} * static_cast<unsigned char>(all[9]);
  if (all.size() - kPreamble < length) fail("{}: ends inside its header", where);
  NpyArray out;
  read_header(all.substr(kPreamble, length), where, out);
  const std::size_t count = checked_product(out.shape);
  const std::string_view data = all.substr(kPreamble + length);
  if (checked_mul(count, dtype_size(out.dtype)) != data.size()) {
    fail("{}: holds {} bytes of data; its shape needs {} elements of {} bytes", where, data.size(),
         count, dtype_size(out.dtype));
  }
  if (out.dtype == DType::F32) {
    out.floats.resize(count);
    if (count > 0) std::memcpy(out.floats.data(), data.data(), data.size());
  } else {
    out.ints.resize(count);
    if (count > 0) std::memcpy(out.ints.data(), data.data(), data.size());
  }
  return out;
}

}  // namespace triax
