#include "triax/engine/snapshot_file.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "support/compare.h"
#include "support/model_folder.h"
#include "triax/engine/disk_cache.h"
#include "triax/engine/engine_testing.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::random_ids;
using test::Runner;
using test::same_bits;
using test::TempFolder;
using test::tiny;
using Ids = std::vector<std::int32_t>;

std::shared_ptr<const Snapshot> state_of(const Ids& ids, Precision precision = Precision::f32,
                                         std::size_t threads = 1) {
  Runner runner(precision, threads);
  SequenceState state(tiny().config, precision);
  const auto logits = runner.run(tiny(), state, ids, {ids.size() - 3, 1, 1, 1});
  Trail trail;
  trail.piece(ids.size() - 3);
  trail.rows(ids.size());
  const auto last = std::span<const float>(logits).last(tiny().config.vocab_size);
  return std::make_shared<const Snapshot>(std::move(state), trail, ids.size() - 3,
                                          std::vector<float>(last.begin(), last.end()));
}

class SnapshotFile : public testing::TestWithParam<Precision> {
 protected:
  const SnapshotIdentity identity{tiny().config, GetParam(), "weights-1"};
  TempFolder folder;
};

TEST_P(SnapshotFile, ComesBackBitForBit) {
  const Ids ids = random_ids(1, 150, 320), rest = random_ids(2, 9, 320);
  const auto s = state_of(ids, GetParam());
  const fs::path path = folder / snapshot_file_name(*s);
  const std::size_t written = write_snapshot(path, *s, tiny().config, identity);
  EXPECT_EQ(written, fs::file_size(path));
  EXPECT_EQ(snapshot_file_bytes(*s, tiny().config, identity), fs::file_size(path));
  const Prefix head = read_snapshot_head(path, identity);
  EXPECT_EQ(head.ids, ids);
  EXPECT_EQ(head.trail, s->trail);
  EXPECT_EQ(head.free_from, 147u);
  EXPECT_TRUE(head.has_logits);
  const auto back = read_snapshot(path, tiny().config, GetParam(), identity);
  EXPECT_TRUE(same_bits(back->logits, s->logits));
  Runner runner(GetParam());
  SequenceState a = s->state.fork(), b = back->state.fork();
  EXPECT_TRUE(same_bits(runner.run(tiny(), a, rest, {8, 1}), runner.run(tiny(), b, rest, {8, 1})));
}

TEST_P(SnapshotFile, AnyDamageIsRefused) {
  const auto s = state_of(random_ids(1, 70, 320), GetParam());
  const fs::path path = folder / "a.state";
  write_snapshot(path, *s, tiny().config, identity);
  const std::string whole = test::read_text(path);
  Rng rng(7);
  for (int i = 0; i < 60; ++i) {
    std::string bytes = whole;
    const std::size_t at = i < 10 ? static_cast<std::size_t>(i) * 3 : rng.next() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1 + rng.next() % 255));
    test::write_text(path, bytes);
    EXPECT_THROW(read_snapshot(path, tiny().config, GetParam(), identity), Error) << "byte " << at;
  }
  for (const std::size_t n : {std::size_t{0}, std::size_t{7}, std::size_t{16}, std::size_t{100},
                              whole.size() / 2, whole.size() - 1}) {
    test::write_text(path, whole.substr(0, n));
    EXPECT_THROW(read_snapshot(path, tiny().config, GetParam(), identity), Error) << n << " bytes";
    EXPECT_THROW(read_snapshot_head(path, identity), Error) << n << " bytes";
  }
  test::write_text(path, whole + "x");
  EXPECT_THROW(read_snapshot_head(path, identity), Error);
}

