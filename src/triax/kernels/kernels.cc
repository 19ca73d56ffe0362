// Chooses the kernel table: the best set of this processor, or the one that TRIAX_ISA names.
#include "triax/kernels/kernels.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "triax/core/error.h"
#include "triax/kernels/isa/tables.h"

namespace triax {
namespace {

constexpr Isa kAll[kIsaCount] = {Isa::scalar, Isa::avx2, Isa::avx512, Isa::avx512bf16, Isa::amx};

const KernelTable* table_of(Isa isa) {
  switch (isa) {
    case Isa::scalar:
      return table_scalar();
    case Isa::avx2:
      return table_avx2();
    case Isa::avx512:
      return table_avx512();
    case Isa::avx512bf16:
      return table_avx512bf16();
    case Isa::amx: {
      static const KernelTable table = [] {
        KernelTable t = *table_avx512bf16();
        t.isa = Isa::amx;
        t.name = "amx";
        t.matrix = table_amx();
        return t;
      }();
      return &table;
    }
  }
  return nullptr;
}

std::string available_names() {
  std::string names;
  for (Isa isa : kAll) {
    if (!isa_available(isa)) continue;
    if (!names.empty()) names += ", ";
    names += isa_name(isa);
  }
  return names;
}

const KernelTable* first_choice() {
  const char* name = std::getenv("TRIAX_ISA");
  if (name != nullptr && *name != '\0') return &kernel_table(std::string_view(name));
  Isa best = Isa::scalar;
  for (Isa isa : kAll) {
    if (isa_available(isa)) best = isa;
  }
  return table_of(best);
}

std::atomic<const KernelTable*> g_table{nullptr};

}  // namespace

namespace {

// Tiles need the processor's word (cpuid leaf 7: AMX-BF16, AMX-TILE) and the system's permission to
// use their registers, which a process asks for once. Both questions are asked once.
bool amx_usable() {
  static const bool usable = [] {
    unsigned int a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
    constexpr unsigned int kAmxBf16 = 1u << 22, kAmxTile = 1u << 24;
    if ((d & kAmxBf16) == 0 || (d & kAmxTile) == 0) return false;
    constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XTILEDATA
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return usable;
}

}  // namespace

// The compiler's run-time checks cover the processor (cpuid) and the system (saved registers).
bool isa_available(Isa isa) {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case Isa::scalar:
      return true;
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx512;
    case Isa::avx512bf16:
      return avx512 && __builtin_cpu_supports("avx512bf16");
    case Isa::amx:
      return avx512 && __builtin_cpu_supports("avx512bf16") && amx_usable();
  }
  return false;
}

const KernelTable& kernel_table(Isa isa) {
  if (!isa_available(isa)) {
    fail("TRIAX_ISA={}: not available on this processor; this machine runs {}", isa_name(isa),
         available_names());
  }
  return *table_of(isa);
}

const KernelTable& kernel_table(std::string_view name) {
  for (Isa isa : kAll) {
    if (name == isa_name(isa)) return kernel_table(isa);
  }
  fail("TRIAX_ISA={}: no such instruction set; this machine runs {}", name, available_names());
}

const KernelTable& kernels() {
  const KernelTable* table = g_table.load(std::memory_order_acquire);
  if (table == nullptr) {
    // Two threads may both choose; they choose the same.
    table = first_choice();
    g_table.store(table, std::memory_order_release);
  }
  return *table;
}

void use_isa(Isa isa) {
  g_table.store(&kernel_table(isa), std::memory_order_release);
}

std::string_view isa_name(Isa isa) {
  return table_of(isa)->name;
}

}  // namespace triax
