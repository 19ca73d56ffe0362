// `triax tokenize` and `triax detokenize`.
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "triax/cli/commands.h"
#include "triax/cli/format.h"
#include "triax/cli/ids_file.h"
#include "triax/cli/load_model.h"

namespace triax::cli {
namespace {

std::string dump(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string text_of(const TokenizeCommand& c) {
  if (c.text && !c.file.empty()) {
    wrong_use("tokenize: a text and --file do not go together; give one of them");
  }
  if (!c.file.empty()) return read_input(c.file);
  if (!c.text) wrong_use("tokenize: give a text, - to read standard input, or --file FILE");
  return *c.text == "-" ? read_input("-") : *c.text;
}

std::vector<std::int32_t> ids_of(const DetokenizeCommand& c) {
  if (!c.ids.empty() && !c.file.empty()) {
    wrong_use("detokenize: ids and --file do not go together; give one of them");
  }
  if (!c.file.empty()) return read_ids(c.file);
  if (c.ids.empty()) wrong_use("detokenize: give ids, - to read standard input, or --file FILE");
  if (c.ids.size() == 1 && c.ids[0] == "-") return read_ids("-");
  std::string joined;
  for (const std::string& word : c.ids) joined += word + " ";
  return parse_ids(joined, "the command line");
}

}  // namespace

int execute(const TokenizeCommand& c) {
  const std::string text = text_of(c);
  const Tokenizer tokenizer = open_tokenizer(c.model);
  const std::vector<std::int32_t> ids =
      c.special ? tokenizer.encode_control(text) : tokenizer.encode(text);
  if (c.json) {
    nlohmann::ordered_json json;
    json["ids"] = ids;
    if (c.pieces) {
      json["pieces"] = nlohmann::ordered_json::array();
      for (const std::int32_t id : ids) json["pieces"].push_back(tokenizer.token_bytes(id));
    }
    fmt::print("{}\n", dump(json));
  } else if (c.pieces) {
    for (const std::int32_t id : ids) {
      fmt::print("{:>7}  {}\n", id, one_line(tokenizer.token_bytes(id)));
    }
  } else {
    fmt::print("{}\n", fmt::join(ids, " "));
  }
  return 0;
}

int execute(const DetokenizeCommand& c) {
  const std::vector<std::int32_t> ids = ids_of(c);
  const Tokenizer tokenizer = open_tokenizer(c.model);
  check_ids(ids, static_cast<std::size_t>(tokenizer.vocab_size()), "the ids");
  const std::string text = tokenizer.decode(ids);
  if (c.json) {
    fmt::print("{}\n", dump({{"text", text}}));
    return 0;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (::isatty(STDOUT_FILENO) == 1 && !text.ends_with('\n')) std::fputc('\n', stdout);
  return 0;
}

}  // namespace triax::cli
