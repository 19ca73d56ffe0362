// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace triax {

class ShardIndex {
 public:
  // Checks the text and the file names in it: a name that leaves the folder is an Error.
  static ShardIndex parse(std::string_view text, std::string_view where);
  ShardIndex(ShardIndex&&) noexcept;
  ~ShardIndex();

  // Shard files in the order of their names, each once.
  const std::vector<std::string>& files() const { return files_; }
  std::optional<std::size_t> total_size() const { return total_size_; }  // bytes of all tensors
  std::size_t tensors() const { return tensors_; }
  // Every pair of weight_map: the tensor's name and a position in files().
  void for_each(const std::function<void(std::string_view name, std::size_t file)>& visit) const;

 private:
  struct Document;
  ShardIndex();
  std::unique_ptr<Document> document_;  // the parsed text: for_each walks it
  std::vector<std::string> files_;
  std::optional<std::size_t> total_size_;
  std::size_t tensors_ = 0;
};

}  // namespace triax
