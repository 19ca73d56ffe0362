// The accounting of the release to the last parameter and byte, and of folders by what they hold.
#include "triax/weights/accounting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/model_folder.h"
#include "triax/checkpoint/checkpoint.h"
#include "triax/weights/synth.h"

namespace triax {
namespace {

using testing::HasSubstr;

const Accounting& release() {
  static const Accounting a = account(K3Config::parse(*builtin_config("k3"), "k3"));
  return a;
}

TEST(Accounting, ComponentsOfTheRelease) {
  struct Row {
    Component component;
    std::uint64_t each, instances, parameters, active;
  };
  const Row rows[] = {
      {Component::embedding, 1174405120, 1, 1174405120, 7168},
      {Component::lm_head, 1174405120, 1, 1174405120, 1174405120},
      {Component::kda, 443740416, 69, 30618088704, 30618088704},
      {Component::mla, 232196096, 24, 5572706304, 5572706304},
      {Component::dense_mlp, 726663168, 1, 726663168, 726663168},
      {Component::router, 6423424, 92, 590955008, 590955008},
      {Component::latent, 51383808, 92, 4727310336, 4727310336},
      {Component::shared_experts, 132120576, 92, 12155092992, 12155092992},
      {Component::routed_experts, 33030144, 82432, 2722740830208, 48620371968},
      {Component::depth_mix, 14336, 187, 2680832, 2680832},
      {Component::norm, 7168, 187, 1340416, 1340416},
      {Component::vision_tower, 401214464, 1, 401214464, 0},
      {Component::projector, 46144512, 1, 46144512, 0},
  };
  ASSERT_EQ(release().components.size(), std::size(rows));
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(component_name(row.component)));
    const ComponentAccount* c = release().find(row.component);
    ASSERT_NE(c, nullptr);
    EXPECT_EQ(c->per_instance, row.each);
    EXPECT_EQ(c->instances, row.instances);
    EXPECT_EQ(c->total.parameters, row.parameters);
    EXPECT_EQ(c->total.active, row.active);
  }
}

TEST(Accounting, LayersOfTheRelease) {
  struct Row {
    LayerKind kind;
    Ffn ffn;
    std::uint64_t each, layers, parameters, active_each;
  };
  const Row rows[] = {
      {LayerKind::kda, Ffn::dense, 1170446592, 1, 1170446592, 1170446592},
      {LayerKind::kda, Ffn::moe, 30228720256, 68, 2055552977408, 1162193536},
      {LayerKind::mla, Ffn::moe, 30017175936, 24, 720412222464, 950649216},
  };
  ASSERT_EQ(release().groups.size(), std::size(rows));
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const LayerGroup& g = release().groups[i];
    EXPECT_EQ(g.kind, rows[i].kind);
    EXPECT_EQ(g.ffn, rows[i].ffn);
    EXPECT_EQ(g.per_layer, rows[i].each);
    EXPECT_EQ(g.layers, rows[i].layers);
    EXPECT_EQ(g.total.parameters, rows[i].parameters);
    EXPECT_EQ(g.total.active, rows[i].active_each * rows[i].layers);
  }
  ASSERT_EQ(release().layers.size(), 93u);
  EXPECT_EQ(release().layers[5].moe.parameters, 29784936832u);
  EXPECT_EQ(release().layers[0].moe.parameters, 0u);
  for (std::size_t l = 0; l < 93; ++l) {
    EXPECT_EQ(release().layers[l].kind == LayerKind::mla, l % 4 == 3 || l == 92) << l;
    EXPECT_EQ(release().layers[l].opens_block, l % 12 == 0) << l;
  }
  ASSERT_EQ(release().blocks.size(), 8u);
  EXPECT_EQ(release().blocks[0].last, 11u);
  EXPECT_EQ(release().blocks[7].first, 84u);
  EXPECT_EQ(release().blocks[7].last, 92u);
}

TEST(Accounting, TotalsOfTheRelease) {
  const Accounting& a = release();
  EXPECT_FALSE(a.from_files);
  EXPECT_EQ(a.text.parameters, 2779484478208u);
  EXPECT_EQ(a.all.parameters, 2779931837184u);
  EXPECT_EQ(a.active_with_embedding, 105364019968u);
  EXPECT_EQ(a.active_without_embedding, 104189614848u);
  EXPECT_EQ(a.text.tensors, 497052u);
  EXPECT_EQ(a.vision.tensors, 168u);
  EXPECT_EQ(a.all.tensors, 497220u);
  EXPECT_EQ(a.routed_bytes, 1446456066048u);
  EXPECT_EQ(a.routed_scale_bytes, 85085650944u);
  EXPECT_EQ(a.trunk_bytes, 113509540864u);
  EXPECT_EQ(a.vision.bytes, 894717952u);
  EXPECT_EQ(a.all.bytes, 1560860324864u);
  EXPECT_EQ(a.trunk_bytes_without_tables, 108811920384u);
  EXPECT_EQ(a.expert_bytes, 17547264u);
  EXPECT_EQ(a.expert_bytes_read_per_token, 16ull * 92 * 17547264);
  EXPECT_EQ(a.trunk_bytes_read_per_token, 113509540864u - 2 * 1174405120u + 2 * 7168u);
}

