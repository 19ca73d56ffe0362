// Any body for any of the protocols: a request that can be rendered, or an error of one line.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "triax/server/api_error.h"
#include "triax/server/chat_prompt.h"
#include "triax/server/chat_request.h"
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

void one(const std::string& text,
         server::ChatRequest (*read)(const chat::JsonValue&, server::Profile)) {
  try {
    const chat::JsonValue body = server::parse_body(text);
    const server::ChatRequest request = read(body, server::Profile::open);
    const server::ChatPrompt prompt =
        server::make_prompt(request.conversation, tokenizer(), nullptr);
    std::size_t last = 0;
    for (const std::size_t cut : prompt.cuts) {
      check(cut > last && cut <= prompt.ids.size());
      last = cut;
    }
    check(prompt.pending <= prompt.ids.size());
  } catch (const std::exception& fault) {
    const server::ApiError error = server::api_error_of(fault);
    check(error.status() == 400);
    check(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  one(text, server::chat_request);
  one(text, server::messages_request);
  one(text, server::responses_request);
  return 0;
}
