// Four exercises: a list again, pairs in another order, the newest value of several, digits.
#include "triax/world/recall.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "triax/world/coin.h"

namespace triax::world {
namespace {

std::string any_name(Dice& dice, const Unseen& unseen) {
  const bool woman = dice.chance(0.5);
  if (!unseen.entities && dice.chance(0.2)) return capitalised(any_letters(dice));
  if (!unseen.entities && dice.chance(0.5)) return made_up_name(dice, woman);
  const Lexicon& lexicon = Lexicon::get();
  return (woman ? lexicon.women : lexicon.men).pick(dice, unseen.entities);
}

std::string any_thing(Dice& dice, const Unseen& unseen) {
  if (unseen.none() && dice.chance(0.5)) return coined_noun(dice);
  if (!unseen.entities && dice.chance(0.1)) return made_up_thing(dice);
  const Theme& theme = dice.pick(Lexicon::get().themes);
  return (dice.chance(0.8) ? theme.things : theme.containers).pick(dice, unseen.entities);
}

Place any_place(Dice& dice, const Unseen& unseen) {
  if (unseen.none() && dice.chance(0.5)) return coined_place(dice);
  return dice.pick(Lexicon::get().themes).places.pick(dice, unseen.entities);
}

std::string any_word(Dice& dice, const Unseen& unseen) {
  if (!unseen.entities && dice.chance(0.3)) return any_letters(dice);
  switch (dice.below(4)) {
    case 0:
      return any_name(dice, unseen);
    case 1:
      return any_place(dice, unseen).noun;
    case 2:
      return Lexicon::get().colours.pick(dice, unseen.entities);
    default:
      return any_thing(dice, unseen);
  }
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::vector<std::string> several_names(Dice& dice, const Unseen& unseen, std::size_t count) {
  std::set<std::string> seen;
  std::vector<std::string> out;
  while (out.size() < count) {
    const std::string name = any_name(dice, unseen);
    if (seen.insert(name).second) out.push_back(name);
  }
  return out;
}

// "lamp, Mia, garden / lamp, Mia, garden"
std::string list_again(Dice& dice, const Unseen& unseen) {
  static const std::vector<const char*> kBetween = {" ", ", ", " and ", ". "};
  static const std::vector<const char*> kAgain = {"\n", " / ", ". Again: "};
  std::vector<std::string> words;
  for (int n = dice.between(4, dice.chance(0.5) ? 12 : 36); n > 0; --n)
    words.push_back(any_word(dice, unseen));
  const std::string list = joined(words, dice.pick(kBetween));
  const std::size_t times = 2 + dice.below(2);
  return joined(std::vector<std::string>(times, list), dice.pick(kAgain));
}

// "482 913 / 482 913", or each number with its digits turned round
std::string digits(Dice& dice) {
  std::vector<std::string> numbers, turned;
  for (int n = dice.between(3, 14); n > 0; --n) {
    numbers.push_back(std::to_string(dice.between(0, dice.chance(0.5) ? 99 : 999)));
    std::string other = numbers.back();
    std::reverse(other.begin(), other.end());
    turned.push_back(numbers.back() + " " + other);
  }
  if (dice.chance(0.5)) return joined(turned, ", ") + ".";
  const std::string list = joined(numbers, " ");
  return list + " / " + list;
}

// Everybody has, likes, ... something; then the same again in another order, or asked.
std::string pairs(Dice& dice, const Unseen& unseen) {
  struct Form {
    const char *statement, *question;
    bool place;
  };
  static const std::vector<Form> kForms = {{"{A} has the {o}.", "Who has the {o}? {A}.", false},
                                           {"{A} likes the {o}.", "Who likes the {o}? {A}.", false},
                                           {"{A} is {P}.", "Where is {A}? {P}.", true},
                                           {"{A} lives {P}.", "Where does {A} live? {P}.", true},
                                           {"{A}: {o}.", "{o}: {A}.", false},
                                           {"The {o} of {A}.", "{A}? The {o}.", false}};
  const Form& form = dice.pick(kForms);
  std::vector<std::string> statements, asked, lines;
  std::set<std::string> used;
  for (const std::string& name : several_names(dice, unseen, 2 + dice.below(7))) {
    const Place place = any_place(dice, unseen);
    const std::string thing = form.place ? place.noun : any_thing(dice, unseen);
    if (!used.insert(thing).second) continue;
    const std::vector<std::pair<std::string_view, std::string>> values = {
        {"A", name}, {"o", thing}, {"P", place.where()}};
    statements.push_back(filled(form.statement, values));
    asked.push_back(filled(form.question, values));
  }
  const bool ask = dice.chance(0.6);
  for (std::size_t n = statements.size() + dice.below(4); n > 0; --n) {
    lines.push_back(dice.pick(ask ? asked : statements));
  }
  return joined(statements, " ") + "\n" + joined(lines, " ");
}

// People move, or take things; now and then one is asked for, and the newest counts.
std::string newest(Dice& dice, const Unseen& unseen) {
  const bool moves = dice.chance(0.6);
  const std::vector<std::string> names = several_names(dice, unseen, 2 + dice.below(4));
  std::vector<std::optional<std::string>> at(names.size());
  std::vector<std::string> lines;
  for (int n = dice.between(7, 16); n > 0; --n) {
    const std::size_t who = dice.below(names.size());
    if (at[who].has_value() && dice.chance(0.45)) {
      lines.push_back(moves ? fmt::format("Where is {}? {}.", names[who], capitalised(*at[who]))
                            : fmt::format("What has {}? {}.", names[who], capitalised(*at[who])));
      continue;
    }
    if (moves) {
      const Place place = any_place(dice, unseen);
      lines.push_back(fmt::format("{} went to the {}.", names[who], place.noun));
      at[who] = place.where();
    } else {
      const std::string thing = any_thing(dice, unseen);
      lines.push_back(fmt::format("{} took the {}.", names[who], thing));
      at[who] = "the " + thing;
    }
  }
  return joined(lines, " ");
}

}  // namespace

Json recall_text(Dice& dice, const Unseen& unseen) {
  const std::size_t which = dice.below(10);
  return text_document("recall", which < 5   ? list_again(dice, unseen)
                                 : which < 7 ? pairs(dice, unseen)
                                 : which < 9 ? newest(dice, unseen)
                                             : digits(dice));
}

}  // namespace triax::world
