// Loading: golden checkpoints, the quirks that files have, every conditional row, every refusal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "support/model_folder.h"
#include "triax/checkpoint/checkpoint.h"
#include "triax/weights/accounting.h"
#include "triax/weights/synth.h"
#include "triax/weights/tensor_table.h"
#include "triax/weights/weights.h"

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
using Tensors = std::vector<EditableTensor>;
using Json = nlohmann::json;

K3Weights load(const fs::path& folder) {
  return K3Weights::load(K3Config::load(folder), Checkpoint::open(folder));
}

fs::path golden(const std::string& name) {
  return fs::path(TRIAX_GOLDEN_DIR) / "text" / name;
}

// case-A, made once for the whole program.
const fs::path& case_a() {
  static const TempFolder folder;
  static const bool made = [] {
    synthesize({.config = std::string(TRIAX_SOURCE_DIR) + "/tests/cases/case-A.json", .threads = 1},
               folder.path());
    return true;
  }();
  (void)made;
  return folder.path();
}

std::vector<std::byte> bytes_of(const MatrixView& m) {
  const auto* data = static_cast<const std::byte*>(m.data);
  return {data, data + m.rows * m.cols * dtype_size(m.dtype)};
}

EditableTensor& find(Tensors& tensors, const std::string& ending) {
  for (EditableTensor& t : tensors) {
    if (t.info.name.ends_with(ending)) return t;
  }
  fail("{}: not there", ending);
}

// Every member that the table names is equal in value, and so is what is derived.
void expect_same(K3Weights& a, K3Weights& b, const K3Config& config) {
  for_each_tensor(config, {true, false}, [&](const TensorId& id) {
    const Slot& slot = id.row->slot;
    const std::string name = tensor_name(id, "");
    if (slot.matrix != nullptr) {
      EXPECT_EQ(bytes_of(slot.matrix(a, id.layer)), bytes_of(slot.matrix(b, id.layer))) << name;
    } else if (slot.vector != nullptr && id.row->quirk != Quirk::padded) {
      EXPECT_EQ(slot.vector(a, id.layer), slot.vector(b, id.layer)) << name;
    }
  });
  for (std::size_t l = 0; l < a.layers.size(); ++l) {
    EXPECT_EQ(a.layers[l].kda.A, b.layers[l].kda.A);
    EXPECT_EQ(a.layers[l].mlp_res.w, b.layers[l].mlp_res.w);
  }
}

TEST(Load, GoldenCheckpoints) {
  for (const char* name : {"tiny-a", "tiny-b", "tiny-c"}) {
    SCOPED_TRACE(name);
    const K3Config c = K3Config::load(golden(name));
    const auto checkpoint = Checkpoint::open(golden(name));
    K3Weights w = K3Weights::load(c, checkpoint);
    ASSERT_EQ(w.layers.size(), c.num_hidden_layers);
    EXPECT_TRUE(w.copied.empty());
    EXPECT_EQ(w.embed_tokens.rows, c.vocab_size);
    for (std::size_t l = 0; l < w.layers.size(); ++l) {
      const LayerWeights& layer = w.layers[l];
      EXPECT_EQ(layer.kind, c.kind(l));
      EXPECT_EQ(layer.ffn, c.ffn(l));
      EXPECT_EQ(layer.kda.q_proj.present(), c.is_kda(l));
      EXPECT_EQ(layer.mla.kv_b_proj.present(), !c.is_kda(l));
      EXPECT_EQ(layer.mlp.up_proj.present(), c.ffn(l) == Ffn::dense);
      EXPECT_EQ(layer.moe.gate.present(), c.ffn(l) == Ffn::moe);
      for (std::size_t i = 0; i < c.hidden_size; ++i) {
        EXPECT_EQ(layer.self_attention_res.w[i],
                  layer.self_attention_res.norm[i] * layer.self_attention_res.proj[i]);
      }
    }
    // Views lie in the mapping, vectors hold the stored values.
    const TensorEntry* e =
        checkpoint->find("language_model.model.layers.0.self_attn.q_proj.weight");
    ASSERT_NE(e, nullptr);
    EXPECT_EQ(w.layers[0].kda.q_proj.data, checkpoint->data(*e).data());
    EXPECT_EQ(w.layers[0].kda.q_proj.rows, c.kda_inner());
    EXPECT_EQ(w.layers[0].kda.q_proj.cols, c.hidden_size);
  }
}

