#include "triax/sampling/grammar/schema.h"

#include <algorithm>
#include <array>
#include <utility>

#include "triax/sampling/grammar/formats.h"

namespace triax::grammar {
namespace {

constexpr std::size_t kMostBranches = 1000;
constexpr std::size_t kMostNested = 200;  // choices within choices
constexpr std::string_view kAnyText = "^(?:[^]*)$";

unsigned type_bits(std::string_view type) {
  if (type == "null") return kNull;
  if (type == "boolean") return kBoolean;
  if (type == "integer") return kWhole;
  if (type == "number") return kNumberType;
  if (type == "string") return kStringType;
  if (type == "array") return kArrayType;
  return kObjectType;
}

// Types that a keyword is about; 0: all.
unsigned keyword_types(std::string_view keyword) {
  static constexpr std::array<std::string_view, 7> kObjects{
      "properties",    "required",      "additionalProperties", "patternProperties",
      "propertyNames", "minProperties", "maxProperties"};
  static constexpr std::array<std::string_view, 6> kArrays{
      "items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"};
  static constexpr std::array<std::string_view, 5> kNumbers{
      "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"};
  static constexpr std::array<std::string_view, 3> kStrings{"minLength", "maxLength", "pattern"};
  const auto among = [&](const auto& list) {
    return std::find(list.begin(), list.end(), keyword) != list.end();
  };
  if (among(kObjects)) return kObjectType;
  if (among(kArrays)) return kArrayType;
  if (among(kNumbers)) return kNumberType;
  if (among(kStrings)) return kStringType;
  return 0;
}

unsigned format_types(std::string_view format) {
  NumberRule rule;
  return (format_pattern(format) ? unsigned{kStringType} : 0) |
         (apply_number_format(format, rule) ? unsigned{kNumberType} : 0);
}

bool is_true(const Value* v) {
  return v != nullptr && v->boolean;
}

}  // namespace

unsigned types_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return kNull;
    case Value::Kind::boolean:
      return kBoolean;
    case Value::Kind::number:
      return Decimal::parse(value.text).integer() ? kWhole : kFraction;
    case Value::Kind::string:
      return kStringType;
    case Value::Kind::array:
      return kArrayType;
    case Value::Kind::object:
      return kObjectType;
  }
  return 0;
}

SchemaSet schema_set(std::vector<const Value*> schemas) {
  std::sort(schemas.begin(), schemas.end());
  schemas.erase(std::unique(schemas.begin(), schemas.end()), schemas.end());
  return schemas;
}

Schema::Schema(std::string_view text, std::string_view name, Budget& budget)
    : name_(name), budget_(budget) {
  budget_.use(checked_mul(text.size(), 4));
  root_ = std::make_unique<const Value>(parse_value(text, name));
}

std::vector<Branch> Schema::branches(const SchemaSet& set) {
  Expansion at;
  for (const Value* s : set) at.todo.push_back({s, nullptr});
  std::vector<SchemaSet> sets;
  expand(std::move(at), sets);
  std::sort(sets.begin(), sets.end());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  std::vector<Branch> out;
  for (const SchemaSet& s : sets) {
    if (std::optional<Branch> b = branch(s)) out.push_back(std::move(*b));
  }
  return out;
}

void Schema::expand(Expansion at, std::vector<SchemaSet>& out) {
  budget_.use(64);
  if (!follow(at)) return;
  if (at.choices.empty()) {
    if (out.size() >= kMostBranches) {
      fail("{}: the alternatives of anyOf and oneOf multiply to more than {}; make them fewer",
           name_, kMostBranches);
    }
    out.push_back(schema_set(std::move(at.done)));
    return;
  }
  const std::vector<Item> choice = std::move(at.choices.back());
  at.choices.pop_back();
  if (++at.depth > kMostNested) {
    fail("{}: anyOf and oneOf lie more than {} deep within one another", name_, kMostNested);
  }
  for (const Item& item : choice) {
    Expansion next = at;
    next.todo = {item};
    expand(std::move(next), out);
  }
}

bool Schema::follow(Expansion& at) {
  while (!at.todo.empty()) {
    budget_.tick();
    const Item item = at.todo.back();
    at.todo.pop_back();
    const Value& schema = *item.schema;
    if (schema.is(Value::Kind::boolean)) {
      if (!schema.boolean) return false;
      continue;
    }
    for (const Link* up = item.from; up != nullptr; up = up->up) {
      if (up->schema == &schema) refuse(schema, "$ref", "the schema refers to itself alone");
    }
    if (std::find(at.done.begin(), at.done.end(), &schema) != at.done.end()) continue;
    check(schema);
    at.done.push_back(&schema);
    const Link* link = &links_.emplace_back(Link{&schema, item.from});
    if (const Value* ref = schema.find("$ref")) {
      at.todo.push_back({&target(schema, ref->text), link});
    }
    if (const Value* every = schema.find("allOf")) {
      for (const Value& s : every->items) at.todo.push_back({&s, link});
    }
    if (schema.find("oneOf") != nullptr) check_one_of(schema);
    for (const std::string_view keyword : {"anyOf", "oneOf"}) {
      const Value* some = schema.find(keyword);
      if (some == nullptr) continue;
      std::vector<Item> choice;
      for (const Value& s : some->items) choice.push_back({&s, link});
      at.choices.push_back(std::move(choice));
    }
  }
  return true;
}

