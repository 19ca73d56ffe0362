// A JSON schema taken apart: references followed, alternatives spread out, every keyword looked at.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "triax/sampling/grammar/budget.h"
#include "triax/sampling/grammar/char_dfa.h"
#include "triax/sampling/grammar/number_dfa.h"
#include "triax/sampling/grammar/value.h"

namespace triax::grammar {

// Kinds of JSON values, as bits.
enum Types : unsigned {
  kNull = 1,
  kBoolean = 2,
  kWhole = 4,     // numbers without a fraction
  kFraction = 8,  // all other numbers
  kStringType = 16,
  kArrayType = 32,
  kObjectType = 64,
  kNumberType = kWhole | kFraction,
  kAllTypes = 127,
};
unsigned types_of(const Value& value);

// Schemas that all must hold, sorted and each once; none: anything goes.
using SchemaSet = std::vector<const Value*>;
SchemaSet schema_set(std::vector<const Value*> schemas);

// One alternative of a set of schemas. What `schemas` say by references, allOf, anyOf and oneOf has
// been followed; their other keywords all apply.
struct Branch {
  SchemaSet schemas;
  unsigned types = kAllTypes;
  std::optional<std::vector<const Value*>> literals;  // the only values, where there is a list
};

// What strings must be.
struct StringRule {
  std::set<std::string> patterns;
  std::uint64_t least = 0;
  std::uint64_t most = ~std::uint64_t{0};
};

class Schema {
 public:
  // `name` is how messages call it. Throws Error for what is no JSON.
  Schema(std::string_view text, std::string_view name, Budget& budget);

  const Value& root() const { return *root_; }
  const std::string& name() const { return name_; }

  // The alternatives; none for a set that nothing can satisfy. Throws Error for keywords that are
  // not supported, and for references that lead nowhere or only to themselves. A schema without
  // `type` whose keywords are all about certain types means those types.
  std::vector<Branch> branches(const SchemaSet& set);

  StringRule strings(const SchemaSet& set) const;
  NumberRule numbers(const SchemaSet& set, bool integer) const;
  const CharDfa& pattern(const std::string& text);  // compiled once

  bool holds(const Value& value, const Value& schema);

  [[noreturn]] void refuse(const Value& schema, std::string_view keyword,
                           std::string_view what) const;
  // The value of a keyword that counts something; nothing where it is absent.
  std::optional<std::uint64_t> count(const Value& schema, std::string_view keyword) const;

 private:
  struct Link {  // how a schema was reached
    const Value* schema;
    const Link* up;
  };
  struct Item {
    const Value* schema;
    const Link* from;
  };
  struct Expansion {
    std::vector<Item> todo;
    std::vector<std::vector<Item>> choices;  // one of each
    SchemaSet done;
    std::size_t depth = 0;
  };

  void expand(Expansion at, std::vector<SchemaSet>& out);
  bool follow(Expansion& at);  // all of `todo`; false: nothing satisfies it
  std::optional<Branch> branch(const SchemaSet& set);
  void check(const Value& schema) const;
  void check_shape(const Value& schema, const Value::Member& keyword) const;
  const Value& target(const Value& schema, const std::string& reference) const;
  void check_one_of(const Value& schema);
  bool apart(const Value& a, const Value& b, std::size_t depth);
  bool apart(const Branch& a, const Branch& b, std::size_t depth);
  bool objects_apart(const Branch& a, const Branch& b, std::size_t depth);

  unsigned declared_types(const Value& schema) const;
  bool holds_here(const Value& value, const Value& schema);  // but for references and choices
  bool string_holds(const std::string& text, const Value& schema);
  bool array_holds(const Value& value, const Value& schema);
  bool object_holds(const Value& value, const Value& schema);
  std::string path(const Value& schema) const;

  std::string name_;
  Budget& budget_;
  std::unique_ptr<const Value> root_;
  std::deque<Link> links_;
  std::set<const Value*> checked_one_of_;
  std::map<std::string, std::unique_ptr<const CharDfa>> patterns_;
  std::size_t depth_ = 0;
};

}  // namespace triax::grammar
