#include "triax/checkpoint/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "triax/core/checked.h"
#include "triax/core/error.h"

namespace triax {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Files are written in whole blocks of this size: a page cache that can hold huge pages makes them
// of such writes.
constexpr std::size_t kWriteBlock = 2 * kHugePage;

[[noreturn]] void io_error(std::string_view what, const std::filesystem::path& path, int code) {
  fail("{}: cannot {}: {}", path.string(), what, std::strerror(code));
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) io_error("open", path, errno);
  }
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

struct stat look_at(int fd, const std::filesystem::path& path) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) io_error("look at", path, errno);
  return info;
}

std::size_t regular_size(int fd, const std::filesystem::path& path) {
  const struct stat info = look_at(fd, path);
  if (!S_ISREG(info.st_mode)) fail("{}: is not a regular file", path.string());
  return static_cast<std::size_t>(info.st_size);
}

void read_fully(int fd, const std::filesystem::path& path, char* out, std::size_t count,
                std::size_t offset = 0) {
  for (std::size_t done = 0; done < count;) {
    const ssize_t n = ::pread(fd, out + done, count - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) io_error("read", path, errno);
    if (n == 0) fail("{}: became shorter while it was read", path.string());
    done += static_cast<std::size_t>(n);
  }
}

// The whole file, read-only, from a multiple of the huge page on; null with errno.
const std::byte* map_aligned(int fd, std::size_t size) {
  // Room to find an aligned start in; what is left of it goes back.
  const std::size_t room = checked_add(size, kHugePage);
  void* reserved = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(reserved);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
  const std::size_t before = past == 0 ? 0 : kHugePage - past;
  void* at = ::mmap(begin + before, size, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
  if (at == MAP_FAILED) {
    const int code = errno;
    ::munmap(reserved, room);
    errno = code;
    return nullptr;
  }
  static const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = before + (size + page - 1) / page * page;
  if (before != 0) ::munmap(begin, before);
  if (end < room) ::munmap(begin + end, room - end);
  (void)::madvise(at, size, MADV_HUGEPAGE);  // a hint
  return static_cast<const std::byte*>(at);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const Descriptor file(path);
  size_ = regular_size(file.get(), path);
  const struct stat info = look_at(file.get(), path);
  device_ = info.st_dev;
  number_ = info.st_ino;
  if (size_ == 0) return;  // an empty mapping is not allowed
  data_ = map_aligned(file.get(), size_);
  if (data_ == nullptr) {
    const int code = errno;
    size_ = 0;
    io_error("map", path, code);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)),
      device_(other.device_),
      number_(other.number_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  std::swap(device_, other.device_);
  std::swap(number_, other.number_);
  return *this;
}

// The file is opened for each read: a descriptor kept for every shard could be more than a process
// may have.
void MappedFile::read(std::size_t offset, std::span<std::byte> out) const {
  TRIAX_CHECK(offset <= size_ && out.size() <= size_ - offset, "read beyond the file");
  if (out.empty()) return;
  const Descriptor file(path_);
  const struct stat info = look_at(file.get(), path_);
  if (info.st_dev != device_ || info.st_ino != number_) {
    fail("{}: was replaced by another file while the model was being opened; try again",
         path_.string());
  }
  read_fully(file.get(), path_, reinterpret_cast<char*>(out.data()), out.size(), offset);
}

namespace {

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, Linux 5.14

// The number of a "Name:   123 kB" line, in bytes; 0 for another line.
std::size_t kilobytes(std::string_view line, std::string_view name) {
  if (!line.starts_with(name)) return 0;
  return 1024 * std::strtoull(line.data() + name.size(), nullptr, 10);
}

}  // namespace

Residency residency(std::span<const std::span<const std::byte>> ranges) {
  std::ifstream file("/proc/self/smaps");
  Residency out;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    std::uintptr_t begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      inside = std::any_of(ranges.begin(), ranges.end(), [&](std::span<const std::byte> r) {
        const auto at = reinterpret_cast<std::uintptr_t>(r.data());
        return at >= begin && at < end;
      });
    } else if (inside) {
      out.bytes += kilobytes(line, "Rss:");
      out.huge += kilobytes(line, "FilePmdMapped:");
    }
  }
  return out;
}

