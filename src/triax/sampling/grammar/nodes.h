// What a compiled grammar is made of. Nodes refer to each other by index, so that recursion is just
// a reference; a matcher walks them with a stack.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "triax/sampling/grammar/token_index.h"

namespace triax::grammar {

using NodeId = std::uint32_t;
inline constexpr NodeId kNoNode = 0xFFFFFFFF;

// White space in JSON that the grammar writes.
struct WhiteSpace {
  enum class Where : std::uint8_t {
    none,              // compact
    after_separators,  // one space after a comma or colon, or none
    anywhere,  // runs of space, tab and line ends, up to `run` bytes, wherever JSON has them
  };
  Where where = Where::after_separators;
  std::uint32_t run = 64;
};

enum class NodeKind : std::uint8_t { lex, tokens, sequence, choice, object, array, calls };

struct Node {
  NodeKind kind = NodeKind::choice;
  std::uint32_t at = 0;  // in the list of its kind
};

// A text that an automaton describes; with `counted`, of `least` to `most` characters.
struct LexNode {
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  std::shared_ptr<const Lexeme> lexeme;
  bool counted = false;
  std::uint64_t least = 0, most = kNoLimit;
};

// Names by their bytes: a tree whose nodes know which names lie below.
class NameTree {
 public:
  static constexpr std::uint32_t kOff = 0xFFFFFFFF;  // outside the tree

  // `names`: sorted, no two equal.
  explicit NameTree(const std::vector<std::string>& names);
  NameTree() : NameTree(std::vector<std::string>()) {}

  std::uint32_t step(std::uint32_t node, std::uint8_t byte) const;
  // The name that ends here, or -1.
  std::int32_t name(std::uint32_t node) const { return nodes_[node].name; }
  // Names at or below: [first, last).
  std::pair<std::uint32_t, std::uint32_t> below(std::uint32_t node) const {
    return {nodes_[node].first, nodes_[node].last};
  }

 private:
  struct TreeNode {
    std::vector<std::pair<std::uint8_t, std::uint32_t>> children;
    std::int32_t name = -1;
    std::uint32_t first = 0, last = 0;
  };
  std::vector<TreeNode> nodes_;
};

// A JSON object, or the arguments of a call. Members come in any order, declared ones once.
struct ObjectNode {
  struct Property {
    std::string name;        // as it is
    std::string written;     // as the grammar writes it: quoted JSON, or an attribute's text
    NodeId value = kNoNode;  // arguments: from the name's tokens to the argument's end
    bool required = false;
  };
  struct Extra {
    NodeId key = kNoNode;  // a lexeme
    NodeId value = kNoNode;
  };
  bool arguments = false;
  std::vector<Property> properties;  // sorted by `written`
  std::vector<Extra> extras;         // for names that are not declared
  std::uint64_t least = 0, most = LexNode::kNoLimit;
  NodeId argument_start = kNoNode;  // arguments: tokens up to the name

  NameTree names;                       // of `properties`, by `written`
  std::vector<std::uint64_t> required;  // bits
};

struct ArrayNode {
  std::vector<NodeId> prefix;
  NodeId items = kNoNode;
  std::uint64_t least = 0, most = LexNode::kNoLimit;

  NodeId item(std::uint64_t index) const {
    return index < prefix.size() ? prefix[static_cast<std::size_t>(index)] : items;
  }
};

// Calls of tools, one after the other, numbered from 1.
struct CallsNode {
  struct Tool {
    NodeId name = kNoNode;  // tokens
    NodeId body = kNoNode;  // from after the opening tag to the call's end
  };
  NodeId start = kNoNode;  // tokens up to the name
  std::vector<Tool> tools;
  std::vector<NodeId> index;  // [number of the call]: tokens from the name to the tag's end
  std::uint64_t least = 1;
};

struct NodePool {
  std::vector<Node> nodes;
  std::vector<LexNode> lexes;
  std::vector<std::vector<std::int32_t>> tokens;
  std::vector<std::vector<NodeId>> sequences, choices;
  std::vector<ObjectNode> objects;
  std::vector<ArrayNode> arrays;
  std::vector<CallsNode> calls;
  WhiteSpace space;

  NodeId add_lex(LexNode lex);
  NodeId add_tokens(std::vector<std::int32_t> ids);
  NodeId add_sequence(std::vector<NodeId> children);
  NodeId add_choice(std::vector<NodeId> children);
  NodeId add_object(ObjectNode object);
  NodeId add_array(ArrayNode array);
  NodeId add_calls(CallsNode calls);

  // Finds the nodes that have a finite text, and takes all others out of choices, objects and
  // arrays: after it every place can end. Indexes the objects. False when `root` has no text.
  bool prune(NodeId root, Budget& budget);

 private:
  NodeId add(NodeKind kind, std::size_t at);
  bool has_text(NodeId id, const std::vector<bool>& known) const;
  void cut(ObjectNode& object, const std::vector<bool>& known);
};

}  // namespace triax::grammar
