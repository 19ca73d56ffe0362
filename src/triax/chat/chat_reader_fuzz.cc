// Any ids as a turn: events that join to the result, no marker in any text, and a message that can
// be rendered. A byte is an id; 0xF8 and above are special tokens. '<' cannot be spelled, so it
// would come from a marker only.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "triax/chat/reader.h"
#include "triax/tokenizer/tokenizer_writer.h"
#include "triax/tokenizer/utf8.h"

namespace {

using namespace triax;
using chat::TurnEvent;

const Tokenizer& tokenizer() {
  static const Tokenizer made = [] {
    RankTable ranks = RankTable::parse(rank_file_text(byte_tokens(0)), "bytes");
    const auto first = static_cast<std::int32_t>(ranks.size());
    return Tokenizer(std::move(ranks), SpecialTokens::standard(first));
  }();
  return made;
}

void check(bool good) {
  if (!good) std::abort();
}

std::int32_t id_of(std::uint8_t byte) {
  static constexpr Role kMarks[] = {Role::Open, Role::Close,    Role::Sep, Role::EndOfMsg,
                                    Role::Bos,  Role::MediaPad, Role::Eos, Role::Eot};
  if (byte >= 0xF8) return tokenizer().required_id(kMarks[byte - 0xF8]);
  if (byte == '<') byte = 'x';
  return tokenizer().ranks().find_byte(static_cast<char>(byte));
}

struct Joined {
  std::string reasoning, content;
  std::vector<std::string> arguments;

  void take(const std::vector<TurnEvent>& events) {
    for (const TurnEvent& event : events) {
      check(utf8_valid(event.text));
      check(event.text.find('<') == std::string::npos);
      switch (event.kind) {
        case TurnEvent::Kind::reasoning:
          reasoning += event.text;
          break;
        case TurnEvent::Kind::content:
          content += event.text;
          break;
        case TurnEvent::Kind::call:
          check(event.index == arguments.size() && !event.text.empty());
          arguments.emplace_back();
          break;
        case TurnEvent::Kind::arguments:
          check(event.index + 1 == arguments.size());
          arguments.back() += event.text;
          break;
      }
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  chat::ReaderOptions options;
  options.opened = static_cast<chat::Channel>(data[0] % 3);
  options.ignore_end = (data[0] & 4) != 0;
  chat::TurnReader reader(tokenizer(), options);
  Joined joined;
  for (std::size_t i = 1; i < size; ++i) joined.take(reader.push(id_of(data[i])));
  const bool cut = (data[0] & 8) != 0;
  joined.take(reader.finish(cut));
  const chat::Turn& turn = reader.turn();
  check(joined.reasoning == turn.reasoning.value_or(""));
  check(joined.content == turn.content);
  check(joined.arguments.size() == turn.calls.size());
  for (std::size_t i = 0; i < turn.calls.size(); ++i) {
    check(joined.arguments[i] == turn.calls[i].arguments);
  }
  chat::render_body(chat::message_of(turn), options.opened == chat::Channel::think);
  return 0;
}
