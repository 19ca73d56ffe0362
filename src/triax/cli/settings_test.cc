// `eval --against`: what it takes and what it refuses.
#include "triax/cli/settings.h"

#include <gtest/gtest.h>

#include "triax/cli/options.h"

namespace triax::cli {
namespace {

TEST(Settings, NamedOnesReplaceTheBase) {
  const Settings base{Precision::bf16, Isa::scalar, 256, 2};
  const Settings a = parse_settings("precision=f32,chunk=1", base);
  EXPECT_EQ(to_string(a), "precision=f32,isa=scalar,chunk=1,threads=2,trunk=stored");
  EXPECT_EQ(parse_settings("f32", base).precision, Precision::f32);
  EXPECT_EQ(parse_settings("threads=7,isa=scalar", base).threads, 7u);
  EXPECT_EQ(to_string(parse_settings("", base)), to_string(base));
}

TEST(Settings, TheTrunkIsStoredOr8BitByFamily) {
  EXPECT_EQ(parse_settings("trunk=int8", {}).int8, packable_components());
  EXPECT_EQ(trunk_text(parse_settings("trunk=int8", {}).int8), "int8");
  const Settings two = parse_settings("trunk=int8:mla+kda,chunk=8", {});
  EXPECT_EQ(two.int8.count(), 2u);
  EXPECT_EQ(trunk_text(two.int8), "int8:kda+mla");
  EXPECT_TRUE(parse_settings("trunk=stored", two).int8.none());
  for (const char* family : {"lm_head", "dense_mlp", "latent", "shared_experts"}) {
    EXPECT_EQ(trunk_text(parse_settings(std::string("trunk=int8:") + family, {}).int8),
              std::string("int8:") + family);
  }
}

TEST(Settings, OthersAreWrongUse) {
  for (const char* text : {"precision=int3", "chunk=0", "chunk=x", "threads=-1", "isa=mmx", "q=1",
                           "f16", "trunk=", "trunk=int4", "trunk=int8:", "trunk=int8:router",
                           "trunk=int8:kda+", "trunk=mapped"}) {
    EXPECT_THROW(parse_settings(text, {}), UsageError) << text;
  }
}

}  // namespace
}  // namespace triax::cli