void advise(std::span<const std::byte> range, Access access) {
  if (range.empty()) return;
  static const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<std::uintptr_t>(range.data());
  const std::uintptr_t begin = address / page * page;
  const std::size_t length = address + range.size() - begin;
  int advice = MADV_NORMAL;
  if (access == Access::random) advice = MADV_RANDOM;
  if (access == Access::sequential) advice = MADV_SEQUENTIAL;
  if (access == Access::will_need) advice = MADV_WILLNEED;
  if (access == Access::populate) advice = kPopulateRead;
  if (access == Access::dont_need) advice = MADV_DONTNEED;
  // A hint: a kernel that does not take it changes no result.
  (void)::madvise(reinterpret_cast<void*>(begin), length, advice);
}

namespace {

// Reads all of a mapping, piece by piece.
void populate(std::span<const std::byte> bytes,
              const std::function<void(std::size_t, std::size_t)>& progress) {
  constexpr std::size_t kPiece = std::size_t{64} << 20;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    const std::size_t size = std::min(kPiece, bytes.size() - at);
    advise(bytes.subspan(at, size), Access::populate);
    if (progress) progress(at + size, bytes.size());
  }
}

}  // namespace

Residency read_into_huge_pages(const std::filesystem::path& path,
                               const std::function<void(std::size_t, std::size_t)>& progress) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  Residency now;
  for (int attempt = 0; attempt < 2; ++attempt) {
    MappedFile file(path);
    populate(file.bytes(), progress);
    const std::span<const std::byte> ranges[] = {file.bytes()};
    now = residency(ranges);
    // The last page of a file is rarely whole.
    if (attempt == 1 || now.huge + kHuge > file.bytes().size()) break;
    file = MappedFile();  // mapped pages are not dropped
    const Descriptor descriptor(path);
    (void)::posix_fadvise(descriptor.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  return now;
}

std::size_t regular_file_size(const std::filesystem::path& path) {
  return regular_size(Descriptor(path).get(), path);
}

std::vector<std::byte> read_prefix(const std::filesystem::path& path, std::size_t count) {
  const Descriptor file(path);
  std::vector<std::byte> out(std::min(count, regular_size(file.get(), path)));
  read_fully(file.get(), path, reinterpret_cast<char*>(out.data()), out.size());
  return out;
}

std::string read_whole(const std::filesystem::path& path, std::size_t max_bytes) {
  const Descriptor file(path);
  const std::size_t size = regular_size(file.get(), path);
  if (size > max_bytes) {
    fail("{}: is {} bytes; expected at most {}", path.string(), size, max_bytes);
  }
  std::string out(size, '\0');
  read_fully(file.get(), path, out.data(), size);
  return out;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), partial_(path_) {
  partial_ += ".partial";
  fd_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) io_error("create", partial_, errno);
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(partial_.c_str());
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::move(other.partial_)),
      fd_(std::exchange(other.fd_, -1)),
      position_(other.position_),
      buffer_(std::move(other.buffer_)) {}

namespace {
void write_fully(int fd, const std::filesystem::path& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) io_error("write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}
}  // namespace

void AtomicFile::flush() {
  write_fully(fd_, partial_, buffer_);
  buffer_.clear();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  TRIAX_CHECK(fd_ >= 0, "the file is closed");
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kWriteBlock - position_ % kWriteBlock);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    position_ += n;
    if (position_ % kWriteBlock == 0) flush();
    bytes = bytes.subspan(n);
  }
}

void AtomicFile::write(std::string_view text) {
  write(std::as_bytes(std::span(text)));
}

void AtomicFile::skip(std::size_t bytes) {
  TRIAX_CHECK(fd_ >= 0, "the file is closed");
  flush();
  position_ += bytes;
  if (::ftruncate(fd_, static_cast<off_t>(position_)) != 0 || ::lseek(fd_, 0, SEEK_END) < 0) {
    io_error("extend", partial_, errno);
  }
}

void AtomicFile::commit(bool sync) {
  TRIAX_CHECK(fd_ >= 0, "the file is closed");
  flush();
  if (sync && ::fsync(fd_) != 0) io_error("write", partial_, errno);
  if (::close(std::exchange(fd_, -1)) != 0) {
    const int code = errno;
    ::unlink(partial_.c_str());
    io_error("write", partial_, code);
  }
  if (::rename(partial_.c_str(), path_.c_str()) != 0) {
    const int code = errno;
    ::unlink(partial_.c_str());
    io_error("rename to its final name", partial_, code);
  }
}

}  // namespace triax
