// Keywords: which are known, and whether their values make sense; references.
#include <algorithm>
#include <array>
#include <charconv>

#include "triax/sampling/grammar/schema.h"

namespace triax::grammar {
namespace {

// Say nothing about which values are valid.
constexpr std::array<std::string_view, 22> kAnnotations{"title",
                                                        "description",
                                                        "default",
                                                        "examples",
                                                        "example",
                                                        "$schema",
                                                        "$id",
                                                        "id",
                                                        "$comment",
                                                        "deprecated",
                                                        "readOnly",
                                                        "writeOnly",
                                                        "$defs",
                                                        "definitions",
                                                        "$anchor",
                                                        "externalDocs",
                                                        "xml",
                                                        "contentMediaType",
                                                        "contentEncoding",
                                                        "contentSchema",
                                                        "discriminator",
                                                        "markdownDescription"};

enum class Shape : std::uint8_t {
  any,
  schema,
  schemas,     // a list with at least one
  schema_map,  // an object of schemas
  schema_or_list,
  type,
  strings,
  text,
  count,
  number,
  boolean,
  number_or_boolean,
  values,
};

struct Keyword {
  std::string_view name;
  Shape shape;
  const char* expected;
};
constexpr std::array<Keyword, 30> kKeywords{{
    {"type", Shape::type, "a type or a list of types"},
    {"enum", Shape::values, "a list with at least one value"},
    {"const", Shape::any, ""},
    {"nullable", Shape::boolean, "true or false"},
    {"$ref", Shape::text, "a text"},
    {"allOf", Shape::schemas, "a list of schemas"},
    {"anyOf", Shape::schemas, "a list of schemas"},
    {"oneOf", Shape::schemas, "a list of schemas"},
    {"properties", Shape::schema_map, "an object of schemas"},
    {"patternProperties", Shape::schema_map, "an object of schemas"},
    {"required", Shape::strings, "a list of names"},
    {"additionalProperties", Shape::schema, "a schema"},
    {"propertyNames", Shape::schema, "a schema"},
    {"minProperties", Shape::count, "a whole number of at least 0"},
    {"maxProperties", Shape::count, "a whole number of at least 0"},
    {"items", Shape::schema_or_list, "a schema"},
    {"prefixItems", Shape::schemas, "a list of schemas"},
    {"additionalItems", Shape::schema, "a schema"},
    {"minItems", Shape::count, "a whole number of at least 0"},
    {"maxItems", Shape::count, "a whole number of at least 0"},
    {"uniqueItems", Shape::boolean, "true or false"},
    {"minLength", Shape::count, "a whole number of at least 0"},
    {"maxLength", Shape::count, "a whole number of at least 0"},
    {"pattern", Shape::text, "a text"},
    {"format", Shape::text, "a text"},
    {"minimum", Shape::number, "a number"},
    {"maximum", Shape::number, "a number"},
    {"exclusiveMinimum", Shape::number_or_boolean, "a number"},
    {"exclusiveMaximum", Shape::number_or_boolean, "a number"},
    {"multipleOf", Shape::number, "a number above 0"},
}};

bool is_schema(const Value& v) {
  return v.is(Value::Kind::object) || v.is(Value::Kind::boolean);
}

bool is_type(const Value& v) {
  static constexpr std::array<std::string_view, 7> kTypes{"null",   "boolean", "integer", "number",
                                                          "string", "array",   "object"};
  return v.is(Value::Kind::string) &&
         std::find(kTypes.begin(), kTypes.end(), v.text) != kTypes.end();
}

template <class Predicate>
bool all(const Value& list, Predicate&& good) {
  return list.is(Value::Kind::array) && std::all_of(list.items.begin(), list.items.end(), good);
}

bool fits(const Value& v, Shape shape) {
  const bool number = v.is(Value::Kind::number), boolean = v.is(Value::Kind::boolean);
  switch (shape) {
    case Shape::any:
      return true;
    case Shape::schema:
      return is_schema(v);
    case Shape::schemas:
      return all(v, is_schema) && !v.items.empty();
    case Shape::schema_map:
      return v.is(Value::Kind::object) &&
             std::all_of(v.members.begin(), v.members.end(),
                         [](const Value::Member& m) { return is_schema(m.value); });
    case Shape::schema_or_list:
      return is_schema(v) || all(v, is_schema);
    case Shape::type:
      return is_type(v) || (all(v, is_type) && !v.items.empty());
    case Shape::strings:
      return all(v, [](const Value& i) { return i.is(Value::Kind::string); });
    case Shape::text:
      return v.is(Value::Kind::string);
    case Shape::count:
      return number && as_count(Decimal::parse(v.text)).has_value();
    case Shape::number:
      return number;
    case Shape::boolean:
      return boolean;
    case Shape::number_or_boolean:
      return number || boolean;
    case Shape::values:
      return v.is(Value::Kind::array) && !v.items.empty();
  }
  return false;
}

// Finds `wanted` below `at`; the way there in `path`.
bool find_path(const Value& at, const Value* wanted, std::string& path) {
  if (&at == wanted) return true;
  const std::size_t size = path.size();
  for (const Value::Member& m : at.members) {
    path += "/" + m.key;
    if (find_path(m.value, wanted, path)) return true;
    path.resize(size);
  }
  for (std::size_t i = 0; i < at.items.size(); ++i) {
    path += fmt::format("/{}", i);
    if (find_path(at.items[i], wanted, path)) return true;
    path.resize(size);
  }
  return false;
}

// One step of a JSON pointer, unescaped: %xx of the URI, then ~1 and ~0.
std::string pointer_step(std::string_view text) {
  std::string plain, out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr ==
            text.data() + i + 3) {
      plain += static_cast<char>(byte);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] == '~' && i + 1 < plain.size() && (plain[i + 1] == '0' || plain[i + 1] == '1')) {
      out += plain[++i] == '0' ? '~' : '/';
    } else {
      out += plain[i];
    }
  }
  return out;
}

}  // namespace

