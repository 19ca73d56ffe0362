#include "triax/sampling/grammar/matcher.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "triax/core/error.h"

namespace triax::grammar {
namespace {

constexpr std::size_t kMostMemory = std::size_t{4} << 20;  // of places, then they are copied anew

void set_bit(std::span<std::uint64_t> bits, std::int32_t id) {
  const auto i = static_cast<std::size_t>(id);
  bits[i / 64] |= std::uint64_t{1} << (i % 64);
}

// The tokens of the mask that begin at most `left` characters.
void add_counted(const LexMask& mask, std::uint64_t left, std::span<std::uint64_t> bits) {
  if (!mask.dense) {
    for (std::size_t i = 0; i < mask.tokens.size(); ++i) {
      if (mask.starts[i] <= left) set_bit(bits, mask.tokens[i]);
    }
    return;
  }
  const auto most = static_cast<std::uint16_t>(std::min<std::uint64_t>(left, 0xFFFE));
  for (std::size_t w = 0; w < bits.size(); ++w) {
    std::uint64_t word = 0;  // tokens of no use have 0xFFFF
    for (std::size_t b = 0; b < 64; ++b) {
      word |= std::uint64_t{mask.starts[w * 64 + b] <= most} << b;
    }
    bits[w] |= word;
  }
}

void add_all(const LexMask& mask, std::span<std::uint64_t> bits) {
  if (mask.dense) {
    for (std::size_t w = 0; w < bits.size(); ++w) bits[w] |= mask.bits[w];
  } else {
    for (const std::int32_t id : mask.tokens) set_bit(bits, id);
  }
}

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)),
      places_(grammar_->pool),
      place_(places_.start(grammar_->root)),
      stack_(grammar_->index->tree().longest() + 1) {}

bool GrammarMatcher::may_end() const {
  const auto frames = places_.frames(place_);
  return !ended_ && !frames.empty() && frames[0] == kDone;
}

bool GrammarMatcher::only_end() const {
  const auto frames = places_.frames(place_);
  return grammar_->ends.empty() && frames.size() == 1 && frames[0] == kDone;
}

// All tokens below a node of the tree that can be read from `place`.
void GrammarMatcher::walk(std::uint32_t node, PlaceId place, std::span<std::uint64_t> bits) {
  const TokenTree& tree = grammar_->index->tree();
  const std::uint32_t end = tree.end(node);
  stack_[tree.depth(node)] = place;
  for (std::uint32_t at = node + 1; at < end;) {
    const std::size_t depth = tree.depth(at);
    const PlaceId to = places_.step(stack_[depth - 1], tree.byte(at));
    if (to == kNowhere) {
      at = tree.end(at);
      continue;
    }
    stack_[depth] = to;
    if (tree.token(at) >= 0) set_bit(bits, tree.token(at));
    ++at;
  }
}

// Is the name that ends at this node, read on from the key's frame, a declared one?
bool GrammarMatcher::names_declared(const Frame& key, std::uint32_t node) const {
  const TokenTree& tree = grammar_->index->tree();
  const NameTree& names = places_.names_of_key(key);
  std::uint8_t path[256];
  std::size_t length = 0;
  for (std::uint32_t at = node; at != 0; at = tree.parent(at)) {
    if (length == sizeof path) return false;
    path[length++] = tree.byte(at);
  }
  std::uint32_t pos = key.pos;
  while (length > 0) {
    pos = names.step(pos, path[--length]);
    if (pos == NameTree::kOff) return false;
  }
  return names.name(pos) >= 0;
}

// Tokens that end the lexeme, or leave it and go on after it.
void GrammarMatcher::add_exits(FrameId id, const LexMask& mask, std::span<std::uint64_t> bits) {
  const Frame f = places_.frame(id);
  const LexNode& node = places_.lex(f);
  const bool tracked = f.pos != NameTree::kOff;
  const auto may_leave = [&](const LexMask::Exit& exit) {
    const std::uint64_t count = f.count + exit.starts;
    if (node.counted && (count < node.least || count > node.most)) return false;
    return !tracked || !names_declared(f, exit.node);
  };
  for (const LexMask::Exit& end : mask.ends) {
    if (may_leave(end)) set_bit(bits, grammar_->index->tree().token(end.node));
  }
  if (mask.exits.empty()) return;
  const PlaceId after = places_.after(id);
  if (!places_.reads_bytes(after)) return;
  for (const LexMask::Exit& exit : mask.exits) {
    if (may_leave(exit)) walk(exit.node, after, bits);
  }
}

