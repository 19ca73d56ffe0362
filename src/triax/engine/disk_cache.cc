#include "triax/engine/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "triax/core/clock.h"

namespace triax {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kRestAfterFault{60};
constexpr const char* kSharedMark = "shared-";

bool begins(const Prefix& shorter, const Prefix& longer) {
  return shorter.tokens() < longer.tokens() &&
         std::equal(shorter.ids.begin(), shorter.ids.end(), longer.ids.begin());
}

bool is_shared(const fs::path& path) {
  return path.filename().string().starts_with(kSharedMark);
}

// The folder, ours alone while this lives.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail("{}: cannot be made: {}", folder.string(), error.message());
    const fs::path path = folder / "lock";
    fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd_ < 0) {
      fail("{}: cannot be opened: {}", path.string(), std::generic_category().message(errno));
    }
    if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      ::close(fd_);
      fail("{}: another process uses this cache folder; give each its own", folder.string());
    }
  }
  ~FolderLock() { ::close(fd_); }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace

struct DiskCache::Impl {
  struct Save {
    std::shared_ptr<const Snapshot> snapshot;
    bool shared = false;
  };
  struct Load {
    std::shared_ptr<const Entry> entry;
    std::uint64_t tag = 0;
  };

  Impl(const fs::path& parent, std::size_t most, const K3Config& c, Precision p,
       const std::string& model, std::function<void()> wake_up, Warn tell)
      : identity(c, p, model),
        folder(parent / identity.name()),
        lock(folder),
        max_bytes(most),
        config(c),
        precision(p),
        wake(std::move(wake_up)),
        warn(std::move(tell)) {
    scan();
    thread = std::thread([this] { run(); });
  }
  ~Impl() {
    {
      const std::lock_guard guard(mutex);
      stopping = true;
    }
    changed.notify_all();
    thread.join();
  }

  void scan() {
    struct Found {
      fs::path path;
      fs::file_time_type time;
    };
    std::vector<Found> files;
    for (const auto& item : fs::directory_iterator(folder)) {
      const fs::path& path = item.path();
      std::error_code ignored;
      if (path.extension() == kPartSuffix) fs::remove(path, ignored);
      if (path.extension() == kSnapshotSuffix) files.push_back({path, item.last_write_time()});
    }
    std::sort(files.begin(), files.end(),
              [](const Found& a, const Found& b) { return a.time < b.time; });
    std::string first;
    for (const Found& file : files) {
      try {
        add(read_snapshot_head(file.path, identity), file.path, fs::file_size(file.path));
      } catch (const std::exception& e) {
        if (stats.faults++ == 0) first = e.what();
        std::error_code ignored;
        fs::remove(file.path, ignored);
      }
    }
    make_room(0);
    if (!warn || first.empty()) return;
    warn(fmt::format("{} of {} kept states are of no use and were removed: {}", stats.faults,
                     files.size(), first));
    told_read = true;
  }

  // The first fault of a kind is told, the others are counted.
  void tell_once(bool& told, const std::string& what) {
    if (warn && !std::exchange(told, true)) warn(what);
  }

  void add(const Prefix& prefix, const fs::path& path, std::size_t bytes) {
    auto entry = std::make_shared<Entry>();
    static_cast<Prefix&>(*entry) = prefix;
    entry->path = path;
    entry->bytes = bytes;
    entry->used = ++clock;
    if (const auto same = index.same(*entry)) remove(static_cast<const Entry&>(*same), false);
    stats.bytes += bytes;
    index.insert(std::move(entry));
  }

  // By value: the index may hold the last reference to what was passed.
  void remove(const Entry& entry, bool file) {
    const fs::path path = entry.path;
    stats.bytes -= entry.bytes;
    std::error_code ignored;
    if (file) fs::remove(path, ignored);
    index.erase(&entry);
  }

  // Drops the files used longest ago until `bytes` more fit.
  void make_room(std::size_t bytes) {
    while (!index.items().empty() && stats.bytes + bytes > max_bytes) {
      const auto& items = index.items();
      const auto oldest =
          std::min_element(items.begin(), items.end(), [](const auto& a, const auto& b) {
            return static_cast<const Entry&>(*a).used < static_cast<const Entry&>(*b).used;
          });
      remove(static_cast<const Entry&>(**oldest), true);
    }
  }

  void run() {
    std::unique_lock guard(mutex);
    for (;;) {
      changed.wait(guard, [&] { return stopping || !loads.empty() || !saves.empty(); });
      if (!loads.empty()) {
        const Load job = loads.front();
        loads.pop_front();
        busy = true;
        guard.unlock();
        do_load(job);
        guard.lock();
      } else if (!saves.empty()) {
        Save job = std::move(saves.front());
        saves.pop_front();
        busy = true;
        guard.unlock();
        do_save(job);
        guard.lock();
        saved.push_back(std::move(job.snapshot));
      } else {
        return;
      }
      busy = false;
      changed.notify_all();
    }
  }

