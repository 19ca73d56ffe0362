// Layout, all numbers little-endian:
//   "TRIAXST1", u64 bytes of the head that follow
//   head:  u64 length and text of the identity; u64 tokens, ids (i32 each); u64 steps, each u64
//          2 * end + by_row; u64 free_from; u64 logits; u64 bytes of the file
//   16 bytes XXH3-128 of the head
//   blocks, each followed by 16 bytes XXH3-128 of it, seeded with its number: logits (if any); of
//   each KDA layer the matrices, the convolution tail; of each MLA layer its pages, the last one as
//   far as it goes
#include "triax/engine/snapshot_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "triax/core/hash.h"

namespace triax {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr char kMagic[] = "TRIAXST1";
constexpr std::size_t kMagicBytes = 8, kDigestBytes = 16;
constexpr std::size_t kMostHeadBytes = std::size_t{1} << 30;

using Digest = std::array<std::byte, kDigestBytes>;

Digest digest_of(const void* data, std::size_t bytes, std::uint64_t seed) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_withSeed(data, bytes, seed));
  Digest out;
  std::memcpy(out.data(), canonical.digest, kDigestBytes);
  return out;
}

std::string reason() {
  return std::generic_category().message(errno);
}

// A file descriptor that is closed.
class File {
 public:
  File(const std::filesystem::path& path, int flags) : path_(path) {
    fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("{}: cannot be opened: {}", path.string(), reason());
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const void* data, std::size_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::write(fd_, at, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("{}: cannot be written: {}", path_.string(), reason());
      at += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  void read(void* data, std::size_t bytes) {
    char* at = static_cast<char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::read(fd_, at, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("{}: cannot be read: {}", path_.string(), reason());
      if (n == 0) fail("{}: ends too early; it is not used", path_.string());
      at += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  void sync() {
    if (::fsync(fd_) != 0) fail("{}: cannot be synced: {}", path_.string(), reason());
  }
  std::size_t size() const {
    struct stat info{};
    if (::fstat(fd_, &info) != 0) fail("{}: {}", path_.string(), reason());
    return static_cast<std::size_t>(info.st_size);
  }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

class HeadWriter {
 public:
  void u64(std::uint64_t x) { raw(&x, sizeof x); }
  void raw(const void* data, std::size_t bytes) {
    const auto* at = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), at, at + bytes);
  }
  const std::vector<char>& bytes() const { return bytes_; }

 private:
  std::vector<char> bytes_;
};

class HeadReader {
 public:
  HeadReader(const std::vector<char>& bytes, const std::string& where)
      : bytes_(bytes), where_(where) {}
  std::uint64_t u64() {
    std::uint64_t x;
    raw(&x, sizeof x);
    return x;
  }
  void raw(void* out, std::size_t bytes) {
    if (bytes > left()) fail("{}: its head is cut short; it is not used", where_);
    if (bytes != 0) std::memcpy(out, bytes_.data() + at_, bytes);
    at_ += bytes;
  }
  // A count of things of `each` bytes that follow.
  std::size_t count(std::size_t each) {
    const std::uint64_t n = u64();
    if (n > left() / each) fail("{}: its head is cut short; it is not used", where_);
    return n;
  }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  const std::vector<char>& bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
};

struct Head {
  Prefix prefix;
  std::size_t logits = 0, file_bytes = 0;
};

// The blocks of a state in the order of the file. `State` is const or not.
template <class State, class F>
void for_each_block(State& state, std::size_t tokens, const K3Config& c, const F& f) {
  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) {
    if (c.is_kda(l)) {
      auto& kda = state.kda(l);
      f(static_cast<const void*>(kda.matrix.data()), kda.matrix.size_bytes());
      f(static_cast<const void*>(kda.tail.data()), kda.tail.bytes());
      continue;
    }
    auto& latent = state.latent(l);
    for (std::size_t t = 0; t < tokens; t += kPageTokens) {
      const std::size_t rows = std::min(kPageTokens, tokens - t);
      f(static_cast<const void*>(latent.row(t)), rows * latent.row_bytes());
    }
  }
}

std::vector<char> head_bytes(const Snapshot& s, const K3Config& c,
                             const SnapshotIdentity& identity) {
  HeadWriter head;
  head.u64(identity.text().size());
  head.raw(identity.text().data(), identity.text().size());
  head.u64(s.ids.size());
  head.raw(s.ids.data(), s.ids.size() * sizeof(std::int32_t));
  head.u64(s.trail.steps().size());
  for (const TrailStep& step : s.trail.steps()) head.u64(2 * step.end + (step.by_row ? 1 : 0));
  head.u64(s.free_from);
  head.u64(s.logits.size());
  std::size_t body = s.logits.empty() ? 0 : s.logits.size() * sizeof(float) + kDigestBytes;
  for_each_block(s.state, s.tokens(), c,
                 [&](const void*, std::size_t bytes) { body += bytes + kDigestBytes; });
  head.u64(kMagicBytes + 8 + head.bytes().size() + 8 + kDigestBytes + body);
  return head.bytes();
}

Head read_head(File& file, const std::string& where, const SnapshotIdentity& identity) {
  char magic[kMagicBytes];
  file.read(magic, sizeof magic);
  if (std::memcmp(magic, kMagic, kMagicBytes) != 0) {
    fail("{}: no state of this version; it is not used", where);
  }
  std::uint64_t size = 0;
  file.read(&size, sizeof size);
  if (size > kMostHeadBytes || size > file.size()) {
    fail("{}: its head is damaged; it is not used", where);
  }
  std::vector<char> bytes(size);
  file.read(bytes.data(), size);
  Digest digest;
  file.read(digest.data(), kDigestBytes);
  if (digest != digest_of(bytes.data(), size, 0)) {
    fail("{}: its head is damaged; it is not used", where);
  }
  HeadReader head(bytes, where);
  std::string text(head.count(1), '\0');
  head.raw(text.data(), text.size());
  if (text != identity.text()) {
    fail("{}: a state of another model or other settings: {}, expected {}; it is not used", where,
         in_quotes(text), in_quotes(identity.text()));
  }
  Head out;
  out.prefix.ids.resize(head.count(sizeof(std::int32_t)));
  head.raw(out.prefix.ids.data(), out.prefix.ids.size() * sizeof(std::int32_t));
  const std::size_t steps = head.count(8);
  for (std::size_t i = 0; i < steps; ++i) {
    const std::uint64_t step = head.u64();
    if (step / 2 <= out.prefix.trail.length()) fail("{}: its cuts do not ascend", where);
    step % 2 == 1 ? out.prefix.trail.rows(step / 2) : out.prefix.trail.piece(step / 2);
  }
  if (out.prefix.trail.length() != out.prefix.ids.size()) fail("{}: its cuts do not fit", where);
  out.prefix.free_from = head.u64();
  out.logits = head.u64();
  out.prefix.has_logits = out.logits != 0;
  out.file_bytes = head.u64();
  if (out.file_bytes != file.size()) {
    fail("{}: {} bytes, expected {}; it is not used", where, file.size(), out.file_bytes);
  }
  return out;
}

// Removes a file unless it was given its name.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path path) : path_(std::move(path)) {}
  ~Temporary() {
    std::error_code ignored;
    if (!kept_) std::filesystem::remove(path_, ignored);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  void keep() { kept_ = true; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace

SnapshotIdentity::SnapshotIdentity(const K3Config& c, Precision precision,
                                   const std::string& model) {
  const StateSize size = state_size(c, precision);
  std::string kinds;
  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) kinds += c.is_kda(l) ? 'k' : 'm';
  text_ = fmt::format(
      "{}; {}; layers {}; kda {} x {}; state {}, tails {}, latent {}; vocabulary {}", model,
      precision == Precision::f32 ? "f32" : "bf16", kinds, c.kda_num_heads, c.kda_head_dim,
      size.kda_matrices, size.conv_tails, size.latent_per_token, c.vocab_size);
}

std::string SnapshotIdentity::name() const {
  const auto digest = sha256(text_);
  return hex(std::span(digest).first(16));
}

std::string snapshot_file_name(const Prefix& prefix) {
  HeadWriter bytes;
  bytes.raw(prefix.ids.data(), prefix.ids.size() * sizeof(std::int32_t));
  for (const TrailStep& step : prefix.trail.steps())
    bytes.u64(2 * step.end + (step.by_row ? 1 : 0));
  const auto digest = sha256({bytes.bytes().data(), bytes.bytes().size()});
  return hex(std::span(digest).first(16)) + kSnapshotSuffix;
}

std::size_t snapshot_file_bytes(const Snapshot& snapshot, const K3Config& config,
                                const SnapshotIdentity& identity) {
  const std::vector<char> head = head_bytes(snapshot, config, identity);
  std::uint64_t bytes = 0;  // the last number of the head
  std::memcpy(&bytes, head.data() + head.size() - sizeof bytes, sizeof bytes);
  return bytes;
}

std::size_t write_snapshot(const std::filesystem::path& path, const Snapshot& snapshot,
                           const K3Config& config, const SnapshotIdentity& identity,
                           std::size_t stop_after) {
  Temporary part(path.string() + kPartSuffix);
  std::size_t written = 0;
  {
    File file(part.path(), O_WRONLY | O_CREAT | O_TRUNC);
    const auto put = [&](const void* data, std::size_t bytes) {
      if (bytes > stop_after - std::min(stop_after, written)) {
        file.write(data, stop_after - std::min(stop_after, written));
        part.keep();
        fail("{}: stopped after {} bytes", path.string(), stop_after);
      }
      file.write(data, bytes);
      written += bytes;
    };
    std::uint64_t number = 1;
    const auto block = [&](const void* data, std::size_t bytes) {
      put(data, bytes);
      const Digest digest = digest_of(data, bytes, number++);
      put(digest.data(), kDigestBytes);
    };
    const std::vector<char> head = head_bytes(snapshot, config, identity);
    const std::uint64_t size = head.size();
    put(kMagic, kMagicBytes);
    put(&size, sizeof size);
    put(head.data(), head.size());
    const Digest digest = digest_of(head.data(), head.size(), 0);
    put(digest.data(), kDigestBytes);
    if (!snapshot.logits.empty()) {
      block(snapshot.logits.data(), snapshot.logits.size() * sizeof(float));
    }
    for_each_block(snapshot.state, snapshot.tokens(), config, block);
    file.sync();
  }
  std::filesystem::rename(part.path(), path);
  part.keep();
  File(path.parent_path(), O_RDONLY | O_DIRECTORY).sync();
  return written;
}

Prefix read_snapshot_head(const std::filesystem::path& path, const SnapshotIdentity& identity) {
  File file(path, O_RDONLY);
  return read_head(file, path.string(), identity).prefix;
}

std::shared_ptr<const Snapshot> read_snapshot(const std::filesystem::path& path,
                                              const K3Config& config, Precision precision,
                                              const SnapshotIdentity& identity) {
  File file(path, O_RDONLY);
  const std::string where = path.string();
  Head head = read_head(file, where, identity);
  if (head.logits != 0 && head.logits != config.vocab_size) {
    fail("{}: {} logits, expected {}; it is not used", where, head.logits, config.vocab_size);
  }
  std::uint64_t number = 1;
  const auto block = [&](const void* data, std::size_t bytes) {
    // The blocks of a state that is being filled: const only for the walk over them.
    file.read(const_cast<void*>(data), bytes);
    Digest digest;
    file.read(digest.data(), kDigestBytes);
    if (digest != digest_of(data, bytes, number)) {
      fail("{}: block {} is damaged; it is not used", where, number);
    }
    ++number;
  };
  std::vector<float> logits(head.logits);
  if (head.logits != 0) block(logits.data(), head.logits * sizeof(float));
  SequenceState state(config, precision);
  state.prepare(head.prefix.ids.size());
  for_each_block(state, head.prefix.ids.size(), config, block);
  state.commit(head.prefix.ids);
  return std::make_shared<const Snapshot>(std::move(state), std::move(head.prefix.trail),
                                          head.prefix.free_from, std::move(logits));
}

}  // namespace triax
