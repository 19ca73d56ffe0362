// Documents to files, with counts, checks and the manifest.
#include "triax/cli/data_writer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>

#include "triax/core/error.h"
#include "triax/tokenizer/rank_file.h"
#include "triax/tokenizer/split.h"
#include "triax/world/arithmetic.h"
#include "triax/world/corpus.h"
#include "triax/world/plot.h"

namespace triax::cli {
namespace {

namespace fs = std::filesystem;
using world::Json;
using world::Part;

std::size_t pieces(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = next_piece(text, at);
    const bool number = text[at] >= '0' && text[at] <= '9';
    count += number ? end - at : 1;  // digits stay single
    at = end;
  }
  return count;
}

std::size_t hashed(const std::string& text) {
  return std::hash<std::string>{}(text);
}

// What training holds, to be compared with.
struct Seen {
  std::unordered_set<std::size_t> documents;  // hashes: a false alarm only passes one over
  std::unordered_set<std::size_t> sentences;
  std::set<std::pair<int, int>> pairs;
};

std::set<std::pair<int, int>> operand_pairs(const Json& meta) {
  std::set<std::pair<int, int>> out;
  for (const Json& pair : meta.value("operands", Json::array())) {
    const int a = pair.at(0), b = pair.at(1);
    out.insert({std::min(a, b), std::max(a, b)});
  }
  return out;
}

class LineFile {
 public:
  explicit LineFile(const fs::path& file) : file_(file), out_(file, std::ios::binary) { check(); }
  void write(const Json& document) {
    out_ << document.dump() << '\n';
    check();
  }
  void close() {
    out_.close();
    check();
  }

 private:
  void check() const {
    if (!out_) fail("{}: cannot be written; is the disk full?", file_.string());
  }
  fs::path file_;
  std::ofstream out_;
};

struct Counts {
  std::size_t documents = 0;
  std::uint64_t tokens = 0, bytes = 0;
  std::map<std::string, std::size_t> efforts;

  void add(const Json& document, std::size_t about) {
    ++documents;
    tokens += about;
    bytes += document.dump().size() + 1;
    if (document.contains("thinking_effort")) ++efforts[document["thinking_effort"]];
  }
  Json json() const {
    Json out{{"documents", documents}, {"tokens_about", tokens}, {"bytes", bytes}};
    if (!efforts.empty()) out["thinking_effort"] = efforts;
    return out;
  }
};

class Writer {
 public:
  Writer(const DataPlan& plan, const DataProgress& progress) : plan_(plan), progress_(progress) {}

  Json run() {
    fs::create_directories(fs::path(plan_.out) / "train");
    fs::create_directories(fs::path(plan_.out) / "heldout");
    choose_kinds();
    manifest_["seed"] = plan_.seed;
    for (const world::Kind& kind : chosen_) train(kind);
    texts();
    for (const world::Kind& kind : chosen_) heldout(kind);
    finish();
    return std::move(manifest_);
  }

 private:
  void choose_kinds() {
    double sum = 0;
    for (const world::Kind& kind : world::kinds()) {
      const bool wanted = plan_.kinds.empty() || std::find(plan_.kinds.begin(), plan_.kinds.end(),
                                                           kind.name) != plan_.kinds.end();
      if (!wanted) continue;
      chosen_.push_back(kind);
      sum += kind.share;
    }
    for (const std::string& name : plan_.kinds) {
      if (std::none_of(chosen_.begin(), chosen_.end(),
                       [&](const world::Kind& kind) { return kind.name == name; })) {
        world::make_document(name, 0, Part::train, 0);  // says which kinds there are
      }
    }
    double mean = 0;
    for (world::Kind& kind : chosen_) {
      kind.share /= sum;
      mean += kind.share * mean_tokens(kind);
    }
    total_ = plan_.documents > 0
                 ? static_cast<std::uint64_t>(static_cast<double>(plan_.documents) * mean)
                 : plan_.tokens;
    documents_ = static_cast<double>(total_) / mean;
  }

  double mean_tokens(const world::Kind& kind) const {
    constexpr std::uint64_t kSample = 40;
    double sum = 0;
    for (std::uint64_t i = 0; i < kSample; ++i) {
      sum += static_cast<double>(
          about_tokens(world::make_document(kind.name, plan_.seed, Part::train, i).document));
    }
    return sum / static_cast<double>(kSample);
  }

  void count(Counts& counts, const Json& document) {
    const std::size_t about = about_tokens(document);
    counts.add(document, about);
    written_ += about;
    progress_(written_, std::max(total_, written_));
  }

  void train(const world::Kind& kind) {
    LineFile file(fs::path(plan_.out) / "train" / (kind.name + ".jsonl"));
    const auto wanted = static_cast<std::uint64_t>(std::llround(documents_ * kind.share));
    Counts counts;
    for (std::uint64_t i = 0; i < wanted; ++i) {
      const world::Made made = world::make_document(kind.name, plan_.seed, Part::train, i);
      const std::string text = world::document_text(made.document);
      seen_.documents.insert(hashed(made.document.dump()));
      for (const std::string& sentence : world::sentences_of(text)) {
        seen_.sentences.insert(hashed(sentence));
      }
      for (const auto& pair : operand_pairs(made.meta)) {
        TRIAX_CHECK(!world::held_pair(pair.first, pair.second));
        seen_.pairs.insert(pair);
      }
      count(counts, made.document);
      file.write(made.document);
    }
    file.close();
    manifest_["train"][kind.name] = counts.json();
  }

