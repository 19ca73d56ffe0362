// Reading files of documents.
#include "triax/train/documents.h"

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>

#include "triax/checkpoint/file.h"
#include "triax/core/error.h"
#include "triax/core/hash.h"
#include "triax/core/rng.h"
#include "triax/train/conversation.h"
#include "triax/train/substitute.h"

namespace triax::train {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 36;
constexpr std::size_t kBatch = 256;  // documents between two words of progress

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Calls visit(line, number from 1) for every line.
template <class Visit>
void for_each_line(std::string_view text, Visit&& visit) {
  std::size_t number = 1;
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    visit(text.substr(at, end - at), number);
    at = end + 1;
  }
}

void add_text(std::string_view text, const std::string& where, std::vector<RawDocument>& out) {
  const std::string_view inner = trimmed(text);
  if (!inner.empty()) out.push_back({std::string(inner), {}, where});
}

void cut_at_blank_lines(std::string_view text, const std::string& name,
                        std::vector<RawDocument>& out) {
  std::string document;
  std::size_t first = 1;
  for_each_line(text, [&](std::string_view line, std::size_t number) {
    if (!trimmed(line).empty()) {
      if (document.empty()) first = number;
      document.append(line).append("\n");
      return;
    }
    add_text(document, fmt::format("{}:{}", name, first), out);
    document.clear();
  });
  add_text(document, fmt::format("{}:{}", name, first), out);
}

RawDocument parse_line(std::string_view line, std::string where) {
  json value;
  try {
    value = json::parse(line);
  } catch (const json::exception& error) {
    fail("{}: not JSON: {}", where, error.what());
  }
  const bool messages = value.is_object() && value.contains("messages");
  const bool text = value.is_object() && value.contains("text") && value["text"].is_string();
  if (messages == text) {
    fail("{}: expected an object with either \"text\" (a text) or \"messages\"", where);
  }
  if (messages) return {{}, std::string(line), std::move(where)};
  return {value["text"].get<std::string>(), {}, std::move(where)};
}

struct Encoded {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> learn;
};

Encoded encode(const RawDocument& document, const DataSource& source, const Tokenizer& tokenizer) {
  Encoded out;
  if (!document.conversation.empty()) {
    out.ids = render_conversation(document.conversation, document.where, tokenizer, out.learn);
    if (source.learn == Learn::all) std::fill(out.learn.begin(), out.learn.end(), std::uint8_t{1});
  } else {
    out.ids = tokenizer.encode(document.text);
    out.ids.push_back(tokenizer.required_id(Role::Eos));
    out.learn.assign(out.ids.size(), 1);
  }
  TRIAX_CHECK(out.ids.size() == out.learn.size());
  if (!out.learn.empty()) out.learn[0] = 0;  // nothing stands before the first token
  return out;
}

}  // namespace

std::vector<RawDocument> read_documents(const DataSource& source, std::string& digest) {
  std::vector<RawDocument> out;
  std::string digests;
  for (const std::filesystem::path& file : source.files) {
    const std::string name = file.string();
    const std::string text = read_whole(file, kMaxFileBytes);
    const auto sum = sha256(text);
    digests += hex(sum);
    const std::size_t before = out.size();
    if (source.kind == SourceKind::jsonl) {
      for_each_line(text, [&](std::string_view line, std::size_t number) {
        if (trimmed(line).empty()) return;
        out.push_back(parse_line(line, fmt::format("{}:{}", name, number)));
      });
    } else if (source.split == Split::blank_lines) {
      cut_at_blank_lines(text, name, out);
    } else {
      add_text(text, name, out);
    }
    if (out.size() == before) {
      fail("{}: nothing to learn from in it; remove it from data source {}", name,
           in_quotes(source.name));
    }
  }
  digest = hex(sha256(digests));
  return out;
}

std::string plain_text(const RawDocument& document) {
  return document.conversation.empty() ? document.text
                                       : conversation_text(document.conversation, document.where);
}

std::uint64_t DocumentSet::targets() const {
  return static_cast<std::uint64_t>(std::count(learn.begin(), learn.end(), std::uint8_t{1}));
}

std::size_t DocumentSet::drawable(std::size_t context) const {
  std::size_t out = 0;
  for (std::size_t d = 0; d < documents(); ++d) out += !whole[d] || rows(d) <= context ? 1 : 0;
  return out;
}

DocumentSet tokenize_documents(const DataSource& source, std::span<const RawDocument> documents,
                               const std::string& digest, const Tokenizer& tokenizer,
                               ThreadPool& pool, std::uint64_t seed,
                               const DocumentProgress& progress) {
  DocumentSet out;
  out.name = source.name;
  out.digest = digest;
  out.weight = source.weight;
  std::optional<WordSubstitution> substitution;
  if (source.substitute > 0) substitution.emplace(source, documents, tokenizer);
  for (std::size_t first = 0; first < documents.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, documents.size() - first);
    std::vector<Encoded> encoded(count);
    std::vector<std::uint8_t> substituted(count);
    std::vector<std::exception_ptr> faults(count);
    pool.parallel_for(count, [&](std::size_t i, std::size_t) {
      const RawDocument& document = documents[first + i];
      Rng rng(splitmix64_at(seed, first + i));
      const bool drawn = substitution && rng.uniform() < source.substitute;
      substituted[i] = drawn && !document.conversation.empty() ? 1 : 0;
      try {
        encoded[i] = substituted[i] == 0
                         ? encode(document, source, tokenizer)
                         : encode({document.text, substitution->apply(document.conversation, rng),
                                   document.where},
                                  source, tokenizer);
      } catch (...) {
        faults[i] = std::current_exception();
      }
    });
    for (std::size_t i = 0; i < count; ++i) {
      if (faults[i]) std::rethrow_exception(faults[i]);
      const Encoded& e = encoded[i];
      if (std::find(e.learn.begin(), e.learn.end(), std::uint8_t{1}) == e.learn.end()) {
        ++out.dropped;
        continue;
      }
      out.ids.insert(out.ids.end(), e.ids.begin(), e.ids.end());
      out.learn.insert(out.learn.end(), e.learn.begin(), e.learn.end());
      out.begin.push_back(out.ids.size());
      out.substituted += substituted[i];
      const bool conversation = !documents[first + i].conversation.empty();
      out.whole.push_back(source.longer == Longer::skip ||
                          (source.longer == Longer::automatic && conversation));
    }
    if (progress) progress(first + count, documents.size());
  }
  if (out.documents() == 0) {
    fail("data source {}: none of its {} documents has a token to learn", in_quotes(source.name),
         documents.size());
  }
  return out;
}

}  // namespace triax::train
