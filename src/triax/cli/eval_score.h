// Scoring a text with one way of computing, and any number of others beside it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "triax/cli/load_model.h"
#include "triax/cli/settings.h"

namespace triax::cli {

// What another way of computing makes of the text, next to the first.
struct Comparison {
  std::string name;  // "trunk=int8:kda"; "" for the one that was asked for
  Settings settings;
  std::size_t saved_bytes = 0;    // of weights, by 8-bit codes
  std::vector<double> losses;     // nats, one a predicted token
  std::vector<double> distances;  // KL of the first from this one, nats, likewise
  std::size_t same_top = 0;       // predicted tokens with the same likeliest token

  double top1_agreement() const;
};

struct Scores {
  std::vector<double> losses;  // nats, one a predicted token
  std::vector<Comparison> others;
  double seconds = 0;
};

double mean(const std::vector<double>& values);

// Scores `ids` with `settings`, and, when `against` is given, with that; `by_family` adds each
// family of its 8-bit trunk alone. The text goes through all ways pass by pass; the stored weights
// are shared, and every 8-bit matrix is made once.
Scores score(Session& session, std::span<const std::int32_t> ids, const Settings& settings,
             const std::optional<Settings>& against, bool by_family);

}  // namespace triax::cli
