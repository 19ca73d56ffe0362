#include "triax/sampling/grammar/schema_compiler.h"

#include <algorithm>

namespace triax::grammar {
namespace {

std::string_view attribute_type(unsigned type) {
  switch (type) {
    case kNull:
      return "null";
    case kBoolean:
      return "boolean";
    case kStringType:
      return "string";
    case kArrayType:
      return "array";
    case kObjectType:
      return "object";
    default:
      return "number";
  }
}

}  // namespace

NodeId SchemaCompiler::tokens(const std::vector<Piece>& pieces) {
  std::vector<std::int32_t> ids;
  for (const Piece& p : pieces) {
    if (p.marker) {
      ids.push_back(index_.tokenizer().required_id(p.role));
    } else {
      const std::vector<std::int32_t> text = index_.tokenizer().encode(p.text);
      ids.insert(ids.end(), text.begin(), text.end());
    }
  }
  budget_.use(ids.size() * sizeof(std::int32_t) + 64);
  return pool_.add_tokens(std::move(ids));
}

NodeId SchemaCompiler::json(Schema& schema, const SchemaSet& set) {
  const auto [at, added] = done_.try_emplace({&schema, set}, kNoNode);
  if (added) {
    budget_.use(sizeof(Node) + 128 + set.size() * sizeof(void*));
    at->second = pool_.add_choice({});
    work_.push_back({&schema, set, at->second});
  }
  return at->second;
}

void SchemaCompiler::finish() {
  while (!work_.empty()) {
    const Work work = std::move(work_.back());
    work_.pop_back();
    std::vector<NodeId> children;
    for (const Branch& branch : work.schema->branches(work.set)) {
      for (const Typed& t : typed(*work.schema, branch, false)) children.push_back(t.node);
    }
    pool_.choices[pool_.nodes[work.choice].at] = std::move(children);
  }
}

NodeId SchemaCompiler::any_object() {
  if (anything_ == nullptr) {
    anything_ = std::make_unique<Schema>(R"({"type":"object"})", "any object", budget_);
  }
  return json(*anything_);
}

std::shared_ptr<const Lexeme> SchemaCompiler::lexeme(const std::string& key, bool raw,
                                                     ByteDfa dfa) {
  std::shared_ptr<const Lexeme>& out = lexemes_[key];
  if (out == nullptr) out = std::make_shared<const Lexeme>(std::move(dfa), raw);
  return out;
}

std::vector<SchemaCompiler::Typed> SchemaCompiler::typed(Schema& schema, const Branch& branch,
                                                         bool raw) {
  if (branch.literals) return literals(branch, raw);
  std::vector<Typed> out;
  const auto add = [&](unsigned type, NodeId node) { out.push_back({type, node}); };
  if ((branch.types & kNull) != 0) add(kNull, words({"null"}, false));
  if ((branch.types & kBoolean) != 0) add(kBoolean, words({"false", "true"}, false));
  if ((branch.types & kNumberType) != 0) add(kWhole, number(schema, branch));
  if ((branch.types & kStringType) != 0) add(kStringType, string(schema, branch.schemas, raw));
  if ((branch.types & kArrayType) != 0) add(kArrayType, array(schema, branch.schemas));
  if ((branch.types & kObjectType) != 0) add(kObjectType, object(schema, branch.schemas, false));
  return out;
}

std::vector<SchemaCompiler::Typed> SchemaCompiler::literals(const Branch& branch, bool raw) {
  std::map<unsigned, std::vector<std::string>> by_type;
  for (const Value* v : *branch.literals) {
    unsigned type = types_of(*v);
    if (type == kFraction) type = kWhole;
    const bool text = raw && type == kStringType;
    by_type[type].push_back(text ? v->text
                                 : json_text(*v, options_.space.where != WhiteSpace::Where::none));
  }
  std::vector<Typed> out;
  for (auto& [type, texts] : by_type) {
    out.push_back({type, words(std::move(texts), raw && type == kStringType)});
  }
  return out;
}

NodeId SchemaCompiler::words(std::vector<std::string> texts, bool raw) {
  std::sort(texts.begin(), texts.end());
  std::string key = raw ? "raw words" : "words";
  for (const std::string& t : texts) key += fmt::format(" {}:{}", t.size(), t);
  const auto known = lexemes_.find(key);
  LexNode node;
  node.lexeme = known != lexemes_.end() ? known->second
                                        : lexeme(key, raw, literals_dfa(texts, !raw, budget_));
  return pool_.add_lex(std::move(node));
}

NodeId SchemaCompiler::string(Schema& schema, const SchemaSet& set, bool raw) {
  const StringRule rule = schema.strings(set);
  LexNode node;
  if (rule.patterns.empty()) {
    node.lexeme = index_.common(raw ? TokenIndex::kRaw : TokenIndex::kString);
    node.least = rule.least;
    node.most = rule.most;
    node.counted = rule.least > 0 || rule.most != LexNode::kNoLimit;
    return pool_.add_lex(std::move(node));
  }
  std::string key = fmt::format("{} {} {}", raw ? "raw text" : "string", rule.least, rule.most);
  for (const std::string& p : rule.patterns) key += fmt::format(" {}:{}", p.size(), p);
  const auto known = lexemes_.find(key);
  if (known != lexemes_.end()) {
    node.lexeme = known->second;
    return pool_.add_lex(std::move(node));
  }
  CharDfa texts = schema.pattern(*rule.patterns.begin());
  for (const std::string& p : rule.patterns) {
    if (p != *rule.patterns.begin()) texts = texts.both(schema.pattern(p), budget_);
  }
  // With a pattern, not every length can be reached from everywhere: the two are one automaton.
  if (rule.least > 0 || rule.most != LexNode::kNoLimit) {
    texts = texts.both(CharDfa::lengths(static_cast<std::size_t>(rule.least),
                                        static_cast<std::size_t>(rule.most), budget_),
                       budget_);
  }
  node.lexeme = lexeme(key, raw, raw ? texts.raw(budget_) : texts.json(budget_));
  return pool_.add_lex(std::move(node));
}

NodeId SchemaCompiler::number(Schema& schema, const Branch& branch) {
  const bool integer = (branch.types & kFraction) == 0;
  const NumberRule rule = schema.numbers(branch.schemas, integer);
  LexNode node;
  if (rule.free()) {
    node.lexeme = index_.common(rule.integer ? TokenIndex::kInteger : TokenIndex::kNumber);
  } else {
    node.lexeme = std::make_shared<const Lexeme>(number_dfa(rule, budget_), false);
  }
  return pool_.add_lex(std::move(node));
}

NodeId SchemaCompiler::array(Schema& schema, const SchemaSet& set) {
  ArrayNode out;
  std::size_t listed = 0;
  std::vector<std::pair<const Value*, const Value*>> rules;  // list of the first items, the others
  for (const Value* s : set) {
    const Value* prefix = s->find("prefixItems");
    const Value* items = s->find("items");
    if (items != nullptr && items->is(Value::Kind::array)) {  // draft 7
      prefix = items;
      items = s->find("additionalItems");
    }
    if (prefix != nullptr) listed = std::max(listed, prefix->items.size());
    rules.emplace_back(prefix, items);
    out.least = std::max(out.least, schema.count(*s, "minItems").value_or(0));
    out.most = std::min(out.most, schema.count(*s, "maxItems").value_or(out.most));
  }
  const auto item = [&](std::size_t index) {
    std::vector<const Value*> schemas;
    for (const auto& [prefix, items] : rules) {
      if (prefix != nullptr && index < prefix->items.size()) {
        schemas.push_back(&prefix->items[index]);
      } else if (items != nullptr) {
        schemas.push_back(items);
      }
    }
    return json(schema, schema_set(std::move(schemas)));
  };
  for (std::size_t i = 0; i < listed && i < out.most; ++i) out.prefix.push_back(item(i));
  out.items = item(listed);
  return pool_.add_array(std::move(out));
}

NodeId SchemaCompiler::argument_value(Schema& schema, const SchemaSet& set,
                                      const std::string* name) {
  std::vector<NodeId> choices;
  for (const Branch& branch : schema.branches(set)) {
    for (const Typed& t : typed(schema, branch, true)) {
      const std::string type(attribute_type(t.type));
      choices.push_back(pool_.add_sequence(
          {tokens({type, "\"", Role::Sep}), t.node, tokens({Role::Close, "argument", Role::Sep})}));
    }
  }
  std::vector<Piece> start;
  if (name != nullptr) start.emplace_back(attribute_text(*name));
  for (const char* piece : {"\"", " type", "=\""}) start.emplace_back(piece);
  return pool_.add_sequence({tokens(start), pool_.add_choice(std::move(choices))});
}

NodeId SchemaCompiler::arguments(Schema& schema) {
  std::vector<NodeId> elements, blocks;
  for (const Branch& branch : schema.branches({&schema.root()})) {
    if (!branch.literals && (branch.types & kObjectType) != 0) {
      elements.push_back(object(schema, branch.schemas, true));
    } else {
      for (const Typed& t : typed(schema, branch, false)) blocks.push_back(t.node);
    }
  }
  // Parameters that can be an object are written as one.
  if (!elements.empty()) return pool_.add_choice(std::move(elements));
  return pool_.add_sequence(
      {tokens({Role::Open, "json", " type", "=\"", "object", "\"", Role::Sep}),
       pool_.add_choice(std::move(blocks)), tokens({Role::Close, "json", Role::Sep})});
}

}  // namespace triax::grammar