TEST(Load, DerivedMembers) {
  const K3Config c = K3Config::load(golden("tiny-a"));
  const K3Weights w = load(golden("tiny-a"));
  const KdaWeights& kda = w.layers[0].kda;
  ASSERT_EQ(kda.A_log.size(), 32u);
  ASSERT_EQ(kda.A.size(), c.kda_num_heads);
  for (std::size_t h = 0; h < kda.A.size(); ++h) {
    EXPECT_FLOAT_EQ(kda.A[h], std::exp(kda.A_log[h]));
  }
  const std::size_t taps = c.short_conv_kernel_size, channels = c.kda_inner();
  ASSERT_EQ(kda.v_conv_t.size(), taps * channels);
  for (std::size_t p = 0; p < channels; ++p) {
    for (std::size_t t = 0; t < taps; ++t) {
      ASSERT_EQ(kda.v_conv_t[t * channels + p], kda.v_conv1d[p * taps + t]);
    }
  }
}

// ---- P02: quirks of files
// ------------------------------------------------------------------------

TEST(CaseP02, PaddingOfALogIsIgnored) {
  const K3Config config = K3Config::load(case_a());
  K3Weights plain = load(case_a());
  for (const std::size_t entries : {2u, 32u}) {
    TempFolder folder;
    copy_edited(case_a(), folder.path(), [&](Tensors& tensors) {
      for (EditableTensor& t : tensors) {
        if (!t.info.name.ends_with("A_log")) continue;
        std::vector<float> values(entries, 999.0f);
        std::memcpy(values.data(), t.data.data(), config.kda_num_heads * sizeof(float));
        t.info.shape = {entries};
        t.data.resize(entries * sizeof(float));
        std::memcpy(t.data.data(), values.data(), t.data.size());
      }
    });
    K3Weights padded = load(folder.path());
    EXPECT_EQ(padded.layers[0].kda.A_log.size(), entries);
    EXPECT_EQ(padded.layers[0].kda.A.size(), 2u);
    expect_same(plain, padded, config);
  }
}

TEST(CaseP02, RootWithoutLanguageModel) {
  TempFolder folder;
  copy_edited(case_a(), folder.path(), [](Tensors& tensors) {
    for (EditableTensor& t : tensors) t.info.name.erase(0, std::strlen("language_model."));
  });
  EXPECT_EQ(Checkpoint::open(folder.path())->root(), "");
  K3Weights a = load(case_a()), b = load(folder.path());
  expect_same(a, b, K3Config::load(case_a()));
}

TEST(CaseP02, ScalesTypedE8M0) {
  TempFolder folder;
  copy_edited(case_a(), folder.path(), [](Tensors& tensors) {
    for (EditableTensor& t : tensors) {
      if (t.info.name.ends_with("weight_scale")) t.info.dtype = DType::F8_E8M0;
    }
  });
  K3Weights a = load(case_a()), b = load(folder.path());
  expect_same(a, b, K3Config::load(case_a()));
}

TEST(CaseP02, ALogWithTooFewEntries) {
  TempFolder folder;
  copy_edited(case_a(), folder.path(), [](Tensors& tensors) {
    EditableTensor& t = find(tensors, "layers.4.self_attn.A_log");
    t.info.shape = {1};
    t.data.resize(sizeof(float));
  });
  EXPECT_THAT(
      error_of([&] { load(folder.path()); }),
      AllOf(HasSubstr("language_model.model.layers.4.self_attn.A_log"), HasSubstr("shape [1]"),
            HasSubstr("expected [at least 2]"), testing::Not(HasSubstr("\n"))));
}

