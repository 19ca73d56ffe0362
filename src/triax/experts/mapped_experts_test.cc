// Expert stores: the stored bytes from every store, checks at open and at first use.
#include "triax/experts/mapped_experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "support/model_folder.h"
#include "triax/weights/synth.h"
#include "triax/weights/tensor_table.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::copy_edited;
using test::EditableTensor;
using test::error_of;
using test::TempFolder;
using testing::AllOf;
using testing::HasSubstr;
using Tensors = std::vector<EditableTensor>;

fs::path golden(const std::string& name) {
  return fs::path(TRIAX_GOLDEN_DIR) / "text" / name;
}

bool same(const Mxfp4View& m, const Checkpoint& checkpoint, const std::string& name) {
  const auto packed = checkpoint.data(*checkpoint.find(name + ".weight_packed"));
  const auto scale = checkpoint.data(*checkpoint.find(name + ".weight_scale"));
  return packed.size() == m.rows * m.cols / 2 && scale.size() == m.rows * m.cols / 32 &&
         std::memcmp(packed.data(), m.packed, packed.size()) == 0 &&
         std::memcmp(scale.data(), m.scale, scale.size()) == 0;
}

// Every expert of every layer, asked for all at once and one by one.
void expect_stored_bytes(ExpertStore& store, const K3Config& c, const Checkpoint& checkpoint) {
  std::vector<std::int32_t> ids(c.num_experts);
  std::iota(ids.begin(), ids.end(), 0);
  for (std::size_t l = 0; l < c.num_hidden_layers; ++l) {
    if (c.ffn(l) != Ffn::moe) continue;
    std::vector<ExpertView> all(ids.size());
    const ExpertLease lease = store.acquire(l, ids, all);
    for (std::size_t e = 0; e < ids.size(); ++e) {
      const std::string name =
          fmt::format("{}model.layers.{}.block_sparse_moe.experts.{}.", checkpoint.root(), l, e);
      EXPECT_TRUE(same(all[e].w1, checkpoint, name + "w1")) << name;
      EXPECT_TRUE(same(all[e].w2, checkpoint, name + "w2")) << name;
      EXPECT_TRUE(same(all[e].w3, checkpoint, name + "w3")) << name;
      EXPECT_EQ(all[e].w1.rows, c.moe_intermediate_size);
      EXPECT_EQ(all[e].w2.rows, c.routed_expert_hidden_size);
      ExpertView one;
      const ExpertLease single = store.acquire(l, std::span(&ids[e], 1), std::span(&one, 1));
      EXPECT_EQ(one.w3.packed, all[e].w3.packed);
    }
  }
}

TEST(Experts, MappedAndResidentHoldTheStoredBytes) {
  for (const char* name : {"tiny-a", "tiny-b", "tiny-c"}) {
    SCOPED_TRACE(name);
    const K3Config c = K3Config::load(golden(name));
    const auto checkpoint = Checkpoint::open(golden(name));
    MappedExperts mapped(c, checkpoint);
    expect_stored_bytes(mapped, c, *checkpoint);
    EXPECT_EQ(mapped.resident_bytes(), 0u);
    std::size_t last = 0;
    ResidentExperts resident(c, checkpoint, [&](std::size_t done, std::size_t) { last = done; });
    expect_stored_bytes(resident, c, *checkpoint);
    EXPECT_EQ(resident.resident_bytes(), last);
    EXPECT_EQ(resident.resident_bytes(), c.moe_layers() * c.num_experts * 3 *
                                             c.moe_intermediate_size * c.routed_expert_hidden_size *
                                             17 / 32);
  }
}

TEST(Experts, ScalesTypedE8M0) {
  TempFolder folder;
  copy_edited(golden("tiny-c"), folder.path(), [](Tensors& tensors) {
    for (EditableTensor& t : tensors) {
      if (t.info.name.ends_with("weight_scale")) t.info.dtype = DType::F8_E8M0;
    }
  });
  const K3Config c = K3Config::load(folder.path());
  MappedExperts mapped(c, Checkpoint::open(folder.path()));
  expect_stored_bytes(mapped, c, *Checkpoint::open(golden("tiny-c")));
}

