// What the tests of grammars share: vocabularies, golden schemas, walks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "triax/core/error.h"
#include "triax/core/rng.h"
#include "triax/sampling/grammar/grammar.h"
#include "triax/sampling/grammar/validator_testing.h"
#include "triax/tokenizer/rank_file.h"
#include "triax/tokenizer/tokenizer.h"
#include "triax/tokenizer/tokenizer_writer.h"

namespace triax::testing {

using namespace triax::grammar;

inline const Tokenizer& k3_vocabulary() {
  static const Tokenizer tokenizer =
      Tokenizer::load(std::filesystem::path(TRIAX_SOURCE_DIR) / "src/triax/tokenizer/k3");
  return tokenizer;
}

// Single bytes and a few merges: no token is longer than needed.
inline const Tokenizer& small_vocabulary() {
  static const Tokenizer tokenizer = [] {
    const std::vector<std::string> tokens = byte_tokens(200);
    RankTable ranks = RankTable::parse(rank_file_text(tokens), "small");
    const auto count = static_cast<std::int32_t>(ranks.size());
    return Tokenizer(std::move(ranks), SpecialTokens::standard(count));
  }();
  return tokenizer;
}

inline std::shared_ptr<const TokenIndex> k3_index() {
  static const auto index = std::make_shared<const TokenIndex>(k3_vocabulary());
  return index;
}
inline std::shared_ptr<const TokenIndex> small_index() {
  static const auto index = std::make_shared<const TokenIndex>(small_vocabulary());
  return index;
}

inline const std::vector<Json>& tool_schemas() {
  static const std::vector<Json> schemas = [] {
    std::vector<Json> out;
    const std::filesystem::path file =
        std::filesystem::path(TRIAX_GOLDEN_DIR) / "xtml/tool_schemas.json";
    for (const Json& entry : Json::parse(read_text_file(file))) out.push_back(entry["schema"]);
    return out;
  }();
  return schemas;
}

// No document of it is of a length that a test could reach.
inline bool is_endless(const Json& schema) {
  return schema.value("minLength", 0.0) > 1e6;
}

inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    return line;
  }
  ADD_FAILURE() << "no Error thrown";
  return {};
}

// A matcher and what it has taken.
class Walk {
 public:
  Walk(std::shared_ptr<const Grammar> grammar, Rng& rng)
      : index_(grammar->index), matcher_(std::move(grammar)), rng_(rng), mask_(index_->words()) {}

  GrammarMatcher& matcher() { return matcher_; }

  // Names that the schema requires: a random walk would never guess them among others. With
  // `attributes`, as calls write them.
  void hint(const Json& schema, bool attributes) {
    const Tokenizer& t = index_->tokenizer();
    if (schema.is_object() && schema.contains("required") && schema["required"].is_array()) {
      for (const Json& name : schema["required"]) {
        hints_.push_back(t.encode(name.dump() + ":"));
        if (!attributes) continue;
        hints_.push_back(t.encode(attribute_text(name.get<std::string>())));
        hints_.back().push_back(t.ranks().find_byte('"'));
      }
    }
    for (const Json& inner : schema) {
      if (inner.is_structured()) hint(inner, attributes);
    }
  }
  const std::vector<std::int32_t>& ids() const { return ids_; }
  std::string text() const { return index_->tokenizer().decode_bytes(ids_); }

  // One random token; after `patience` steps mostly one of those that tend to an end. False: there
  // is none, which must not be.
  bool step(std::size_t patience) {
    const bool hurry = ids_.size() > patience;
    if (rng_.uniform() < (hurry ? 0.7 : 0.3) && take_hint()) return true;
    matcher_.fill_mask(mask_);
    std::int32_t id = -1;
    if (rng_.uniform() < (hurry ? 0.97 : 0.2)) id = closing_token();
    if (id < 0) id = random_allowed();
    if (id < 0) return false;
    EXPECT_TRUE(matcher_.accept(id)) << id << " after " << text();
    ids_.push_back(id);
    return true;
  }