TEST_P(SnapshotFile, OfAnotherModelOrSettingIsRefused) {
  const auto s = state_of(random_ids(1, 70, 320), GetParam());
  const fs::path path = folder / "a.state";
  write_snapshot(path, *s, tiny().config, identity);
  const Precision other = GetParam() == Precision::f32 ? Precision::bf16 : Precision::f32;
  for (const SnapshotIdentity& wrong :
       {SnapshotIdentity(tiny().config, GetParam(), "weights-2"),
        SnapshotIdentity(tiny().config, other, "weights-1"),
        SnapshotIdentity(tiny("b").config, GetParam(), "weights-1")}) {
    EXPECT_NE(wrong.name(), identity.name());
    EXPECT_NE(error_of([&] { read_snapshot_head(path, wrong); }).find("another model"),
              std::string::npos);
  }
}

TEST_P(SnapshotFile, AWriteThatStopsLeavesNoFileOfThatName) {
  const auto s = state_of(random_ids(1, 70, 320), GetParam());
  const std::size_t whole = snapshot_file_bytes(*s, tiny().config, identity);
  for (const std::size_t n : {std::size_t{0}, std::size_t{8}, std::size_t{500}, whole - 1}) {
    const fs::path path = folder / "b.state";
    EXPECT_THROW(write_snapshot(path, *s, tiny().config, identity, n), Error);
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(fs::file_size(path.string() + kPartSuffix), n);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, SnapshotFile, testing::Values(Precision::f32, Precision::bf16),
                         [](const auto& p) {
                           return std::string(p.param == Precision::f32 ? "f32" : "bf16");
                         });

class DiskCacheTest : public testing::Test {
 protected:
  std::unique_ptr<DiskCache> open(std::size_t bytes = std::size_t{1} << 30) {
    return std::make_unique<DiskCache>(folder.path(), bytes, tiny().config, Precision::f32,
                                       "weights-1", [] {});
  }
  std::shared_ptr<const DiskCache::Entry> find(DiskCache& disk, const Ids& prompt) {
    return disk.find(prompt, CutPlan(prompt.size(), {}, 64), CacheUse::any, 0);
  }
  std::shared_ptr<const Snapshot> load(DiskCache& disk, const Ids& prompt) {
    auto entry = find(disk, prompt);
    if (entry == nullptr) return nullptr;
    disk.load(entry, 1);
    disk.flush();
    return disk.take_loaded().at(0).snapshot;
  }
  std::vector<fs::path> files() {
    std::vector<fs::path> out;
    for (const auto& f : fs::recursive_directory_iterator(folder.path())) {
      if (f.path().extension() == kSnapshotSuffix) out.push_back(f.path());
    }
    return out;
  }
  TempFolder folder;
  const Ids ids = random_ids(1, 200, 320);
  Ids part(std::size_t n) const {
    return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)};
  }
};

TEST_F(DiskCacheTest, SurvivesARestart) {
  {
    auto disk = open();
    disk->save(state_of(part(100)), false);
  }
  auto disk = open();
  EXPECT_EQ(disk->stats().entries, 1u);
  const auto got = load(*disk, ids);
  ASSERT_NE(got, nullptr);
  EXPECT_EQ(got->ids, part(100));
  EXPECT_EQ(disk->stats().reads, 1u);
  EXPECT_EQ(disk->stats().bytes_read, fs::file_size(files().at(0)));
}

TEST_F(DiskCacheTest, ALongerTurnTakesThePlaceOfItsBeginning) {
  auto disk = open();
  disk->save(state_of(part(60)), true);
  disk->flush();
  disk->save(state_of(part(100)), false);
  disk->flush();
  disk->save(state_of(part(150)), false);
  disk->flush();
  EXPECT_EQ(disk->stats().entries, 2u);
  EXPECT_EQ(files().size(), 2u);
  EXPECT_EQ(find(*disk, part(149))->tokens(), 60u);
  EXPECT_EQ(find(*disk, ids)->tokens(), 150u);
}