TEST(Accounting, SequenceOfTheRelease) {
  const SequenceAccount& s = release().sequence;
  EXPECT_EQ(s.kda_state_bytes, 434110464u);
  EXPECT_EQ(s.conv_values, 7630848u);
  EXPECT_EQ(s.conv_bytes_bf16, 2 * 7630848u);
  EXPECT_EQ(s.conv_bytes_f32, 4 * 7630848u);
  EXPECT_EQ(s.latent_values_per_token, 13824u);
  EXPECT_EQ(s.latent_bytes_per_token_bf16, 27648u);
  EXPECT_EQ(s.latent_bytes_per_token_f32, 55296u);
}

TEST(Accounting, JsonHoldsPlainIntegers) {
  const auto json = nlohmann::json::parse(release().to_json());
  EXPECT_EQ(json["language_model"]["parameters"].get<std::uint64_t>(), 2779484478208u);
  EXPECT_TRUE(json["total"]["bytes"].is_number_integer());
  EXPECT_EQ(json["total"]["tensors"].get<std::uint64_t>(), 497220u);
  EXPECT_EQ(json["layers"].size(), 93u);
  EXPECT_EQ(json["layers"][3]["attention"], "MLA");
  EXPECT_EQ(json["layers"][0]["ffn"], "dense");
  EXPECT_EQ(json["layers"][1]["moe"]["parameters"].get<std::uint64_t>(), 29784936832u);
  EXPECT_EQ(json["components"][2]["name"], "kda");
  EXPECT_EQ(json["components"][2]["parameters_each"].get<std::uint64_t>(), 443740416u);
  EXPECT_EQ(json["sequence"]["kda_state_bytes"].get<std::uint64_t>(), 434110464u);
}

TEST(Accounting, TextShowsScheduleAndSums) {
  const std::string text = release().format_text();
  EXPECT_THAT(text, HasSubstr("0-11, 12-23, 24-35, 36-47, 48-59, 60-71, 72-83, 84-92"));
  EXPECT_THAT(text, HasSubstr("2,779,484,478,208"));
  EXPECT_THAT(text, HasSubstr("29,784,936,832"));
  EXPECT_THAT(text, HasSubstr("  0       * KDA, dense\n"));
  EXPECT_THAT(text, HasSubstr("  91-92     MLA, MoE\n"));
}

// tiny-c stores one A_log entry a head; the configuration alone assumes a whole head's width.
TEST(Accounting, FolderCountsWhatItHolds) {
  const std::filesystem::path folder = std::filesystem::path(TRIAX_GOLDEN_DIR) / "text" / "tiny-c";
  const K3Config config = K3Config::load(folder);
  const auto checkpoint = Checkpoint::open(folder);
  const Accounting held = account(config, *checkpoint);
  const Accounting assumed = account(config);
  EXPECT_TRUE(held.from_files);
  EXPECT_EQ(held.all.bytes, checkpoint->total_bytes());
  EXPECT_EQ(held.all.tensors, checkpoint->tensors().size());
  const std::uint64_t padding = config.kda_layers() * (32 - 3);
  EXPECT_EQ(assumed.all.parameters - held.all.parameters, padding);
  EXPECT_EQ(assumed.all.bytes - held.all.bytes, padding * sizeof(float));
  EXPECT_EQ(assumed.routed_bytes, held.routed_bytes);
  EXPECT_EQ(assumed.active_without_embedding - held.active_without_embedding, padding);
}

// A configuration with a vision section whose folder has text only.
TEST(Accounting, FolderWithoutVision) {
  test::TempFolder folder;
  synthesize({.config = "tiny", .threads = 1}, folder.path());
  const K3Config config = K3Config::load(folder.path());
  const auto checkpoint = Checkpoint::open(folder.path());
  const Accounting held = account(config, *checkpoint);
  EXPECT_EQ(held.vision.tensors, 0u);
  EXPECT_EQ(held.find(Component::vision_tower), nullptr);
  EXPECT_GT(account(config).vision.tensors, 0u);
  EXPECT_EQ(held.text.bytes, account(config).text.bytes);
  EXPECT_EQ(held.text.active, account(config).text.active);
}

}  // namespace
}  // namespace triax
