// A Snapshot in a file: complete and checked, or refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "triax/engine/prefix_cache.h"

namespace triax {

// What a file belongs to: the weights (a name that the caller chose), the number mode and the
// shape of the state. Two engines with equal identities can use each other's files.
class SnapshotIdentity {
 public:
  SnapshotIdentity(const K3Config& config, Precision precision, const std::string& model);
  const std::string& text() const { return text_; }  // one line
  std::string name() const;                          // 32 hexadecimal digits, for a folder

 private:
  std::string text_;
};

// A name for the file of a state: the same ids and trail have the same.
std::string snapshot_file_name(const Prefix& prefix);

// Bytes of the file of a state.
std::size_t snapshot_file_bytes(const Snapshot& snapshot, const K3Config& config,
                                const SnapshotIdentity& identity);

// Writes `path` by way of a temporary file in the same folder, synced before it takes its name:
// after a crash at any moment the file is there whole, or not at all. Returns its bytes. Throws
// Error (disk full, no right), and leaves nothing behind then. `stop_after` is for tests: the write
// fails after so many bytes and leaves the temporary file as a crash would.
std::size_t write_snapshot(const std::filesystem::path& path, const Snapshot& snapshot,
                           const K3Config& config, const SnapshotIdentity& identity,
                           std::size_t stop_after = kNone);
inline constexpr const char* kPartSuffix = ".part";
inline constexpr const char* kSnapshotSuffix = ".state";

// The head of a file: ids and trail. Throws Error when it is damaged, cut short, of another version
// or of another identity.
Prefix read_snapshot_head(const std::filesystem::path& path, const SnapshotIdentity& identity);

// The whole state; every block is checked. Throws Error as above.
std::shared_ptr<const Snapshot> read_snapshot(const std::filesystem::path& path,
                                              const K3Config& config, Precision precision,
                                              const SnapshotIdentity& identity);

}  // namespace triax
