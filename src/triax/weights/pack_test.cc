// Packed folders: what is written, what is read back, what is refused.
#include "triax/weights/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "support/model_folder.h"
#include "triax/weights/accounting.h"
#include "triax/weights/synth.h"
#include "triax/weights/trunk.h"

namespace triax {
namespace {

namespace fs = std::filesystem;
using test::copy_edited;
using test::EditableTensor;
using test::error_of;
using test::read_text;
using test::TempFolder;
using test::write_text;
using testing::AllOf;
using testing::HasSubstr;
using Json = nlohmann::json;
using Tensors = std::vector<EditableTensor>;

const fs::path& tiny() {
  static const TempFolder folder;
  static const bool made = [] {
    synthesize({.config = "tiny", .shard_mib = 4, .threads = 1}, folder.path());
    write_text(folder / "tokenizer_config.json", "{\"a\": 1}");
    return true;
  }();
  (void)made;
  return folder.path();
}

Packed pack(const fs::path& from, const fs::path& to, std::size_t threads = 2) {
  ThreadPool pool(threads);
  return pack_checkpoint(K3Config::load(from), *Checkpoint::open(from), to, pool);
}

const fs::path& packed() {
  static const TempFolder folder;
  static const Packed made = pack(tiny(), folder.path());
  (void)made;
  return folder.path();
}

K3Weights load(const fs::path& folder) {
  return K3Weights::load(K3Config::load(folder), Checkpoint::open(folder));
}

std::string bytes_of(const MatrixView& m) {
  std::string out(static_cast<const char*>(m.data), m.rows * m.cols * dtype_size(m.dtype));
  if (m.scale != nullptr) {
    out.append(reinterpret_cast<const char*>(m.scale), m.rows * (m.cols / kQuantGroup) * 2);
  }
  return out;
}

TEST(Pack, HoldsWhatInt8AtLoadMakes) {
  const K3Config config = K3Config::load(tiny());
  K3Weights made = load(tiny()), read = load(packed());
  ThreadPool pool(2);
  place_trunk(config, {.format = TrunkFormat::int8}, pool, made);
  std::size_t matrices = 0;
  for_each_tensor(config, {true, false}, [&](const TensorId& id) {
    if (id.row->slot.matrix == nullptr) return;
    const MatrixView& a = id.row->slot.matrix(made, id.layer);
    const MatrixView& b = id.row->slot.matrix(read, id.layer);
    EXPECT_EQ(a.dtype, b.dtype) << tensor_name(id, "");
    EXPECT_EQ(bytes_of(a), bytes_of(b)) << tensor_name(id, "");
    matrices += b.dtype == DType::I8 ? 1 : 0;
  });
  EXPECT_GT(matrices, 0u);
}

TEST(Pack, EverythingElseKeepsItsBytes) {
  const auto before = Checkpoint::open(tiny()), after = Checkpoint::open(packed());
  ASSERT_GT(before->shards().size(), 1u);
  EXPECT_EQ(after->shards().size(), before->shards().size());
  std::size_t same = 0, packed_matrices = 0;
  for (const TensorEntry& entry : before->tensors()) {
    const TensorEntry* now = after->find(entry.name);
    ASSERT_NE(now, nullptr) << entry.name;
    if (now->dtype == DType::I8) {
      ++packed_matrices;
      continue;
    }
    ++same;
    EXPECT_TRUE(std::ranges::equal(before->data(entry), after->data(*now))) << entry.name;
  }
  EXPECT_EQ(after->tensors().size(), same + 2 * packed_matrices);
  EXPECT_EQ(read_text(packed() / "tokenizer_config.json"), "{\"a\": 1}");
}

TEST(Pack, SameBytesForAnyNumberOfThreads) {
  const TempFolder one;
  pack(tiny(), one.path(), 1);
  const auto shards = Checkpoint::open(packed());
  for (const ShardInfo& shard : shards->shards()) {
    const std::string name = shard.path.filename().string();
    EXPECT_TRUE(read_text(one / name) == read_text(packed() / name)) << name;
  }
}

TEST(Pack, AccountingCountsCodesAsParametersAndScalesAsBytes) {
  const K3Config config = K3Config::load(packed());
  const Accounting before = account(config, *Checkpoint::open(tiny()));
  const Accounting after = account(config, *Checkpoint::open(packed()));
  EXPECT_EQ(after.text.parameters, before.text.parameters);
  EXPECT_EQ(after.text.active, before.text.active);
  EXPECT_EQ(after.routed_bytes, before.routed_bytes);
  EXPECT_EQ(before.trunk_scale_bytes, 0u);
  // two bytes a weight become one and a sixteenth
  EXPECT_EQ((before.trunk_bytes - after.trunk_bytes) * 16, 15 * 16 * after.trunk_scale_bytes);
}

TEST(Pack, ConfigGetsAGroupForTheTrunk) {
  const Json root = Json::parse(read_text(packed() / "config.json"));
  const Json& q = root["text_config"]["quantization_config"];
  EXPECT_EQ(q["format"], "mixed-precision");
  EXPECT_EQ(q["config_groups"]["group_0"]["format"], "mxfp4-pack-quantized");
  const Json& group = q["config_groups"]["group_1"];
  EXPECT_EQ(group["format"], "int-quantized");
  EXPECT_EQ(group["weights"]["num_bits"], 8);
  EXPECT_EQ(group["weights"]["type"], "int");
  EXPECT_EQ(group["weights"]["strategy"], "group");
  EXPECT_EQ(group["weights"]["group_size"], 32);
  EXPECT_EQ(group["weights"]["symmetric"], true);
  const auto has = [](const Json& list, const std::string& text) {
    return std::find(list.begin(), list.end(), Json(text)) != list.end();
  };
  EXPECT_TRUE(has(group["targets"], "re:.*lm_head$"));
  EXPECT_TRUE(has(group["targets"], R"(re:.*model\.layers\.\d+\.self_attn\.kv_a_proj_with_mqa$)"));
  EXPECT_TRUE(has(q["ignore"], R"(re:.*model\.layers\.\d+\.self_attn\.kv_b_proj$)"));
  EXPECT_TRUE(has(q["ignore"], "re:.*vision_tower.*"));
  EXPECT_FALSE(has(q["ignore"], "re:.*self_attn.*"));
}

TEST(Pack, ConfigWithoutAQuantizationSectionGetsOne) {
  const std::string text = read_text(tiny() / "config.json");
  Json root = Json::parse(text);
  root["text_config"].erase("quantization_config");
  root.erase("quantization_config");
  const K3Config config = K3Config::parse(root.dump(), "x");
  const std::string packed_text = packed_config_text(config, root.dump(), "x");
  const Json q = Json::parse(packed_text)["text_config"]["quantization_config"];
  EXPECT_EQ(q["config_groups"].size(), 2u);
  EXPECT_EQ(q["quant_method"], "compressed-tensors");
  EXPECT_NO_THROW(K3Config::parse(packed_text, "x"));
}

TEST(Pack, RefusesItsOwnFolderAndPackedOnes) {
  EXPECT_THAT(error_of([] { pack(tiny(), tiny()); }), HasSubstr("packed over the one"));
  const TempFolder out;
  EXPECT_THAT(error_of([&] { pack(packed(), out.path()); }), HasSubstr("nothing to pack"));
}

TEST(Pack, NumbersWithoutACodeLeaveNoFolderThatOpens) {
  const TempFolder bad, out;
  copy_edited(tiny(), bad.path(), [](Tensors& tensors) {
    for (EditableTensor& t : tensors) {
      if (t.info.name.ends_with("lm_head.weight")) std::memset(t.data.data(), 0xFF, 2);
    }
  });
  EXPECT_THAT(error_of([&] { pack(bad.path(), out.path()); }),
              AllOf(HasSubstr("lm_head.weight"), HasSubstr("not finite")));
  EXPECT_THROW(Checkpoint::open(out.path()), Error);
}

// ---- Damaged packed folders

EditableTensor& find(Tensors& tensors, const std::string& ending) {
  for (EditableTensor& t : tensors) {
    if (t.info.name.ends_with(ending)) return t;
  }
  throw std::runtime_error("no tensor " + ending);
}

std::string load_error(const std::function<void(Tensors&)>& edit) {
  const TempFolder folder;
  copy_edited(packed(), folder.path(), edit);
  const std::string error = error_of([&] { load(folder.path()); });
  EXPECT_EQ(error.find('\n'), std::string::npos);
  return error;
}

constexpr const char* kCodes = "layers.0.self_attn.k_proj.weight";
constexpr const char* kScales = "layers.0.self_attn.k_proj.weight_scale";

TEST(PackedFolder, CodesNeedScalesAndScalesNeedCodes) {
  EXPECT_THAT(load_error([](Tensors& t) {
                std::erase_if(t, [](const auto& e) { return e.info.name.ends_with(kScales); });
              }),
              AllOf(HasSubstr(kCodes), HasSubstr("there is no tensor"), HasSubstr(kScales)));
  EXPECT_THAT(load_error([](Tensors& t) {
                EditableTensor& codes = find(t, kCodes);
                codes.info.dtype = DType::BF16;
                codes.data.resize(2 * codes.data.size());
              }),
              AllOf(HasSubstr(kScales), HasSubstr("that is BF16")));
  EXPECT_THAT(load_error([](Tensors& t) {
                std::erase_if(t, [](const auto& e) { return e.info.name.ends_with(kCodes); });
              }),
              HasSubstr(kCodes));
}

TEST(PackedFolder, ShapesAndDtypesAreChecked) {
  EXPECT_THAT(load_error([](Tensors& t) {
                EditableTensor& scales = find(t, kScales);
                std::swap(scales.info.shape[0], scales.info.shape[1]);
              }),
              AllOf(HasSubstr(kScales), HasSubstr("shape"), HasSubstr("/ 32")));
  EXPECT_THAT(load_error([](Tensors& t) {
                EditableTensor& scales = find(t, kScales);
                scales.info.dtype = DType::F32;
                scales.data.resize(2 * scales.data.size());
              }),
              AllOf(HasSubstr(kScales), HasSubstr("dtype F32"), HasSubstr("expected BF16")));
  // kv_b_proj is never 8-bit.
  EXPECT_THAT(load_error([](Tensors& t) {
                EditableTensor& matrix = find(t, "self_attn.kv_b_proj.weight");
                matrix.info.dtype = DType::I8;
                matrix.data.resize(matrix.data.size() / 2);
              }),
              AllOf(HasSubstr("kv_b_proj.weight"), HasSubstr("dtype I8"),
                    HasSubstr("expected BF16 or F32")));
  EXPECT_THAT(load_error([](Tensors& t) {
                EditableTensor extra = find(t, kScales);
                const std::size_t at = extra.info.name.find("k_proj");
                extra.info.name.replace(at, 6, "kv_b_proj");
                t.push_back(std::move(extra));
              }),
              AllOf(HasSubstr("kv_b_proj.weight_scale"), HasSubstr("no part of this model")));
}

std::string place_error(const std::function<void(Tensors&)>& edit) {
  const TempFolder folder;
  copy_edited(packed(), folder.path(), edit);
  K3Weights weights = load(folder.path());
  ThreadPool pool(2);
  return error_of([&] { place_trunk(K3Config::load(folder.path()), {}, pool, weights); });
}

TEST(PackedFolder, CodesAndScalesThatNoQuantiserWritesAreRefused) {
  EXPECT_THAT(place_error([](Tensors& t) { find(t, kCodes).data[77] = std::byte{0x80}; }),
              AllOf(HasSubstr(kCodes), HasSubstr("row 0"), HasSubstr("-128")));
  EXPECT_THAT(place_error([](Tensors& t) {
                const bf16 nan{0x7FC0};
                EditableTensor& scales = find(t, kScales);
                std::memcpy(scales.data.data() + scales.data.size() - 2, &nan, 2);
              }),
              AllOf(HasSubstr(kScales), HasSubstr("not finite")));
}

}  // namespace
}  // namespace triax