  void do_load(const Load& job) {
    const Stopwatch watch;
    Loaded out{job.tag, nullptr};
    std::string why;
    try {
      out.snapshot = read_snapshot(job.entry->path, config, precision, identity);
      std::error_code ignored;
      fs::last_write_time(job.entry->path, fs::file_time_type::clock::now(), ignored);
    } catch (const std::exception& e) {  // damaged, gone, or no memory
      why = e.what();
    }
    if (!why.empty()) tell_once(told_read, "a kept state is of no use and was removed: " + why);
    {
      const std::lock_guard guard(mutex);
      stats.read_seconds += watch.seconds();
      if (out.snapshot != nullptr) {
        ++stats.reads;
        job.entry->used = ++clock;
        stats.bytes_read += job.entry->bytes;
      } else {
        ++stats.faults;
        const auto& items = index.items();
        const bool there =
            std::any_of(items.begin(), items.end(), [&](const auto& i) { return i == job.entry; });
        if (there) remove(*job.entry, true);
      }
      loaded.push_back(std::move(out));
    }
    wake();
  }

  void do_save(const Save& job) {
    const Snapshot& s = *job.snapshot;
    const std::size_t bytes = snapshot_file_bytes(s, config, identity);
    const fs::path path = folder / ((job.shared ? kSharedMark : "") + snapshot_file_name(s));
    {
      const std::lock_guard guard(mutex);
      if (bytes > max_bytes || std::chrono::steady_clock::now() < rest_until) return;
      make_room(bytes);
    }
    const Stopwatch watch;
    bool good = true;
    try {
      write_snapshot(path, s, config, identity);
    } catch (const std::exception& e) {
      good = false;
      tell_once(told_write, fmt::format("states are not kept on disk for now: {}", e.what()));
    }
    const std::lock_guard guard(mutex);
    stats.write_seconds += watch.seconds();
    if (!good) {
      ++stats.faults;
      rest_until = std::chrono::steady_clock::now() + kRestAfterFault;
      return;
    }
    ++stats.writes;
    stats.bytes_written += bytes;
    add(s, path, bytes);
    drop_beginnings(s);
  }

  void drop_beginnings(const Snapshot& s) {
    std::vector<PrefixIndex::Item> old;
    for (const auto& item : index.items()) {
      if (begins(*item, s) && !is_shared(static_cast<const Entry&>(*item).path)) {
        old.push_back(item);
      }
    }
    for (const auto& item : old) remove(static_cast<const Entry&>(*item), true);
  }

  const SnapshotIdentity identity;
  const fs::path folder;
  const FolderLock lock;
  const std::size_t max_bytes;
  const K3Config& config;
  const Precision precision;
  const std::function<void()> wake;
  const Warn warn;
  bool told_read = false, told_write = false;  // of the constructor, then of the thread

  std::mutex mutex;  // all below
  std::condition_variable changed;
  PrefixIndex index;
  std::uint64_t clock = 0;
  std::deque<Load> loads;
  std::deque<Save> saves;
  std::vector<Loaded> loaded;
  std::vector<std::shared_ptr<const Snapshot>> saved;
  std::chrono::steady_clock::time_point rest_until = {};
  DiskStats stats;
  bool busy = false, stopping = false;
  std::thread thread;
};

DiskCache::DiskCache(const fs::path& folder, std::size_t max_bytes, const K3Config& config,
                     Precision precision, const std::string& model, std::function<void()> wake,
                     Warn warn)
    : impl_(std::make_unique<Impl>(folder, max_bytes, config, precision, model, std::move(wake),
                                   std::move(warn))) {}

DiskCache::~DiskCache() = default;

std::shared_ptr<const DiskCache::Entry> DiskCache::find(std::span<const std::int32_t> prompt,
                                                        const CutPlan& plan, CacheUse use,
                                                        std::size_t longer_than) const {
  const std::lock_guard guard(impl_->mutex);
  const auto found = impl_->index.longest(prompt, [&](const Prefix& p) {
    return p.tokens() > longer_than && usable(p, plan, prompt.size(), use);
  });
  return std::static_pointer_cast<const Entry>(found);
}

void DiskCache::load(std::shared_ptr<const Entry> entry, std::uint64_t tag) {
  {
    const std::lock_guard guard(impl_->mutex);
    impl_->loads.push_back({std::move(entry), tag});
  }
  impl_->changed.notify_all();
}

void DiskCache::save(std::shared_ptr<const Snapshot> snapshot, bool shared) {
  {
    const std::lock_guard guard(impl_->mutex);
    if (impl_->index.same(*snapshot) != nullptr) return;
    std::erase_if(impl_->saves, [&](Impl::Save& waiting) {
      if (waiting.shared || !begins(*waiting.snapshot, *snapshot)) return false;
      impl_->saved.push_back(std::move(waiting.snapshot));
      return true;
    });
    impl_->saves.push_back({std::move(snapshot), shared});
  }
  impl_->changed.notify_all();
}

std::vector<DiskCache::Loaded> DiskCache::take_loaded() {
  const std::lock_guard guard(impl_->mutex);
  return std::exchange(impl_->loaded, {});
}

void DiskCache::release_saved() {
  std::vector<std::shared_ptr<const Snapshot>> done;
  const std::lock_guard guard(impl_->mutex);
  done.swap(impl_->saved);
}

void DiskCache::flush() {
  std::unique_lock guard(impl_->mutex);
  impl_->changed.wait(guard,
                      [&] { return !impl_->busy && impl_->loads.empty() && impl_->saves.empty(); });
}

const fs::path& DiskCache::folder() const {
  return impl_->folder;
}

DiskStats DiskCache::stats() const {
  const std::lock_guard guard(impl_->mutex);
  DiskStats out = impl_->stats;
  out.entries = impl_->index.items().size();
  return out;
}

}  // namespace triax
