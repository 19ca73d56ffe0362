#include "triax/sampling/grammar/matcher_state.h"

#include <algorithm>
#include <bit>

#include "triax/core/rng.h"

namespace triax::grammar {

std::size_t FrameHash::operator()(const Frame& f) const {
  const auto two = [](std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} << 32 | b; };
  std::uint64_t h = splitmix64_mix(two(f.node, f.parent));
  h = splitmix64_mix(h ^ two(f.state, f.seen));
  h = splitmix64_mix(h ^ two(f.pos, f.item));
  return splitmix64_mix(h ^ f.count);
}

namespace {
template <class T>
std::size_t hash_ids(const std::vector<T>& ids) {
  std::uint64_t h = ids.size();
  for (const T id : ids) h = splitmix64_mix(h ^ id);
  return h;
}
}  // namespace

std::size_t IdsHash::operator()(const std::vector<std::uint32_t>& ids) const {
  return hash_ids(ids);
}
std::size_t IdsHash::operator()(const std::vector<std::uint64_t>& ids) const {
  return hash_ids(ids);
}

Places::Places(const NodePool& pool) : pool_(&pool), frames_(1), places_(1), seen_(1) {
  place_ids_.emplace(std::vector<FrameId>(), kNowhere);
}

PlaceId Places::start(NodeId root) {
  std::vector<FrameId> out;
  enter(root, kDone, out);
  settle(out);
  return place_of(std::move(out));
}

FrameId Places::intern(const Frame& f) {
  const auto [at, added] = frame_ids_.try_emplace(f, static_cast<FrameId>(frames_.size()));
  if (added) frames_.push_back(f);
  return at->second;
}

PlaceId Places::place_of(std::vector<FrameId> frames) {
  std::sort(frames.begin(), frames.end());
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  const auto [at, added] = place_ids_.try_emplace(frames, static_cast<PlaceId>(places_.size()));
  if (added) {
    extra_memory_ += 2 * frames.size() * sizeof(FrameId);
    places_.push_back(std::move(frames));
  }
  return at->second;
}

std::span<const FrameId> Places::frames(PlaceId place) const {
  return places_[place];
}

PlaceId Places::step(PlaceId place, std::uint8_t byte) {
  const std::uint64_t key = std::uint64_t{place} << 8 | byte;
  const auto found = steps_.find(key);
  if (found != steps_.end()) return found->second;
  std::vector<FrameId> out;
  const std::vector<FrameId> from = places_[place];  // interning moves the list
  for (const FrameId id : from) {
    if (id != kDone) step_frame(Frame(frames_[id]), byte, out);
  }
  settle(out);
  const PlaceId to = place_of(std::move(out));
  steps_.emplace(key, to);
  return to;
}

void Places::take_token(PlaceId place, std::int32_t id, std::vector<FrameId>& out) {
  const std::vector<FrameId> from = places_[place];
  for (const FrameId at : from) {
    if (at == kDone) continue;
    Frame f = frames_[at];
    const Node node = pool_->nodes[f.node];
    if (node.kind != NodeKind::tokens) continue;
    const std::vector<std::int32_t>& ids = pool_->tokens[node.at];
    if (ids[f.pos] != id) continue;
    if (++f.pos == ids.size()) {
      resume(f.parent, out);
    } else {
      push(f, out);
    }
  }
  settle(out);
}

PlaceId Places::after(FrameId lexeme) {
  std::vector<FrameId> out;
  resume(frames_[lexeme].parent, out);
  settle(out);
  return place_of(std::move(out));
}

bool Places::reads_bytes(PlaceId place) const {
  return std::any_of(places_[place].begin(), places_[place].end(), [&](FrameId id) {
    return id != kDone && pool_->nodes[frames_[id].node].kind != NodeKind::tokens;
  });
}

void Places::enter(NodeId id, FrameId parent, std::vector<FrameId>& out) {
  const Node node = pool_->nodes[id];
  Frame f;
  f.node = id;
  f.parent = parent;
  switch (node.kind) {
    case NodeKind::lex: {
      const Frame& above = frames_[parent];
      const bool extra_name = parent != kDone && above.node != kMerged &&
                              above.state == kExtraName &&
                              pool_->nodes[above.node].kind == NodeKind::object;
      f.pos = extra_name ? 0 : NameTree::kOff;
      if (!lex(f).lexeme->dfa().last(0)) push(f, out);
      if (lexeme_ends(f)) resume(parent, out);
      return;
    }
    case NodeKind::tokens:
      if (pool_->tokens[node.at].empty()) return resume(parent, out);
      return push(f, out);
    case NodeKind::sequence:
      f.state = 0;
      return resume(intern(f), out);
    case NodeKind::choice:
      choices_.emplace_back(id, parent);
      return;
    case NodeKind::object:
      if (object(f).arguments) return arguments(f, out);
      return push(f, out);
    case NodeKind::array:
      return push(f, out);
    case NodeKind::calls:
      f.state = kAfterValue;
      return resume_calls(f, out);
  }
}

void Places::resume(FrameId parent, std::vector<FrameId>& out) {
  if (parent == kDone) {
    out.push_back(kDone);
    return;
  }
  Frame f = frames_[parent];
  if (f.node == kMerged) {
    const std::vector<FrameId> all = places_[f.state];
    for (const FrameId each : all) resume(each, out);
    return;
  }
  const Node node = pool_->nodes[f.node];
  switch (node.kind) {
    case NodeKind::sequence: {
      const std::vector<NodeId>& children = pool_->sequences[node.at];
      if (f.state == children.size()) return resume(f.parent, out);
      const NodeId child = children[f.state++];
      // The last child answers to the sequence's own parent, so that stacks stay short.
      return enter(child, f.state == children.size() ? f.parent : intern(f), out);
    }
    case NodeKind::object:
      return resume_object(f, out);
    case NodeKind::array:
      return push(f, out);
    case NodeKind::calls:
      return resume_calls(f, out);
    default:
      TRIAX_CHECK(false, "only nodes with children are waited for");
  }
}

