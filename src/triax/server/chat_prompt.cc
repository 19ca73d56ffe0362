#include "triax/server/chat_prompt.h"

#include <algorithm>

#include "triax/chat/fields.h"
#include "triax/server/json_out.h"

namespace triax::server {
namespace {

using chat::Author;
using chat::Channel;
using chat::Conversation;
using chat::Message;
using chat::Part;
using grammar::TurnRules;

void refuse_media(const Conversation& conversation) {
  for (std::size_t i = 0; i < conversation.messages.size(); ++i) {
    const auto& parts = conversation.messages[i].content;
    for (std::size_t j = 0; j < parts.size(); ++j) {
      if (parts[j].kind == Part::Kind::text) continue;
      const std::string field = chat::at_index(chat::at_index("messages", i) + ".content", j);
      if (!parts[j].text.starts_with("data:")) {
        chat::bad_field(field, "only data: URLs are read here; nothing is fetched for a request");
      }
      chat::bad_field(field, "{} cannot be read: no vision tower is loaded; send text",
                      parts[j].kind == Part::Kind::image ? "pictures" : "videos");
    }
  }
}

// Puts remembered ids where the same turns are rendered again.
class Splicer {
 public:
  Splicer(const Conversation& conversation, const chat::Rendered& rendered,
          const chat::Encoded& encoded, TurnMemory* turns)
      : conversation_(conversation), rendered_(rendered), encoded_(encoded), turns_(turns) {}

  ChatPrompt run() {
    std::size_t at = 0;  // in the canonical ids
    bool history_marked = false;
    const auto mark_history = [&] {
      if (history_marked || at < encoded_.history_end) return;
      history_marked = true;
      out_.history_tokens = out_.ids.size();
      if (!out_.cuts.empty() && out_.cuts.back() == out_.ids.size()) {
        out_.history_end = out_.ids.size();
      }
    };
    for (std::size_t m = 0; m < rendered_.messages.size(); ++m) {
      const auto& span = rendered_.messages[m];
      const std::size_t end = encoded_.message_ends[m];
      const Message* message = span.index ? &conversation_.messages[*span.index] : nullptr;
      const bool generated = message != nullptr && message->author == Author::assistant;
      const bool partial = generated && message->partial;
      if (generated && !partial) {
        const std::size_t body = body_of(at, end);
        copy(at, body);
        if (!splice(*message)) copy(body, end);
      } else {
        copy(at, end);
        if (!generated) out_.cuts.push_back(out_.ids.size());
      }
      at = end;
      mark_history();
    }
    out_.messages_end = out_.ids.size();
    copy(at, encoded_.ids.size());
    return std::move(out_);
  }

 private:
  void copy(std::size_t begin, std::size_t end) {
    out_.ids.insert(out_.ids.end(), encoded_.ids.begin() + static_cast<std::ptrdiff_t>(begin),
                    encoded_.ids.begin() + static_cast<std::ptrdiff_t>(end));
  }
  // The first id that the assistant wrote.
  std::size_t body_of(std::size_t begin, std::size_t end) const {
    while (begin < end && encoded_.generated[begin] == 0) ++begin;
    return begin;
  }
  bool splice(const Message& message) {
    if (turns_ == nullptr) return false;
    const auto ids = turns_->find(turn_key(message, rendered_.thinking), out_.ids);
    if (!ids) return false;
    out_.ids.insert(out_.ids.end(), ids->begin(), ids->end());
    return true;
  }

