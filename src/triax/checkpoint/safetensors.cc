#include "triax/checkpoint/safetensors.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "triax/core/error.h"

namespace triax {
namespace {

namespace dom = simdjson::dom;

constexpr std::string_view kAgain = "download or copy the file again";

// What a tensor's object has said so far.
struct Described {
  bool dtype = false, shape = false, offsets = false;
  std::size_t begin = 0, end = 0;  // in the data
};

class HeaderParser {
 public:
  HeaderParser(SafetensorsHeader& out, std::string_view where) : out_(out), where_(where) {}

  void parse(const simdjson::padded_string& json) {
    dom::parser parser;
    dom::object root;
    check(parser.parse(json).get_object().get(root));
    out_.entries.reserve(root.size());
    for (const auto& [name, value] : root) {
      if (name == "__metadata__") {
        read_metadata(value);
      } else {
        read_tensor(name, value);
      }
    }
  }

 private:
  void check(simdjson::error_code code) const {
    if (code != simdjson::SUCCESS) bad_json(simdjson::error_message(code));
  }
  [[noreturn]] void bad_json(std::string_view what) const {
    fail("{}: the header is not a valid safetensors header ({}); {}", where_, what, kAgain);
  }
  template <class... Args>
  [[noreturn]] void wrong(std::string_view name, fmt::format_string<Args...> format,
                          Args&&... args) const {
    fail("{}: header: tensor {} {}", where_, in_quotes(name),
         fmt::format(format, std::forward<Args>(args)...));
  }

  void read_metadata(dom::element value) {
    dom::object object;
    check(value.get_object().get(object));
    for (const auto& [key, item] : object) {
      std::string_view text;
      check(item.get_string().get(text));
      out_.metadata.emplace_back(std::string(key), std::string(text));
    }
  }

  void read_tensor(std::string_view name, dom::element value) {
    TensorEntry entry;
    entry.name = out_.names.add(name);
    Described told;
    dom::object object;
    if (value.get_object().get(object) != simdjson::SUCCESS) {
      wrong(name, "is not described by an object");
    }
    for (const auto& [key, item] : object) {
      if (key == "dtype") {
        once(told.dtype, name, key);
        read_dtype(entry, item);
      } else if (key == "shape") {
        once(told.shape, name, key);
        read_shape(entry, item);
      } else if (key == "data_offsets") {
        once(told.offsets, name, key);
        read_offsets(told, name, item);
      } else {
        wrong(name, "has an unknown key {}", in_quotes(key));
      }
    }
    if (!told.dtype || !told.shape || !told.offsets) {
      wrong(name, "has no {}", !told.dtype ? "dtype" : !told.shape ? "shape" : "data_offsets");
    }
    place(entry, told);
  }

  void once(bool& seen, std::string_view name, std::string_view key) const {
    if (seen) wrong(name, "gives {} twice", key);
    seen = true;
  }

  void read_dtype(TensorEntry& entry, dom::element value) const {
    std::string_view text;
    if (value.get_string().get(text) != simdjson::SUCCESS) {
      wrong(entry.name, "has a dtype that is not a string");
    }
    if (!dtype_from_name(text, entry.dtype)) {
      wrong(entry.name, "has dtype {}, which triax does not read", in_quotes(text));
    }
  }

  // An unsigned whole number; 1.0, -1 and 1e3 are none.
  std::size_t read_number(std::string_view name, std::string_view key, dom::element item) const {
    std::uint64_t number = 0;
    if (item.get_uint64().get(number) != simdjson::SUCCESS) {
      wrong(name, "has {} that are not whole numbers from 0", key);
    }
    return number;
  }

  void read_shape(TensorEntry& entry, dom::element value) const {
    dom::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) {
      wrong(entry.name, "has a shape that is not a list");
    }
    std::array<std::size_t, Shape::kMaxRank> dims{};
    std::size_t rank = 0;
    for (const dom::element item : array) {
      const std::size_t dim = read_number(entry.name, "shape entries", item);
      if (rank == dims.size()) {
        wrong(entry.name, "has more than {} dimensions", Shape::kMaxRank);
      }
      dims[rank++] = dim;
    }
    entry.shape = Shape(std::span<const std::size_t>(dims.data(), rank));
  }

  void read_offsets(Described& told, std::string_view name, dom::element value) const {
    dom::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) {
      wrong(name, "has data_offsets that are not a list");
    }
    std::array<std::size_t, 2> ends{};
    std::size_t n = 0;
    for (const dom::element item : array) {
      const std::size_t number = read_number(name, "data_offsets", item);
      if (n < 2) ends[n] = number;
      ++n;
    }
    if (n != 2) wrong(name, "has {} data_offsets; expected a begin and an end", n);
    told.begin = ends[0];
    told.end = ends[1];
  }

