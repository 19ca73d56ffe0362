// Any text as a request: a rendered prompt whose only special tokens are its structure, or an
// Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "triax/chat/render.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace {

using namespace triax;

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

void one_request(std::string_view text) {
  const chat::JsonValue request = chat::JsonValue::parse(text);
  // What is read is written and read again the same.
  const std::string once = chat::json_text(request, chat::kJsonCompact);
  check(chat::json_text(chat::JsonValue::parse(once), chat::kJsonCompact) == once);
  const chat::Conversation conversation = chat::parse_conversation(request);
  const chat::Rendered rendered = chat::render(conversation);
  const chat::Encoded encoded = chat::encode(rendered, tokenizer());
  std::size_t structure = 0, special = 0;
  for (const chat::Segment& s : rendered.segments) {
    structure += s.kind == chat::SegmentKind::structure ? 1 : 0;
  }
  for (const std::int32_t id : encoded.ids) {
    special += tokenizer().specials().contains(id) ? 1 : 0;
  }
  check(structure == special);
  check(tokenizer().decode(encoded.ids) == rendered.text());
  check(encoded.history_end <= encoded.ids.size());
  chat::check_contract(conversation, request);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    one_request({reinterpret_cast<const char*>(data), size});
  } catch (const Error& error) {
    check(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
  return 0;
}