  const Conversation& conversation_;
  const chat::Rendered& rendered_;
  const chat::Encoded& encoded_;
  TurnMemory* turns_;
  ChatPrompt out_;
};

TurnRules::Choice choice_of(chat::ToolChoice choice) {
  switch (choice) {
    case chat::ToolChoice::none:
      return TurnRules::Choice::none;
    case chat::ToolChoice::required:
      return TurnRules::Choice::required;
    case chat::ToolChoice::named:
      return TurnRules::Choice::named;
    case chat::ToolChoice::automatic:
      break;
  }
  return TurnRules::Choice::automatic;
}

TurnRules rules_of(const Conversation& conversation, const ChatPrompt& prompt, bool parallel,
                   std::vector<bool>& strict) {
  TurnRules rules;
  rules.opened =
      prompt.opened == Channel::think ? TurnRules::Opened::think : TurnRules::Opened::response;
  rules.choice = choice_of(conversation.tool_choice);
  rules.named = conversation.tool_choice_name;
  rules.parallel = parallel;
  const bool forced =
      rules.choice == TurnRules::Choice::required || rules.choice == TurnRules::Choice::named;
  for (const JsonValue* tool : conversation.declared_tools()) {
    const JsonValue* function = tool->find("function");
    if (function == nullptr) continue;
    const JsonValue* name = function->find("name");
    const JsonValue* parameters = function->find("parameters");
    const JsonValue* wanted = function->find("strict");
    if (name == nullptr) continue;
    strict.push_back(forced || (wanted != nullptr && wanted->is_true()));
    rules.tools.push_back({name->text(), parameters == nullptr || parameters->is_null()
                                             ? std::string()
                                             : compact(*parameters)});
  }
  if (conversation.response_format == chat::ResponseFormat::json_object) {
    rules.format = TurnRules::Format::json_object;
  }
  if (conversation.response_format == chat::ResponseFormat::json_schema) {
    rules.format = conversation.response_strict ? TurnRules::Format::json_schema
                                                : TurnRules::Format::json_object;
    rules.schema = compact(conversation.response_schema);
  }
  return rules;
}

std::string key_of(const TurnRules& rules, const std::vector<bool>& strict) {
  JsonValue tools = JsonValue::array();
  for (std::size_t i = 0; i < rules.tools.size(); ++i) {
    tools.push(list({str(rules.tools[i].name), str(rules.tools[i].parameters), flag(strict[i])}));
  }
  return compact(
      list({num(static_cast<std::size_t>(rules.opened)),
            num(static_cast<std::size_t>(rules.choice)), str(rules.named), flag(rules.parallel),
            num(static_cast<std::size_t>(rules.format)), str(rules.schema), tools}));
}

}  // namespace

ChatPrompt make_prompt(const Conversation& conversation, const Tokenizer& tokenizer,
                       TurnMemory* turns) {
  refuse_media(conversation);
  const chat::Rendered rendered = chat::render(conversation);
  const chat::Encoded encoded = chat::encode(rendered, tokenizer);
  ChatPrompt out = Splicer(conversation, rendered, encoded, turns).run();
  out.pending = encoded.pending;
  out.opened = rendered.opened;
  out.thinking = rendered.thinking;
  const auto& messages = conversation.messages;
  if (!messages.empty() && messages.back().author == Author::assistant && messages.back().partial) {
    out.is_partial = true;
    out.partial = out.opened == Channel::think ? messages.back().reasoning : messages.back().text();
  }
  return out;
}

std::vector<std::int32_t> ChatPrompt::before() const {
  std::vector<std::int32_t> out(ids.begin(),
                                ids.begin() + static_cast<std::ptrdiff_t>(history_tokens));
  out.insert(out.end(), ids.begin() + static_cast<std::ptrdiff_t>(messages_end), ids.end());
  return out;
}

std::string turn_key(const Message& assistant, bool thinking) {
  JsonValue calls = JsonValue::array();
  for (const chat::ToolCall& call : assistant.tool_calls) {
    JsonValue arguments = call.arguments;
    if (arguments.is_string()) {
      try {
        arguments = JsonValue::parse(arguments.text());
      } catch (const Error&) {  // not JSON: the text itself
      }
    }
    if (arguments.is_null()) arguments = JsonValue::object();
    calls.push(list({str(call.name), arguments}));
  }
  return compact(
      list({thinking ? str(assistant.reasoning) : JsonValue(), str(assistant.text()), calls}));
}

GrammarCache::Entry GrammarCache::compile(std::string key, TurnRules rules,
                                          const std::vector<bool>& strict) const {
  Entry out{std::move(key), nullptr, {}};
  try {
    out.grammar = grammar::compile_turn(index_, rules);
    return out;
  } catch (const Error&) {
    if (std::all_of(strict.begin(), strict.end(), [](bool s) { return s; })) throw;
  }
  for (std::size_t i = 0; i < rules.tools.size(); ++i) {
    if (strict[i]) continue;
    TurnRules alone;
    alone.tools = {rules.tools[i]};
    try {
      grammar::compile_turn(index_, alone);
    } catch (const Error& error) {
      rules.tools[i].parameters = R"({"type":"object"})";
      out.warnings.push_back(fmt::format("the arguments of {} are not constrained: {}",
                                         in_quotes(rules.tools[i].name), error.what()));
    }
  }
  out.grammar = grammar::compile_turn(index_, rules);
  return out;
}

std::unique_ptr<TokenConstraint> GrammarCache::constraint(const Conversation& conversation,
                                                          const ChatPrompt& prompt,
                                                          bool parallel_calls,
                                                          std::vector<std::string>& warnings) {
  std::vector<bool> strict;
  TurnRules rules = rules_of(conversation, prompt, parallel_calls, strict);
  if (rules.tools.empty() && rules.format == TurnRules::Format::text) return nullptr;
  if (prompt.opened == Channel::none) {
    chat::bad_field("messages",
                    "an empty partial message does not go with tools or a response format; give it "
                    "content or reasoning");
  }
  const std::string key = key_of(rules, strict);
  std::shared_ptr<const grammar::Grammar> found;
  {
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(key);
    if (known != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, known->second);
      found = known->second->grammar;
      warnings.insert(warnings.end(), known->second->warnings.begin(),
                      known->second->warnings.end());
    }
  }
  if (!found) {
    Entry made = compile(key, std::move(rules), strict);
    found = made.grammar;
    warnings.insert(warnings.end(), made.warnings.begin(), made.warnings.end());
    const std::lock_guard lock(mutex_);
    if (!by_key_.contains(key)) {
      entries_.push_front(std::move(made));
      by_key_[key] = entries_.begin();
      if (entries_.size() > most_) {
        by_key_.erase(entries_.back().key);
        entries_.pop_back();
      }
    }
  }
  auto matcher = std::make_unique<grammar::GrammarMatcher>(std::move(found));
  if (!prompt.partial.empty() && !matcher->accept_text(prompt.partial)) {
    chat::bad_field("messages", "the partial message does not fit the response format");
  }
  return matcher;
}

}  // namespace triax::server
