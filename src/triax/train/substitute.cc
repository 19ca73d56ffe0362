// Replacing rare words.
#include "triax/train/substitute.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "triax/core/error.h"

namespace triax::train {
namespace {

using nlohmann::json;

constexpr double kRare = 0.1;
constexpr double kCopied = 0.7, kOther = 0.25;  // chances of a word to be replaced
constexpr double kMore = 0.5;                   // chance of a second and of a third piece
constexpr std::size_t kRelated = 3;             // letters

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

std::string lower(std::string_view word) {
  std::string out(word);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

// Calls word(text) and other(text) for the parts of JSON text in turn; escapes are no words.
template <class Word, class Other>
void for_each_part(std::string_view text, Word&& word, Other&& other) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    if (text[at] == '\\' && at + 1 < text.size()) {
      end = std::min(text.size(), at + (text[at + 1] == 'u' ? 6 : 2));
      other(text.substr(at, end - at));
    } else if (is_letter(text[at])) {
      while (end < text.size() && is_letter(text[end])) ++end;
      word(text.substr(at, end - at));
    } else {
      while (end < text.size() && text[end] != '\\' && !is_letter(text[end])) ++end;
      other(text.substr(at, end - at));
    }
    at = end;
  }
}

std::set<std::string> words_of(std::string_view text) {
  std::set<std::string> out;
  for_each_part(text, [&](std::string_view w) { out.insert(lower(w)); }, [](std::string_view) {});
  return out;
}

// Adds the words that the form itself consists of: keys but for the names of parameters, and values
// that say what something is.
void add_form(const json& value, bool names, std::set<std::string>& out) {
  static const std::set<std::string> kKinds = {"role",         "type",   "id",
                                               "tool_call_id", "format", "thinking_effort",
                                               "source",       "$ref",   "pattern"};
  for (const auto& item : value.items()) {
    const json& inner = item.value();
    const bool object = value.is_object();
    if (object && !names) out.merge(words_of(item.key()));
    if (object && inner.is_string() && kKinds.contains(item.key())) {
      out.merge(words_of(inner.get<std::string>()));
    }
    if (inner.is_structured()) {
      add_form(inner, object && (item.key() == "properties" || item.key() == "$defs"), out);
    }
  }
}

// What the assistant wrote, everything else, and what is no one's words.
struct Parts {
  std::set<std::string> learned, given, form;
};
Parts parts_of(std::string_view conversation) {
  json value = json::parse(conversation);
  Parts out;
  add_form(value, false, out.form);
  std::string learned;
  for (json& message : value["messages"]) {
    if (!message.is_object() || message.value("role", json()) != "assistant") continue;
    learned += message.dump() + "\n";
    message = nullptr;
  }
  out.learned = words_of(learned);
  out.given = words_of(value.dump());
  return out;
}

}  // namespace

WordSubstitution::WordSubstitution(const DataSource& source, std::span<const RawDocument> documents,
                                   const Tokenizer& tokenizer)
    : keep_(source.substitute_keep.begin(), source.substitute_keep.end()),
      most_(static_cast<std::size_t>(kRare * static_cast<double>(documents.size()))) {
  for (const RawDocument& d : documents) {
    for (const std::string& word : words_of(d.conversation)) ++documents_[word];
  }
  std::set<std::string> pieces;
  for (std::int32_t id = 0; id < tokenizer.rank_count(); ++id) {
    std::string_view bytes = tokenizer.token_bytes(id);
    if (bytes.starts_with(' ')) bytes.remove_prefix(1);
    if (!bytes.empty() && std::all_of(bytes.begin(), bytes.end(), is_letter)) {
      pieces.insert(lower(bytes));
    }
  }
  pieces_.assign(pieces.begin(), pieces.end());
  if (pieces_.empty()) {
    fail("data source {}: substitute needs a vocabulary with letters", in_quotes(source.name));
  }
}

bool WordSubstitution::rare(const std::string& word) const {
  const auto at = documents_.find(word);
  return at != documents_.end() && at->second <= most_ && !keep_.contains(word);
}

std::string WordSubstitution::any_word(Rng& rng) const {
  std::string out;
  for (int n = 0; n < 3 && (n == 0 || rng.uniform() < kMore); ++n) {
    out += pieces_[rng.next() % pieces_.size()];
  }
  return out;
}

std::string WordSubstitution::apply(std::string_view conversation, Rng& rng) const {
  const Parts parts = parts_of(conversation);
  std::set<std::string> first_said, taken = parts.given;  // by the assistant: their beginnings
  for (const std::string& word : parts.learned) {
    if (!parts.given.contains(word)) first_said.insert(word.substr(0, kRelated));
    taken.insert(word);
  }
  std::map<std::string, std::string> to;
  for (const std::string& word : parts.given) {
    if (!rare(word) || parts.form.contains(word) || first_said.contains(word.substr(0, kRelated)))
      continue;
    if (rng.uniform() >= (parts.learned.contains(word) ? kCopied : kOther)) continue;
    std::string other;
    do {
      other = any_word(rng);
    } while (!taken.insert(other).second);
    to[word] = other;
  }
  std::string out;
  for_each_part(
      conversation,
      [&](std::string_view word) {
        const auto at = to.find(lower(word));
        if (at == to.end()) {
          out += word;
          return;
        }
        const std::size_t begin = out.size();
        out += at->second;
        if (std::isupper(static_cast<unsigned char>(word[0])) != 0) {
          out[begin] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[begin])));
        }
      },
      [&](std::string_view other) { out += other; });
  return out;
}

}  // namespace triax::train
