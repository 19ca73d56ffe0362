#include "triax/sampling/grammar/nodes.h"

#include <algorithm>

namespace triax::grammar {

NameTree::NameTree(const std::vector<std::string>& names) : nodes_(1) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::uint32_t at = 0;
    const auto index = static_cast<std::uint32_t>(i);
    if (i == 0) nodes_[0].first = 0;
    nodes_[0].last = index + 1;
    for (const char c : names[i]) {
      std::uint32_t to = step(at, static_cast<std::uint8_t>(c));
      if (to == kOff) {
        to = static_cast<std::uint32_t>(nodes_.size());
        nodes_[at].children.emplace_back(static_cast<std::uint8_t>(c), to);
        nodes_.emplace_back();
        nodes_.back().first = index;
      }
      nodes_[to].last = index + 1;
      at = to;
    }
    nodes_[at].name = static_cast<std::int32_t>(i);
  }
}

std::uint32_t NameTree::step(std::uint32_t node, std::uint8_t byte) const {
  for (const auto& [b, to] : nodes_[node].children) {
    if (b == byte) return to;
  }
  return kOff;
}

NodeId NodePool::add(NodeKind kind, std::size_t at) {
  nodes.push_back({kind, static_cast<std::uint32_t>(at)});
  return static_cast<NodeId>(nodes.size() - 1);
}
NodeId NodePool::add_lex(LexNode lex) {
  lexes.push_back(std::move(lex));
  return add(NodeKind::lex, lexes.size() - 1);
}
NodeId NodePool::add_tokens(std::vector<std::int32_t> ids) {
  tokens.push_back(std::move(ids));
  return add(NodeKind::tokens, tokens.size() - 1);
}
NodeId NodePool::add_sequence(std::vector<NodeId> children) {
  sequences.push_back(std::move(children));
  return add(NodeKind::sequence, sequences.size() - 1);
}
NodeId NodePool::add_choice(std::vector<NodeId> children) {
  choices.push_back(std::move(children));
  return add(NodeKind::choice, choices.size() - 1);
}
NodeId NodePool::add_object(ObjectNode object) {
  objects.push_back(std::move(object));
  return add(NodeKind::object, objects.size() - 1);
}
NodeId NodePool::add_array(ArrayNode array) {
  arrays.push_back(std::move(array));
  return add(NodeKind::array, arrays.size() - 1);
}
NodeId NodePool::add_calls(CallsNode node) {
  calls.push_back(std::move(node));
  return add(NodeKind::calls, calls.size() - 1);
}

namespace {

bool all_of(const std::vector<NodeId>& ids, const std::vector<bool>& known) {
  return std::all_of(ids.begin(), ids.end(), [&](NodeId id) { return known[id]; });
}
bool any_of(const std::vector<NodeId>& ids, const std::vector<bool>& known) {
  return std::any_of(ids.begin(), ids.end(), [&](NodeId id) { return known[id]; });
}

bool object_has_text(const ObjectNode& object, const std::vector<bool>& known) {
  std::uint64_t required = 0, possible = 0;
  for (const ObjectNode::Property& p : object.properties) {
    if (known[p.value]) ++possible;
    if (!p.required) continue;
    if (!known[p.value]) return false;
    ++required;
  }
  for (const ObjectNode::Extra& e : object.extras) {
    if (known[e.key] && known[e.value]) {
      ++possible;  // extra names could be equal, so one counts
      break;
    }
  }
  return possible >= object.least && object.least <= object.most && required <= object.most;
}

// The most items that an array can have.
std::uint64_t reachable_items(const ArrayNode& array, const std::vector<bool>& known) {
  for (std::size_t i = 0; i < array.prefix.size(); ++i) {
    if (!known[array.prefix[i]]) return std::min<std::uint64_t>(array.most, i);
  }
  if (array.items != kNoNode && known[array.items]) return array.most;
  return std::min<std::uint64_t>(array.most, array.prefix.size());
}

}  // namespace

bool NodePool::has_text(NodeId id, const std::vector<bool>& known) const {
  const Node node = nodes[id];
  switch (node.kind) {
    case NodeKind::lex:
      return !lexes[node.at].lexeme->dfa().empty() && lexes[node.at].least <= lexes[node.at].most;
    case NodeKind::tokens:
      return true;
    case NodeKind::sequence:
      return all_of(sequences[node.at], known);
    case NodeKind::choice:
      return any_of(choices[node.at], known);
    case NodeKind::object:
      return object_has_text(objects[node.at], known);
    case NodeKind::array:
      return arrays[node.at].least <= reachable_items(arrays[node.at], known);
    case NodeKind::calls: {
      const CallsNode& c = calls[node.at];
      return c.least == 0 || std::any_of(c.tools.begin(), c.tools.end(),
                                         [&](const auto& tool) { return known[tool.body]; });
    }
  }
  return false;
}

void NodePool::cut(ObjectNode& object, const std::vector<bool>& known) {
  std::erase_if(object.extras,
                [&](const ObjectNode::Extra& e) { return !known[e.key] || !known[e.value]; });
  std::vector<std::string> names;
  object.required.assign((object.properties.size() + 63) / 64, 0);
  for (std::size_t i = 0; i < object.properties.size(); ++i) {
    ObjectNode::Property& p = object.properties[i];
    names.push_back(p.written);
    if (!known[p.value]) p.value = kNoNode;  // the name stays: no extra member may have it
    if (p.required) object.required[i / 64] |= std::uint64_t{1} << (i % 64);
  }
  object.names = NameTree(names);
}

bool NodePool::prune(NodeId root, Budget& budget) {
  // Which nodes have a finite text: the least fixed point, from the leaves up.
  std::vector<bool> known(nodes.size(), false);
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = nodes.size(); i-- > 0;) {
      budget.tick();
      if (known[i] || !has_text(static_cast<NodeId>(i), known)) continue;
      known[i] = true;
      more = true;
    }
  }
  for (auto& choice : choices) std::erase_if(choice, [&](NodeId id) { return !known[id]; });
  for (ObjectNode& object : objects) cut(object, known);
  for (ArrayNode& array : arrays) array.most = reachable_items(array, known);
  for (CallsNode& c : calls) {
    std::erase_if(c.tools, [&](const CallsNode::Tool& tool) { return !known[tool.body]; });
  }
  return known[root];
}

}  // namespace triax::grammar
