// Synthetic checkpoints: the bytes of an independent implementation, plans, and refusals.
#include "triax/weights/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/model_folder.h"
#include "triax/core/checked.h"
#include "triax/core/hash.h"
#include "triax/weights/weights.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::read_text;
using test::TempFolder;
using testing::HasSubstr;

const nlohmann::json& hashes() {
  static const auto json =
      nlohmann::json::parse(read_text(std::string(TRIAX_GOLDEN_DIR) + "/synth/hashes.json"));
  return json;
}

std::string hash_of(const fs::path& file) {
  const MappedFile mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  return hex(sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
}

std::string case_file(const std::string& name) {
  return std::string(TRIAX_SOURCE_DIR) + "/tests/cases/" + name + ".json";
}

void expect_files(const std::string& shape, std::size_t threads) {
  TempFolder folder;
  synthesize({.config = shape, .threads = threads}, folder.path());
  const auto& files = hashes()[shape]["files"];
  ASSERT_GE(files.size(), 3u);
  for (const auto& [name, hash] : files.items()) {
    EXPECT_EQ(hash_of(folder / name), hash.get<std::string>()) << name;
  }
}

TEST(Synth, FilesOfTiny) {
  expect_files("tiny", 1);
}
TEST(Synth, FilesOfTinyMadeByThreeThreads) {
  expect_files("tiny", 3);
}
TEST(Synth, FilesOfSmall) {
  expect_files("small", 2);
}

TEST(Synth, SampleOfBench) {
  const SynthOptions options{.config = "bench"};
  const SynthPlan plan = plan_synthesis(options);
  EXPECT_EQ(plan.config_text, *builtin_config("bench"));
  ASSERT_EQ(plan.shards.size(), 7u);
  const auto& samples = hashes()["bench"]["tensors"];
  std::size_t compared = 0;
  for (std::size_t s = 0; s < plan.shards.size(); ++s) {
    for (std::size_t t = 0; t < plan.shards[s].tensors.size(); ++t) {
      const TensorToWrite& tensor = plan.shards[s].tensors[t];
      if (!samples.contains(tensor.name)) continue;
      std::string bytes(tensor.bytes(), '\0');
      const auto recipe = recipe_of(plan.config, plan.ids[s][t], tensor, options.seed);
      synth::fill(recipe, 0, checked_product(tensor.shape),
                  std::as_writable_bytes(std::span(bytes)));
      EXPECT_EQ(hex(sha256(bytes)), samples[tensor.name].get<std::string>()) << tensor.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, samples.size());
}

// Any run of elements can be made alone.
TEST(Synth, PiecesEqualTheWhole) {
  for (const auto& [role, dtype] :
       {std::pair{TensorRole::matrix, DType::BF16}, std::pair{TensorRole::a_log, DType::F32},
        std::pair{TensorRole::expert_packed, DType::U8},
        std::pair{TensorRole::expert_scale, DType::U8}}) {
    const synth::Recipe recipe{role, dtype, synth::stream_key(7, "x"), 64, 900};
    const std::size_t size = dtype_size(dtype), n = 1024;
    std::vector<std::byte> whole(n * size), pieces(n * size);
    synth::fill(recipe, 0, n, whole);
    for (std::size_t at = 0; at < n; at += 148) {
      const std::size_t end = std::min(n, at + 148);
      synth::fill(recipe, at, end, std::span(pieces).subspan(at * size, (end - at) * size));
    }
    EXPECT_EQ(whole, pieces);
  }
}

TEST(Synth, SeedChangesEveryTensorOfACase) {
  TempFolder a, b;
  synthesize({.config = case_file("case-A"), .seed = 1, .threads = 1}, a.path());
  synthesize({.config = case_file("case-A"), .seed = 2, .threads = 1}, b.path());
  const auto one = Checkpoint::open(a.path()), two = Checkpoint::open(b.path());
  for (const TensorEntry& e : one->tensors()) {
    EXPECT_FALSE(std::ranges::equal(one->data(e), two->data(*two->find(e.name)))) << e.name;
  }
}

TEST(Synth, AsManyShardsAsAsked) {
  for (const char* name : {"case-A", "case-M1", "case-D"}) {
    for (const std::size_t shards : {1u, 2u, 4u, 7u, 20u}) {
      const SynthPlan plan = plan_synthesis({.config = case_file(name), .shards = shards});
      EXPECT_EQ(plan.shards.size(), shards) << name;
      for (const ShardPlan& shard : plan.shards) EXPECT_FALSE(shard.tensors.empty());
    }
  }
  EXPECT_THAT(error_of([] { plan_synthesis({.config = case_file("case-M1"), .shards = 99}); }),
              HasSubstr("99 shards cannot be made of 22 tensors"));
}

TEST(Synth, ShardsStayBelowTheirSizeAndKeepAnExpertsPairs) {
  const SynthPlan plan = plan_synthesis({.config = case_file("case-W"), .shard_mib = 1});
  EXPECT_GT(plan.shards.size(), 100u);
  for (const ShardPlan& shard : plan.shards) {
    EXPECT_THAT(shard.tensors.front().name, testing::Not(testing::EndsWith("weight_scale")));
  }
}

TEST(Synth, ReportsProgress) {
  TempFolder folder;
  std::uint64_t last = 0, all = 0;
  synthesize({.config = case_file("case-A"), .threads = 2}, folder.path(),
             [&](std::uint64_t done, std::uint64_t total) {
               EXPECT_GT(done, last);
               last = done;
               all = total;
             });
  EXPECT_EQ(last, all);
  EXPECT_EQ(all, Checkpoint::open(folder.path())->total_bytes());
}

TEST(Synth, ReplacesAnEarlierFolder) {
  TempFolder folder;
  synthesize({.config = case_file("case-D"), .shards = 3, .threads = 1}, folder.path());
  synthesize({.config = case_file("case-M1"), .threads = 1}, folder.path());
  const K3Config config = K3Config::load(folder.path());
  EXPECT_EQ(K3Weights::load(config, Checkpoint::open(folder.path())).layers.size(), 1u);
}

TEST(Synth, Refuses) {
  EXPECT_THAT(error_of([] { plan_synthesis({.config = "huge"}); }),
              HasSubstr("huge: no such configuration; give k3, tiny, small, bench or the path"));
  EXPECT_THAT(error_of([] { plan_synthesis({.config = "tiny", .shard_mib = 0}); }),
              HasSubstr("0 MiB"));
  TempFolder folder;
  auto json = nlohmann::json::parse(read_text(case_file("case-A")));
  json["text_config"]["moe_intermediate_size"] = 48;
  test::write_text(folder / "config.json", json.dump());
  EXPECT_THAT(error_of([&] { plan_synthesis({.config = (folder / "config.json").string()}); }),
              HasSubstr("moe_intermediate_size"));
}

TEST(Synth, RefusesWhatTheDiskCannotHold) {
  TempFolder folder;
  if (fs::space(folder.path()).available >= 1560860324864u)
    GTEST_SKIP() << "this disk could hold the whole release: nothing to refuse";
  EXPECT_THAT(error_of([&] { synthesize({.config = "k3"}, folder.path()); }),
              HasSubstr("1560860324864 bytes are needed"));
  EXPECT_FALSE(fs::exists(folder / "model-00001-of-00096.safetensors"));
}

// The release's shards as headers with holes: what planning and placement are tested on.
TEST(Synth, SparseReleaseHasTheReleasedLayout) {
  TempFolder folder;
  synthesize({.config = "k3", .sparse = true}, folder.path());
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint->tensors().size(), 497220u);
  EXPECT_EQ(checkpoint->total_bytes(), 1560860324864u);
  ASSERT_EQ(checkpoint->shards().size(), 96u);
  const K3Config config = K3Config::load(folder.path());
  std::array<std::size_t, 96> count{};
  std::vector<std::string> experts;  // of layer 7, in order of place
  for (const TensorEntry& e : checkpoint->tensors()) {
    const auto id = identify(config, checkpoint->root(), e.name);
    ASSERT_TRUE(id) << e.name;
    ++count[e.shard];
    if (id->row->scope == Scope::layer || id->row->scope == Scope::expert) {
      EXPECT_EQ(e.shard, id->layer) << e.name;
    }
    if (id->row->scope == Scope::expert && id->layer == 7) experts.emplace_back(e.name);
  }
  EXPECT_EQ(count[93], 5u);
  EXPECT_EQ(count[94], 3u);
  EXPECT_EQ(count[95], 165u);
  const TensorEntry* head = checkpoint->find("language_model.lm_head.weight");
  const TensorEntry* projector = checkpoint->find("mm_projector.proj.0.weight");
  ASSERT_TRUE(head != nullptr && projector != nullptr);
  EXPECT_EQ(head->shard, 93u);
  EXPECT_EQ(projector->shard, 94u);
  // The six tensors of an expert lie together; experts are not in the order of their ids.
  ASSERT_EQ(experts.size(), 896u * 6);
  const char* parts[] = {"w1.weight_packed", "w1.weight_scale",  "w2.weight_packed",
                         "w2.weight_scale",  "w3.weight_packed", "w3.weight_scale"};
  for (std::size_t i = 0; i < experts.size(); ++i) {
    const std::string stem = experts[i - i % 6].substr(0, experts[i - i % 6].find("w1."));
    EXPECT_EQ(experts[i], stem + parts[i % 6]);
  }
  EXPECT_THAT(experts[6], HasSubstr("experts.1."));
  EXPECT_THAT(experts[12], HasSubstr("experts.10."));
}

}  // namespace
}  // namespace triax
