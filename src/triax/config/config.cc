// What follows from a K3Config alone; reading it stands in parse.cc.
#include "triax/config/config.h"

#include <algorithm>

namespace triax {

std::size_t K3Config::blocks() const {
  if (!uses_attn_res()) return 0;
  return (num_hidden_layers + attn_res_block_size - 1) / attn_res_block_size;
}

std::size_t K3Config::kda_layers() const {
  return static_cast<std::size_t>(
      std::count(layer_kinds.begin(), layer_kinds.end(), LayerKind::kda));
}

std::size_t K3Config::mla_layers() const {
  return num_hidden_layers - kda_layers();
}

std::size_t K3Config::moe_layers() const {
  std::size_t n = 0;
  for (std::size_t layer = 0; layer < num_hidden_layers; ++layer) n += ffn(layer) == Ffn::moe;
  return n;
}

std::size_t K3Config::assumed_a_log_entries() const {
  if (kda_head_dim == 0) return 0;
  return (kda_num_heads + kda_head_dim - 1) / kda_head_dim * kda_head_dim;
}

}  // namespace triax