TEST(Load, WideTrunk) {
  TempFolder folder;
  copy_edited(case_a(), folder.path(), [](Tensors& tensors) {
    for (EditableTensor& t : tensors) {
      if (t.info.dtype != DType::BF16) continue;
      std::vector<std::byte> wide(2 * t.data.size());
      for (std::size_t i = 0; i < t.data.size() / 2; ++i) {
        std::memcpy(wide.data() + 4 * i + 2, t.data.data() + 2 * i, 2);  // little endian
      }
      t.info.dtype = DType::F32;
      t.data = std::move(wide);
    }
  });
  const K3Weights a = load(case_a()), b = load(folder.path());
  EXPECT_EQ(b.lm_head.dtype, DType::F32);
  EXPECT_EQ(a.norm, b.norm);
  EXPECT_EQ(a.layers[3].mla.kv_a_layernorm, b.layers[3].mla.kv_a_layernorm);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(to_float(a.lm_head.as_bf16()[i]), b.lm_head.as_f32()[i]);
  }
}

// A header whose length is odd puts every tensor at an odd address.
TEST(Load, MisalignedDataAreCopied) {
  TempFolder folder;
  copy_edited(case_a(), folder.path(), [](Tensors&) {});
  const fs::path shard = folder / "model-00001-of-00001.safetensors";
  std::string text = read_text(shard);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  text.insert(sizeof length + length, " ");
  ++length;
  std::memcpy(text.data(), &length, sizeof length);
  write_text(shard, text);
  K3Weights a = load(case_a()), b = load(folder.path());
  EXPECT_TRUE(a.copied.empty());
  EXPECT_FALSE(b.copied.empty());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.lm_head.data) % 2, 0u);
  expect_same(a, b, K3Config::load(case_a()));
}

// ---- Refusals
// ------------------------------------------------------------------------------------

std::string error_after(const std::function<void(Tensors&)>& edit) {
  TempFolder folder;
  copy_edited(case_a(), folder.path(), edit);
  return error_of([&] { load(folder.path()); });
}

TEST(Load, NamesAMissingTensor) {
  EXPECT_THAT(error_after([](Tensors& t) {
                std::erase_if(t, [](const EditableTensor& x) {
                  return x.info.name.ends_with("layers.2.self_attn.b_proj.weight") ||
                         x.info.name.ends_with("experts.3.w2.weight_scale");
                });
              }),
              AllOf(HasSubstr("language_model.model.layers.2.self_attn.b_proj.weight"),
                    HasSubstr("and 8 more")));
}

TEST(Load, NamesAnUnknownTensor) {
  EXPECT_THAT(
      error_after([](Tensors& t) {
        t.push_back(
            {{"language_model.model.layers.2.self_attn.kv_b_proj.weight", DType::BF16, {2, 2}},
             std::vector<std::byte>(8)});
      }),
      HasSubstr("language_model.model.layers.2.self_attn.kv_b_proj.weight: no part"));
  EXPECT_THAT(error_after([](Tensors& t) {
                find(t, "experts.15.w1.weight_packed").info.name =
                    "language_model.model.layers.1.block_sparse_moe.experts.16.w1.weight_packed";
              }),
              HasSubstr("experts.16.w1.weight_packed: no part"));
}

TEST(Load, NamesShapeAndDtype) {
  EXPECT_THAT(error_after([](Tensors& t) {
                find(t, "layers.1.block_sparse_moe.gate.weight").info.shape = {64, 16};
              }),
              AllOf(HasSubstr("layers.1.block_sparse_moe.gate.weight"), HasSubstr("shape [64, 16]"),
                    HasSubstr("expected [16, 64] = [num_experts, hidden_size]")));
  EXPECT_THAT(error_after([](Tensors& t) { find(t, "model.norm.weight").info.dtype = DType::F16; }),
              AllOf(HasSubstr("model.norm.weight: dtype F16"), HasSubstr("BF16 or F32")));
  EXPECT_THAT(error_after([](Tensors& t) {
                find(t, "experts.7.w3.weight_packed").info.dtype = DType::F8_E8M0;
              }),
              AllOf(HasSubstr("experts.7.w3.weight_packed: dtype F8_E8M0"), HasSubstr("U8")));
}

