// Placing the trunk: same values elsewhere, 8-bit where the table allows it, nothing else changed.
#include "triax/weights/trunk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <map>
#include <string>

#include "support/model_folder.h"
#include "triax/checkpoint/checkpoint.h"
#include "triax/weights/quantize.h"
#include "triax/weights/synth.h"

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

const fs::path& tiny() {
  static const TempFolder folder;
  static const bool made = [] {
    synthesize({.config = "tiny", .threads = 1}, folder.path());
    return true;
  }();
  (void)made;
  return folder.path();
}

struct Loaded {
  explicit Loaded(const fs::path& folder)
      : config(K3Config::load(folder)),
        weights(K3Weights::load(config, Checkpoint::open(folder))) {}
  K3Config config;
  K3Weights weights;
};

// Every matrix of the text model by its name.
std::map<std::string, std::pair<const TensorRow*, MatrixView>> matrices(const Loaded& m) {
  std::map<std::string, std::pair<const TensorRow*, MatrixView>> out;
  K3Weights copy = m.weights;
  for_each_tensor(m.config, {true, false}, [&](const TensorId& id) {
    if (id.row->slot.matrix == nullptr) return;
    out[tensor_name(id, "")] = {id.row, id.row->slot.matrix(copy, id.layer)};
  });
  return out;
}

std::string bytes_of(const MatrixView& m) {
  std::string out(static_cast<const char*>(m.data), m.rows * m.cols * dtype_size(m.dtype));
  if (m.scale != nullptr) {
    out.append(reinterpret_cast<const char*>(m.scale), m.rows * (m.cols / kQuantGroup) * 2);
  }
  return out;
}

bool inside(const void* at, std::size_t bytes, const HugeBuffer& region) {
  const auto* p = static_cast<const std::byte*>(at);
  return p >= region.data() && p + bytes <= region.data() + region.size();
}

// What quantize_rows makes of a stored matrix.
std::string quantized_bytes(const MatrixView& m) {
  std::string codes(m.rows * m.cols, '\0'), scales(m.rows * (m.cols / kQuantGroup) * 2, '\0');
  auto* c = reinterpret_cast<std::int8_t*>(codes.data());
  auto* s = reinterpret_cast<bf16*>(scales.data());
  const bool finite = m.dtype == DType::F32 ? quantize_rows(m.as_f32(), m.rows, m.cols, c, s)
                                            : quantize_rows(m.as_bf16(), m.rows, m.cols, c, s);
  EXPECT_TRUE(finite);
  return codes + scales;
}

TEST(Trunk, TheTableSaysWhichComponentsMayBe8Bit) {
  std::string names;
  const Components packable = packable_components();
  for (std::size_t i = 0; i < kComponents; ++i) {
    if (packable.test(i)) names += std::string(component_name(static_cast<Component>(i))) + " ";
  }
  EXPECT_EQ(names, "lm_head kda mla dense_mlp latent shared_experts ");
}

TEST(Trunk, ResidentMatricesHoldTheSameBytesInsideTheRegion) {
  Loaded m(tiny());
  const auto before = matrices(m);
  ThreadPool pool(2);
  std::uint64_t last = 0, all = 0;
  const TrunkPlaced placed =
      place_trunk(m.config, {}, pool, m.weights, [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_GT(done, last);
        last = done;
        all = total;
      });
  EXPECT_EQ(last, all);
  ASSERT_EQ(m.weights.regions.size(), 1u);
  EXPECT_EQ(m.weights.regions[0]->size(), placed.bytes);
  for (const auto& [name, now] : matrices(m)) {
    const MatrixView& old = before.at(name).second;
    EXPECT_EQ(now.second.dtype, old.dtype) << name;
    EXPECT_EQ(bytes_of(now.second), bytes_of(old)) << name;
    const bool moved = now.first->role != TensorRole::embedding;
    EXPECT_EQ(inside(now.second.data, now.second.bytes(), *m.weights.regions[0]), moved) << name;
    if (moved) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(now.second.data) % 64, 0u) << name;
    }
  }
  for (const std::size_t saved : placed.saved_bytes) EXPECT_EQ(saved, 0u);
}

TEST(Trunk, Int8FollowsTheTableAndTheQuantiser) {
  const Loaded stored(tiny());
  const auto before = matrices(stored);
  std::map<std::string, std::string> first;
  for (const std::size_t threads : {1u, 3u}) {
    Loaded m(tiny());
    ThreadPool pool(threads);
    const TrunkPlaced placed =
        place_trunk(m.config, {.format = TrunkFormat::int8}, pool, m.weights);
    std::size_t saved = 0, planned = 0;
    for (const auto& [name, now] : matrices(m)) {
      const MatrixView& old = before.at(name).second;
      if (packs_int8(*now.first, m.config)) {
        ASSERT_EQ(now.second.dtype, DType::I8) << name;
        EXPECT_EQ(bytes_of(now.second), quantized_bytes(old)) << name;
        saved += old.bytes() - now.second.bytes();
      } else {
        EXPECT_EQ(now.second.dtype, old.dtype) << name;
        EXPECT_EQ(bytes_of(now.second), bytes_of(old)) << name;
      }
      const auto [at, fresh] = first.try_emplace(name, bytes_of(now.second));
      EXPECT_TRUE(fresh || at->second == bytes_of(now.second)) << name;
    }
    for (const std::size_t s : placed.saved_bytes) planned += s;
    EXPECT_EQ(planned, saved);
    EXPECT_GT(saved, 0u);
  }
}