  void texts() {
    std::map<std::string, std::vector<Json>> sets;
    if (!plan_.wordnet.empty()) {
      sets["wordnet"] = wordnet_documents(plan_.wordnet);
      write_text_file(fs::path(plan_.out) / "LICENSE.wordnet", wordnet_licence(plan_.wordnet));
    }
    for (const std::string& name : plan_.prose) {
      auto documents = prose_documents(name);
      auto& to = sets["texts"];
      to.insert(to.end(), documents.begin(), documents.end());
    }
    for (const auto& [name, documents] : sets) {
      LineFile file(fs::path(plan_.out) / "train" / (name + ".jsonl"));
      Counts counts;
      for (const Json& document : documents) {
        count(counts, document);
        file.write(document);
      }
      file.close();
      manifest_["train"][name] = counts.json();
    }
  }

  // Documents that training has too are passed over.
  void heldout(const world::Kind& kind) {
    LineFile file(fs::path(plan_.out) / "heldout" / (kind.name + ".jsonl"));
    const auto wanted = static_cast<std::uint64_t>(
        std::max<long long>(20, std::llround(static_cast<double>(plan_.heldout) * kind.share)));
    Counts counts;
    std::size_t shared = 0, sentences = 0, known = 0;
    for (std::uint64_t i = 0; counts.documents < wanted && i < 20 * wanted; ++i) {
      const world::Made made = world::make_document(kind.name, plan_.seed, Part::heldout, i);
      const std::string text = world::document_text(made.document);
      if (!seen_.documents.insert(hashed(made.document.dump())).second) {
        ++shared;
        continue;
      }
      for (const std::string& sentence : world::sentences_of(text)) {
        ++sentences;
        known += seen_.sentences.contains(hashed(sentence)) ? 1 : 0;
      }
      if (kind.name == "story_long") judge_baselines(made.meta);
      for (const auto& pair : operand_pairs(made.meta)) {
        held_pairs_.insert(pair);
        TRIAX_CHECK(!seen_.pairs.contains(pair), "an operand pair of the held-out part");
      }
      count(counts, made.document);
      Json line = made.document;
      line["meta"] = made.meta;
      file.write(line);
    }
    file.close();
    Json json = counts.json();
    json["documents_shared_with_training"] = 0;
    json["documents_passed_over"] = shared;
    json["sentences"] = sentences;
    json["sentences_also_in_training"] =
        sentences == 0 ? 0.0 : static_cast<double>(known) / static_cast<double>(sentences);
    manifest_["heldout"][kind.name] = json;
  }

  void judge_baselines(const Json& meta) {
    for (const Json& question : meta.value("questions", Json::array())) {
      ++questions_;
      last_ += question["last"] == question["truth"] ? 1 : 0;
      frequent_ += question["frequent"] == question["truth"] ? 1 : 0;
      unseen_ += question["unseen_entity"].get<bool>() ? 1 : 0;
    }
  }

  void finish() {
    const world::Lexicon& words = world::Lexicon::get();
    const auto share = [&](std::size_t n) {
      return questions_ == 0 ? 0.0 : static_cast<double>(n) / static_cast<double>(questions_);
    };
    if (questions_ > 0) {
      manifest_["heldout_long_story_questions"] = {
          {"questions", questions_},
          {"last_mention_right", share(last_)},
          {"most_frequent_mention_right", share(frequent_)},
          {"about_unseen_entities", share(unseen_)}};
    }
    manifest_["operand_pairs"] = {
        {"in_training", seen_.pairs.size()}, {"in_heldout", held_pairs_.size()}, {"in_both", 0}};
    std::size_t phrases = world::Phrases::get().size(), themes = words.themes.size();
    manifest_["word_lists"] = {{"names_and_nouns", words.nouns()},
                               {"verb_phrases", phrases},
                               {"themes", themes},
                               {"plots", world::plots().size()},
                               {"sayings", words.sayings.train.size() + words.sayings.held.size()},
                               {"reasons", words.reasons.train.size() + words.reasons.held.size()}};
    manifest_["tokens_about"] = written_;
    write_text_file(fs::path(plan_.out) / "manifest.json", manifest_.dump(2) + "\n");
  }

  const DataPlan& plan_;
  const DataProgress& progress_;
  Json manifest_;
  std::vector<world::Kind> chosen_;
  double documents_ = 0;
  std::uint64_t total_ = 0, written_ = 0;
  Seen seen_;
  std::set<std::pair<int, int>> held_pairs_;
  std::size_t questions_ = 0, last_ = 0, frequent_ = 0, unseen_ = 0;
};

}  // namespace

std::size_t about_tokens(const Json& document) {
  if (document.contains("text")) return pieces(document["text"].get_ref<const std::string&>()) + 1;
  constexpr std::size_t kEffort = 60, kMessage = 15, kTools = 55;  // of the chat form
  std::size_t sum = kEffort + pieces(world::document_text(document));
  sum += kMessage * document.at("messages").size();
  if (document.contains("tools")) sum += kTools + pieces(document["tools"].dump());
  return sum;
}

Json write_data(const DataPlan& plan, const DataProgress& progress) {
  return Writer(plan, progress).run();
}

}  // namespace triax::cli
