// Which values a schema holds for, and which alternatives exclude each other.
#include <algorithm>

#include "triax/sampling/grammar/formats.h"
#include "triax/sampling/grammar/schema.h"
#include "triax/tokenizer/utf8.h"

namespace triax::grammar {
namespace {

constexpr std::size_t kMostDepth = 500;

std::size_t characters(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t i = 0; i < text.size(); ++n) i += utf8_decode_valid(text, i).length;
  return n;
}

}  // namespace

bool Schema::holds(const Value& value, const Value& schema) {
  if (schema.is(Value::Kind::boolean)) return schema.boolean;
  budget_.tick();
  if (depth_ >= kMostDepth) refuse(schema, "$ref", "the schema refers to itself alone");
  ++depth_;
  check(schema);
  const auto each = [&](const Value& s) { return holds(value, s); };
  bool ok = holds_here(value, schema);
  if (const Value* ref = schema.find("$ref"); ok && ref != nullptr) {
    ok = holds(value, target(schema, ref->text));
  }
  if (const Value* list = schema.find("allOf"); ok && list != nullptr) {
    ok = std::all_of(list->items.begin(), list->items.end(), each);
  }
  if (const Value* list = schema.find("anyOf"); ok && list != nullptr) {
    ok = std::any_of(list->items.begin(), list->items.end(), each);
  }
  if (const Value* list = schema.find("oneOf"); ok && list != nullptr) {
    ok = std::count_if(list->items.begin(), list->items.end(), each) == 1;
  }
  --depth_;
  return ok;
}

bool Schema::holds_here(const Value& value, const Value& schema) {
  if ((types_of(value) & declared_types(schema)) == 0) return false;
  if (const Value* c = schema.find("const"); c != nullptr && !equal(value, *c)) return false;
  if (const Value* list = schema.find("enum")) {
    const auto same = [&](const Value& v) { return equal(value, v); };
    if (std::none_of(list->items.begin(), list->items.end(), same)) return false;
  }
  switch (value.kind) {
    case Value::Kind::number:
      return keeps(Decimal::parse(value.text), numbers({&schema}, false));
    case Value::Kind::string:
      return string_holds(value.text, schema);
    case Value::Kind::array:
      return array_holds(value, schema);
    case Value::Kind::object:
      return object_holds(value, schema);
    default:
      return true;
  }
}

bool Schema::string_holds(const std::string& text, const Value& schema) {
  const StringRule rule = strings({&schema});
  const std::size_t length = characters(text);
  return length >= rule.least && length <= rule.most &&
         std::all_of(rule.patterns.begin(), rule.patterns.end(),
                     [&](const std::string& p) { return pattern(p).matches(text); });
}

bool Schema::array_holds(const Value& value, const Value& schema) {
  const std::size_t size = value.items.size();
  if (size < count(schema, "minItems").value_or(0)) return false;
  if (size > count(schema, "maxItems").value_or(size)) return false;
  const Value* prefix = schema.find("prefixItems");
  const Value* items = schema.find("items");
  if (items != nullptr && items->is(Value::Kind::array)) {  // draft 7
    prefix = items;
    items = schema.find("additionalItems");
  }
  const std::size_t listed = prefix == nullptr ? 0 : prefix->items.size();
  for (std::size_t i = 0; i < size; ++i) {
    const Value* s = i < listed ? &prefix->items[i] : items;
    if (s != nullptr && !holds(value.items[i], *s)) return false;
  }
  return true;
}

bool Schema::object_holds(const Value& value, const Value& schema) {
  const std::size_t size = value.members.size();
  if (size < count(schema, "minProperties").value_or(0)) return false;
  if (size > count(schema, "maxProperties").value_or(size)) return false;
  if (const Value* required = schema.find("required")) {
    for (const Value& name : required->items) {
      if (value.find(name.text) == nullptr) return false;
    }
  }
  const Value* properties = schema.find("properties");
  const Value* patterns = schema.find("patternProperties");
  const Value* others = schema.find("additionalProperties");
  const Value* names = schema.find("propertyNames");
  for (const Value::Member& m : value.members) {
    if (names != nullptr) {
      Value name;
      name.kind = Value::Kind::string;
      name.text = m.key;
      if (!holds(name, *names)) return false;
    }
    const Value* own = properties == nullptr ? nullptr : properties->find(m.key);
    bool matched = own != nullptr;
    if (own != nullptr && !holds(m.value, *own)) return false;
    if (patterns != nullptr) {
      for (const Value::Member& p : patterns->members) {
        if (!pattern(p.key).matches(m.key)) continue;
        matched = true;
        if (!holds(m.value, p.value)) return false;
      }
    }
    if (!matched && others != nullptr && !holds(m.value, *others)) return false;
  }
  return true;
}

