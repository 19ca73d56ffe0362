// Where a sequence can be in its grammar: sets of stacks, each stored once, and the ways between
// them, found as they are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "triax/sampling/grammar/nodes.h"

namespace triax::grammar {

using FrameId = std::uint32_t;
using PlaceId = std::uint32_t;
inline constexpr FrameId kDone = 0;     // the whole text has been read
inline constexpr PlaceId kNowhere = 0;  // the empty set
// A frame that stands for several: `state` is the place of the frames that wait for the same node
// from here on. Without it, nested alternatives would double the stacks at every level.
inline constexpr NodeId kMerged = 0xFFFFFFFE;

// One stack entry; the rest of the stack is its parent. What the fields hold depends on the node.
struct Frame {
  NodeId node = kNoNode;
  FrameId parent = kDone;
  std::uint32_t state = 0;  // of the automaton, or a Phase
  std::uint32_t seen = 0;   // objects: the set of declared members so far
  std::uint32_t pos = 0;    // in a tree of names, in tokens, or in a run of white space
  std::uint32_t item = 0;   // the member or tool that this is about
  std::uint64_t count = 0;  // characters, items, extra members or calls so far

  bool operator==(const Frame& other) const = default;
};

struct FrameHash {
  std::size_t operator()(const Frame& f) const;
};
struct IdsHash {
  std::size_t operator()(const std::vector<std::uint32_t>& ids) const;
  std::size_t operator()(const std::vector<std::uint64_t>& ids) const;
};

// The stacks and sets that one sequence has met. A value: copying gives an independent one.
class Places {
 public:
  explicit Places(const NodePool& pool);

  PlaceId start(NodeId root);
  // After one more byte within a token; kNowhere when it may not stand there.
  PlaceId step(PlaceId place, std::uint8_t byte);
  // After a token that stands for itself (a marker, or a token of fixed text).
  void take_token(PlaceId place, std::int32_t id, std::vector<FrameId>& out);
  PlaceId place_of(std::vector<FrameId> frames);  // any order
  std::span<const FrameId> frames(PlaceId place) const;
  const Frame& frame(FrameId id) const { return frames_[id]; }
  const NodePool& pool() const { return *pool_; }

  // What may follow once the lexeme of this frame has ended.
  PlaceId after(FrameId lexeme);
  // Can any of these go on with a byte?
  bool reads_bytes(PlaceId place) const;
  bool lexeme_ends(const Frame& f) const;  // may it end here?
  const LexNode& lex(const Frame& f) const { return pool_->lexes[pool_->nodes[f.node].at]; }
  const NameTree& names_of_key(const Frame& key) const;

  std::size_t memory() const;
  // A copy that holds only what these places need; they get their new ids.
  Places compact(std::span<PlaceId> places) const;

 private:
  enum Phase : std::uint32_t {
    kOpen,        // before { or [
    kFirst,       // after it
    kName,        // in a declared name
    kExtraName,   // in another name
    kColon,       // before the colon
    kAfterColon,  // before the value
    kAfterValue,  // after a member or item
    kAfterComma,  // before the next
    kArgumentName,
    kCallName,
    kCallIndex,
    kCallBody,
  };

  FrameId intern(const Frame& f);
  void push(const Frame& f, std::vector<FrameId>& out) { out.push_back(intern(f)); }
  // All ways to begin `node`, or to go on after what `parent` waited for.
  void enter(NodeId node, FrameId parent, std::vector<FrameId>& out);
  void resume(FrameId parent, std::vector<FrameId>& out);
  void settle(std::vector<FrameId>& out);  // enters the choices that were put off
  void resume_object(Frame f, std::vector<FrameId>& out);
  void resume_calls(Frame f, std::vector<FrameId>& out);

  void step_frame(const Frame& f, std::uint8_t byte, std::vector<FrameId>& out);
  void step_lex(Frame f, std::uint8_t byte, std::vector<FrameId>& out);
  void step_object(Frame f, std::uint8_t byte, std::vector<FrameId>& out);
  void step_name(Frame f, std::uint8_t byte, std::vector<FrameId>& out);
  void step_array(Frame f, std::uint8_t byte, std::vector<FrameId>& out);
  bool white(Frame& f, std::uint8_t byte) const;  // takes white space, if it may stand here

  const ObjectNode& object(const Frame& f) const { return pool_->objects[pool_->nodes[f.node].at]; }
  const ArrayNode& array(const Frame& f) const { return pool_->arrays[pool_->nodes[f.node].at]; }
  void names(Frame f, std::vector<FrameId>& out);      // objects: a member's name may begin
  void arguments(Frame f, std::vector<FrameId>& out);  // the next argument, or the end
  bool may_end(const ObjectNode& o, const Frame& f) const;
  bool may_add(const ObjectNode& o, const Frame& f, std::size_t property) const;
  bool may_add_extra(const ObjectNode& o, const Frame& f) const;
  bool may_add_any(const ObjectNode& o, const Frame& f, std::uint32_t first,
                   std::uint32_t last) const;
  bool fits(const ObjectNode& o, std::uint64_t declared, std::uint64_t extras,
            std::uint64_t missing) const;
  Frame with_value(const ObjectNode& o, Frame f) const;

  std::uint32_t seen_with(std::uint32_t seen, std::size_t property, std::size_t words);
  bool has_seen(std::uint32_t seen, std::size_t property) const;

  const NodePool* pool_;
  std::vector<std::pair<NodeId, FrameId>> choices_;  // to enter: node, parent
  std::vector<Frame> frames_;                        // [0] is kDone
  std::unordered_map<Frame, FrameId, FrameHash> frame_ids_;
  std::vector<std::vector<FrameId>> places_;  // sorted; [0] is empty
  std::unordered_map<std::vector<FrameId>, PlaceId, IdsHash> place_ids_;
  std::unordered_map<std::uint64_t, PlaceId> steps_;  // place << 8 | byte
  std::vector<std::vector<std::uint64_t>> seen_;      // sets of members; [0] is empty
  std::unordered_map<std::vector<std::uint64_t>, std::uint32_t, IdsHash> seen_ids_;
  std::size_t extra_memory_ = 0;
};

}  // namespace triax::grammar
