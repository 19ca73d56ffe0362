#include "triax/sampling/grammar/token_index.h"

#include <algorithm>
#include <numeric>

#include "triax/sampling/grammar/number_dfa.h"

namespace triax::grammar {

namespace {

// Masks of fewer tokens than this are kept as a list.
constexpr std::size_t kSparse = 2048;
constexpr std::size_t kKeptBytes = std::size_t{8} << 20;  // of masks, by one lexeme

}  // namespace

TokenTree::TokenTree(const RankTable& ranks) {
  std::vector<std::int32_t> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](std::int32_t a, std::int32_t b) { return ranks.bytes(a) < ranks.bytes(b); });
  const auto add = [&](std::uint8_t byte, std::size_t depth, std::uint32_t parent) {
    byte_.push_back(byte);
    depth_.push_back(static_cast<std::uint16_t>(depth));
    parent_.push_back(parent);
    end_.push_back(0);
    token_.push_back(-1);
    return static_cast<std::uint32_t>(byte_.size() - 1);
  };
  std::vector<std::uint32_t> path{add(0, 0, 0)};
  std::string_view before;
  const auto close_to = [&](std::size_t depth) {
    while (path.size() > depth + 1) {
      end_[path.back()] = static_cast<std::uint32_t>(byte_.size());
      path.pop_back();
    }
  };
  for (const std::int32_t id : order) {
    const std::string_view bytes = ranks.bytes(id);
    TRIAX_CHECK(bytes.size() < 0xFFFF, "a token is not that long");
    std::size_t common = 0;
    while (common < before.size() && common < bytes.size() && before[common] == bytes[common]) {
      ++common;
    }
    close_to(common);
    for (std::size_t i = common; i < bytes.size(); ++i) {
      path.push_back(add(static_cast<std::uint8_t>(bytes[i]), i + 1, path.back()));
    }
    token_[path.back()] = id;
    longest_ = std::max(longest_, bytes.size());
    before = bytes;
  }
  close_to(0);
  end_[0] = static_cast<std::uint32_t>(byte_.size());
}

std::size_t LexMask::memory() const {
  return sizeof(LexMask) + bits.size() * 8 + tokens.size() * 4 + starts.size() * 2 +
         (exits.size() + ends.size()) * sizeof(Exit);
}

namespace {

// Walks the tree from one state of an automaton.
class MaskWalk {
 public:
  MaskWalk(const ByteDfa& dfa, const TokenTree& tree, bool leaves)
      : dfa_(dfa),
        tree_(tree),
        leaves_(leaves),
        state_(tree.longest() + 1),
        starts_(tree.longest() + 1) {}

  void run(std::uint16_t state) {
    state_[0] = state;
    const auto size = static_cast<std::uint32_t>(tree_.size());
    for (std::uint32_t node = 1; node < size;) {
      const std::size_t depth = tree_.depth(node);
      const std::uint16_t from = state_[depth - 1];
      const std::uint16_t to = dfa_.next(from, tree_.byte(node));
      if (to == ByteDfa::kDead) {
        node = tree_.end(node);
        continue;
      }
      state_[depth] = to;
      const bool closes = dfa_.accepts(to) && !dfa_.boundary(to);
      starts_[depth] =
          static_cast<std::uint16_t>(starts_[depth - 1] + (dfa_.boundary(from) && !closes ? 1 : 0));
      if (tree_.token(node) >= 0) {
        if (dfa_.last(to)) {
          ends.push_back({node, starts_[depth]});
        } else {
          tokens.push_back(tree_.token(node));
          starts.push_back(starts_[depth]);
        }
      }
      if (leaves_ && dfa_.accepts(to) && tree_.end(node) > node + 1) {
        exits.push_back({node, starts_[depth]});
      }
      ++node;
    }
  }

  std::vector<std::int32_t> tokens;
  std::vector<std::uint16_t> starts;
  std::vector<LexMask::Exit> ends, exits;

 private:
  const ByteDfa& dfa_;
  const TokenTree& tree_;
  bool leaves_;                                // tokens may go on behind the lexeme
  std::vector<std::uint16_t> state_, starts_;  // [depth]
};

LexMask make_mask(MaskWalk walk, bool counted, std::size_t words) {
  LexMask mask;
  mask.ends = std::move(walk.ends);
  mask.exits = std::move(walk.exits);
  mask.dense = walk.tokens.size() >= kSparse;
  if (mask.dense) {
    mask.bits.assign(words, 0);
    if (counted) mask.starts.assign(words * 64, 0xFFFF);
    for (std::size_t i = 0; i < walk.tokens.size(); ++i) {
      const auto id = static_cast<std::size_t>(walk.tokens[i]);
      mask.bits[id / 64] |= std::uint64_t{1} << (id % 64);
      if (counted) mask.starts[id] = walk.starts[i];
    }
  } else {
    mask.tokens = std::move(walk.tokens);
    if (counted) mask.starts = std::move(walk.starts);
  }
  return mask;
}

}  // namespace

std::shared_ptr<const LexMask> Lexeme::mask(std::uint16_t state, bool counted,
                                            const TokenTree& tree, std::size_t words) const {
  const std::size_t at = std::size_t{state} * 2 + (counted ? 1 : 0);
  {
    const std::lock_guard lock(mutex_);
    if (masks_.empty()) masks_.resize(dfa_.states() * 2);
    if (masks_[at] != nullptr) return masks_[at];
  }
  MaskWalk walk(dfa_, tree, !marker_);
  walk.run(state);
  auto mask = std::make_shared<const LexMask>(make_mask(std::move(walk), counted, words));
  const std::lock_guard lock(mutex_);
  if (kept_ + mask->memory() > kKeptBytes) {  // rarely: an automaton of thousands of wide states
    std::fill(masks_.begin(), masks_.end(), nullptr);
    kept_ = 0;
  }
  if (masks_[at] == nullptr) kept_ += mask->memory();
  masks_[at] = mask;
  return mask;
}

TokenIndex::TokenIndex(const Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      tree_(tokenizer.ranks()),
      vocab_(static_cast<std::size_t>(tokenizer.vocab_size())) {
  Budget budget(GrammarLimits{60, std::size_t{256} << 20});
  NumberRule integer;
  integer.integer = true;
  const auto add = [&](ByteDfa dfa, bool marker_follows) {
    commons_.push_back(std::make_shared<const Lexeme>(std::move(dfa), marker_follows));
  };
  add(json_string_dfa(budget), false);
  add(json_key_dfa(budget), false);
  add(number_dfa({}, budget), false);
  add(number_dfa(integer, budget), false);
  add(raw_text_dfa(budget), true);
  add(attribute_dfa(budget), true);
  add(any_bytes_dfa(budget), true);
  // The wide masks before the first request needs one.
  for (const auto& lexeme : commons_) {
    const auto states = static_cast<std::uint16_t>(lexeme->dfa().states());
    for (std::uint16_t s = 0; s < states; ++s) {
      lexeme->mask(s, false, tree_, words());
      if (lexeme->dfa().boundary(s)) lexeme->mask(s, true, tree_, words());
    }
  }
}

}  // namespace triax::grammar
