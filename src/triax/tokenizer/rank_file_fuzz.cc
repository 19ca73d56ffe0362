// libFuzzer target: any bytes are either refused with Error or make a table that encodes all text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "triax/core/error.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/tokenizer/utf8.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(data, data + size);
  try {
    triax::RankTable ranks = triax::RankTable::parse(text, "fuzz");
    const auto count = static_cast<std::int32_t>(ranks.size());
    const triax::Tokenizer tokenizer(std::move(ranks), triax::SpecialTokens::standard(count));
    const std::string readable = triax::utf8_repair(text);
    if (tokenizer.decode(tokenizer.encode(readable)) != readable) std::abort();
  } catch (const triax::Error& error) {
    const std::string_view line = error.what();
    if (line.empty() || line.find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
