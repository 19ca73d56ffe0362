#include "triax/sampling/grammar/grammar.h"

#include <algorithm>
#include <set>
#include <utility>

namespace triax::grammar {
namespace {

using Piece = SchemaCompiler::Piece;

// Builds the turn. The schemas live until all has been compiled.
class TurnCompiler {
 public:
  TurnCompiler(Grammar& grammar, const TurnRules& rules, const CompileOptions& options)
      : grammar_(grammar),
        pool_(grammar.pool),
        rules_(rules),
        budget_(options.limits),
        compiler_(pool_, *grammar.index, options.schema, budget_) {}

  void compile() {
    NodeId turn = rest();
    if (rules_.opened == TurnRules::Opened::think) {
      turn = pool_.add_sequence(
          {text(),
           compiler_.tokens({Role::Close, "think", Role::Sep, Role::Open, "response", Role::Sep}),
           turn});
    }
    compiler_.finish();
    grammar_.root = turn;
    const bool possible = pool_.prune(turn, budget_);
    check_tools();
    if (!possible) fail("response_format: no JSON value satisfies the schema");
  }

 private:
  NodeId text() {
    LexNode node;
    node.lexeme = grammar_.index->common(TokenIndex::kText);
    return pool_.add_lex(std::move(node));
  }

  // From the opened response on.
  NodeId rest() {
    const NodeId close = compiler_.tokens({Role::Close, "response", Role::Sep});
    const NodeId finish = compiler_.tokens({Role::Close, "message", Role::Sep, Role::EndOfMsg});
    const bool forced =
        rules_.choice == TurnRules::Choice::required || rules_.choice == TurnRules::Choice::named;
    if (rules_.choice == TurnRules::Choice::none || (rules_.tools.empty() && !forced)) {
      return pool_.add_sequence({content(), close, finish});
    }
    const NodeId with_calls = pool_.add_sequence({calls(), finish});
    const NodeId ending = forced ? with_calls : pool_.add_choice({finish, with_calls});
    const NodeId spoken = pool_.add_sequence({content(), close, ending});
    if (rules_.format == TurnRules::Format::text) return spoken;
    return pool_.add_choice({spoken, pool_.add_sequence({close, with_calls})});
  }

  NodeId content() {
    switch (rules_.format) {
      case TurnRules::Format::json_object:
        return compiler_.any_object();
      case TurnRules::Format::json_schema:
        return compiler_.json(schema(rules_.schema, "response_format"));
      default:
        return text();
    }
  }

  Schema& schema(std::string_view text, std::string_view name) {
    schemas_.push_back(std::make_unique<Schema>(text, name, budget_));
    return *schemas_.back();
  }

  NodeId calls() {
    CallsNode out;
    out.start = compiler_.tokens({Role::Open, "call", " tool", "=\""});
    const bool named = rules_.choice == TurnRules::Choice::named;
    std::set<std::string_view> names;
    for (const Tool& tool : rules_.tools) {
      if (tool.name.empty()) fail("tools: a tool has no name");
      if (!names.insert(tool.name).second) {
        fail("tools: {} is there twice; give each tool its own name", in_quotes(tool.name));
      }
      if (named && tool.name != rules_.named) continue;
      tools_.push_back(&tool);
      out.tools.push_back({compiler_.tokens({attribute_text(tool.name)}), body(tool)});
    }
    if (out.tools.empty()) {
      fail("tool_choice: {}; declare the tool or choose another",
           named ? in_quotes(rules_.named) + " is not among the tools" : "no tool is declared");
    }
    const std::size_t most =
        named || !rules_.parallel ? 1 : std::max<std::size_t>(rules_.most_calls, 1);
    for (std::size_t i = 1; i <= most; ++i) {
      out.index.push_back(
          compiler_.tokens({"\"", " index", "=\"", fmt::format("{}", i), "\"", Role::Sep}));
    }
    calls_at_ = pool_.calls.size();
    return pool_.add_sequence({compiler_.tokens({Role::Open, "tools", Role::Sep}),
                               pool_.add_calls(std::move(out)),
                               compiler_.tokens({Role::Close, "tools", Role::Sep})});
  }

  NodeId body(const Tool& tool) {
    const NodeId end = compiler_.tokens({Role::Close, "call", Role::Sep});
    if (tool.parameters.empty()) return end;
    Schema& parameters = schema(tool.parameters, "the parameters of tool " + in_quotes(tool.name));
    return pool_.add_sequence({compiler_.arguments(parameters), end});
  }

  // Every tool must be callable: none may vanish unnoticed.
  void check_tools() const {
    if (tools_.empty()) return;
    const CallsNode& calls = pool_.calls[calls_at_];
    if (calls.tools.size() == tools_.size()) return;
    for (const Tool* tool : tools_) {
      const auto expected = grammar_.index->tokenizer().encode(attribute_text(tool->name));
      const bool there =
          std::any_of(calls.tools.begin(), calls.tools.end(), [&](const CallsNode::Tool& t) {
            return pool_.tokens[pool_.nodes[t.name].at] == expected;
          });
      if (!there) {
        fail("the parameters of tool {}: no value satisfies the schema", in_quotes(tool->name));
      }
    }
  }

  Grammar& grammar_;
  NodePool& pool_;
  const TurnRules& rules_;
  Budget budget_;
  SchemaCompiler compiler_;
  std::vector<std::unique_ptr<Schema>> schemas_;
  std::vector<const Tool*> tools_;
  std::size_t calls_at_ = 0;
};

}  // namespace

std::shared_ptr<const Grammar> compile_document(std::shared_ptr<const TokenIndex> index,
                                                std::string_view schema,
                                                const CompileOptions& options) {
  auto grammar = std::make_shared<Grammar>();
  grammar->index = std::move(index);
  grammar->pool.space = options.schema.space;
  grammar->ends = grammar->index->tokenizer().stop_ids();
  Budget budget(options.limits);
  SchemaCompiler compiler(grammar->pool, *grammar->index, options.schema, budget);
  Schema parsed(schema, "the schema", budget);
  grammar->root = compiler.json(parsed);
  compiler.finish();
  if (!grammar->pool.prune(grammar->root, budget)) fail("the schema: no JSON value satisfies it");
  return grammar;
}

std::shared_ptr<const Grammar> compile_turn(std::shared_ptr<const TokenIndex> index,
                                            const TurnRules& rules, const CompileOptions& options) {
  auto grammar = std::make_shared<Grammar>();
  grammar->index = std::move(index);
  grammar->pool.space = options.schema.space;
  TurnCompiler(*grammar, rules, options).compile();
  return grammar;
}

}  // namespace triax::grammar
