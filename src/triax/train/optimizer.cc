// Muon, AdamW, QK-clip and the schedule.
#include "triax/train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <tuple>

#include "triax/ops/backward/newton_schulz.h"
#include "triax/ops/split.h"

namespace triax::train {
namespace {

constexpr std::size_t kStretch = 16384;  // numbers of an AdamW item

bool by_muon(Update update) {
  return update == Update::muon || update == Update::muon_heads || update == Update::muon_key_value;
}

// What a tensor gets when matrices are updated so.
Update update_of(const ParameterLayout::Tensor& t, Matrices matrices) {
  const Update update = t.id.row->update;
  if (!by_muon(update) || matrices == Matrices::muon_heads) return update;
  return matrices == Matrices::adamw ? Update::adamw : Update::muon;
}

bool by_adam(Update update) {
  return update == Update::adamw || update == Update::adamw_no_decay;
}

}  // namespace

double Schedule::rate(std::size_t step) const {
  const double total = static_cast<double>(std::max<std::size_t>(steps, 1));
  const double rise = std::max(1.0, std::round(warmup * total));
  const double at = static_cast<double>(step);
  if (at < rise) return peak * (at + 1) / rise;
  const double progress = std::min(1.0, (at - rise) / std::max(1.0, total - rise));
  const double wave = 0.5 * (1 + std::cos(std::numbers::pi * progress));
  return peak * (final_fraction + (1 - final_fraction) * wave);
}

std::vector<MuonBlock> muon_blocks(const ParameterLayout::Tensor& t, const K3Config& c,
                                   Matrices matrices) {
  const Update update = update_of(t, matrices);
  if (!by_muon(update)) return {};
  if (update == Update::muon) return {{0, t.rows()}};
  const bool kda = c.is_kda(t.id.layer);
  const std::size_t heads = kda ? c.kda_num_heads : c.num_attention_heads;
  TRIAX_CHECK(heads != 0 && t.rows() % heads == 0, "whole heads");
  const std::size_t head = t.rows() / heads;
  std::vector<MuonBlock> out;
  for (std::size_t h = 0; h < heads; ++h) {
    if (update == Update::muon_heads) {
      out.push_back({h * head, head});
    } else {
      out.push_back({h * head, c.qk_nope_head_dim});
      out.push_back({h * head + c.qk_nope_head_dim, head - c.qk_nope_head_dim});
    }
  }
  return out;
}

std::string update_text(const ParameterLayout::Tensor& t, const K3Config& c, Matrices matrices) {
  const std::vector<MuonBlock> blocks = muon_blocks(t, c, matrices);
  if (blocks.empty()) return std::string(update_name(update_of(t, matrices)));
  if (blocks.size() == 1) return fmt::format("Muon, {} x {}", t.rows(), t.cols());
  if (t.id.row->update == Update::muon_key_value) {
    return fmt::format("Muon, {} heads of {} x {} (keys) and {} x {} (values)", blocks.size() / 2,
                       blocks[0].rows, t.cols(), blocks[1].rows, t.cols());
  }
  return fmt::format("Muon, {} heads of {} x {}", blocks.size(), blocks[0].rows, t.cols());
}

double gradient_norm(Context& ctx, const Parameters<float>& gradients) {
  const std::span<const float> g = gradients.all();
  const std::size_t stretches = (g.size() + kStretch - 1) / kStretch;
  std::vector<double> sums(stretches);
  ctx.pool.parallel_for(stretches, [&](std::size_t i, std::size_t) {
    double sum[8] = {};  // side by side; stretches are whole multiples of 8 but for the last
    const std::size_t end = std::min(g.size(), (i + 1) * kStretch);
    const auto add = [&](std::size_t lane, float x) {
      sum[lane] += static_cast<double>(x) * static_cast<double>(x);
    };
    std::size_t j = i * kStretch;
    for (; j + 8 <= end; j += 8) {
      for (std::size_t lane = 0; lane < 8; ++lane) add(lane, g[j + lane]);
    }
    for (std::size_t lane = 0; j < end; ++j, ++lane) add(lane, g[j]);
    sums[i] = std::accumulate(sum, sum + 8, 0.0);
  });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

Optimizer::Optimizer(const ParameterLayout& layout, const OptimizerSettings& settings)
    : layout_(&layout), settings_(settings), first_(layout.size()) {
  std::size_t seconds = 0;
  const auto tensors = layout.tensors();
  second_offset_.resize(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (const MuonBlock& b : muon_blocks(tensors[i], layout.config(), settings.matrices)) {
      muon_items_.push_back({i, b.begin, b.rows});
      const std::size_t cols = tensors[i].cols();
      const std::size_t own = settings.muon_products == ops::Products::bf16
                                  ? ops::rounded_newton_schulz_scratch(b.rows, cols)
                                  : ops::newton_schulz_scratch(b.rows, cols);
      scratch_ = std::max(scratch_, ops::round_up(2 * ops::round_up(b.rows * cols, 16) + own, 16));
    }
    if (!by_adam(update_of(tensors[i], settings.matrices))) continue;
    second_offset_[i] = seconds;
    seconds += tensors[i].size;
    for (std::size_t at = 0; at < tensors[i].size; at += kStretch) {
      adam_items_.push_back({i, at, std::min(kStretch, tensors[i].size - at)});
    }
  }
  second_ = Buffer<float>(seconds);
  // The largest blocks first: workers then finish together.
  const auto work = [&](const Item& item) {
    const std::size_t cols = tensors[item.tensor].cols();
    return item.rows * cols * std::min(item.rows, cols);
  };
  std::sort(muon_items_.begin(), muon_items_.end(), [&](const Item& a, const Item& b) {
    const std::size_t more = work(a), less = work(b);
    return more != less ? more > less : std::tie(a.tensor, a.begin) < std::tie(b.tensor, b.begin);
  });
}

double Optimizer::step(Context& ctx, double rate, const Parameters<float>& gradients,
                       Parameters<float>& weights) {
  TRIAX_CHECK(&gradients.layout() == layout_ && &weights.layout() == layout_);
  const double norm = gradient_norm(ctx, gradients);
  const bool clip = settings_.clip_norm > 0 && norm > settings_.clip_norm;
  const auto scale = static_cast<float>(clip ? settings_.clip_norm / norm : 1.0);
  ++steps_;
  muon(ctx, rate, scale, gradients, weights);
  adamw(ctx, rate, scale, gradients, weights);
  return norm;
}

void Optimizer::muon(Context& ctx, double rate, float scale, const Parameters<float>& gradients,
                     Parameters<float>& weights) {
  const Arena::Scope scope(ctx.arena);
  const std::span<float> scratch = ctx.arena.take<float>(ctx.pool.threads() * scratch_);
  const auto mu = static_cast<float>(settings_.muon_momentum);
  const auto keep = static_cast<float>(1 - rate * settings_.weight_decay);
  ctx.pool.parallel_for(muon_items_.size(), [&](std::size_t i, std::size_t worker) {
    const Item& item = muon_items_[i];
    const ParameterLayout::Tensor& t = layout_->tensors()[item.tensor];
    const std::size_t cols = t.cols(), n = item.rows * cols, at = item.begin * cols;
    const float* g = gradients[t].data() + at;
    float *momentum = first_.data() + t.offset + at, *w = weights[t].data() + at;
    float *u = scratch.data() + worker * scratch_, *o = u + ops::round_up(n, 16);
    float* own = o + ops::round_up(n, 16);
    for (std::size_t j = 0; j < n; ++j) {
      const float given = scale * g[j];
      momentum[j] = mu * momentum[j] + given;
      u[j] = given + mu * momentum[j];
    }
    const Mat<const float> update(u, {item.rows, cols});
    const Mat<float> orthogonal(o, {item.rows, cols});
    if (settings_.muon_products == ops::Products::bf16) {
      ops::rounded_newton_schulz(update, orthogonal, own);
    } else {
      ops::newton_schulz<float>(update, orthogonal, own);
    }
    const auto change = static_cast<float>(
        rate * settings_.muon_rms * std::sqrt(static_cast<double>(std::max(item.rows, cols))));
    for (std::size_t j = 0; j < n; ++j) w[j] = keep * w[j] - change * o[j];
  });
}

void Optimizer::adamw(Context& ctx, double rate, float scale, const Parameters<float>& gradients,
                      Parameters<float>& weights) {
  const double b1 = settings_.adam_beta1, b2 = settings_.adam_beta2;
  const auto count = static_cast<double>(steps_);
  const auto change = static_cast<float>(rate / (1 - std::pow(b1, count)));
  const auto spread = static_cast<float>(1 / (1 - std::pow(b2, count)));
  const auto eps = static_cast<float>(settings_.adam_eps);
  const auto m1 = static_cast<float>(b1), m2 = static_cast<float>(b2);
  ctx.pool.parallel_for(adam_items_.size(), [&](std::size_t i, std::size_t) {
    const Item& item = adam_items_[i];
    const ParameterLayout::Tensor& t = layout_->tensors()[item.tensor];
    const bool decays = update_of(t, settings_.matrices) == Update::adamw;
    const auto keep = static_cast<float>(decays ? 1 - rate * settings_.weight_decay : 1.0);
    const float* g = gradients[t].data() + item.begin;
    float *m = first_.data() + t.offset + item.begin, *w = weights[t].data() + item.begin;
    float* v = second_.data() + second_offset_[item.tensor] + item.begin;
    for (std::size_t j = 0; j < item.rows; ++j) {
      const float given = scale * g[j];
      m[j] = m1 * m[j] + (1 - m1) * given;
      v[j] = m2 * v[j] + (1 - m2) * given * given;
      w[j] = keep * w[j] - change * m[j] / (std::sqrt(v[j] * spread) + eps);
    }
  });
}

std::size_t qk_clip(double tau, std::span<const std::vector<float>> max_logits,
                    Parameters<float>& weights) {
  const K3Config& c = weights.layout().config();
  TRIAX_CHECK(max_logits.size() == c.num_hidden_layers);
  std::size_t clipped = 0;
  const auto scale_rows = [](Mat<float> w, std::size_t begin, std::size_t rows, double factor) {
    for (std::size_t r = begin; r < begin + rows; ++r) {
      for (float& x : w[r]) x = static_cast<float>(static_cast<double>(x) * factor);
    }
  };
  for (std::size_t l = 0; tau > 0 && l < max_logits.size(); ++l) {
    if (c.is_kda(l) || max_logits[l].empty()) continue;
    TRIAX_CHECK(max_logits[l].size() == c.num_attention_heads);
    const MlaWeights& names = weights.layout().names().layers[l].mla;
    const Mat<float> q = weights.matrix(c.q_lora_rank > 0 ? names.q_b_proj : names.q_proj);
    const Mat<float> kv = weights.matrix(names.kv_b_proj);
    for (std::size_t h = 0; h < c.num_attention_heads; ++h) {
      const double largest = static_cast<double>(max_logits[l][h]);
      if (!(largest > tau)) continue;
      const double gamma = tau / largest, root = std::sqrt(gamma);
      const std::size_t nope = c.qk_nope_head_dim, at = h * c.q_head_dim();
      scale_rows(q, at, nope, root);
      scale_rows(q, at + nope, c.qk_rope_head_dim, gamma);
      scale_rows(kv, h * (nope + c.v_head_dim), nope, root);
      ++clipped;
    }
  }
  return clipped;
}

}  // namespace triax::train
