// The plan of a training.
#include "triax/cli/train_plan.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "triax/cli/format.h"
#include "triax/core/clock.h"
#include "triax/core/rng.h"
#include "triax/kernels/kernels.h"
#include "triax/machine/limits.h"
#include "triax/train/init.h"
#include "triax/train/run.h"
#include "triax/train/step.h"
#include "triax/weights/accounting.h"

namespace triax::cli {
namespace {

using nlohmann::ordered_json;
using train::ParameterLayout;
using train::Parameters;
using train::Stage;

constexpr double kMeasuredOperations = 3e12;  // a longer pass is not measured

// Tensors that differ in layer and expert alone.
struct Group {
  std::string name, shape, update;
  std::vector<std::size_t> layers;
  std::size_t tensors = 0;
  std::uint64_t parameters = 0;
};

std::string with_letter(std::string name, std::string_view part, std::size_t number, char letter) {
  const std::string found = fmt::format("{}{}.", part, number);
  const std::size_t at = name.find(found);
  if (at == std::string::npos) return name;
  return name.replace(at, found.size(), fmt::format("{}{}.", part, letter));
}

std::vector<Group> groups_of(const ParameterLayout& layout, train::Matrices matrices) {
  std::vector<Group> out;
  std::map<std::string, std::size_t> place;
  for (const ParameterLayout::Tensor& t : layout.tensors()) {
    std::string name = with_letter(t.name, "layers.", t.id.layer, 'L');
    name = with_letter(name, "experts.", t.id.expert, 'E');
    std::string shape;
    for (const std::size_t n : t.shape) shape += fmt::format("{}{}", shape.empty() ? "" : " x ", n);
    const std::string update = update_text(t, layout.config(), matrices);
    const auto [at, fresh] = place.emplace(name + shape + update, out.size());
    if (fresh) out.push_back({name, shape, update, {}, 0, 0});
    Group& group = out[at->second];
    if (group.layers.empty() || group.layers.back() != t.id.layer) {
      group.layers.push_back(t.id.layer);
    }
    ++group.tensors;
    group.parameters += t.size;
  }
  return out;
}

// "0-2,4" for 0, 1, 2, 4.
std::string ranges(const std::vector<std::size_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    out += fmt::format("{}{}", out.empty() ? "" : ",", numbers[i]);
    if (j > i) out += fmt::format("-{}", numbers[j]);
    i = j + 1;
  }
  return out;
}

struct Memory {
  std::uint64_t weights = 0, gradients = 0, first = 0, second = 0, rounded = 0, activations = 0;
  std::uint64_t total() const {
    return weights + gradients + first + second + rounded + activations;
  }
};

std::uint64_t activation_bytes(const K3Config& model, const Stage& stage) {
  const std::size_t rows = stage.micro_batch_tokens;
  return 4 * train::activation_numbers(model, rows, std::max<std::size_t>(1, rows / stage.context));
}

Memory memory_of(const train::TrainConfig& config, const ParameterLayout& layout,
                 train::Optimizer& optimizer) {
  Memory m;
  m.weights = m.gradients = 4 * layout.size();
  m.first = optimizer.first().size_bytes();
  m.second = optimizer.second().size_bytes();
  m.rounded = 4 * layout.size();  // held-out numbers and QAT passes are of exported values
  for (const Stage& stage : config.stages) {
    m.activations = std::max(m.activations, activation_bytes(layout.config(), stage));
  }
  return m;
}

struct Speed {
  double pass_tokens_per_second = 0, optimizer_seconds = 0, peak = 0;
};

// One pass and one step of the optimiser, after one that warms up.
Speed measure(const train::TrainConfig& config, const ParameterLayout& layout,
              train::Optimizer& optimizer, std::size_t threads) {
  ThreadPool pool(threads);
  Arena arena;
  Context ctx{pool, arena, Precision::f32, nullptr};
  Speed out;
  out.peak = measure_peak(pool, kernels().isa).operations_per_second;
  const Stage& stage = config.stages[0];
  const std::size_t documents = std::max<std::size_t>(1, stage.micro_batch_tokens / stage.context);
  const std::size_t rows = documents * stage.context;
  std::vector<std::int32_t> ids(rows + 1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int32_t>(splitmix64_at(1, i) % layout.config().vocab_size);
  }
  const std::vector<std::int32_t> targets(ids.begin() + 1, ids.end());
  ids.pop_back();
  std::vector<triax::Segment> segments;
  for (std::size_t d = 0; d < documents; ++d)
    segments.push_back({d * stage.context, stage.context});
  Parameters<float> weights(layout), gradients(layout);
  init_parameters(config.seed, weights);
  for (int round = 0; round < 2; ++round) {
    const Stopwatch watch;
    train::loss_and_gradient<float>(ctx, weights, {ids, targets, segments},
                                    1 / static_cast<float>(rows), gradients, nullptr, {},
                                    train::step_options(config));
    out.pass_tokens_per_second = static_cast<double>(rows) / watch.seconds();
  }
  const Stopwatch watch;
  optimizer.step(ctx, 1e-3, gradients, weights);
  out.optimizer_seconds = watch.seconds();
  return out;
}

double expected_seconds(const train::TrainConfig& config, const Speed& speed) {
  double seconds = 0;
  for (const Stage& s : config.stages) {
    const double tokens = static_cast<double>(s.tokens);
    seconds += tokens / speed.pass_tokens_per_second +
               std::ceil(tokens / static_cast<double>(s.batch_tokens)) * speed.optimizer_seconds;
  }
  return seconds;
}

struct Plan {
  K3Config model;
  std::uint64_t parameters = 0, active = 0, active_with_embedding = 0;
  std::vector<Group> groups;
  Memory memory;
  std::optional<Speed> speed;
  double seconds = 0;
  double operations() const { return 6 * static_cast<double>(active); }
};

Plan make_plan(const train::TrainConfig& config, std::size_t threads) {
  std::string text;
  Plan plan;
  plan.model = resolve_model(config, train::planned_vocabulary(config), text);
  const Accounting accounting = account(plan.model);
  plan.parameters = accounting.text.parameters;
  plan.active = accounting.active_without_embedding;
  plan.active_with_embedding = accounting.active_with_embedding;
  const ParameterLayout layout(plan.model);
  train::Optimizer optimizer(layout, train::optimizer_settings(config));
  plan.groups = groups_of(layout, config.optimizer.matrices);
  plan.memory = memory_of(config, layout, optimizer);
  if (plan.operations() * static_cast<double>(config.stages[0].micro_batch_tokens) <=
      kMeasuredOperations) {
    plan.speed = measure(config, layout, optimizer, threads);
    plan.seconds = expected_seconds(config, *plan.speed);
  }
  return plan;
}

void print_json(const train::TrainConfig& config, const Plan& p) {
  ordered_json out{{"parameters", p.parameters},
                   {"active_parameters", p.active},
                   {"active_parameters_with_embedding", p.active_with_embedding},
                   {"flop_per_token", 6 * p.active},
                   {"tokens", config.total_tokens()}};
  out["memory_bytes"] = {{"weights", p.memory.weights},
                         {"gradients", p.memory.gradients},
                         {"first_moments", p.memory.first},
                         {"second_moments", p.memory.second},
                         {"exported_values", p.memory.rounded},
                         {"activations", p.memory.activations},
                         {"total", p.memory.total()}};
  out["stages"] = ordered_json::array();
  for (const Stage& s : config.stages) {
    out["stages"].push_back({{"tokens", s.tokens},
                             {"context", s.context},
                             {"batch_tokens", s.batch_tokens},
                             {"micro_batch_tokens", s.micro_batch_tokens},
                             {"activation_bytes", activation_bytes(p.model, s)}});
  }
  if (p.speed) {
    out["expected"] = {
        {"seconds", p.seconds},
        {"pass_tokens_per_second", p.speed->pass_tokens_per_second},
        {"optimizer_seconds", p.speed->optimizer_seconds},
        {"gflops", p.operations() * static_cast<double>(config.total_tokens()) / p.seconds * 1e-9},
        {"peak_gflops", p.speed->peak * 1e-9}};
  }
  out["tensors"] = ordered_json::array();
  for (const Group& g : p.groups) {
    out["tensors"].push_back({{"name", g.name},
                              {"shape", g.shape},
                              {"tensors", g.tensors},
                              {"parameters", g.parameters},
                              {"update", g.update},
                              {"layers", g.layers}});
  }
  fmt::print("{}\n", out.dump(2));
}

void print_text(const train::TrainConfig& config, const Plan& p) {
  fmt::print("model: {} layers ({} KDA, {} MLA), hidden {}, vocabulary {}\n",
             p.model.num_hidden_layers, p.model.kda_layers(), p.model.mla_layers(),
             p.model.hidden_size, grouped(p.model.vocab_size));
  fmt::print(
      "parameters: {}; N_active {} (weights a token uses, with the head, without the "
      "embedding)\n",
      grouped(p.parameters), grouped(p.active));
  fmt::print("operations: 6 N_active = {:.1f} MFLOP a token, {:.3g} in all\n",
             p.operations() * 1e-6, p.operations() * static_cast<double>(config.total_tokens()));
  const Memory& m = p.memory;
  fmt::print(
      "memory: {} (weights {}, gradients {}, momentum {}, second moments {}, exported values "
      "{}, activations of a pass {})\n\n",
      human_bytes(m.total()), human_bytes(m.weights), human_bytes(m.gradients),
      human_bytes(m.first), human_bytes(m.second), human_bytes(m.rounded),
      human_bytes(m.activations));
  fmt::print("{:>5}  {:>13}  {:>8}  {:>10}  {:>11}  {:>11}\n", "stage", "tokens", "context",
             "a step", "a pass", "activations");
  for (std::size_t i = 0; i < config.stages.size(); ++i) {
    const Stage& s = config.stages[i];
    fmt::print("{:>5}  {:>13}  {:>8}  {:>10}  {:>11}  {:>11}\n", i, grouped(s.tokens),
               grouped(s.context), grouped(s.batch_tokens), grouped(s.micro_batch_tokens),
               human_bytes(activation_bytes(p.model, s)));
  }
  if (p.speed) {
    const double gflops =
        p.operations() * static_cast<double>(config.total_tokens()) / p.seconds * 1e-9;
    fmt::print(
        "\nexpected: {} for {} tokens, {} tokens/s, {:.0f} GFLOP/s of this machine's {:.0f} "
        "({:.0f} %), measured on one pass and one step of the optimiser\n",
        human_seconds(p.seconds), grouped(config.total_tokens()),
        human_rate(static_cast<double>(config.total_tokens()) / p.seconds), gflops,
        p.speed->peak * 1e-9, 1e11 * gflops / p.speed->peak);
  } else {
    fmt::print("\nexpected time: a pass of this size is not measured beforehand\n");
  }
  fmt::print("\n{:<58}  {:>16}  {:>9}  {:>12}  {}\n", "tensor", "shape", "tensors", "parameters",
             "optimiser");
  for (const Group& g : p.groups) {
    const bool layered = g.name.find("layers.L.") != std::string::npos;
    fmt::print("{:<58}  {:>16}  {:>9}  {:>12}  {}{}\n", g.name, g.shape, g.tensors,
               grouped(g.parameters), g.update,
               layered ? fmt::format("; layers {}", ranges(g.layers)) : "");
  }
}

}  // namespace

void print_train_plan(const train::TrainConfig& config, std::size_t threads, bool json) {
  const Plan plan = make_plan(config, threads);
  json ? print_json(config, plan) : print_text(config, plan);
}

}  // namespace triax::cli
