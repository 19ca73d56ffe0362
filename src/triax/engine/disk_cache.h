// States on disk: a folder of files under a cap, with a thread that reads and writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "triax/engine/snapshot_file.h"

namespace triax {

struct DiskStats {
  std::size_t bytes = 0, entries = 0;
  std::uint64_t writes = 0, reads = 0, faults = 0;
  std::uint64_t bytes_written = 0, bytes_read = 0;
  double write_seconds = 0, read_seconds = 0;
};

// All calls return at once; files are touched by the thread. A file that is damaged or cannot be
// read is removed and counted as a fault; a write that fails is counted, and writing then rests for
// a minute.
class DiskCache {
 public:
  struct Entry : Prefix {
    std::filesystem::path path;
    std::size_t bytes = 0;
    mutable std::uint64_t used = 0;  // greater: later; guarded by the cache
  };
  struct Loaded {
    std::uint64_t tag = 0;
    std::shared_ptr<const Snapshot> snapshot;  // null when the file was no good
  };

  // Uses a subfolder of `folder` named by the identity; reads the heads of the files there, removes
  // what a crash left behind. `wake` is called, by the thread, when take_loaded() has something
  // new; `warn`, by any thread, with one line for the first fault of a kind. Throws Error when the
  // folder cannot be made or another process uses it.
  using Warn = std::function<void(const std::string&)>;
  DiskCache(const std::filesystem::path& folder, std::size_t max_bytes, const K3Config& config,
            Precision precision, const std::string& model, std::function<void()> wake,
            Warn warn = {});
  ~DiskCache();  // finishes the writes that wait
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // The longest usable state of more than `longer_than` tokens.
  std::shared_ptr<const Entry> find(std::span<const std::int32_t> prompt, const CutPlan& plan,
                                    CacheUse use, std::size_t longer_than) const;
  void load(std::shared_ptr<const Entry> entry, std::uint64_t tag);
  // Saves a state; of those that wait, ones that this one goes on from are given up, and files that
  // it goes on from are removed when it is complete. A `shared` one stays beside longer ones.
  void save(std::shared_ptr<const Snapshot> snapshot, bool shared);
  // States that were loaded, and those that were saved and need not be kept for it any longer: both
  // are let go by the caller's thread, which is the one that writes to pages.
  std::vector<Loaded> take_loaded();
  void release_saved();
  // Returns when all that was asked for so far is done.
  void flush();
  DiskStats stats() const;
  const std::filesystem::path& folder() const;  // the subfolder

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace triax