  // Bytes against shape, and both against what 64 bits hold.
  void place(TensorEntry& entry, const Described& told) {
    if (told.begin > told.end) {
      wrong(entry.name, "begins at {} and ends at {}, before it", told.begin, told.end);
    }
    std::size_t need = dtype_size(entry.dtype);
    for (const std::size_t dim : entry.shape) {
      if (__builtin_mul_overflow(need, dim, &need)) {
        wrong(entry.name, "has a shape {} whose bytes overflow 64 bits", to_string(entry.shape));
      }
    }
    entry.bytes = told.end - told.begin;
    if (need != entry.bytes) {
      wrong(entry.name, "of {} {} needs {} bytes, but its data_offsets hold {}",
            dtype_name(entry.dtype), to_string(entry.shape), need, entry.bytes);
    }
    if (__builtin_add_overflow(told.begin, out_.data_start, &entry.offset) ||
        told.end > SIZE_MAX - out_.data_start) {
      wrong(entry.name, "has data_offsets that overflow 64 bits");
    }
    out_.entries.push_back(entry);
  }

  SafetensorsHeader& out_;
  std::string_view where_;
};

void sort_by_offset(std::vector<TensorEntry>& entries) {
  const auto before = [](const TensorEntry& a, const TensorEntry& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  };
  if (!std::is_sorted(entries.begin(), entries.end(), before)) {
    std::sort(entries.begin(), entries.end(), before);
  }
}

void check_duplicates(const SafetensorsHeader& header, std::string_view where) {
  NameTable table;
  const std::size_t twice = table.build(header.entries);
  if (twice < header.entries.size()) {
    fail("{}: header: tensor {} is there twice", where, in_quotes(header.entries[twice].name));
  }
}

// The data of all tensors, one after the other, are the rest of the file.
void check_cover(const SafetensorsHeader& header, std::size_t file_size, std::string_view where) {
  std::size_t at = header.data_start;
  const TensorEntry* last = nullptr;
  for (const TensorEntry& entry : header.entries) {
    if (entry.offset < at) {
      fail("{}: header: tensors {} and {} overlap (data bytes {} to {}); {}", where,
           in_quotes(last->name), in_quotes(entry.name), entry.offset - header.data_start,
           at - header.data_start, kAgain);
    }
    if (entry.offset > at) {
      fail("{}: header: data bytes {} to {} before tensor {} belong to no tensor", where,
           at - header.data_start, entry.offset - header.data_start, in_quotes(entry.name));
    }
    at = entry.offset + entry.bytes;
    last = &entry;
  }
  if (at > file_size) {
    fail("{}: the file is cut short: expected {} bytes by its header, found {}; {}", where, at,
         file_size, kAgain);
  }
  if (at < file_size) {
    fail("{}: the file is too long: expected {} bytes by its header, found {}; {}", where, at,
         file_size, kAgain);
  }
}

}  // namespace

std::string to_string(const Shape& shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    out += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  }
  return out + "]";
}

std::size_t safetensors_header_length(std::span<const std::byte> prefix, std::size_t file_size,
                                      std::string_view where) {
  if (file_size < kSafetensorsLengthBytes || prefix.size() < kSafetensorsLengthBytes) {
    fail("{}: no safetensors header: expected at least {} bytes, found {}; {}", where,
         kSafetensorsLengthBytes, file_size, kAgain);
  }
  std::uint64_t length = 0;
  std::memcpy(&length, prefix.data(), sizeof length);
  if (length < 2) {
    fail("{}: the header has length {}; expected at least 2 bytes; {}", where, length, kAgain);
  }
  if (length > kSafetensorsMaxHeader) {
    fail("{}: the header has length {}, more than the {} bytes a safetensors header may have; {}",
         where, length, kSafetensorsMaxHeader, kAgain);
  }
  if (length > file_size - kSafetensorsLengthBytes) {
    fail("{}: the file is cut short in its header: expected {} bytes at least, found {}; {}", where,
         length + kSafetensorsLengthBytes, file_size, kAgain);
  }
  return length;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> prefix, std::size_t file_size,
                                           std::string_view where) {
  SafetensorsHeader header;
  const std::size_t length = safetensors_header_length(prefix, file_size, where);
  header.data_start = kSafetensorsLengthBytes + length;
  TRIAX_CHECK(prefix.size() >= header.data_start, "the prefix ends inside the header");
  const auto* text = reinterpret_cast<const char*>(prefix.data()) + kSafetensorsLengthBytes;
  if (*text != '{') {
    fail("{}: the header does not begin with an opening brace; {}", where, kAgain);
  }
  const simdjson::padded_string json(text, length);
  HeaderParser(header, where).parse(json);
  sort_by_offset(header.entries);
  check_duplicates(header, where);
  check_cover(header, file_size, where);
  return header;
}

}  // namespace triax
