// Making exercises in repeating.
#include "triax/train/repeats.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "triax/core/error.h"
#include "triax/core/rng.h"

namespace triax::train {
namespace {

constexpr double kWhole = 0.3;    // of the runs say everything again
constexpr double kGoesOn = 0.93;  // chance of each further token of another run

std::size_t below(Rng& rng, std::size_t n) {
  return rng.next() % n;
}

// Between `low` and `high`, evenly in its logarithm.
std::size_t between(Rng& rng, std::size_t low, std::size_t high) {
  const double ratio = static_cast<double>(high) / static_cast<double>(low);
  return std::min(
      high, static_cast<std::size_t>(static_cast<double>(low) * std::pow(ratio, rng.uniform())));
}

// The ids that stand for bytes, in the order of the vocabulary.
std::vector<std::int32_t> ordinary_ids(const Tokenizer& tokenizer) {
  std::vector<std::int32_t> out(static_cast<std::size_t>(tokenizer.rank_count()));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

// `count` distinct ids: the first steps of a shuffle.
std::span<const std::int32_t> distinct(Rng& rng, std::vector<std::int32_t>& ids,
                                       std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) std::swap(ids[i], ids[i + below(rng, ids.size() - i)]);
  return {ids.data(), count};
}

void add_document(Rng& rng, std::vector<std::int32_t>& ids, std::size_t length, DocumentSet& out) {
  const std::size_t most = std::min(length / 2, ids.size());
  const auto first = distinct(rng, ids, between(rng, std::min<std::size_t>(4, most), most));
  const std::size_t target = std::min(length, first.size() * (2 + below(rng, 3)));
  const std::size_t begin = out.ids.size();
  out.ids.insert(out.ids.end(), first.begin(), first.end());
  out.learn.resize(out.ids.size(), 0);
  while (out.ids.size() - begin < target) {
    const bool whole = rng.uniform() < kWhole;
    std::size_t at = whole ? 0 : below(rng, first.size() - 1);
    for (std::size_t n = 0; at < first.size() && out.ids.size() - begin < length; ++n, ++at) {
      if (!whole && n > 1 && rng.uniform() > kGoesOn) break;
      out.ids.push_back(first[at]);
      out.learn.push_back(n > 0);
    }
  }
  out.begin.push_back(out.ids.size());
  out.whole.push_back(1);
}

}  // namespace

DocumentSet make_repeats(const DataSource& source, const Tokenizer& tokenizer, std::uint64_t seed) {
  std::vector<std::int32_t> ids = ordinary_ids(tokenizer);
  TRIAX_CHECK(source.documents > 0 && source.length >= 8);
  DocumentSet out;
  out.name = source.name;
  out.weight = source.weight;
  Rng rng(splitmix64_mix(seed ^ 0x7265706561747300ull));
  for (std::size_t d = 0; d < source.documents; ++d) add_document(rng, ids, source.length, out);
  return out;
}

}  // namespace triax::train
