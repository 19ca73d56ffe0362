// What one core can do at most: the roofline that kernels are held against.
#pragma once

#include <cstddef>

namespace triax::bench {

// Runs `rounds` rounds of independent multiply-adds that stay in registers; floating-point
// operations done.
double spin_sse(std::size_t rounds);
double spin_avx2(std::size_t rounds);
double spin_avx512(std::size_t rounds);
double spin_avx512bf16(std::size_t rounds);
double spin_amx(std::size_t rounds);

// Reads n bytes with 32-byte loads; returns something that depends on all of them.
unsigned read_all(const void* p, std::size_t n);

}  // namespace triax::bench
