// Objects: declared members, and the names that others may have.
#include <algorithm>
#include <optional>

#include "triax/sampling/grammar/schema_compiler.h"

namespace triax::grammar {
namespace {

// A pattern that the texts match, and no others.
std::string exactly(const std::vector<std::string>& texts) {
  std::string out = "^(?:";
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) out += '|';
    for (const char c : texts[i]) {
      if (std::string_view("\\^$.*+?()[]{}|/").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out + ")$";
}

// Does the schema say anything about members that are not declared?
bool is_open(const Value& schema, bool open_by_default) {
  return open_by_default || schema.find("properties") == nullptr ||
         schema.find("additionalProperties") != nullptr ||
         schema.find("patternProperties") != nullptr;
}

}  // namespace

NodeId SchemaCompiler::member_value(Schema& schema, const SchemaSet& set, const ObjectNode& object,
                                    const std::string* name) {
  return object.arguments ? argument_value(schema, set, name) : json(schema, set);
}

bool SchemaCompiler::other_values(const SchemaSet& set, SchemaSet& values) const {
  for (const Value* s : set) {
    const Value* others = s->find("additionalProperties");
    if (others != nullptr) {
      if (others->is(Value::Kind::boolean) && !others->boolean) return false;
      values.push_back(others);
    } else if (!is_open(*s, options_.open_objects)) {
      return false;
    }
  }
  values = schema_set(std::move(values));
  return true;
}

void SchemaCompiler::add_properties(Schema& schema, const SchemaSet& set, ObjectNode& out) {
  std::vector<std::string> names, required;
  const auto add = [](std::vector<std::string>& list, const std::string& name) {
    if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
  };
  for (const Value* s : set) {
    if (const Value* p = s->find("properties")) {
      for (const Value::Member& m : p->members) add(names, m.key);
    }
    if (const Value* r = s->find("required")) {
      for (const Value& name : r->items) add(required, name.text), add(names, name.text);
    }
    budget_.tick();
  }
  for (const std::string& name : names) {
    ObjectNode::Property property;
    property.name = name;
    property.written = out.arguments ? attribute_text(name) : json_string(name);
    property.required = std::find(required.begin(), required.end(), name) != required.end();
    std::vector<const Value*> values;
    bool possible = true;  // as far as propertyNames says
    for (const Value* s : set) {
      const Value* p = s->find("properties");
      const Value* own = p == nullptr ? nullptr : p->find(name);
      bool matched = own != nullptr;
      if (own != nullptr) values.push_back(own);
      if (const Value* patterns = s->find("patternProperties")) {
        for (const Value::Member& m : patterns->members) {
          if (!schema.pattern(m.key).matches(name)) continue;
          values.push_back(&m.value);
          matched = true;
        }
      }
      if (const Value* others = s->find("additionalProperties"); !matched && others != nullptr) {
        values.push_back(others);
      }
      if (const Value* rule = s->find("propertyNames")) {
        Value text;
        text.kind = Value::Kind::string;
        text.text = name;
        possible = possible && schema.holds(text, *rule);
      }
    }
    budget_.use(sizeof(ObjectNode::Property) + 2 * name.size());
    property.value = possible ? member_value(schema, schema_set(std::move(values)), out, &name)
                              : pool_.add_choice({});  // declared, but never there
    out.properties.push_back(std::move(property));
  }
  std::sort(out.properties.begin(), out.properties.end(),
            [](const auto& a, const auto& b) { return a.written < b.written; });
}

// Other names in their one spelling, those of declared members left out.
NodeId SchemaCompiler::extra_key(CharDfa names, const ObjectNode& object) {
  std::vector<std::string> declared;
  for (const ObjectNode::Property& p : object.properties) {
    declared.push_back(object.arguments ? attribute_text(p.name) : p.name);
  }
  if (!declared.empty()) {
    names = names.both(CharDfa::regex(exactly(declared), budget_).complement(budget_), budget_);
  }
  LexNode node;
  node.lexeme = std::make_shared<const Lexeme>(
      object.arguments ? names.raw(budget_) : names.json(budget_), object.arguments);
  return pool_.add_lex(std::move(node));
}

// All texts that `names`, a schema of property names, holds for.
CharDfa SchemaCompiler::name_texts(Schema& schema, const Value& names) {
  std::optional<CharDfa> out;
  for (const Branch& branch : schema.branches({&names})) {
    if ((branch.types & kStringType) == 0) continue;
    if (out) {
      schema.refuse(names, "propertyNames", "alternatives are not supported; write one pattern");
    }
    if (branch.literals) {
      std::vector<std::string> texts;
      for (const Value* v : *branch.literals) texts.push_back(v->text);
      out = CharDfa::regex(exactly(texts), budget_);
      continue;
    }
    const StringRule rule = schema.strings(branch.schemas);
    out = CharDfa::lengths(0, CharDfa::kNoLimit, budget_);
    if (rule.least > 0 || rule.most != LexNode::kNoLimit) {
      out = CharDfa::lengths(static_cast<std::size_t>(rule.least),
                             static_cast<std::size_t>(rule.most), budget_);
    }
    for (const std::string& p : rule.patterns) out = out->both(schema.pattern(p), budget_);
  }
  if (!out) out = CharDfa::lengths(0, CharDfa::kNoLimit, budget_).complement(budget_);  // no name
  return *out;
}

void SchemaCompiler::add_extras(Schema& schema, const SchemaSet& set, ObjectNode& out) {
  for (const Value* s : set) {
    if (s->find("patternProperties") != nullptr || s->find("propertyNames") != nullptr) {
      return add_pattern_extras(schema, set, out);
    }
  }
  SchemaSet values;
  if (!other_values(set, values)) return;
  ObjectNode::Extra extra;
  LexNode key;
  key.lexeme = index_.common(out.arguments ? TokenIndex::kAttribute : TokenIndex::kKey);
  extra.key = pool_.add_lex(std::move(key));
  extra.value = member_value(schema, values, out, nullptr);
  out.extras.push_back(extra);
}

// Each pattern's names, and those that match none.
void SchemaCompiler::add_pattern_extras(Schema& schema, const SchemaSet& set, ObjectNode& out) {
  CharDfa rest = CharDfa::lengths(0, CharDfa::kNoLimit, budget_);
  for (const Value* s : set) {
    if (const Value* names = s->find("propertyNames")) {
      rest = rest.both(name_texts(schema, *names), budget_);
    }
  }
  if (out.arguments) {  // an attribute writes & and " in another way
    rest = rest.both(CharDfa::regex("^[^&\"]*$", budget_), budget_);
  }
  const Value* owner = nullptr;
  for (const Value* s : set) {
    const Value* patterns = s->find("patternProperties");
    if (patterns == nullptr || patterns->members.empty()) continue;
    if (owner != nullptr) {
      schema.refuse(*s, "patternProperties", "in two schemas of allOf is not supported");
    }
    owner = s;
  }
  if (owner != nullptr) {
    SchemaSet others = set;
    std::erase(others, owner);
    SchemaSet base;
    const bool possible = other_values(others, base);
    for (const Value::Member& m : owner->find("patternProperties")->members) {
      const CharDfa& pattern = schema.pattern(m.key);
      for (const Value::Member& n : owner->find("patternProperties")->members) {
        if (&n == &m) break;
        if (!pattern.both(schema.pattern(n.key), budget_).empty()) {
          schema.refuse(*owner, "patternProperties",
                        fmt::format("{} and {} match the same names, which is not supported",
                                    in_quotes(n.key), in_quotes(m.key)));
        }
      }
      std::vector<const Value*> values = base;
      values.push_back(&m.value);
      if (possible) {
        out.extras.push_back({extra_key(rest.both(pattern, budget_), out),
                              member_value(schema, schema_set(std::move(values)), out, nullptr)});
      }
    }
    for (const Value::Member& m : owner->find("patternProperties")->members) {
      rest = rest.both(schema.pattern(m.key).complement(budget_), budget_);
    }
  }
  SchemaSet values;
  if (!other_values(set, values)) return;
  out.extras.push_back(
      {extra_key(std::move(rest), out), member_value(schema, values, out, nullptr)});
}

NodeId SchemaCompiler::object(Schema& schema, const SchemaSet& set, bool arguments) {
  ObjectNode out;
  out.arguments = arguments;
  if (arguments) out.argument_start = tokens({Role::Open, "argument", " key", "=\""});
  for (const Value* s : set) {
    out.least = std::max(out.least, schema.count(*s, "minProperties").value_or(0));
    out.most = std::min(out.most, schema.count(*s, "maxProperties").value_or(out.most));
  }
  add_properties(schema, set, out);
  add_extras(schema, set, out);
  // Two other members could have equal names, and then are one.
  const std::uint64_t sure = out.properties.size() + (out.extras.empty() ? 0 : 1);
  if (out.least > sure && !out.extras.empty()) {
    for (const Value* s : set) {
      if (schema.count(*s, "minProperties").value_or(0) > sure) {
        schema.refuse(*s, "minProperties",
                      "above 1 beside additional properties is not supported, since their names "
                      "are not compared; declare the properties");
      }
    }
  }
  return pool_.add_object(std::move(out));
}

}  // namespace triax::grammar