TEST(Load, PassesOverExtraLayersAndRotaryTables) {
  TempFolder folder;
  copy_edited(case_a(), folder.path(), [](Tensors& t) {
    for (const char* name : {"language_model.model.layers.9.enorm.weight",
                             "language_model.model.layers.3.self_attn.rotary_emb.inv_freq"}) {
      t.push_back({{name, DType::F32, {4}}, std::vector<std::byte>(16)});
    }
  });
  K3Weights a = load(case_a()), b = load(folder.path());
  expect_same(a, b, K3Config::load(case_a()));
}

TEST(Load, VisionIsThereEntirelyOrNotAtAll) {
  EXPECT_THAT(error_after([](Tensors& t) {
                t.push_back({{"mm_projector.post_norm.weight", DType::BF16, {64}},
                             std::vector<std::byte>(128)});
              }),
              AllOf(HasSubstr("mm_projector.proj.0.weight"), HasSubstr("and 166 more")));
}

// ---- Conditional rows
// ----------------------------------------------------------------------------

struct Variant {
  const char* name;
  std::function<void(Json& config)> edit;  // of the whole file
  std::function<void(const K3Weights&)> check;
};

std::vector<Variant> variants() {
  const auto text = [](auto&& f) { return [f](Json& c) { f(c["text_config"]); }; };
  return {
      {"as released", [](Json&) {},
       [](const K3Weights& w) {
         EXPECT_TRUE(w.layers[0].kda.g_proj.present() && w.layers[3].mla.q_b_proj.present());
         EXPECT_FALSE(w.layers[0].kda.g_a_proj.present() || w.layers[3].mla.q_proj.present());
       }},
      {"dense", text([](Json& t) { t["num_experts"] = 0; }),
       [](const K3Weights& w) { EXPECT_TRUE(w.layers[5].mlp.gate_proj.present()); }},
      {"no vision", [](Json& c) { c.erase("vision_config"); },
       [](const K3Weights& w) { EXPECT_TRUE(w.lm_head.present()); }},
      {"no q_lora_rank", text([](Json& t) { t["q_lora_rank"] = nullptr; }),
       [](const K3Weights& w) {
         EXPECT_TRUE(w.layers[3].mla.q_proj.present());
         EXPECT_FALSE(w.layers[3].mla.q_a_proj.present());
         EXPECT_TRUE(w.layers[3].mla.q_a_layernorm.empty());
       }},
      {"low-rank gate",
       text([](Json& t) { t["linear_attn_config"]["use_full_rank_gate"] = false; }),
       [](const K3Weights& w) {
         EXPECT_FALSE(w.layers[0].kda.g_proj.present());
         EXPECT_EQ(w.layers[0].kda.g_a_proj.rows, 32u);
         EXPECT_EQ(w.layers[0].kda.g_b_proj.cols, 32u);
       }},
      {"no latent", text([](Json& t) { t.erase("routed_expert_hidden_size"); }),
       [](const K3Weights& w) {
         EXPECT_FALSE(w.layers[1].moe.routed_expert_down_proj.present());
         EXPECT_TRUE(w.layers[1].moe.routed_expert_norm.empty());
       }},
      {"no norm after aggregation", text([](Json& t) { t["latent_moe_use_norm"] = false; }),
       [](const K3Weights& w) {
         EXPECT_TRUE(w.layers[1].moe.routed_expert_up_proj.present());
         EXPECT_TRUE(w.layers[1].moe.routed_expert_norm.empty());
       }},
      {"no depth mixes", text([](Json& t) { t["attn_res_block_size"] = nullptr; }),
       [](const K3Weights& w) {
         EXPECT_TRUE(w.output_attn_res.w.empty() && w.layers[0].mlp_res.norm.empty());
       }},
      {"tied",
       [](Json& c) { c["tie_word_embeddings"] = c["text_config"]["tie_word_embeddings"] = true; },
       [](const K3Weights& w) { EXPECT_EQ(w.lm_head.data, w.embed_tokens.data); }},
      {"no shared experts", text([](Json& t) { t["num_shared_experts"] = 0; }),
       [](const K3Weights& w) { EXPECT_FALSE(w.layers[1].moe.shared_experts.up_proj.present()); }},
      {"softplus gate",
       text([](Json& t) { t["linear_attn_config"]["gate_lower_bound"] = nullptr; }),
       [](const K3Weights& w) { EXPECT_TRUE(w.layers[0].kda.f_b_proj.present()); }},
      {"no output gate", text([](Json& t) { t["mla_use_output_gate"] = false; }),
       [](const K3Weights& w) { EXPECT_FALSE(w.layers[3].mla.g_proj.present()); }},
      {"every second layer routed", text([](Json& t) { t["moe_layer_freq"] = 2; }),
       [](const K3Weights& w) {
         EXPECT_TRUE(w.layers[1].mlp.up_proj.present() && w.layers[2].moe.gate.present());
       }},
      {"three dense layers", text([](Json& t) { t["first_k_dense_replace"] = 3; }),
       [](const K3Weights& w) {
         EXPECT_TRUE(w.layers[2].mlp.up_proj.present() && w.layers[3].moe.gate.present());
       }},
  };
}

