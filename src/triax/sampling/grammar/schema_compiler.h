// From a schema to the nodes of a grammar.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "triax/sampling/grammar/nodes.h"
#include "triax/sampling/grammar/schema.h"

namespace triax::grammar {

struct SchemaOptions {
  // Objects that say nothing about additional properties: may they have any, as JSON Schema has it?
  // If not, declared ones alone are written (where some are declared).
  bool open_objects = true;
  WhiteSpace space;
};

// Compiles schemas into one pool of nodes. Each call of json() or arguments() only promises the
// node; finish() does the work that is left.
class SchemaCompiler {
 public:
  SchemaCompiler(NodePool& pool, const TokenIndex& index, const SchemaOptions& options,
                 Budget& budget)
      : pool_(pool), index_(index), options_(options), budget_(budget) {}

  // The values of `schema`'s root as JSON text.
  NodeId json(Schema& schema) { return json(schema, {&schema.root()}); }
  // JSON texts of objects, whatever they hold.
  NodeId any_object();

  // The arguments of a call with these parameters, as XTML writes them: elements for objects, a
  // block of JSON for all else. From after the opening tag of the call to before its closing one.
  NodeId arguments(Schema& schema);

  void finish();

  // Tokens of a run of segments: text is encoded on its own, a role is its marker.
  struct Piece {
    Piece(const char* t) : text(t) {}
    Piece(std::string t) : text(std::move(t)) {}
    Piece(Role r) : role(r), marker(true) {}
    std::string text;
    Role role = Role::Open;
    bool marker = false;
  };
  NodeId tokens(const std::vector<Piece>& pieces);

 private:
  struct Typed {
    unsigned type;  // one of Types; kWhole for all numbers
    NodeId node;
  };
  struct Work {
    Schema* schema;
    SchemaSet set;
    NodeId choice;
  };
  using Key = std::pair<Schema*, SchemaSet>;

  NodeId json(Schema& schema, const SchemaSet& set);
  // What the branch allows, by type; with `raw`, strings are the text itself.
  std::vector<Typed> typed(Schema& schema, const Branch& branch, bool raw);
  std::vector<Typed> literals(const Branch& branch, bool raw);
  NodeId words(std::vector<std::string> texts, bool raw);
  NodeId string(Schema& schema, const SchemaSet& set, bool raw);
  NodeId number(Schema& schema, const Branch& branch);
  NodeId array(Schema& schema, const SchemaSet& set);
  NodeId object(Schema& schema, const SchemaSet& set, bool arguments);
  void add_properties(Schema& schema, const SchemaSet& set, ObjectNode& out);
  void add_extras(Schema& schema, const SchemaSet& set, ObjectNode& out);
  void add_pattern_extras(Schema& schema, const SchemaSet& set, ObjectNode& out);
  // Values of a property that is none of the declared ones of each schema; false: there is none.
  bool other_values(const SchemaSet& set, SchemaSet& values) const;
  NodeId extra_key(CharDfa names, const ObjectNode& object);
  CharDfa name_texts(Schema& schema, const Value& names);
  NodeId member_value(Schema& schema, const SchemaSet& set, const ObjectNode& object,
                      const std::string* name);
  NodeId argument_value(Schema& schema, const SchemaSet& set, const std::string* name);
  std::shared_ptr<const Lexeme> lexeme(const std::string& key, bool raw, ByteDfa dfa);

  NodePool& pool_;
  const TokenIndex& index_;
  const SchemaOptions& options_;
  Budget& budget_;
  std::map<Key, NodeId> done_;
  std::vector<Work> work_;
  std::map<std::string, std::shared_ptr<const Lexeme>> lexemes_;
  std::unique_ptr<Schema> anything_;
};

}  // namespace triax::grammar
