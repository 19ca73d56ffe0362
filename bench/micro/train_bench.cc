// Whole training steps at the shape of the default model, on random data: forward and backward
// passes in micro-batches, quantisation, optimiser, balancing. Prints GFLOP/s by 6 N tokens (N the
// weights that a token uses, with the head, without the embedding) and the time by part.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "triax/core/rng.h"
#include "triax/kernels/kernels.h"
#include "triax/train/init.h"
#include "triax/train/optimizer.h"
#include "triax/train/qat.h"
#include "triax/train/quantile_balancing.h"
#include "triax/train/step.h"

namespace triax::train {
namespace {

using Clock = std::chrono::steady_clock;

// The "mini" shape: 9 layers, KDA and MLA in K3's pattern, the first one dense.
constexpr const char* kMini = R"({"architectures": ["KimiK3ForConditionalGeneration"],
 "model_type": "kimi_k3", "dtype": "bfloat16", "tie_word_embeddings": false, "text_config": {
 "architectures": ["KimiLinearForCausalLM"], "model_type": "kimi_linear", "dtype": "bfloat16",
 "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0, "attn_res_block_size": 3,
 "first_k_dense_replace": 1, "hidden_act": "situ", "hidden_size": 192, "intermediate_size": 512,
 "kv_lora_rank": 64, "latent_moe_use_norm": true, "linear_attn_config": {
 "full_attn_layers": [4, 8, 9], "gate_lower_bound": -5.0, "head_dim": 64,
 "kda_layers": [1, 2, 3, 5, 6, 7], "num_heads": 3, "short_conv_kernel_size": 4,
 "use_full_rank_gate": true}, "max_position_embeddings": 4096, "mla_use_nope": true,
 "mla_use_output_gate": true, "moe_intermediate_size": 128, "moe_layer_freq": 1,
 "moe_renormalize": true, "moe_router_activation_func": "sigmoid", "num_attention_heads": 3,
 "num_expert_group": 1, "num_experts": 48, "num_experts_per_token": 6, "num_hidden_layers": 9,
 "num_key_value_heads": 3, "num_nextn_predict_layers": 0, "num_shared_experts": 2,
 "q_lora_rank": 64, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32, "rms_norm_eps": 1e-05,
 "routed_expert_hidden_size": 96, "routed_scaling_factor": 1.0, "tie_word_embeddings": false,
 "topk_group": 1, "topk_method": "noaux_tc", "use_cache": true, "use_grouped_topk": true,
 "v_head_dim": 64, "vocab_size": 4352}})";

struct Options {
  std::size_t tokens = 16384, micro = 2048, document = 256, threads = 2, steps = 4;
  std::string products = "bf16";
};

