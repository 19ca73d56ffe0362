// Files of a model folder: read-only mappings, and writing that never leaves half a file behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace triax {

// A whole file, mapped read-only and shared with the page cache. Nothing is read until it is
// touched. Where the file system can keep a file in huge pages, what is read through the mapping
// comes in such pages, and what lies in them is mapped as them: the processor then looks up 2 MiB
// at a time, which is half of the time of reading weights on a virtual machine.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Copies bytes [offset, offset + out.size()) without touching the mapping, whose pages would
  // count as this process's memory. Throws Error when the file is no longer the one mapped, or
  // cannot be read.
  void read(std::size_t offset, std::span<std::byte> out) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::filesystem::path path_;
  std::uint64_t device_ = 0, number_ = 0;  // which file it was when it was mapped
};

// What is going to happen to mapped memory. A hint only; whole pages around `range` are meant.
// `populate`: read and mapped now, all at once, instead of page by page when touched.
enum class Access { normal, random, sequential, will_need, populate, dont_need };
void advise(std::span<const std::byte> range, Access access);

// How mapped memory is held at this moment.
struct Residency {
  std::size_t bytes = 0;  // in memory and mapped by this process
  std::size_t huge = 0;   // of these, in huge pages
};
// Of the whole mappings that any of the ranges lies in; nothing where the system does not tell.
Residency residency(std::span<const std::span<const std::byte>> ranges);

// Reads a file into the page cache such that it lies in huge pages there, where the system and the
// file system can do that: what lies in small pages is dropped from the cache and read again
// through a mapping. A process that has the file mapped keeps its small pages. `progress(done,
// total)` in bytes after each piece. Returns how the file lies now. Throws Error when it cannot be
// read.
Residency read_into_huge_pages(const std::filesystem::path& path,
                               const std::function<void(std::size_t, std::size_t)>& progress = {});

// The size of a regular file in bytes, or an Error.
std::size_t regular_file_size(const std::filesystem::path& path);

// The first `count` bytes of a file, or all of it when it is shorter.
std::vector<std::byte> read_prefix(const std::filesystem::path& path, std::size_t count);
// A small file as text; more than `max_bytes` is an Error.
std::string read_whole(const std::filesystem::path& path, std::size_t max_bytes);

// Writes PATH.partial and gives it its name at commit(): a reader sees the whole file or none.
// Dropped without commit(), the partial file is removed.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Leaves a hole that reads as zeros and takes no room where the file system can do that.
  void skip(std::size_t bytes);
  std::size_t written() const { return position_; }  // bytes so far, holes included
  // `sync`: wait until the data are on the disk before the name appears.
  void commit(bool sync = true);

 private:
  void flush();
  std::filesystem::path path_, partial_;
  int fd_ = -1;
  std::size_t position_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace triax
