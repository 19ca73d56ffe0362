// Texts from outside the generator: WordNet's glosses, and plain prose.
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "triax/cli/data_writer.h"
#include "triax/core/error.h"
#include "triax/tokenizer/rank_file.h"
#include "triax/tokenizer/utf8.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;
using world::Json;

constexpr std::size_t kGlossesEach = 6;
constexpr std::size_t kProseBytes = 1200;  // of a document, about

// "entity: that which is perceived to exist"; empty for a line that is no entry.
std::string gloss_line(const std::string& line) {
  const std::size_t bar = line.find(" | ");
  if (line.empty() || line[0] == ' ' || bar == std::string::npos) return {};
  std::istringstream fields(line);
  std::string offset, file, kind, count, word;
  if (!(fields >> offset >> file >> kind >> count >> word)) return {};
  std::replace(word.begin(), word.end(), '_', ' ');
  std::string meaning = line.substr(bar + 3);
  const std::size_t example = meaning.find("; \"");
  if (example != std::string::npos) meaning.resize(example);
  while (!meaning.empty() && meaning.back() == ' ') meaning.pop_back();
  return meaning.empty() ? "" : word + ": " + meaning;
}

std::string first_file(const std::string& folder) {
  const fs::path file = fs::path(folder) / "data.noun";
  if (!fs::exists(file)) {
    fail(
        "{}: no file data.noun there; give the folder of the package wordnet-base "
        "(/usr/share/wordnet)",
        folder);
  }
  return read_text_file(file);
}

}  // namespace

std::string wordnet_licence(const std::string& folder) {
  std::istringstream lines(first_file(folder));
  std::string out;
  for (std::string line; std::getline(lines, line) && line.starts_with("  ");) out += line + "\n";
  return out;
}

std::vector<Json> wordnet_documents(const std::string& folder) {
  first_file(folder);
  std::vector<Json> out;
  std::string text;
  std::size_t glosses = 0;
  for (const char* name : {"data.noun", "data.verb", "data.adj", "data.adv"}) {
    const fs::path file = fs::path(folder) / name;
    if (!fs::exists(file)) continue;
    std::istringstream lines(read_text_file(file));
    for (std::string line; std::getline(lines, line);) {
      const std::string gloss = gloss_line(line);
      if (gloss.empty()) continue;
      text += (text.empty() ? "" : "\n") + gloss;
      if (++glosses % kGlossesEach != 0) continue;
      out.push_back(world::text_document("wordnet", text));
      text.clear();
    }
  }
  if (!text.empty()) out.push_back(world::text_document("wordnet", text));
  return out;
}

std::vector<Json> prose_documents(const std::string& file) {
  const std::string text = utf8_repair(read_text_file(file));
  const std::string source = "prose:" + fs::path(file).filename().string();
  std::vector<Json> out;
  std::string now;
  const auto flush = [&] {
    if (!now.empty()) out.push_back(world::text_document(source, now));
    now.clear();
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (line.empty()) {
      if (now.size() >= kProseBytes) flush();
      continue;
    }
    now += (now.empty() ? "" : " ") + line;
    if (now.size() >= 2 * kProseBytes) flush();
  }
  flush();
  return out;
}

}  // namespace triax::cli
