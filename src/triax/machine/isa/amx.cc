// AMX: products of BF16 tiles, 16 x 32 by 32 x 16, with float32 sums.
#include <immintrin.h>

#include "triax/machine/isa/loops.h"

namespace triax {
namespace {

struct alignas(64) TileConfig {
  unsigned char palette, start_row, reserved[14];
  unsigned short bytes[16];
  unsigned char rows[16];
};
constexpr TileConfig kFullTiles{
    1, 0, {}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

// Four tiles of sums from two tiles of each operand, all of them zero.
double spin(std::size_t rounds) {
  _tile_loadconfig(&kFullTiles);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (std::size_t r = 0; r < rounds; ++r) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 5, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return static_cast<double>(rounds) * 4 * 16 * 16 * 32 * 2;
}

}  // namespace

const LimitLoops* limits_amx() {
  static constexpr LimitLoops loops{"amx", "tdpbf16ps, 16 x 32 tiles", spin, nullptr};
  return &loops;
}

}  // namespace triax
