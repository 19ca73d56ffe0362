// libFuzzer target: any bytes are either refused with Error or make a grammar whose walk does not
// get stuck. The first byte steers the walk.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "triax/core/error.h"
#include "triax/core/rng.h"
#include "triax/sampling/grammar/grammar.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace {

std::shared_ptr<const triax::grammar::TokenIndex> index() {
  using namespace triax;
  static const Tokenizer tokenizer = [] {
    const std::vector<std::string> tokens = byte_tokens(100);
    RankTable ranks = RankTable::parse(rank_file_text(tokens), "fuzz");
    const auto count = static_cast<std::int32_t>(ranks.size());
    return Tokenizer(std::move(ranks), SpecialTokens::standard(count));
  }();
  static const auto made = std::make_shared<const grammar::TokenIndex>(tokenizer);
  return made;
}

void walk(const std::shared_ptr<const triax::grammar::Grammar>& grammar, std::uint64_t seed) {
  triax::Rng rng(seed);
  triax::grammar::GrammarMatcher matcher(grammar);
  std::vector<std::uint64_t> mask(grammar->index->words());
  for (int i = 0; i < 40 && !matcher.finished(); ++i) {
    matcher.fill_mask(mask);
    const std::size_t vocab = grammar->index->vocab();
    const std::size_t start = static_cast<std::size_t>(rng.next() % vocab);
    std::size_t tried = 0;
    while (tried < vocab && !triax::mask_allows(mask, (start + tried) % vocab)) ++tried;
    if (tried == vocab) std::abort();
    if (!matcher.accept(static_cast<std::int32_t>((start + tried) % vocab))) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(data + 1, data + size);
  triax::grammar::CompileOptions options;
  options.limits = {0.5, std::size_t{8} << 20};
  options.schema.open_objects = data[0] % 2 == 0;
  try {
    walk(triax::grammar::compile_document(index(), text, options), data[0]);
    triax::grammar::TurnRules rules;
    rules.opened = triax::grammar::TurnRules::Opened::response;
    rules.tools = {{"f", text}};
    rules.choice = triax::grammar::TurnRules::Choice::required;
    walk(triax::grammar::compile_turn(index(), rules, options), data[0]);
  } catch (const triax::Error& error) {
    const std::string_view line = error.what();
    if (line.empty() || line.find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