// Weights that a token uses, with the head, without the embedding.
std::size_t active_weights(const ParameterLayout& layout) {
  const K3Config& c = layout.config();
  std::size_t all = 0, experts = 0;
  for (const ParameterLayout::Tensor& t : layout.tensors()) {
    (t.id.row->role == TensorRole::expert_packed ? experts : all) += t.size;
  }
  all -= layout.of(&layout.names().embed_tokens).size;
  return all + experts * c.num_experts_per_token / std::max<std::size_t>(c.num_experts, 1);
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : o_(options),
        config_(K3Config::parse(kMini, "mini")),
        layout_(config_),
        masters_(layout_),
        weights_(layout_),
        gradients_(layout_),
        pool_(options.threads),
        optimizer_(layout_, settings(options)) {
    init_parameters(1, masters_);
    for (std::size_t l = 0; l < config_.num_hidden_layers; ++l) {
      balancers_.push_back(
          std::make_unique<QuantileBalancer>(config_.num_experts, config_.num_experts_per_token));
    }
    for (std::size_t t = 0; t < o_.tokens; ++t) {
      ids_.push_back(static_cast<std::int32_t>(splitmix64_at(1, t) % config_.vocab_size));
      targets_.push_back(static_cast<std::int32_t>(splitmix64_at(2, t) % config_.vocab_size));
    }
  }

  void run() {
    const double flop =
        6.0 * static_cast<double>(active_weights(layout_)) * static_cast<double>(o_.tokens);
    fmt::print(
        "{} active weights, {} tokens a step in micro-batches of {}, documents of {}, {} "
        "threads, {}, {} products\n",
        active_weights(layout_), o_.tokens, o_.micro, o_.document, o_.threads, kernels().name,
        o_.products);
    step();  // memory is there, experts are balanced a little
    Profile profile;
    context_.profile = &profile;
    times_ = {};
    double best = 0;
    const auto begin = Clock::now();
    const std::clock_t clock = std::clock();
    for (std::size_t n = 0; n < o_.steps; ++n) {
      const auto at = Clock::now();
      step();
      const double seconds = since(at);
      best = std::max(best, flop / seconds);
      fmt::print("step {}: {:.3f} s, {:.1f} GFLOP/s, loss {:.4f}\n", n, seconds,
                 flop / seconds * 1e-9, loss_);
    }
    const double all = since(begin), steps = static_cast<double>(o_.steps);
    const double processor = static_cast<double>(std::clock() - clock) / CLOCKS_PER_SEC;
    fmt::print(
        "{:.1f} GFLOP/s sustained, {:.1f} at best; {:.0f} tokens/s; {:.0f} MB of activations\n",
        flop * steps / all * 1e-9, best * 1e-9, static_cast<double>(o_.tokens) * steps / all,
        static_cast<double>(arena_.peak_bytes()) * 1e-6);
    // On a machine that others use too this is what a step would take alone.
    fmt::print("{:.1f} GFLOP/s by {:.2f} s of processor time a step over {} threads\n",
               flop * steps / processor * static_cast<double>(o_.threads) * 1e-9, processor / steps,
               o_.threads);
    const auto line = [&](std::string_view name, double seconds, double operations) {
      fmt::print("  {:16} {:8.1f} ms {:5.1f} %", name, seconds / steps * 1e3, seconds / all * 100);
      if (operations > 0) fmt::print(" {:8.1f} GFLOP/s", operations / seconds * 1e-9);
      fmt::print("\n");
    };
    for (std::size_t f = 0; f < kFamilies; ++f) {
      const Profile::Entry& e = profile[static_cast<Family>(f)];
      if (e.seconds > 0) {
        line(family_name(static_cast<Family>(f)), e.seconds, static_cast<double>(e.operations));
      }
    }
    line("quantisation", times_.quantise, 0);
    line("optimiser", times_.optimise, 0);
    line("balancing", times_.balance, 0);
  }

 private:
  struct Times {
    double quantise = 0, optimise = 0, balance = 0;
  };
  static OptimizerSettings settings(const Options& o) {
    OptimizerSettings out;
    if (o.products == "bf16") out.muon_products = ops::Products::bf16;
    return out;
  }
  static double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
  std::span<float> bias(std::size_t layer) {
    return masters_.vector(layout_.names().layers[layer].moe.e_score_correction_bias).span();
  }
  bool moe(std::size_t layer) const { return config_.ffn(layer) == Ffn::moe; }

  void step() {
    auto at = Clock::now();
    exported_values(context_, masters_, {}, weights_);
    times_.quantise += since(at);
    std::fill(gradients_.all().begin(), gradients_.all().end(), 0.0f);
    at = Clock::now();
    for (std::size_t l = 0; l < balancers_.size(); ++l) {
      if (moe(l)) balancers_[l]->begin_step(bias(l));
    }
    times_.balance += since(at);
    StepWatch<float> watch;
    watch.routed = [&](std::size_t layer, Mat<const float> scores, Mat<const std::int32_t>) {
      const auto begin = Clock::now();
      balancers_[layer]->count(context_, scores);
      times_.balance += since(begin);
    };
    StepOptions options;
    if (o_.products == "bf16") options.products = ops::Products::bf16;
    double sum = 0;
    if (context_.profile != nullptr) context_.profile->start();
    for (std::size_t t = 0; t < o_.tokens; t += o_.micro) {
      const std::size_t end = std::min(o_.tokens, t + o_.micro);
      std::vector<Segment> documents;
      for (std::size_t d = 0; d < end - t; d += o_.document) {
        documents.push_back({d, std::min(o_.document, end - t - d)});
      }
      const TrainBatch batch{Vec<const std::int32_t>(ids_).slice(t, end),
                             Vec<const std::int32_t>(targets_).slice(t, end), documents};
      sum += loss_and_gradient<float>(context_, weights_, batch, 1 / static_cast<float>(o_.tokens),
                                      gradients_, &watch, {}, options)
                 .sum;
    }
    if (context_.profile != nullptr) context_.profile->stop();
    loss_ = sum / static_cast<double>(o_.tokens);
    at = Clock::now();
    optimizer_.step(context_, 1e-3, gradients_, masters_);
    qk_clip(100, watch.max_logits, masters_);
    times_.optimise += since(at);
    at = Clock::now();
    for (std::size_t l = 0; l < balancers_.size(); ++l) {
      if (moe(l)) balancers_[l]->end_step(bias(l));
    }
    times_.balance += since(at);
  }

  Options o_;
  K3Config config_;
  ParameterLayout layout_;
  Parameters<float> masters_, weights_, gradients_;
  ThreadPool pool_;
  Arena arena_;
  Context context_{pool_, arena_, Precision::f32, nullptr};
  Optimizer optimizer_;
  std::vector<std::unique_ptr<QuantileBalancer>> balancers_;
  std::vector<std::int32_t> ids_, targets_;
  double loss_ = 0;
  Times times_;
};

}  // namespace
}  // namespace triax::train

int main(int argc, char** argv) {
  CLI::App app("Training steps at the shape of the default model.");
  triax::train::Options options;
  app.add_option("--tokens", options.tokens, "tokens a step");
  app.add_option("--micro", options.micro, "tokens of a micro-batch");
  app.add_option("--document", options.document, "tokens of a document");
  app.add_option("--threads", options.threads, "threads");
  app.add_option("--steps", options.steps, "steps measured, after one that is not");
  app.add_option("--products", options.products, "bf16 or f32")
      ->check(CLI::IsMember({"bf16", "f32"}));
  CLI11_PARSE(app, argc, argv);
  triax::train::Bench(options).run();
  return 0;
}