TEST(Experts, NoneWithoutRoutedExperts) {
  TempFolder folder;
  synthesize({.config = std::string(TRIAX_SOURCE_DIR) + "/tests/cases/case-D.json", .threads = 1},
             folder.path());
  const K3Config c = K3Config::load(folder.path());
  EXPECT_EQ(open_mapped_experts(c, Checkpoint::open(folder.path())), nullptr);
}

// The store's own checks: it may be opened without K3Weights.
std::string error_after(const std::function<void(Tensors&)>& edit) {
  TempFolder folder;
  copy_edited(golden("tiny-c"), folder.path(), edit);
  const K3Config c = K3Config::load(folder.path());
  const auto checkpoint = Checkpoint::open(folder.path());
  const std::string mapped = error_of([&] { MappedExperts(c, checkpoint); });
  EXPECT_EQ(error_of([&] { ResidentExperts(c, checkpoint); }), mapped);
  return mapped;
}

EditableTensor& find(Tensors& tensors, const std::string& ending) {
  for (EditableTensor& t : tensors) {
    if (t.info.name.ends_with(ending)) return t;
  }
  fail("{}: not there", ending);
}

TEST(Experts, RefusesWhatIsNotThere) {
  EXPECT_THAT(
      error_after([](Tensors& t) {
        std::erase_if(t, [](const EditableTensor& x) {
          return x.info.name.ends_with("layers.2.block_sparse_moe.experts.4.w3.weight_scale");
        });
      }),
      HasSubstr("model.layers.2.block_sparse_moe.experts.4.w3.weight_scale"));
}

TEST(Experts, RefusesShapes) {
  EXPECT_THAT(error_after([](Tensors& t) {
                find(t, "layers.1.block_sparse_moe.experts.0.w2.weight_packed").info.shape = {48,
                                                                                              32};
              }),
              AllOf(HasSubstr("layers.1.block_sparse_moe.experts.0.w2.weight_packed"),
                    HasSubstr("[48, 32]"), HasSubstr("[32, 48]")));
}

TEST(Experts, NanScaleNamesTensorAndRow) {
  EXPECT_THAT(error_after([](Tensors& t) {
                // w2 of tiny-c: 32 rows of three groups; the last group of row 17
                find(t, "layers.3.block_sparse_moe.experts.10.w2.weight_scale").data[17 * 3 + 2] =
                    std::byte{255};
              }),
              AllOf(HasSubstr("layers.3.block_sparse_moe.experts.10.w2.weight_scale"),
                    HasSubstr("row 17"), HasSubstr("255")));
}

// 85 GB of scales are not read at open; a bad one is found when its expert is first used.
TEST(Experts, LargeModelsAreCheckedAtFirstUse) {
  TempFolder folder;
  synthesize({.config = "k3", .sparse = true}, folder.path());
  const std::string bad =
      "language_model.model.layers.6.block_sparse_moe.experts.77.w3.weight_scale";
  {
    const auto checkpoint = Checkpoint::open(folder.path());
    const TensorEntry* e = checkpoint->find(bad);
    ASSERT_NE(e, nullptr);
    std::fstream shard(checkpoint->shards()[e->shard].path,
                       std::ios::in | std::ios::out | std::ios::binary);
    shard.seekp(static_cast<std::streamoff>(e->offset + 3000 * 112 + 111));
    shard.put('\xff');
  }
  const K3Config c = K3Config::load(folder.path());
  MappedExperts store(c, Checkpoint::open(folder.path()));
  const std::int32_t good[] = {76, 78}, both[] = {76, 77};
  ExpertView views[2];
  {
    const ExpertLease lease = store.acquire(6, good, views);
  }
  EXPECT_EQ(views[1].w1.cols, 3584u);
  for (int again = 0; again < 2; ++again) {
    EXPECT_THAT(error_of([&] { store.acquire(6, both, views); }),
                AllOf(HasSubstr(bad), HasSubstr("row 3000")));
  }
  {
    const ExpertLease lease = store.acquire(6, good, views);
  }
}

}  // namespace
}  // namespace triax
