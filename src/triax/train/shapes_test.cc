// Named shapes are valid configurations of the pattern they promise.
#include "triax/train/shapes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/model_folder.h"
#include "triax/config/config.h"
#include "triax/train/parameters.h"
#include "triax/weights/accounting.h"

namespace triax::train {
namespace {

using testing::HasSubstr;

K3Config shape(const std::string& name, std::string_view changes = "{}", std::size_t size = 4096) {
  return K3Config::parse(model_config_text(name, changes, {size, 1, 2, 3}), name);
}

TEST(Shapes, MiniIsTheDefaultModelsShape) {
  const K3Config c = shape("mini");
  EXPECT_EQ(c.hidden_size, 192u);
  std::string pattern;
  for (const LayerKind kind : c.layer_kinds) pattern += kind == LayerKind::kda ? 'k' : 'm';
  EXPECT_EQ(pattern, "kkkmkkkmm");
  EXPECT_EQ(c.num_experts, 48u);
  EXPECT_EQ(c.num_experts_per_token, 6u);
  EXPECT_EQ(c.ffn(0), Ffn::dense);
  EXPECT_EQ(c.moe_layers(), 8u);
  EXPECT_EQ(c.attn_res_block_size, 3u);
  EXPECT_EQ(c.eos_token_ids, std::vector<std::int32_t>{2});
  const Accounting a = account(c);
  EXPECT_NEAR(static_cast<double>(a.text.parameters), 19e6, 1e6);
  EXPECT_NEAR(static_cast<double>(a.active_without_embedding), 5.8e6, 0.5e6);
}

TEST(Shapes, LayersFollowThePatternWhenTheirNumberChanges) {
  const K3Config c = shape("nano", R"({"num_hidden_layers": 6})", 600);
  std::string pattern;
  for (const LayerKind kind : c.layer_kinds) pattern += kind == LayerKind::kda ? 'k' : 'm';
  EXPECT_EQ(pattern, "kkkmkm");
  EXPECT_EQ(c.vocab_size, 600u);
  EXPECT_EQ(shape("nano").layer_kinds.size(), 5u);
  EXPECT_EQ(shape("small").layer_kinds.size(), 13u);
}

TEST(Shapes, FaultsNameTheFieldAndTheShape) {
  EXPECT_THAT(test::error_of([] { shape("huge"); }), HasSubstr("there is no shape \"huge\""));
  EXPECT_THAT(test::error_of([] { shape("mini", R"({"hiden_size": 8})"); }),
              HasSubstr("model.hiden_size: the shape \"mini\" has no such field"));
  EXPECT_THAT(test::error_of([] { shape("mini", R"({"linear_attn_config": {"heads": 8}})"); }),
              HasSubstr("model.linear_attn_config.heads"));
}

TEST(Shapes, AFileIsAShapeToo) {
  const K3Config c = shape(TRIAX_GOLDEN_DIR "/text/tiny-c/config.json", "{}", 700);
  EXPECT_EQ(c.hidden_size, 80u);
  EXPECT_EQ(c.vocab_size, 700u);
}

}  // namespace
}  // namespace triax::train