TEST(TensorTable, EveryConditionalRowLoadsAgain) {
  std::set<const TensorRow*> seen;
  for (const Variant& variant : variants()) {
    SCOPED_TRACE(variant.name);
    TempFolder folder;
    Json json = Json::parse(read_text(case_a() / "config.json"));
    variant.edit(json);
    write_text(folder / "wanted.json", json.dump());
    synthesize({.config = (folder / "wanted.json").string(), .threads = 1}, folder.path());
    const K3Config config = K3Config::load(folder.path());
    const auto checkpoint = Checkpoint::open(folder.path());
    K3Weights weights = K3Weights::load(config, checkpoint);
    variant.check(weights);
    // What exists has a member that is filled, and the accounting counts exactly it.
    for_each_tensor(config, {}, [&](const TensorId& id) {
      seen.insert(id.row);
      const Slot& slot = id.row->slot;
      EXPECT_TRUE(slot.matrix == nullptr || slot.matrix(weights, id.layer).present());
      EXPECT_TRUE(slot.vector == nullptr || !slot.vector(weights, id.layer).empty());
    });
    const Accounting held = account(config, *checkpoint);
    EXPECT_EQ(held.all.bytes, checkpoint->total_bytes());
    EXPECT_EQ(held.all.tensors, checkpoint->tensors().size());
    EXPECT_EQ(held.text.bytes, account(config).text.bytes);
    EXPECT_EQ(held.text.active, account(config).text.active);
  }
  EXPECT_EQ(seen.size(), tensor_table().size()) << "a row that no variant has";
}

TEST(TensorTable, NamesAreFoundAgain) {
  const K3Config config = K3Config::load(case_a());
  for (const char* root : {"language_model.", ""}) {
    for_each_tensor(config, {}, [&](const TensorId& id) {
      const std::string name = tensor_name(id, root);
      const auto found = identify(config, root, name);
      ASSERT_TRUE(found) << name;
      EXPECT_TRUE(found->row == id.row && found->layer == id.layer && found->expert == id.expert)
          << name;
    });
  }
  for (const char* name :
       {"", "language_model.", "model.norm.weight",
        "language_model.model.layers.01.mlp.up_proj.weight",
        "language_model.model.layers.99999999999999999999.input_layernorm.weight",
        "language_model.model.layers.-1.input_layernorm.weight",
        "language_model.model.layers.9.input_layernorm.weight",
        "language_model.model.layers.0.block_sparse_moe.gate.weight",
        "language_model.model.layers.1.block_sparse_moe.experts.16.w1.weight_packed",
        "language_model.vision_tower.encoder.final_layernorm.weight",
        "language_model.model.layers.{L}.input_layernorm.weight"}) {
    EXPECT_FALSE(identify(config, "language_model.", name)) << name;
  }
}

}  // namespace
}  // namespace triax
