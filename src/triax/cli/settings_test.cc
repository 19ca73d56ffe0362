// `eval --against`: what it takes and what it refuses.
#include "triax/cli/settings.h"

#include <gtest/gtest.h>

#include "triax/cli/options.h"

namespace triax::cli {
namespace {

TEST(Settings, NamedOnesReplaceTheBase) {
  const Settings base{Precision::bf16, Isa::scalar, 256, 2};
  const Settings a = parse_settings("precision=f32,chunk=1", base);
  EXPECT_EQ(to_string(a), "precision=f32,isa=scalar,chunk=1,threads=2");
  EXPECT_EQ(parse_settings("f32", base).precision, Precision::f32);
  EXPECT_EQ(parse_settings("threads=7,isa=scalar", base).threads, 7u);
  EXPECT_EQ(to_string(parse_settings("", base)), to_string(base));
}

TEST(Settings, OthersAreWrongUse) {
  for (const char* text :
       {"precision=int3", "chunk=0", "chunk=x", "threads=-1", "isa=mmx", "q=1", "f16"}) {
    EXPECT_THROW(parse_settings(text, {}), UsageError) << text;
  }
}

}  // namespace
}  // namespace triax::cli
