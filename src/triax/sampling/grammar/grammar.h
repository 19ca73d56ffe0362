// Grammars for what a model may write: a JSON document, or a whole turn of K3's chat format.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "triax/sampling/grammar/matcher.h"
#include "triax/sampling/grammar/schema_compiler.h"

namespace triax::grammar {

struct CompileOptions {
  SchemaOptions schema;
  GrammarLimits limits;  // for the grammar as a whole
};

// One JSON text of the schema, then one of the tokenizer's stop ids. Throws Error for a schema that
// is not supported, has no value, or passes the limits.
std::shared_ptr<const Grammar> compile_document(std::shared_ptr<const TokenIndex> index,
                                                std::string_view schema,
                                                const CompileOptions& options = {});

struct Tool {
  std::string name;
  std::string parameters;  // a JSON schema; empty: no parameters
};

// What the rest of an assistant's turn may be.
struct TurnRules {
  enum class Opened : std::uint8_t { think, response };  // the channel that the prompt left open
  enum class Choice : std::uint8_t { none, automatic, required, named };
  enum class Format : std::uint8_t { text, json_object, json_schema };

  Opened opened = Opened::think;
  std::vector<Tool> tools;
  Choice choice = Choice::automatic;
  std::string named;             // the tool, for Choice::named
  bool parallel = true;          // more than one call
  std::size_t most_calls = 128;  // in one turn
  Format format = Format::text;
  std::string schema;  // for Format::json_schema
};

// The turn from where the prompt stops to the end of the message:
//
//   [ text close(think) open(response) ] content close(response)
//   [ open(tools) call+ close(tools) ] close(message) <|end_of_msg|>
//
// Text is free. Content is text, or a JSON text of the format; with a format and tools it may be
// empty where calls follow. Calls are to declared tools only, their arguments those of the tool's
// parameters in any order. Required and named: there is at least one call (named: of that tool, one
// only). Tags are the tokens that the chat format's writer makes of them. Throws Error as
// compile_document(), and for tools that cannot be chosen.
std::shared_ptr<const Grammar> compile_turn(std::shared_ptr<const TokenIndex> index,
                                            const TurnRules& rules,
                                            const CompileOptions& options = {});

}  // namespace triax::grammar