  // To the end; false: it did not get there.
  bool finish(std::size_t patience, std::size_t most) {
    while (!matcher_.finished()) {
      if (ids_.size() > most || !step(patience)) return false;
    }
    return true;
  }

  // Does the mask agree with accept() for some tokens?
  void check_mask(std::size_t samples) {
    matcher_.fill_mask(mask_);
    for (std::size_t i = 0; i < samples; ++i) {
      const std::size_t id = static_cast<std::size_t>(rng_.next() % index_->vocab());
      check(id);
    }
    for (std::size_t id = 0; id < 256; ++id) check(id);
  }

 private:
  bool take_hint() {
    const std::size_t start = static_cast<std::size_t>(rng_.next());
    for (std::size_t i = 0; i < hints_.size(); ++i) {
      const std::vector<std::int32_t>& hint = hints_[(start + i) % hints_.size()];
      std::size_t taken = 0;
      while (taken < hint.size() && matcher_.accept(hint[taken])) ++taken;
      if (taken == hint.size()) {
        ids_.insert(ids_.end(), hint.begin(), hint.end());
        return true;
      }
      matcher_.rollback(taken);
    }
    return false;
  }
  void check(std::size_t id) {
    const bool accepted = matcher_.accept(static_cast<std::int32_t>(id));
    if (accepted) matcher_.rollback(1);
    EXPECT_EQ(mask_allows(mask_, id), accepted)
        << id << " " << index_->tokenizer().token_bytes(static_cast<std::int32_t>(id)) << " after "
        << text();
  }
  // A token that ends something, else one that leads there; -1: none of them is allowed.
  std::int32_t closing_token() {
    const Tokenizer& t = index_->tokenizer();
    std::vector<std::int32_t> ends = t.stop_ids(), others;
    for (const Role role : {Role::Close, Role::Sep, Role::EndOfMsg}) {
      ends.push_back(t.required_id(role));
    }
    for (const char c : {'}', ']', '"'}) ends.push_back(t.ranks().find_byte(c));
    for (const char c : {'\\', 'n', 'u', 'l', '0', ':', ',', '8', '\xBF', '\x9F', '\x8F'}) {
      others.push_back(t.ranks().find_byte(c));
    }
    for (const std::vector<std::int32_t>* tier : {&ends, &others}) {
      const std::size_t start = static_cast<std::size_t>(rng_.next() % tier->size());
      for (std::size_t i = 0; i < tier->size(); ++i) {
        const std::int32_t id = (*tier)[(start + i) % tier->size()];
        if (mask_allows(mask_, static_cast<std::size_t>(id))) return id;
      }
    }
    return -1;
  }
  std::int32_t random_allowed() {
    std::int32_t found = -1;
    const std::size_t start = static_cast<std::size_t>(rng_.next() % index_->vocab());
    for (std::size_t i = 0; i < index_->vocab() && found < 0; ++i) {
      const std::size_t id = (start + i) % index_->vocab();
      if (mask_allows(mask_, id)) found = static_cast<std::int32_t>(id);
    }
    return found;
  }

  std::shared_ptr<const TokenIndex> index_;
  GrammarMatcher matcher_;
  Rng& rng_;
  std::vector<std::uint64_t> mask_;
  std::vector<std::int32_t> ids_;
  std::vector<std::vector<std::int32_t>> hints_;
};

// Does the grammar take the text, as its tokenizer cuts it, to a place where it may end?
inline bool takes_text(const std::shared_ptr<const Grammar>& grammar, const std::string& text) {
  GrammarMatcher matcher(grammar);
  for (const std::int32_t id : grammar->index->tokenizer().encode(text)) {
    if (!matcher.accept(id)) return false;
  }
  return matcher.may_end();
}

}  // namespace triax::testing
