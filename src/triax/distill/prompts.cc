// Prompts from the generator of the small world.
#include "triax/distill/prompts.h"

#include "triax/core/error.h"
#include "triax/world/corpus.h"
#include "triax/world/dice.h"

namespace triax::distill {
namespace {

using world::Json;

// A JSON line takes about so many bytes a token (30 million tokens are 90 MB).
constexpr std::uint64_t kBytesPerToken = 3;
constexpr std::size_t kTries = 10'000;

// A document of the domain at the effort: kinds by their share, the effort as the generator deals
// it.
Json draw_document(const DistillConfig& config, std::size_t teacher, world::Dice& dice) {
  const Domain& domain = config.domain(teacher);
  const std::string effort = world::effort_name(DistillConfig::effort(teacher));
  std::vector<double> shares;
  for (const std::string& name : domain.kinds) {
    for (const world::Kind& kind : world::kinds()) {
      if (kind.name == name) shares.push_back(kind.share);
    }
  }
  const std::string& kind = domain.kinds[dice.weighted(shares)];
  for (std::size_t n = 0; n < kTries; ++n) {
    const std::uint64_t number = dice.below(std::size_t{1} << 40);
    Json document = world::make_document(kind, config.seed, world::Part::train, number).document;
    if (document.value("thinking_effort", "") == effort) return document;
  }
  fail("domain {}: kind {} has no documents of thinking effort {}", domain.name, kind, effort);
}

std::vector<std::int32_t> prompt_ids(const Json& messages, const Json& tools,
                                     const std::string& effort, const Tokenizer& tokenizer) {
  Json request{{"messages", messages}, {"reasoning_effort", effort}};
  if (!tools.empty()) request["tools"] = tools;
  return chat::encode(chat::render(chat::parse_conversation(request.dump())), tokenizer).ids;
}

}  // namespace

std::string teacher_documents(const DistillConfig& config, std::size_t teacher,
                              std::uint64_t tokens) {
  world::Dice dice(world::stream_key("distill teacher", config.seed, teacher));
  std::string out;
  while (out.size() < kBytesPerToken * tokens) {
    out += draw_document(config, teacher, dice).dump() + "\n";
  }
  return out;
}

Prompt make_prompt(const DistillConfig& config, const Tokenizer& tokenizer, std::size_t teacher,
                   const std::string& stream, std::uint64_t index) {
  const std::string key = fmt::format("distill {} {}", stream, config.teacher_name(teacher));
  world::Dice dice(world::stream_key(key, config.seed, index));
  for (std::size_t n = 0; n < kTries; ++n) {
    const Json document = draw_document(config, teacher, dice);
    std::vector<std::size_t> turns;
    const Json& messages = document.at("messages");
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (messages[i].at("role") == "assistant") turns.push_back(i);
    }
    if (turns.empty()) continue;
    Json before = Json::array();
    const std::size_t turn = turns[dice.below(turns.size())];
    for (std::size_t i = 0; i < turn; ++i) before.push_back(messages[i]);
    Prompt out{teacher, prompt_ids(before, document.value("tools", Json::array()),
                                   world::effort_name(DistillConfig::effort(teacher)), tokenizer)};
    if (out.ids.size() <= config.student.context) return out;
  }
  fail("domain {}: no document gives a prompt of at most student.context = {} tokens",
       config.domain(teacher).name, config.student.context);
}

std::vector<world::SuiteItem> suite_items(const DistillConfig& config, std::size_t teacher) {
  const Domain& domain = config.domain(teacher);
  world::SuiteOptions options;
  options.seed = config.evaluation.seed;
  options.stories = domain.suite == SuitePart::stories ? domain.items : 0;
  options.sums = domain.suite == SuitePart::sums ? domain.items : 0;
  options.tools = domain.suite == SuitePart::tools ? domain.items : 0;
  options.effort = DistillConfig::effort(teacher);
  return world::make_suite(options);
}

std::vector<std::int32_t> suite_prompt(const world::SuiteItem& item, const Tokenizer& tokenizer) {
  return prompt_ids(item.messages, item.tools, world::effort_name(item.effort), tokenizer);
}

world::SuiteAnswer suite_answer(const chat::Turn& turn, bool ended) {
  world::SuiteAnswer answer;
  answer.thinking = turn.reasoning.value_or("");
  answer.content = turn.content;
  answer.well_formed = ended;
  for (const chat::Turn::Call& call : turn.calls) {
    Json arguments = Json::parse(call.arguments, nullptr, false);
    if (arguments.is_discarded()) arguments = call.arguments;
    answer.calls.push_back({{"name", call.name}, {"arguments", std::move(arguments)}});
  }
  return answer;
}

ReadTurn read_turn(std::span<const std::int32_t> ids, const Tokenizer& tokenizer) {
  ReadTurn out;
  chat::TurnReader reader(tokenizer);
  for (const std::int32_t id : ids) {
    if (reader.in_text() == chat::Channel::think) ++out.thinking_tokens;
    reader.push(id);
    if (reader.ended()) break;
  }
  const bool ended = reader.ended();
  reader.finish(!ended);
  out.answer = suite_answer(reader.turn(), ended);
  return out;
}

}  // namespace triax::distill