void GrammarMatcher::add_lexeme(FrameId id, std::span<std::uint64_t> bits) {
  const Frame f = places_.frame(id);
  const LexNode& node = places_.lex(f);
  const TokenTree& tree = grammar_->index->tree();
  // Far from its limit no token can pass it.
  const bool counted = node.counted && node.most - f.count < tree.longest();
  const auto mask = node.lexeme->mask(static_cast<std::uint16_t>(f.state), counted, tree,
                                      grammar_->index->words());
  if (counted) {
    add_counted(*mask, node.most - f.count, bits);
  } else {
    add_all(*mask, bits);
  }
  add_exits(id, *mask, bits);
}

void GrammarMatcher::fill_mask(std::span<std::uint64_t> bits) {
  TRIAX_CHECK(bits.size() >= grammar_->index->words(), "the mask covers the vocabulary");
  std::fill(bits.begin(), bits.end(), 0);  // a model may have more rows than there are tokens
  bits = bits.first(grammar_->index->words());
  if (ended_ || may_end()) {
    for (const std::int32_t id : grammar_->ends) set_bit(bits, id);
  }
  if (ended_) return;
  const auto now = places_.frames(place_);
  const std::vector<FrameId> frames(now.begin(), now.end());
  std::vector<FrameId> structure;
  for (const FrameId id : frames) {
    if (id == kDone) continue;
    const Frame f = places_.frame(id);
    const Node node = grammar_->pool.nodes[f.node];
    if (node.kind == NodeKind::tokens) {
      set_bit(bits, grammar_->pool.tokens[node.at][f.pos]);
    } else if (node.kind == NodeKind::lex) {
      add_lexeme(id, bits);
    } else {
      structure.push_back(id);
    }
  }
  if (!structure.empty()) walk(0, places_.place_of(std::move(structure)), bits);
}

PlaceId GrammarMatcher::next(std::int32_t id) {
  std::vector<FrameId> out;
  places_.take_token(place_, id, out);
  if (id >= 0 && id < grammar_->index->tokenizer().rank_count() && places_.reads_bytes(place_)) {
    PlaceId at = place_;
    for (const char c : grammar_->index->tokenizer().token_bytes(id)) {
      at = places_.step(at, static_cast<std::uint8_t>(c));
      if (at == kNowhere) break;
    }
    const auto frames = places_.frames(at);
    out.insert(out.end(), frames.begin(), frames.end());
  }
  return places_.place_of(std::move(out));
}

// Long sequences meet many places once; those are let go.
void GrammarMatcher::keep_small() {
  if (places_.memory() < kMostMemory) return;
  std::vector<PlaceId> kept{place_};
  for (const Before& b : history_) kept.push_back(b.place);
  places_ = places_.compact(kept);
  place_ = kept[0];
  for (std::size_t i = 0; i < history_.size(); ++i) history_[i].place = kept[i + 1];
}

bool GrammarMatcher::accept(std::int32_t id) {
  if (ended_) return false;
  const bool ends = may_end() && std::find(grammar_->ends.begin(), grammar_->ends.end(), id) !=
                                     grammar_->ends.end();
  const PlaceId to = ends ? place_ : next(id);
  if (to == kNowhere) return false;
  history_.push_back({place_, ended_});
  if (history_.size() > kMostRollback) history_.pop_front();
  place_ = to;
  ended_ = ends;
  keep_small();
  return true;
}

bool GrammarMatcher::accept_text(std::string_view text) {
  if (ended_) return false;
  PlaceId at = place_;
  for (const char c : text) {
    at = places_.step(at, static_cast<std::uint8_t>(c));
    if (at == kNowhere) return false;
  }
  place_ = at;
  history_.clear();
  return true;
}

void GrammarMatcher::rollback(std::size_t tokens) {
  TRIAX_CHECK(tokens <= history_.size(), "only accepted tokens can be taken back");
  if (tokens == 0) return;
  const Before before = history_[history_.size() - tokens];
  history_.resize(history_.size() - tokens);
  place_ = before.place;
  ended_ = before.ended;
}

std::vector<std::int32_t> GrammarMatcher::forced(std::size_t most) {
  GrammarMatcher probe = *this;
  std::vector<std::int32_t> out;
  scratch_.resize(grammar_->index->words());
  while (out.size() < most && !probe.finished()) {
    probe.fill_mask(scratch_);
    std::int32_t only = -1;
    for (std::size_t w = 0; w < scratch_.size(); ++w) {
      if (scratch_[w] == 0) continue;
      if (only >= 0 || std::popcount(scratch_[w]) > 1) {
        only = -2;
        break;
      }
      only = static_cast<std::int32_t>(w * 64) + std::countr_zero(scratch_[w]);
    }
    if (only < 0) break;
    out.push_back(only);
    TRIAX_CHECK(probe.accept(only), "the mask allows what is accepted");
  }
  return out;
}

}  // namespace triax::grammar
