// What `triax distill` is told: one file, TOML or JSON, every key checked. docs/training.md lists
// the keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "triax/world/document.h"

namespace triax::distill {

inline constexpr std::size_t kEfforts = 3;  // world::Effort

// Which part of the suite grades a domain.
enum class SuitePart : std::uint8_t { none, stories, sums, tools };

// Documents of some kinds of the small world; one teacher for each effort.
struct Domain {
  std::string name;
  std::vector<std::string> kinds;  // conversations: world::kinds()
  SuitePart suite = SuitePart::none;
  std::size_t items = 100;  // of the suite, for each effort
  // Model folders of teachers that exist already; empty: made from the beginning model.
  std::array<std::filesystem::path, kEfforts> teachers;
};

// The fine-tune that makes a teacher.
struct TeacherPlan {
  std::uint64_t tokens = 200'000;
  std::size_t context = 640, batch_tokens = 4096;
  double rate = 1e-3, warmup = 0.05, final_fraction = 0.1;
  double balance_keep = 0;
};

struct StudentPlan {
  std::size_t steps = 150;
  std::size_t samples = 64;      // of a step, over all teachers in turn
  std::size_t max_tokens = 384;  // of a sample
  std::size_t context = 640;     // longest prompt
  std::size_t micro_batch_tokens = 4096;
  double rate = 3e-4, warmup = 0.05, final_fraction = 0.1;
  double balance_keep = 0;
  double reward_limit = 5;  // R_max
};

struct EvaluationPlan {
  std::size_t prompts = 32;  // of each teacher, for the divergence before and after
  std::uint64_t seed = 7;    // of the suite
};

struct DistillConfig {
  std::uint64_t seed = 1;
  std::filesystem::path model;  // teachers and student begin with it
  std::vector<Domain> domains;
  TeacherPlan teacher;
  StudentPlan student;
  EvaluationPlan evaluation;
  std::size_t checkpoint_steps = 20;  // between two checkpoints of the student

  // Teachers are numbered domain by domain, low, high and max of each.
  std::size_t teachers() const { return domains.size() * kEfforts; }
  const Domain& domain(std::size_t of) const { return domains[of / kEfforts]; }
  static world::Effort effort(std::size_t of) { return static_cast<world::Effort>(of % kEfforts); }
  std::string teacher_name(std::size_t of) const;  // "stories-low"
};

// As parse_train_config() of train/train_config.h.
DistillConfig parse_distill_config(std::string_view text, bool json, std::string_view where,
                                   const std::filesystem::path& folder);
DistillConfig load_distill_config(const std::filesystem::path& file);

// Every key with its value, absolute paths: JSON that parse_distill_config() reads to the same.
std::string resolved_text(const DistillConfig& config);
// The first key in which two differ, "" when one may go on with the other's folder.
std::string first_difference(const DistillConfig& a, const DistillConfig& b);

}  // namespace triax::distill