std::string Schema::path(const Value& schema) const {
  std::string out = "#";
  return find_path(*root_, &schema, out) ? out : "#";
}

void Schema::refuse(const Value& schema, std::string_view keyword, std::string_view what) const {
  fail("{}, at {}: {}: {}", name_, in_quotes(path(schema)), in_quotes(keyword), what);
}

std::optional<std::uint64_t> Schema::count(const Value& schema, std::string_view keyword) const {
  const Value* v = schema.find(keyword);
  return v == nullptr ? std::nullopt : as_count(Decimal::parse(v->text));
}

void Schema::check_shape(const Value& schema, const Value::Member& keyword) const {
  for (const Keyword& k : kKeywords) {
    if (k.name != keyword.key) continue;
    if (!fits(keyword.value, k.shape)) {
      refuse(schema, keyword.key,
             fmt::format("expected {}, found {}", k.expected,
                         in_quotes(json_text(keyword.value, false))));
    }
    return;
  }
  const bool annotation =
      std::find(kAnnotations.begin(), kAnnotations.end(), keyword.key) != kAnnotations.end() ||
      keyword.key.starts_with("x-");
  if (!annotation) {
    refuse(schema, keyword.key, "this keyword is not supported; leave it out or say it otherwise");
  }
}

void Schema::check(const Value& schema) const {
  if (!schema.is(Value::Kind::object)) {
    refuse(schema, "schema", fmt::format("expected an object, found {}", kind_name(schema.kind)));
  }
  for (const Value::Member& keyword : schema.members) check_shape(schema, keyword);
  const Value* unique = schema.find("uniqueItems");
  if (unique != nullptr && unique->boolean && count(schema, "maxItems").value_or(2) > 1) {
    refuse(schema, "uniqueItems",
           "true is not supported, since items are not compared; leave it out");
  }
  const Value* step = schema.find("multipleOf");
  if (step != nullptr) {
    const Decimal d = Decimal::parse(step->text);
    if (d.zero() || d.negative) refuse(schema, "multipleOf", "expected a number above 0");
  }
}

const Value& Schema::target(const Value& schema, const std::string& reference) const {
  if (reference.empty() || reference[0] != '#' || (reference.size() > 1 && reference[1] != '/')) {
    refuse(schema, "$ref",
           fmt::format("{} is not supported: only \"#\" and \"#/...\" are", in_quotes(reference)));
  }
  const Value* at = root_.get();
  std::string_view rest = std::string_view(reference).substr(1);
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string step = pointer_step(rest.substr(0, end));
    rest.remove_prefix(end);
    const Value* next = at->find(step);
    if (at->is(Value::Kind::array)) {
      std::size_t index = at->items.size();
      const auto read = std::from_chars(step.data(), step.data() + step.size(), index);
      if (read.ptr == step.data() + step.size() && index < at->items.size()) {
        next = &at->items[index];
      }
    }
    if (next == nullptr) {
      refuse(schema, "$ref", fmt::format("{} leads nowhere", in_quotes(reference)));
    }
    at = next;
  }
  if (!is_schema(*at)) {
    refuse(schema, "$ref", fmt::format("{} leads to no schema", in_quotes(reference)));
  }
  return *at;
}

}  // namespace triax::grammar
