// Reads the raw lists, once.
#include "triax/world/lexicon.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "triax/core/error.h"
#include "triax/world/lexicon_data.h"

namespace triax::world {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Calls `line(kind, held, rest)` for every line that is not empty.
void each_line(std::string_view text,
               const std::function<void(std::string_view, bool, std::string_view)>& line) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view at = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (at.empty()) continue;
    const std::size_t colon = at.find(':');
    TRIAX_CHECK(colon != std::string_view::npos, "a word list has a line without a kind");
    std::string_view kind = at.substr(0, colon);
    const bool held = kind.ends_with('+');
    if (held) kind.remove_suffix(1);
    line(kind, held, trimmed(at.substr(colon + 1)));
  }
}

std::vector<std::string> listed(std::string_view rest) {
  std::vector<std::string> out;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    out.emplace_back(trimmed(rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

std::pair<std::string, std::string> halves(const std::string& text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  TRIAX_CHECK(at != std::string::npos, "a word list has an entry without its second half");
  return {text.substr(0, at), text.substr(at + mark.size())};
}

template <class T>
std::vector<T>& part(Split<T>& split, bool held) {
  return held ? split.held : split.train;
}

void append(Words& words, bool held, const std::vector<std::string>& more) {
  std::vector<std::string>& to = part(words, held);
  to.insert(to.end(), more.begin(), more.end());
}

void read_theme_line(Theme& theme, std::string_view kind, bool held, std::string_view rest) {
  if (kind == "places") {
    for (const std::string& entry : listed(rest)) {
      auto [preposition, noun] = halves(entry, ":");
      part(theme.places, held).push_back({preposition, noun});
    }
  } else if (kind == "counted") {
    for (const std::string& entry : listed(rest)) {
      auto [one, many] = halves(entry, "/");
      part(theme.counted, held).push_back({one, many});
    }
  } else if (kind == "things") {
    append(theme.things, held, listed(rest));
  } else if (kind == "containers") {
    append(theme.containers, held, listed(rest));
  } else if (kind == "opening") {
    theme.openings.emplace_back(rest);
  } else if (kind == "remark") {
    theme.remarks.emplace_back(rest);
  } else if (kind == "closing") {
    theme.closings.emplace_back(rest);
  } else {
    check_failed("kind", __FILE__, __LINE__, "a theme has a line of unknown kind");
  }
}

Lexicon read_lexicon() {
  Lexicon out;
  each_line(kThemeText, [&](std::string_view kind, bool held, std::string_view rest) {
    if (kind == "theme") {
      out.themes.emplace_back().name = rest;
    } else {
      read_theme_line(out.themes.back(), kind, held, rest);
    }
  });
  const std::map<std::string_view, Words*> lists = {
      {"women", &out.women}, {"men", &out.men}, {"colours", &out.colours}, {"sizes", &out.sizes}};
  each_line(kPeopleText, [&](std::string_view kind, bool held, std::string_view rest) {
    if (kind == "say") {
      auto [direct, reported] = halves(std::string(rest), " = ");
      part(out.sayings, held).push_back({direct, reported});
    } else if (kind == "why") {
      part(out.reasons, held).emplace_back(rest);
    } else {
      append(*lists.at(kind), held, listed(rest));
    }
  });
  return out;
}

Phrases read_phrases() {
  Phrases out;
  const std::map<std::string_view, Words*> lists = {{"go", &out.go},
                                                    {"carry", &out.carry},
                                                    {"take", &out.take},
                                                    {"find", &out.find},
                                                    {"take_out", &out.take_out},
                                                    {"drop", &out.drop},
                                                    {"put_in", &out.put_in},
                                                    {"give", &out.give},
                                                    {"get", &out.obtain},
                                                    {"paint", &out.paint},
                                                    {"gain", &out.gain},
                                                    {"lose", &out.lose},
                                                    {"hand", &out.hand},
                                                    {"start_count", &out.start_count},
                                                    {"go_why", &out.go_why},
                                                    {"say", &out.say},
                                                    {"say_reported", &out.say_reported},
                                                    {"told_go", &out.told_go},
                                                    {"person_at", &out.person_at},
                                                    {"thing_at", &out.thing_at},
                                                    {"thing_in", &out.thing_in},
                                                    {"person_has", &out.person_has}};
  each_line(kPhraseText, [&](std::string_view kind, bool held, std::string_view rest) {
    if (kind == "then") {
      out.then.emplace_back(rest);
    } else if (kind == "meanwhile") {
      out.meanwhile.emplace_back(rest);
    } else {
      part(*lists.at(kind), held).emplace_back(rest);
    }
  });
  return out;
}

template <class T>
std::size_t both(const Split<T>& split) {
  return split.train.size() + split.held.size();
}

}  // namespace

const Lexicon& Lexicon::get() {
  static const Lexicon lexicon = read_lexicon();
  return lexicon;
}

std::size_t Lexicon::nouns() const {
  std::size_t sum = both(women) + both(men);
  for (const Theme& theme : themes) {
    sum += both(theme.places) + both(theme.things) + both(theme.containers) + both(theme.counted);
  }
  return sum;
}

const Phrases& Phrases::get() {
  static const Phrases phrases = read_phrases();
  return phrases;
}

std::size_t Phrases::size() const {
  std::size_t sum = 0;
  for (const Words* list :
       {&go,           &carry,   &take,      &find,     &take_out, &drop,        &put_in, &give,
        &obtain,       &paint,   &gain,      &lose,     &hand,     &start_count, &go_why, &say,
        &say_reported, &told_go, &person_at, &thing_at, &thing_in, &person_has}) {
    sum += both(*list);
  }
  return sum;
}

std::string with_article(std::string_view noun) {
  const bool vowel =
      !noun.empty() && std::string_view("aeiou").find(noun.front()) != std::string_view::npos;
  return (vowel ? "an " : "a ") + std::string(noun);
}

std::string capitalised(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

std::string number_word(int n) {
  static constexpr std::array<const char*, 20> kSmall = {
      "zero",     "one",     "two",     "three",     "four",     "five",    "six",
      "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
      "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static constexpr std::array<const char*, 10> kTens = {
      "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
  TRIAX_CHECK(n >= 0 && n < 100);
  const auto at = static_cast<std::size_t>(n);
  if (at < 20) return kSmall[at];
  std::string word = kTens[at / 10];
  if (at % 10 != 0) word += std::string("-") + kSmall[at % 10];
  return word;
}

bool is_held_word(const std::string& word) {
  static const std::set<std::string> all = [] {
    std::set<std::string> out;
    const auto add = [&](const std::vector<std::string>& words) {
      for (const std::string& one : words) out.insert(capitalised(one));
    };
    const Lexicon& lexicon = Lexicon::get();
    for (const Words* list : {&lexicon.women, &lexicon.men, &lexicon.colours, &lexicon.sizes}) {
      add(list->held);
    }
    for (const Theme& theme : lexicon.themes) {
      add(theme.things.held);
      add(theme.containers.held);
      for (const Place& place : theme.places.held) out.insert(capitalised(place.noun));
      for (const Counted& counted : theme.counted.held) {
        out.insert({capitalised(counted.one), capitalised(counted.many)});
      }
    }
    return out;
  }();
  return all.count(capitalised(word)) > 0;
}

std::string filled(std::string text,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '{') {
      out.push_back(text[at++]);
      continue;
    }
    const std::size_t end = text.find('}', at);
    TRIAX_CHECK(end != std::string::npos);
    const std::string_view key(text.data() + at + 1, end - at - 1);
    const auto found = std::find_if(values.begin(), values.end(),
                                    [&](const auto& value) { return value.first == key; });
    TRIAX_CHECK(found != values.end(), "a phrase has a placeholder without a value");
    out += found->second;
    at = end + 1;
  }
  return out;
}

}  // namespace triax::world
