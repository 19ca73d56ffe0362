// The choice of the table, by processor and by TRIAX_ISA.
#include <gmock/gmock.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "triax/core/error.h"
#include "triax/kernels/kernel_test.h"

namespace triax {
namespace {

TEST(Dispatch, ScalarRunsEverywhere) {
  EXPECT_TRUE(isa_available(Isa::scalar));
}

TEST(Dispatch, TablesAreCompleteAndNamed) {
  for (Isa isa : isas_here()) {
    const KernelTable& t = kernel_table(isa);
    EXPECT_EQ(t.isa, isa);
    EXPECT_EQ(t.name, isa_name(isa));
    // Every entry after the name is a pointer; only a set without a matrix unit leaves one null.
    EXPECT_EQ(t.matrix != nullptr, isa == Isa::amx);
    constexpr std::size_t first = offsetof(KernelTable, linear_f32_bf16);
    static_assert((sizeof t - first) % sizeof(void*) == 0);
    for (std::size_t at = first; at < sizeof t; at += sizeof(void*)) {
      const void* entry;
      std::memcpy(&entry, reinterpret_cast<const char*>(&t) + at, sizeof entry);
      if (at == offsetof(KernelTable, matrix)) continue;
      EXPECT_NE(entry, nullptr) << t.name << ", byte " << at;
    }
  }
}

TEST(Dispatch, NamesSelect) {
  for (Isa isa : isas_here()) EXPECT_EQ(&kernel_table(isa_name(isa)), &kernel_table(isa));
}

TEST(Dispatch, UnknownNameListsWhatRuns) {
  try {
    kernel_table("sse9");
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("TRIAX_ISA=sse9"));
    EXPECT_THAT(e.what(), testing::HasSubstr("scalar"));
  }
}

TEST(Dispatch, UseIsaSwitches) {
  const Isa before = kernels().isa;
  for (Isa isa : isas_here()) {
    use_isa(isa);
    EXPECT_EQ(kernels().isa, isa);
  }
  use_isa(before);
}

// In a process of its own, since the choice is made once.
int exit_code_under(const char* value, Isa expected) {
  setenv("TRIAX_ISA", value, 1);
  try {
    return kernels().isa == expected ? 0 : 1;
  } catch (const Error&) {
    return 2;
  }
}

TEST(DispatchDeathTest, EnvironmentForcesTheSet) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (Isa isa : isas_here()) {
    const std::string name(isa_name(isa));
    EXPECT_EXIT(std::exit(exit_code_under(name.c_str(), isa)), testing::ExitedWithCode(0), "");
  }
  EXPECT_EXIT(std::exit(exit_code_under("nonsense", Isa::scalar)), testing::ExitedWithCode(2), "");
}

}  // namespace
}  // namespace triax