// oneOf is anyOf as long as no value satisfies two of its schemas; where that is not plain, it is
// refused rather than taken for anyOf.
void Schema::check_one_of(const Value& schema) {
  if (!checked_one_of_.insert(&schema).second) return;
  const std::vector<Value>& list = schema.find("oneOf")->items;
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (apart(list[j], list[i], 0)) continue;
      refuse(schema, "oneOf",
             fmt::format("alternatives {} and {} may hold at once, which is not supported; write "
                         "anyOf, or tell them apart by type or by a required property",
                         j + 1, i + 1));
    }
  }
}

bool Schema::apart(const Value& a, const Value& b, std::size_t depth) {
  const std::vector<Branch> left = branches({&a}), right = branches({&b});
  for (const Branch& x : left) {
    for (const Branch& y : right) {
      if (!apart(x, y, depth)) return false;
    }
  }
  return true;
}

bool Schema::apart(const Branch& a, const Branch& b, std::size_t depth) {
  budget_.tick();
  const auto none_holds = [&](const Branch& list, const Branch& other) {
    return std::none_of(list.literals->begin(), list.literals->end(), [&](const Value* v) {
      if (other.literals) {
        return std::any_of(other.literals->begin(), other.literals->end(),
                           [&](const Value* w) { return equal(*v, *w); });
      }
      return (types_of(*v) & other.types) != 0 &&
             std::all_of(other.schemas.begin(), other.schemas.end(),
                         [&](const Value* s) { return holds_here(*v, *s); });
    });
  };
  if (a.literals) return none_holds(a, b);
  if (b.literals) return none_holds(b, a);
  const unsigned common = a.types & b.types;
  if ((common & (kNull | kBoolean | kArrayType)) != 0) return false;
  SchemaSet both = a.schemas;
  both.insert(both.end(), b.schemas.begin(), b.schemas.end());
  if ((common & kNumberType) != 0) {
    const NumberRule rule = numbers(both, (common & kFraction) == 0);
    if (!number_dfa(rule, budget_).empty()) return false;
  }
  if ((common & kStringType) != 0) {
    const StringRule rule = strings(both);
    CharDfa texts = CharDfa::lengths(0, CharDfa::kNoLimit, budget_);
    for (const std::string& p : rule.patterns) texts = texts.both(pattern(p), budget_);
    if (rule.least <= rule.most && !texts.empty()) return false;
  }
  return (common & kObjectType) == 0 || objects_apart(a, b, depth);
}

// Does one require a property that the other has differently, or not at all?
bool Schema::objects_apart(const Branch& a, const Branch& b, std::size_t depth) {
  constexpr std::size_t kDeep = 3;
  const auto value_of = [](const Value& s, const std::string& name) -> const Value* {
    const Value* properties = s.find("properties");
    const Value* own = properties == nullptr ? nullptr : properties->find(name);
    return own != nullptr || s.find("patternProperties") != nullptr
               ? own
               : s.find("additionalProperties");
  };
  const auto values_of = [&](const Branch& branch, const std::string& name) {
    std::vector<const Value*> out;
    for (const Value* s : branch.schemas) {
      if (const Value* v = value_of(*s, name)) out.push_back(v);
    }
    return schema_set(std::move(out));
  };
  for (const Branch* side : {&a, &b}) {
    for (const Value* s : side->schemas) {
      const Value* required = s->find("required");
      if (required == nullptr) continue;
      for (const Value& name : required->items) {
        const std::vector<Branch> left = branches(values_of(a, name.text));
        const std::vector<Branch> right = branches(values_of(b, name.text));
        if (left.empty() || right.empty()) return true;
        if (depth >= kDeep) continue;
        const bool differ = std::all_of(left.begin(), left.end(), [&](const Branch& x) {
          return std::all_of(right.begin(), right.end(),
                             [&](const Branch& y) { return apart(x, y, depth + 1); });
        });
        if (differ) return true;
      }
    }
  }
  return false;
}

}  // namespace triax::grammar
