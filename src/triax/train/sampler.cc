// Drawing documents.
#include "triax/train/sampler.h"

#include <algorithm>
#include <numeric>

#include "triax/core/error.h"
#include "triax/core/rng.h"

namespace triax::train {

Sampler::Sampler(std::span<const DocumentSet> sources, std::uint64_t seed)
    : sources_(sources), seed_(seed), positions_(sources.size()), order_(sources.size()) {
  for (const DocumentSet& s : sources) {
    TRIAX_CHECK(s.documents() > 0);
    weights_ += s.weight;
  }
  for (std::size_t s = 0; s < sources.size(); ++s) shuffle(s);
}

void Sampler::shuffle(std::size_t source) {
  std::vector<std::uint32_t>& order = order_[source];
  order.resize(sources_[source].documents());
  std::iota(order.begin(), order.end(), 0u);
  const std::uint64_t key = splitmix64_at(splitmix64_at(seed_, source), positions_[source].epoch);
  Rng rng(key);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.next() % i]);
}

Piece Sampler::peek(std::size_t context) {
  TRIAX_CHECK(!sources_.empty());
  std::uint64_t total = 0;
  for (const SourcePosition& p : positions_) total += p.tokens;
  std::size_t next = 0;
  double most = -1e300;
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    const double share = sources_[s].weight / weights_;
    // relative: at the start, where all have nothing, the heaviest comes first
    const double behind =
        share * static_cast<double>(total + 1) - static_cast<double>(positions_[s].tokens);
    if (behind <= most) continue;
    most = behind;
    next = s;
  }
  pass_over(next, context);
  const DocumentSet& set = sources_[next];
  const SourcePosition& p = positions_[next];
  const std::size_t document = order_[next][p.index];
  const std::size_t begin = set.begin[document] + p.row;
  const std::size_t left = set.begin[document + 1] - 1 - begin;
  return {set.ids.data() + begin, set.learn.data() + begin, std::min(left, context), next};
}

void Sampler::next_document(std::size_t source) {
  SourcePosition& p = positions_[source];
  p.row = 0;
  if (++p.index < sources_[source].documents()) return;
  p.index = 0;
  ++p.epoch;
  shuffle(source);
}

void Sampler::pass_over(std::size_t source, std::size_t context) {
  const DocumentSet& set = sources_[source];
  for (std::size_t n = 0; n <= 2 * set.documents(); ++n) {
    const std::size_t document = order_[source][positions_[source].index];
    if (set.whole[document] == 0 || set.rows(document) <= context) return;
    next_document(source);
  }
  fail(
      "data source {}: every document is longer than the context of {} and none may be cut; "
      "lengthen the stage's context, or set longer = \"cut\"",
      in_quotes(set.name), context);
}

void Sampler::pop(const Piece& piece) {
  SourcePosition& p = positions_[piece.source];
  const DocumentSet& set = sources_[piece.source];
  p.tokens += piece.rows;
  p.row += piece.rows;
  const std::size_t document = order_[piece.source][p.index];
  if (p.row + 1 < set.begin[document + 1] - set.begin[document]) return;
  next_document(piece.source);
}

void Sampler::set_positions(std::span<const SourcePosition> positions) {
  if (positions.size() != sources_.size()) {
    fail("the checkpoint knows {} data sources, the configuration {}", positions.size(),
         sources_.size());
  }
  positions_.assign(positions.begin(), positions.end());
  for (std::size_t s = 0; s < sources_.size(); ++s) {
    if (positions_[s].index >= sources_[s].documents()) {
      fail("data source {}: the checkpoint stands at document {} of {}; the data changed",
           in_quotes(sources_[s].name), positions_[s].index, sources_[s].documents());
    }
    shuffle(s);
  }
}

void PackedBatch::add(const Piece& piece) {
  documents.push_back({ids.size(), piece.rows});
  for (std::size_t t = 0; t < piece.rows; ++t) {
    ids.push_back(piece.ids[t]);
    const bool learned = piece.learn[t + 1] != 0;
    targets.push_back(learned ? piece.ids[t + 1] : ops::kNoTarget);
    counted += learned ? 1 : 0;
  }
}

std::vector<PackedBatch> draw_step(Sampler& sampler, const Stage& stage) {
  std::vector<PackedBatch> out(1);
  std::size_t rows = 0, counted = 0;
  while (rows < stage.batch_tokens || counted == 0) {
    const Piece piece = sampler.peek(stage.context);
    const std::size_t filled = out.back().ids.size();
    if (filled != 0 && filled + piece.rows > stage.micro_batch_tokens) out.emplace_back();
    out.back().add(piece);
    sampler.pop(piece);
    rows += piece.rows;
    counted = 0;
    for (const PackedBatch& batch : out) counted += batch.counted;
  }
  return out;
}

}  // namespace triax::train