unsigned Schema::declared_types(const Value& schema) const {
  const Value* type = schema.find("type");
  if (type == nullptr) return kAllTypes;
  unsigned types = is_true(schema.find("nullable")) ? unsigned{kNull} : 0;
  if (type->is(Value::Kind::string)) return types | type_bits(type->text);
  for (const Value& t : type->items) types |= type_bits(t.text);
  return types;
}

std::optional<Branch> Schema::branch(const SchemaSet& set) {
  Branch out;
  out.schemas = set;
  unsigned meant = 0;  // by the keywords
  bool said = false;   // by `type`
  const Value* list = nullptr;
  for (const Value* s : set) {
    said = said || s->find("type") != nullptr;
    out.types &= declared_types(*s);
    for (const Value::Member& m : s->members) {
      meant |= m.key == "format" ? format_types(m.value.text) : keyword_types(m.key);
    }
    for (const std::string_view keyword : {"const", "enum"}) {
      if (list == nullptr) list = s->find(keyword);
      if (list != nullptr && keyword == "const" && s->find("const") == list) {
        out.literals.emplace().push_back(list);
      }
    }
  }
  if (list != nullptr) {
    std::vector<const Value*> values;
    if (out.literals) {
      values = *out.literals;
    } else {
      for (const Value& v : list->items) values.push_back(&v);
    }
    std::erase_if(values, [&](const Value* v) {
      return (types_of(*v) & out.types) == 0 ||
             !std::all_of(set.begin(), set.end(),
                          [&](const Value* s) { return holds_here(*v, *s); });
    });
    if (values.empty()) return std::nullopt;
    out.literals = std::move(values);
    return out;
  }
  if (!said && meant != 0) out.types &= meant;
  if (out.types == 0) return std::nullopt;
  return out;
}

StringRule Schema::strings(const SchemaSet& set) const {
  StringRule rule;
  for (const Value* s : set) {
    rule.least = std::max(rule.least, count(*s, "minLength").value_or(0));
    rule.most = std::min(rule.most, count(*s, "maxLength").value_or(rule.most));
    if (const Value* p = s->find("pattern")) rule.patterns.insert(p->text);
    const Value* f = s->find("format");
    if (f == nullptr) continue;
    const std::optional<std::string> p = format_pattern(f->text);
    if (p) {
      if (*p != kAnyText) rule.patterns.insert(*p);
    } else if (NumberRule number; !apply_number_format(f->text, number)) {
      refuse(*s, "format", fmt::format("{} is not enforced; leave it out", in_quotes(f->text)));
    }
  }
  return rule;
}

NumberRule Schema::numbers(const SchemaSet& set, bool integer) const {
  NumberRule rule;
  rule.integer = integer;
  const auto narrow = [&](const Value* v, bool low, bool exclusive) {
    if (v == nullptr || !v->is(Value::Kind::number)) return;
    std::optional<NumberBound>& bound = low ? rule.low : rule.high;
    const Decimal value = Decimal::parse(v->text);
    const int order = bound ? compare(value, bound->value) * (low ? 1 : -1) : 1;
    if (order > 0) {
      bound = NumberBound{value, exclusive};
    } else if (order == 0) {
      bound->exclusive = bound->exclusive || exclusive;
    }
  };
  for (const Value* s : set) {
    const Value* above = s->find("exclusiveMinimum");  // draft 4: true makes `minimum` exclusive
    const Value* below = s->find("exclusiveMaximum");
    narrow(s->find("minimum"), true, is_true(above));
    narrow(s->find("maximum"), false, is_true(below));
    narrow(above, true, true);
    narrow(below, false, true);
    if (const Value* step = s->find("multipleOf")) {
      rule.multiples.push_back(Decimal::parse(step->text));
    }
    const Value* f = s->find("format");
    if (f != nullptr && !apply_number_format(f->text, rule) && !format_pattern(f->text)) {
      refuse(*s, "format", fmt::format("{} is not enforced; leave it out", in_quotes(f->text)));
    }
  }
  return rule;
}

const CharDfa& Schema::pattern(const std::string& text) {
  std::unique_ptr<const CharDfa>& dfa = patterns_[text];
  if (dfa == nullptr) dfa = std::make_unique<const CharDfa>(CharDfa::regex(text, budget_));
  return *dfa;
}

}  // namespace triax::grammar
