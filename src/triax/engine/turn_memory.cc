#include "triax/engine/turn_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "triax/core/error.h"
#include "triax/core/rng.h"

namespace triax {
namespace {

// A record: this, the text, the ids, XXH3-64 of all before it. In the machine's byte order.
struct RecordHead {
  std::uint64_t text_bytes, ids, before;
};
constexpr std::size_t kDigestBytes = sizeof(std::uint64_t);
// A file is written anew when so much of it is no longer remembered.
constexpr std::size_t kWasteBytes = std::size_t{16} << 20;

std::size_t record_bytes(std::size_t text, std::size_t ids) {
  return sizeof(RecordHead) + text + ids * sizeof(std::int32_t) + kDigestBytes;
}

void put_bytes(std::string& out, const void* data, std::size_t bytes) {
  out.append(static_cast<const char*>(data), bytes);
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::uint64_t hash_of(std::span<const std::int32_t> ids) {
  std::uint64_t h = ids.size();
  for (const std::int32_t id : ids) {
    h = splitmix64_mix((h ^ static_cast<std::uint32_t>(id)) + kSplitMixGamma);
  }
  return h;
}

}  // namespace

TurnMemory::~TurnMemory() {
  if (file_ >= 0) ::close(file_);
}

void TurnMemory::keep_in(const std::filesystem::path& file) {
  std::string all;
  {
    std::ifstream in(file, std::ios::binary);
    all.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::size_t at = 0;
  while (all.size() - at >= record_bytes(0, 0)) {
    RecordHead head;
    std::memcpy(&head, all.data() + at, sizeof head);
    const std::size_t left = all.size() - at;
    if (head.text_bytes > left || head.ids > left / sizeof(std::int32_t)) break;
    const std::size_t bytes = record_bytes(head.text_bytes, head.ids);
    if (bytes > left) break;
    std::uint64_t digest = 0;
    std::memcpy(&digest, all.data() + at + bytes - kDigestBytes, kDigestBytes);
    if (digest != XXH3_64bits(all.data() + at, bytes - kDigestBytes)) break;
    Turn turn;
    turn.text = all.substr(at + sizeof head, head.text_bytes);
    turn.before = head.before;
    turn.ids.resize(head.ids);
    if (head.ids > 0) {
      std::memcpy(turn.ids.data(), all.data() + at + sizeof head + head.text_bytes,
                  head.ids * sizeof(std::int32_t));
    }
    put(std::move(turn));
    at += bytes;
  }
  const std::lock_guard lock(mutex_);
  path_ = file;
  file_ = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_APPEND, 0600);
  if (file_ < 0) {
    fail("{}: cannot be opened: {}", file.string(), std::generic_category().message(errno));
  }
  file_bytes_ = at;
  if (at < all.size() && ::ftruncate(file_, static_cast<off_t>(at)) != 0) write_anew();
}

void TurnMemory::append(const Turn& turn) {
  if (file_ < 0) return;
  const RecordHead head{turn.text.size(), turn.ids.size(), turn.before};
  std::string out;
  put_bytes(out, &head, sizeof head);
  out += turn.text;
  put_bytes(out, turn.ids.data(), turn.ids.size() * sizeof(std::int32_t));
  const std::uint64_t digest = XXH3_64bits(out.data(), out.size());
  put_bytes(out, &digest, sizeof digest);
  if (write_all(file_, out)) {
    file_bytes_ += out.size();
    return;
  }
  // A full disk: what stands there stays readable, with half a record or without it.
  const int ignored = ::ftruncate(file_, static_cast<off_t>(file_bytes_));
  static_cast<void>(ignored);
  ::close(std::exchange(file_, -1));
}

void TurnMemory::write_anew() {
  const std::filesystem::path part = path_.string() + ".part";
  ::close(std::exchange(
      file_, ::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND, 0600)));
  file_bytes_ = 0;
  for (auto turn = turns_.rbegin(); turn != turns_.rend(); ++turn) append(*turn);
  std::error_code ignored;
  if (file_ >= 0) std::filesystem::rename(part, path_, ignored);
}

void TurnMemory::drop(Turns::iterator turn) {
  const auto [begin, end] = by_text_.equal_range(turn->text);
  for (auto i = begin; i != end; ++i) {
    if (i->second != turn) continue;
    by_text_.erase(i);
    break;
  }
  tokens_ -= turn->ids.size();
  bytes_ -= record_bytes(turn->text.size(), turn->ids.size());
  turns_.erase(turn);
}

void TurnMemory::remember(std::string_view text, std::span<const std::int32_t> before,
                          std::span<const std::int32_t> ids) {
  if (ids.empty() || ids.size() > max_tokens_) return;
  put({std::string(text), hash_of(before), {ids.begin(), ids.end()}});
}

void TurnMemory::put(Turn turn) {
  if (turn.ids.size() > max_tokens_) return;
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = by_text_.equal_range(turn.text);
  for (auto i = begin; i != end; ++i) {
    if (i->second->before != turn.before) continue;
    if (i->second->ids == turn.ids) {  // nothing new
      turns_.splice(turns_.begin(), turns_, i->second);
      return;
    }
    drop(i->second);
    break;
  }
  tokens_ += turn.ids.size();
  bytes_ += record_bytes(turn.text.size(), turn.ids.size());
  turns_.push_front(std::move(turn));
  by_text_.emplace(turns_.front().text, turns_.begin());
  while (tokens_ > max_tokens_) drop(std::prev(turns_.end()));
  append(turns_.front());
  if (file_ >= 0 && file_bytes_ > 2 * bytes_ + kWasteBytes) write_anew();
}

std::optional<std::vector<std::int32_t>> TurnMemory::find(std::string_view text,
                                                          std::span<const std::int32_t> before) {
  const std::lock_guard lock(mutex_);
  auto [begin, end] = by_text_.equal_range(text);
  if (begin == end) return std::nullopt;
  const std::uint64_t hash = hash_of(before);
  Turns::iterator found = std::prev(end)->second;  // equal keys stand in the order of insertion
  for (auto i = begin; i != end; ++i) {
    if (i->second->before == hash) found = i->second;
  }
  turns_.splice(turns_.begin(), turns_, found);
  return found->ids;
}

std::size_t TurnMemory::tokens() const {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

std::size_t TurnMemory::turns() const {
  const std::lock_guard lock(mutex_);
  return turns_.size();
}

}  // namespace triax