TEST_F(DiskCacheTest, StaysUnderItsCap) {
  const auto s = state_of(part(100));
  const std::size_t each = snapshot_file_bytes(
      *s, tiny().config, SnapshotIdentity(tiny().config, Precision::f32, "weights-1"));
  auto disk = open(3 * each + each / 2);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    disk->save(state_of(random_ids(seed, 100, 320)), false);
    disk->flush();
    EXPECT_LE(disk->stats().bytes, 3 * each + each / 2);
  }
  EXPECT_EQ(files().size(), 3u);
  EXPECT_EQ(find(*disk, random_ids(1, 120, 320)), nullptr);
  EXPECT_NE(find(*disk, random_ids(6, 120, 320)), nullptr);
  disk.reset();
  EXPECT_EQ(open(each)->stats().entries, 1u);  // a smaller cap holds at once
}

TEST_F(DiskCacheTest, ADamagedFileIsNotUsedAndGoes) {
  {
    auto disk = open();
    disk->save(state_of(part(100)), false);
  }
  const fs::path path = files().at(0);
  std::string bytes = test::read_text(path);
  bytes[bytes.size() / 2] ^= 1;
  test::write_text(path, bytes);
  auto disk = open();
  EXPECT_EQ(load(*disk, ids), nullptr);
  EXPECT_EQ(disk->stats().faults, 1u);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(find(*disk, ids), nullptr);
}

TEST_F(DiskCacheTest, AnotherModelsFileInItsFolderIsNotUsed) {
  {
    auto disk = open();
    disk->save(state_of(part(100)), false);
  }
  const fs::path path = files().at(0);
  const std::string bytes = test::read_text(path);
  const auto other = [&] {
    return DiskCache(folder.path(), 1 << 30, tiny().config, Precision::f32, "weights-2", [] {});
  };
  EXPECT_EQ(other().stats().entries, 0u);
  const fs::path theirs = folder.path() /
                          SnapshotIdentity(tiny().config, Precision::f32, "weights-2").name() /
                          path.filename();
  test::write_text(theirs, bytes);
  EXPECT_EQ(other().stats().entries, 0u);
}

TEST_F(DiskCacheTest, OneProcessAtATime) {
  auto disk = open();
  EXPECT_NE(error_of([&] { open(); }).find("another process"), std::string::npos);
}

TEST_F(DiskCacheTest, AFolderThatCannotBeWrittenIsCountedAndRests) {
  auto disk = open();
  const fs::path inner = *fs::directory_iterator(folder.path());
  fs::remove_all(inner);
  disk->save(state_of(part(100)), false);
  disk->flush();
  EXPECT_EQ(disk->stats().faults, 1u);
  fs::create_directories(inner);
  disk->save(state_of(part(90)), false);
  disk->flush();
  EXPECT_EQ(disk->stats().entries, 0u);  // it rests
}

// Killed while it writes one state after the other: what is there afterwards is whole.
TEST_F(DiskCacheTest, KilledInTheMiddleOfWriting) {
  const SnapshotIdentity identity(tiny().config, Precision::f32, "weights-1");
  std::vector<std::shared_ptr<const Snapshot>> states;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    states.push_back(state_of(random_ids(seed, 120, 320), Precision::f32, 1));
  }
  open();  // makes the folder
  const fs::path inner = folder.path() / identity.name();
  std::size_t whole = 0;
  for (int round = 0; round < 8; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (;;) {
        for (const auto& s : states) {
          write_snapshot(inner / snapshot_file_name(*s), *s, tiny().config, identity);
        }
      }
    }
    ::usleep(static_cast<useconds_t>(1000 + 2700 * round));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    auto disk = open();
    EXPECT_EQ(disk->stats().faults, 0u);
    for (const auto& s : states) {
      const auto got = load(*disk, s->ids);
      if (got == nullptr) continue;
      ++whole;
      EXPECT_TRUE(same_bits(got->logits, s->logits));
    }
    EXPECT_EQ(disk->stats().faults, 0u);
    for (const auto& f : fs::directory_iterator(inner))
      EXPECT_NE(f.path().extension(), kPartSuffix);
  }
  EXPECT_GT(whole, 0u);
}

}  // namespace
}  // namespace triax
