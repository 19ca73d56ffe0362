// Objects, arrays and arguments: the part of the matcher that counts and remembers members.
#include <algorithm>
#include <bit>

#include "triax/sampling/grammar/matcher_state.h"

namespace triax::grammar {

bool Places::white(Frame& f, std::uint8_t byte) const {
  const WhiteSpace& space = pool_->space;
  const bool after_separator = f.state == kAfterColon || f.state == kAfterComma;
  switch (space.where) {
    case WhiteSpace::Where::none:
      return false;
    case WhiteSpace::Where::after_separators:
      if (!after_separator || byte != ' ' || f.pos > 0) return false;
      break;
    case WhiteSpace::Where::anywhere:
      if (byte != ' ' && byte != '\n' && byte != '\t' && byte != '\r') return false;
      if (f.pos >= space.run || f.state == kOpen) return false;
      break;
  }
  ++f.pos;
  return true;
}

std::uint32_t Places::seen_with(std::uint32_t seen, std::size_t property, std::size_t words) {
  std::vector<std::uint64_t> bits = seen_[seen];
  bits.resize(words, 0);
  bits[property / 64] |= std::uint64_t{1} << (property % 64);
  const auto [at, added] = seen_ids_.try_emplace(bits, static_cast<std::uint32_t>(seen_.size()));
  if (added) {
    extra_memory_ += 2 * words * sizeof(std::uint64_t);
    seen_.push_back(std::move(bits));
  }
  return at->second;
}

bool Places::has_seen(std::uint32_t seen, std::size_t property) const {
  return seen != 0 && (seen_[seen][property / 64] >> (property % 64) & 1) != 0;
}

namespace {

std::uint64_t declared_count(const std::vector<std::uint64_t>& seen) {
  std::uint64_t n = 0;
  for (const std::uint64_t word : seen) n += static_cast<std::uint64_t>(std::popcount(word));
  return n;
}

std::uint64_t missing_count(const ObjectNode& o, const std::vector<std::uint64_t>& seen) {
  std::uint64_t n = 0;
  for (std::size_t w = 0; w < o.required.size(); ++w) {
    const std::uint64_t left = seen.empty() ? o.required[w] : o.required[w] & ~seen[w];
    n += static_cast<std::uint64_t>(std::popcount(left));
  }
  return n;
}

}  // namespace

// With so many members, can the object still get all that it needs? Other members may have equal
// names, so that towards the minimum they count as one.
bool Places::fits(const ObjectNode& o, std::uint64_t declared, std::uint64_t extras,
                  std::uint64_t missing) const {
  if (o.most == LexNode::kNoLimit) return true;
  const std::uint64_t sure = declared + std::min<std::uint64_t>(extras, 1);
  const std::uint64_t wanting = o.least > sure ? o.least - sure : 0;
  const std::uint64_t total = declared + extras + std::max(missing, wanting);
  return total <= o.most;
}

bool Places::may_end(const ObjectNode& o, const Frame& f) const {
  const std::uint64_t sure = declared_count(seen_[f.seen]) + std::min<std::uint64_t>(f.count, 1);
  return sure >= o.least && missing_count(o, seen_[f.seen]) == 0;
}

bool Places::may_add_any(const ObjectNode& o, const Frame& f, std::uint32_t first,
                         std::uint32_t last) const {
  const std::uint64_t declared = declared_count(seen_[f.seen]) + 1;
  const std::uint64_t missing = missing_count(o, seen_[f.seen]);
  const bool other = fits(o, declared, f.count, missing);
  const bool required = missing > 0 && fits(o, declared, f.count, missing - 1);
  for (std::size_t p = first; p < last; ++p) {
    const ObjectNode::Property& property = o.properties[p];
    if (property.value == kNoNode || has_seen(f.seen, p)) continue;
    if (property.required ? required : other) return true;
  }
  return false;
}

bool Places::may_add(const ObjectNode& o, const Frame& f, std::size_t property) const {
  const auto p = static_cast<std::uint32_t>(property);
  return may_add_any(o, f, p, p + 1);
}

bool Places::may_add_extra(const ObjectNode& o, const Frame& f) const {
  return !o.extras.empty() &&
         fits(o, declared_count(seen_[f.seen]), f.count + 1, missing_count(o, seen_[f.seen]));
}

// The frame that waits for the value of a member: `item` says which, and it is added.
Frame Places::with_value(const ObjectNode& o, Frame f) const {
  f.state = kAfterValue;
  f.pos = 0;
  if (f.item >= o.properties.size()) {
    f.count = o.most == LexNode::kNoLimit ? 1 : f.count + 1;
  }
  f.item = 0;
  return f;
}

// A declared name, or one of the other lexemes of names.
void Places::names(Frame f, std::vector<FrameId>& out) {
  const ObjectNode& o = object(f);
  f.pos = 0;
  if (may_add_any(o, f, 0, static_cast<std::uint32_t>(o.properties.size()))) {
    f.state = kName;
    push(f, out);
  }
  if (!may_add_extra(o, f)) return;
  f.state = kExtraName;
  for (std::size_t e = 0; e < o.extras.size(); ++e) {
    f.item = static_cast<std::uint32_t>(e);
    enter(o.extras[e].key, intern(f), out);
  }
}

void Places::arguments(Frame f, std::vector<FrameId>& out) {
  const ObjectNode& o = object(f);
  if (may_end(o, f)) resume(f.parent, out);
  if (!may_add_any(o, f, 0, static_cast<std::uint32_t>(o.properties.size())) &&
      !may_add_extra(o, f)) {
    return;
  }
  f.state = kArgumentName;
  enter(o.argument_start, intern(f), out);
}

void Places::resume_object(Frame f, std::vector<FrameId>& out) {
  const ObjectNode& o = object(f);
  if (f.state == kAfterValue) {
    if (o.arguments) return arguments(f, out);
    return push(f, out);
  }
  if (f.state == kExtraName) {
    const NodeId value = o.extras[f.item].value;
    f.item += static_cast<std::uint32_t>(o.properties.size());
    if (o.arguments) return enter(value, intern(with_value(o, f)), out);
    f.state = kColon;
    f.pos = 0;
    return push(f, out);
  }
  TRIAX_CHECK(f.state == kArgumentName, "an object waits for a name or a value");
  for (std::size_t p = 0; p < o.properties.size(); ++p) {
    if (!may_add(o, f, p)) continue;
    Frame next = f;
    next.seen = seen_with(f.seen, p, o.required.size());
    next.item = static_cast<std::uint32_t>(p);
    enter(o.properties[p].value, intern(with_value(o, next)), out);
  }
  if (!may_add_extra(o, f)) return;
  f.state = kExtraName;
  for (std::size_t e = 0; e < o.extras.size(); ++e) {
    f.item = static_cast<std::uint32_t>(e);
    enter(o.extras[e].key, intern(f), out);
  }
}

void Places::step_name(Frame f, std::uint8_t byte, std::vector<FrameId>& out) {
  const ObjectNode& o = object(f);
  f.pos = o.names.step(f.pos, byte);
  if (f.pos == NameTree::kOff) return;
  const auto [first, last] = o.names.below(f.pos);
  if (!may_add_any(o, f, first, last)) return;
  const std::int32_t name = o.names.name(f.pos);
  if (name < 0) return push(f, out);
  f.seen = seen_with(f.seen, static_cast<std::size_t>(name), o.required.size());
  f.item = static_cast<std::uint32_t>(name);
  f.state = kColon;
  f.pos = 0;
  push(f, out);
}

void Places::step_object(Frame f, std::uint8_t byte, std::vector<FrameId>& out) {
  if (f.state == kName) return step_name(f, byte, out);
  const ObjectNode& o = object(f);
  if (f.state == kOpen && byte == '{') {
    f.state = kFirst;
    f.pos = 0;
    push(f, out);
    return names(f, out);
  }
  if ((f.state == kFirst || f.state == kAfterValue) && byte == '}') {
    if (may_end(o, f)) resume(f.parent, out);
    return;
  }
  if (f.state == kAfterValue && byte == ',') {
    if (!may_add_any(o, f, 0, static_cast<std::uint32_t>(o.properties.size())) &&
        !may_add_extra(o, f)) {
      return;
    }
    f.state = kAfterComma;
    f.pos = 0;
  } else if (f.state == kColon && byte == ':') {
    f.state = kAfterColon;
    f.pos = 0;
  } else if (!white(f, byte)) {
    return;
  }
  push(f, out);
  if (f.state == kFirst || f.state == kAfterComma) return names(f, out);
  if (f.state != kAfterColon) return;
  const std::size_t declared = o.properties.size();
  const NodeId value =
      f.item < declared ? o.properties[f.item].value : o.extras[f.item - declared].value;
  enter(value, intern(with_value(o, f)), out);
}

void Places::step_array(Frame f, std::uint8_t byte, std::vector<FrameId>& out) {
  const ArrayNode& a = array(f);
  if (f.state == kOpen) {
    if (byte != '[') return;
    f.state = kFirst;
    f.pos = 0;
  } else if ((f.state == kFirst || f.state == kAfterValue) && byte == ']') {
    if (f.count >= a.least) resume(f.parent, out);
    return;
  } else if (f.state == kAfterValue && byte == ',') {
    if (f.count >= a.most) return;
    f.state = kAfterComma;
    f.pos = 0;
  } else if (!white(f, byte)) {
    return;
  }
  push(f, out);
  if ((f.state != kFirst && f.state != kAfterComma) || f.count >= a.most) return;
  const NodeId item = a.item(f.count);
  f.state = kAfterValue;
  f.pos = 0;
  ++f.count;
  if (a.most == LexNode::kNoLimit) {  // beyond this all counts are alike
    f.count = std::min(f.count, std::max<std::uint64_t>(a.prefix.size(), a.least));
  }
  enter(item, intern(f), out);
}

}  // namespace triax::grammar
