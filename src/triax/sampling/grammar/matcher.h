// One sequence's place in a grammar: which tokens may come next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "triax/sampling/grammar/matcher_state.h"
#include "triax/sampling/grammar/nodes.h"
#include "triax/sampling/token_constraint.h"

namespace triax::grammar {

// A compiled grammar. Immutable: any number of matchers, on any threads, may use one.
struct Grammar {
  std::shared_ptr<const TokenIndex> index;
  NodePool pool;
  NodeId root = kNoNode;
  std::vector<std::int32_t> ends;  // allowed where the text may end
};

// Follows the tokens of one sequence. Copying gives an independent sequence. Every place that
// accept() leads to has a token that goes on, or is the end.
class GrammarMatcher final : public TokenConstraint {
 public:
  static constexpr std::size_t kMostRollback = 256;  // tokens

  explicit GrammarMatcher(std::shared_ptr<const Grammar> grammar);

  void fill_mask(std::span<std::uint64_t> bits) override;
  bool accept(std::int32_t id) override;
  std::unique_ptr<TokenConstraint> fork() const override {
    return std::make_unique<GrammarMatcher>(*this);
  }

  // The text has been read to its end (and, where ends are tokens of their own, one was taken).
  bool finished() const { return ended_ || only_end(); }
  // Could the text end here?
  bool may_end() const;

  // Takes back the last accepted tokens (speculation); at most kMostRollback.
  void rollback(std::size_t tokens);
  std::size_t can_roll_back() const { return history_.size(); }

  // The next tokens, as far as each is the only one that may come; `most` at most.
  std::vector<std::int32_t> forced(std::size_t most);

  // Goes over text that already stands in the answer (a prefilled one). False, and as before, when
  // it does not fit. Such text cannot be rolled back.
  bool accept_text(std::string_view text);

 private:
  struct Before {
    PlaceId place;
    bool ended;
  };

  bool only_end() const;
  void add_lexeme(FrameId id, std::span<std::uint64_t> bits);
  void add_exits(FrameId id, const LexMask& mask, std::span<std::uint64_t> bits);
  void walk(std::uint32_t node, PlaceId place, std::span<std::uint64_t> bits);
  bool names_declared(const Frame& key, std::uint32_t node) const;
  PlaceId next(std::int32_t id);
  void keep_small();

  std::shared_ptr<const Grammar> grammar_;
  Places places_;
  PlaceId place_;
  bool ended_ = false;
  std::deque<Before> history_;
  std::vector<PlaceId> stack_;  // [depth], of walk()
  std::vector<std::uint64_t> scratch_;
};

}  // namespace triax::grammar
