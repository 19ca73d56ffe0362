#include "triax/checkpoint/index.h"

#include <simdjson.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "triax/core/error.h"

namespace triax {
namespace {

namespace dom = simdjson::dom;

std::optional<std::size_t> read_total_size(dom::element metadata, std::string_view where) {
  dom::object object;
  if (metadata.is_null()) return std::nullopt;
  if (metadata.get_object().get(object) != simdjson::SUCCESS) {
    fail("{}: metadata is not an object", where);
  }
  dom::element size;
  if (object.at_key("total_size").get(size) != simdjson::SUCCESS) return std::nullopt;
  std::uint64_t bytes = 0;
  if (size.get_uint64().get(bytes) != simdjson::SUCCESS) {
    fail("{}: metadata.total_size is not a whole number from 0", where);
  }
  return bytes;
}

// A plain file name inside the folder.
void check_file_name(std::string_view name, std::string_view tensor, std::string_view where) {
  const bool plain = !name.empty() && name != "." && name != ".." &&
                     name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
  if (!plain) {
    fail(
        "{}: weight_map places tensor {} in {}; a shard is a file of the same folder, named "
        "without "
        "a path",
        where, in_quotes(tensor), in_quotes(name));
  }
}

}  // namespace

struct ShardIndex::Document {
  dom::parser parser;  // owns the strings
  dom::object weight_map;
};

ShardIndex::ShardIndex() : document_(std::make_unique<Document>()) {}
ShardIndex::ShardIndex(ShardIndex&&) noexcept = default;
ShardIndex::~ShardIndex() = default;

ShardIndex ShardIndex::parse(std::string_view text, std::string_view where) {
  ShardIndex out;
  dom::object root;
  const simdjson::error_code code =
      out.document_->parser.parse(text.data(), text.size()).get_object().get(root);
  if (code != simdjson::SUCCESS) {
    fail("{}: not a valid index ({}); download the file again", where,
         simdjson::error_message(code));
  }
  bool has_map = false;
  for (const auto& [key, value] : root) {
    if (key == "metadata") out.total_size_ = read_total_size(value, where);
    if (key != "weight_map") continue;
    if (has_map) fail("{}: weight_map is there twice", where);
    has_map = true;
    if (value.get_object().get(out.document_->weight_map) != simdjson::SUCCESS) {
      fail("{}: weight_map is not an object", where);
    }
  }
  if (!has_map) fail("{}: weight_map is missing; this is no index of shards", where);
  std::set<std::string, std::less<>> files;
  for (const auto& [name, value] : out.document_->weight_map) {
    std::string_view file;
    if (value.get_string().get(file) != simdjson::SUCCESS) {
      fail("{}: weight_map does not place tensor {} in a file", where, in_quotes(name));
    }
    ++out.tensors_;
    if (files.find(file) != files.end()) continue;
    check_file_name(file, name, where);
    files.emplace(file);
  }
  if (files.empty()) fail("{}: weight_map names no tensor", where);
  out.files_.assign(files.begin(), files.end());
  return out;
}

void ShardIndex::for_each(
    const std::function<void(std::string_view name, std::size_t file)>& visit) const {
  std::unordered_map<std::string_view, std::size_t> position;
  for (std::size_t i = 0; i < files_.size(); ++i) position.emplace(files_[i], i);
  for (const auto& [name, value] : document_->weight_map) {
    std::string_view file;
    TRIAX_CHECK(value.get_string().get(file) == simdjson::SUCCESS, "parse() checked this");
    visit(name, position.at(file));
  }
}

}  // namespace triax