TEST(Trunk, OneComponentAloneLeavesTheOthersWhereTheyWere) {
  Loaded m(tiny());
  const auto before = matrices(m);
  ThreadPool pool(2);
  Components latent;
  latent.set(static_cast<std::size_t>(Component::latent));
  place_trunk(m.config, {TrunkFormat::int8, false, latent}, pool, m.weights);
  std::size_t changed = 0;
  for (const auto& [name, now] : matrices(m)) {
    const bool packed = now.first->component == Component::latent;
    EXPECT_EQ(now.second.dtype == DType::I8, packed) << name;
    if (!packed) {
      EXPECT_EQ(now.second.data, before.at(name).second.data) << name;
    }
    changed += packed ? 1 : 0;
  }
  EXPECT_GT(changed, 0u);
}

TEST(Trunk, TakenComponentsAreThoseOfTheOtherWeights) {
  Loaded base(tiny()), packed(tiny());
  ThreadPool pool(2);
  place_trunk(packed.config, {.format = TrunkFormat::int8, .resident = false}, pool,
              packed.weights);
  Components chosen;
  chosen.set(static_cast<std::size_t>(Component::kda));
  Loaded mixed(tiny());
  take_components(base.config, packed.weights, chosen, mixed.weights);
  packed.weights = K3Weights();  // the region lives on in `mixed`
  for (const auto& [name, m] : matrices(mixed)) {
    const bool kda = m.first->component == Component::kda && packs_int8(*m.first, base.config);
    ASSERT_EQ(m.second.dtype == DType::I8, kda) << name;
    if (kda) {
      EXPECT_EQ(bytes_of(m.second), quantized_bytes(matrices(base).at(name).second)) << name;
    }
  }
}

TEST(Trunk, MisalignedMatricesAreNotKeptTwice) {
  const TempFolder folder;
  copy_edited(tiny(), folder.path(), [](Tensors& tensors) {
    // Of a layer past the last, so it is passed over; three bytes, so that the rest lies oddly.
    tensors.insert(tensors.begin(), {{"language_model.model.layers.99.odd", DType::U8, {3}},
                                     std::vector<std::byte>(3)});
  });
  const Loaded aligned(tiny());
  Loaded m(folder.path());
  ASSERT_FALSE(m.weights.copied.empty());
  ThreadPool pool(1);
  place_trunk(m.config, {}, pool, m.weights);
  EXPECT_LE(m.weights.copied.size(), 1u);  // the embedding's
  for (const auto& [name, now] : matrices(m)) {
    EXPECT_EQ(bytes_of(now.second), bytes_of(matrices(aligned).at(name).second)) << name;
  }
}

TEST(Trunk, WhatHasNoCodeIsNamed) {
  const TempFolder folder;
  copy_edited(tiny(), folder.path(), [](Tensors& tensors) {
    for (EditableTensor& t : tensors) {
      if (!t.info.name.ends_with("layers.1.self_attn.o_proj.weight")) continue;
      const bf16 infinity = to_bf16(std::numeric_limits<float>::infinity());
      std::memcpy(t.data.data() + t.data.size() - 2, &infinity, 2);
    }
  });
  Loaded m(folder.path());
  ThreadPool pool(2);
  EXPECT_THAT(
      error_of([&] { place_trunk(m.config, {.format = TrunkFormat::int8}, pool, m.weights); }),
      AllOf(HasSubstr("layers.1.self_attn.o_proj.weight"), HasSubstr("not finite")));
  // As stored it is placed like any other number, and the failed try has changed nothing.
  EXPECT_TRUE(m.weights.regions.empty());
  place_trunk(m.config, {}, pool, m.weights);
}

TEST(Trunk, ReplacedShardsAreNoticed) {
  const TempFolder folder;
  copy_edited(tiny(), folder.path(), [](Tensors&) {});
  Loaded m(folder.path());
  copy_edited(tiny(), folder.path(), [](Tensors&) {});
  ThreadPool pool(1);
  EXPECT_THAT(error_of([&] { place_trunk(m.config, {}, pool, m.weights); }),
              HasSubstr("was replaced"));
}

}  // namespace
}  // namespace triax