// All that wait for the same choice from the same place share what it leads to.
void Places::settle(std::vector<FrameId>& out) {
  while (!choices_.empty()) {
    std::vector<std::pair<NodeId, FrameId>> list;
    list.swap(choices_);
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    for (std::size_t i = 0; i < list.size();) {
      std::vector<FrameId> parents;
      const NodeId node = list[i].first;
      for (; i < list.size() && list[i].first == node; ++i) parents.push_back(list[i].second);
      FrameId parent = parents[0];
      if (parents.size() > 1) {
        Frame merged;
        merged.node = kMerged;
        merged.state = place_of(std::move(parents));
        parent = intern(merged);
      }
      for (const NodeId child : pool_->choices[pool_->nodes[node].at]) enter(child, parent, out);
    }
  }
}

void Places::resume_calls(Frame f, std::vector<FrameId>& out) {
  const CallsNode& calls = pool_->calls[pool_->nodes[f.node].at];
  const FrameId parent = f.parent;
  if (f.state == kAfterValue) {
    if (f.count >= calls.least) resume(parent, out);
    if (f.count >= calls.index.size()) return;
    f.state = kCallName;
    return enter(calls.start, intern(f), out);
  }
  if (f.state == kCallName) {
    f.state = kCallIndex;
    for (std::size_t i = 0; i < calls.tools.size(); ++i) {
      f.item = static_cast<std::uint32_t>(i);
      enter(calls.tools[i].name, intern(f), out);
    }
    return;
  }
  if (f.state == kCallIndex) {
    f.state = kCallBody;
    return enter(calls.index[static_cast<std::size_t>(f.count)], intern(f), out);
  }
  const NodeId body = calls.tools[f.item].body;
  f.state = kAfterValue;
  f.item = 0;
  ++f.count;
  enter(body, intern(f), out);
}

void Places::step_frame(const Frame& f, std::uint8_t byte, std::vector<FrameId>& out) {
  switch (pool_->nodes[f.node].kind) {
    case NodeKind::lex:
      return step_lex(f, byte, out);
    case NodeKind::object:
      return step_object(f, byte, out);
    case NodeKind::array:
      return step_array(f, byte, out);
    default:
      return;  // markers are no bytes
  }
}

const NameTree& Places::names_of_key(const Frame& key) const {
  return object(frames_[key.parent]).names;
}

bool Places::lexeme_ends(const Frame& f) const {
  const LexNode& node = lex(f);
  if (!node.lexeme->dfa().accepts(static_cast<std::uint16_t>(f.state))) return false;
  if (node.counted && f.count < node.least) return false;
  return f.pos == NameTree::kOff || names_of_key(f).name(f.pos) < 0;
}

void Places::step_lex(Frame f, std::uint8_t byte, std::vector<FrameId>& out) {
  const LexNode& node = lex(f);
  const ByteDfa& dfa = node.lexeme->dfa();
  const auto from = static_cast<std::uint16_t>(f.state);
  const std::uint16_t to = dfa.next(from, byte);
  if (to == ByteDfa::kDead) return;
  if (node.counted && dfa.boundary(from) && !(dfa.accepts(to) && !dfa.boundary(to))) {
    if (f.count >= node.most) return;
    ++f.count;
    if (node.most == LexNode::kNoLimit) f.count = std::min(f.count, node.least);
  }
  if (f.pos != NameTree::kOff) f.pos = names_of_key(f).step(f.pos, byte);
  f.state = to;
  if (!dfa.last(to)) push(f, out);
  if (lexeme_ends(f)) resume(f.parent, out);
}

std::size_t Places::memory() const {
  return frames_.size() * 112 + places_.size() * 112 + steps_.size() * 40 + seen_.size() * 128 +
         extra_memory_;
}

Places Places::compact(std::span<PlaceId> places) const {
  Places out(*pool_);
  std::vector<bool> needed(frames_.size(), false);
  std::vector<FrameId> todo;
  for (const PlaceId place : places) {
    todo.insert(todo.end(), places_[place].begin(), places_[place].end());
  }
  while (!todo.empty()) {
    const FrameId id = todo.back();
    todo.pop_back();
    if (id == kDone || needed[id]) continue;
    needed[id] = true;
    const Frame& f = frames_[id];
    todo.push_back(f.parent);
    if (f.node == kMerged)
      todo.insert(todo.end(), places_[f.state].begin(), places_[f.state].end());
  }
  std::vector<FrameId> name(frames_.size(), kDone);
  const auto renamed = [&](PlaceId place) {
    std::vector<FrameId> ids;
    for (const FrameId id : places_[place]) ids.push_back(name[id]);
    return out.place_of(std::move(ids));
  };
  // A frame was stored after all that it refers to.
  for (FrameId id = 1; id < frames_.size(); ++id) {
    if (!needed[id]) continue;
    Frame f = frames_[id];
    f.parent = name[f.parent];
    if (f.node == kMerged) f.state = renamed(f.state);
    if (f.seen != 0) {
      const auto [at, added] =
          out.seen_ids_.try_emplace(seen_[f.seen], static_cast<std::uint32_t>(out.seen_.size()));
      if (added) out.seen_.push_back(seen_[f.seen]);
      f.seen = at->second;
    }
    name[id] = out.intern(f);
  }
  for (PlaceId& place : places) place = renamed(place);
  return out;
}

}  // namespace triax::grammar
