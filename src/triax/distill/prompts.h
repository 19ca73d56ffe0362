// Documents and prompts of one domain at one thinking effort, and the suite's items as prompts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "triax/chat/reader.h"
#include "triax/chat/render.h"
#include "triax/distill/distill_config.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/world/suite.h"

namespace triax::distill {

// What a model goes on from: ids up to the channel that the assistant's turn opens.
struct Prompt {
  std::size_t teacher = 0;  // whose domain and effort it is of
  std::vector<std::int32_t> ids;
};

// JSON lines of documents of the teacher's domain and effort, about `tokens` tokens of them.
std::string teacher_documents(const DistillConfig& config, std::size_t teacher,
                              std::uint64_t tokens);

// Prompt number `index` of the stream `stream` for a teacher: a new document of its domain and
// effort up to one of its assistant's turns. At most config.student.context ids. Follows from the
// arguments and config.seed alone.
Prompt make_prompt(const DistillConfig& config, const Tokenizer& tokenizer, std::size_t teacher,
                   const std::string& stream, std::uint64_t index);

// The items that grade a teacher's domain, at its effort; items of a domain are the same for every
// effort.
std::vector<world::SuiteItem> suite_items(const DistillConfig& config, std::size_t teacher);

// An item of the suite as ids, up to the channel that the assistant's turn opens.
std::vector<std::int32_t> suite_prompt(const world::SuiteItem& item, const Tokenizer& tokenizer);
// A turn as the suite grades it; ended: with its own marker.
world::SuiteAnswer suite_answer(const chat::Turn& turn, bool ended);

// A generated turn as it was read.
struct ReadTurn {
  world::SuiteAnswer answer;
  std::size_t thinking_tokens = 0;
};
ReadTurn read_turn(std::span<const std::int32_t> ids, const Tokenizer& tokenizer);

}  // namespace triax::distill
