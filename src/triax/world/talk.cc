// Facts are few, and all of them are in training; what is held out are wordings and combinations.
#include "triax/world/talk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "triax/core/error.h"

namespace triax::world {
namespace {

struct Fact {
  const char* a;
  const char* b;
};

constexpr Fact kOpposites[] = {
    {"hot", "cold"},   {"big", "small"},     {"long", "short"},  {"old", "young"},
    {"fast", "slow"},  {"high", "low"},      {"dark", "light"},  {"wet", "dry"},
    {"full", "empty"}, {"open", "closed"},   {"happy", "sad"},   {"rich", "poor"},
    {"hard", "soft"},  {"near", "far"},      {"clean", "dirty"}, {"loud", "quiet"},
    {"early", "late"}, {"strong", "weak"},   {"thick", "thin"},  {"up", "down"},
    {"day", "night"},  {"summer", "winter"}, {"left", "right"},  {"sweet", "sour"}};
constexpr Fact kSounds[] = {{"cow", "moo"},     {"dog", "woof"},   {"cat", "meow"},
                            {"sheep", "baa"},   {"duck", "quack"}, {"pig", "oink"},
                            {"horse", "neigh"}, {"owl", "hoo"},    {"bee", "buzz"},
                            {"snake", "hiss"},  {"frog", "croak"}, {"lion", "roar"}};
constexpr Fact kYoung[] = {{"cow", "calf"},   {"dog", "puppy"},     {"cat", "kitten"},
                           {"sheep", "lamb"}, {"duck", "duckling"}, {"horse", "foal"},
                           {"hen", "chick"},  {"bear", "cub"},      {"pig", "piglet"},
                           {"deer", "fawn"},  {"goat", "kid"},      {"frog", "tadpole"}};
constexpr Fact kColours[] = {
    {"grass", "green"},   {"snow", "white"},        {"the sky", "blue"},
    {"blood", "red"},     {"coal", "black"},        {"a lemon", "yellow"},
    {"milk", "white"},    {"the sea", "blue"},      {"a carrot", "orange"},
    {"a raven", "black"}, {"a ripe tomato", "red"}, {"an elephant", "grey"}};
constexpr Fact kUses[] = {{"cut bread", "a knife"},        {"write a letter", "a pen"},
                          {"open a lock", "a key"},        {"sweep the floor", "a broom"},
                          {"dig a hole", "a shovel"},      {"row a boat", "an oar"},
                          {"eat soup", "a spoon"},         {"see in the dark", "a lamp"},
                          {"find north", "a compass"},     {"stay dry in the rain", "an umbrella"},
                          {"drive in a nail", "a hammer"}, {"catch a fish", "a net"},
                          {"sew a button", "a needle"},    {"paint a wall", "a brush"},
                          {"cut wood", "a saw"},           {"boil water", "a kettle"}};
constexpr Fact kHomes[] = {
    {"a bird", "in a nest"},     {"a fish", "in the water"}, {"a bee", "in a hive"},
    {"a horse", "in a stable"},  {"a king", "in a castle"},  {"a bear", "in a cave"},
    {"a rabbit", "in a burrow"}, {"a spider", "in a web"},   {"a sailor", "on a ship"},
    {"a hen", "in a henhouse"},  {"a snail", "in its shell"}};
constexpr Fact kPlurals[] = {{"mouse", "mice"},  {"child", "children"}, {"foot", "feet"},
                             {"tooth", "teeth"}, {"man", "men"},        {"goose", "geese"},
                             {"leaf", "leaves"}, {"knife", "knives"},   {"woman", "women"},
                             {"sheep", "sheep"}, {"wolf", "wolves"},    {"box", "boxes"},
                             {"key", "keys"},    {"city", "cities"}};
constexpr std::array<const char*, 7> kDays = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                              "Friday", "Saturday", "Sunday"};
constexpr std::array<const char*, 12> kMonths = {"January",   "February", "March",    "April",
                                                 "May",       "June",     "July",     "August",
                                                 "September", "October",  "November", "December"};

using Values = std::vector<std::pair<std::string_view, std::string>>;

std::string worded(Dice& dice, const Unseen& unseen, const Words& words, const Values& values) {
  return filled(unseen.templates ? dice.pick(words.held) : dice.pick(words.train), values);
}

TalkItem from_list(Dice& dice, const Unseen& unseen, const Fact* facts, std::size_t count,
                   const Words& words, const char* thought) {
  const Fact& fact = facts[dice.below(count)];
  TalkItem item;
  item.kind = "fact";
  item.text = worded(dice, unseen, words, {{"a", fact.a}});
  item.truth = fact.b;
  item.answer = capitalised(fact.b) + ".";
  item.think_high = filled(thought, {{"a", fact.a}, {"b", fact.b}});
  item.think_high = capitalised(item.think_high);
  item.think_max = "This is something that I know. " + item.think_high;
  return item;
}

template <std::size_t N>
TalkItem from_list(Dice& dice, const Unseen& unseen, const Fact (&facts)[N], const Words& words,
                   const char* thought) {
  return from_list(dice, unseen, facts, N, words, thought);
}

template <std::size_t N>
TalkItem neighbour(Dice& dice, const Unseen& unseen, const std::array<const char*, N>& list,
                   const char* what) {
  static const Words kAfter = {
      {"What {w} comes after {a}?", "Which {w} follows {a}?", "What is the {w} after {a}?"},
      {"Name the {w} that comes after {a}."}};
  static const Words kBefore = {{"What {w} comes before {a}?", "What is the {w} before {a}?"},
                                {"Name the {w} that comes before {a}."}};
  const std::size_t at = dice.below(N);
  const bool after = dice.chance(0.6);
  TalkItem item;
  item.kind = "fact";
  item.text = worded(dice, unseen, after ? kAfter : kBefore, {{"w", what}, {"a", list[at]}});
  item.truth = list[(at + (after ? 1 : N - 1)) % N];
  item.answer = item.truth + ".";
  item.think_high = after ? fmt::format("{}, {}.", list[at], item.truth)
                          : fmt::format("{}, {}.", item.truth, list[at]);
  item.think_max = fmt::format("They come in this order: {}", item.think_high);
  return item;
}

TalkItem compare(Dice& dice, const Unseen& unseen) {
  static const Words kLarger = {{"Which is larger, {a} or {b}?", "Which is more, {a} or {b}?",
                                 "What is the larger number, {a} or {b}?"},
                                {"Of {a} and {b}, which is larger?"}};
  static const Words kSmaller = {{"Which is smaller, {a} or {b}?", "Which is less, {a} or {b}?",
                                  "What is the smaller number, {a} or {b}?"},
                                 {"Of {a} and {b}, which is smaller?"}};
  const int limit = dice.chance(0.5) ? 99 : 999;
  const int a = dice.between(1, limit);
  int b = a;
  while (b == a) b = dice.between(1, limit);
  const bool larger = dice.chance(0.5);
  const int truth = larger ? std::max(a, b) : std::min(a, b);
  TalkItem item;
  item.kind = "compare";
  item.text = worded(dice, unseen, larger ? kLarger : kSmaller,
                     {{"a", std::to_string(a)}, {"b", std::to_string(b)}});
  item.truth = std::to_string(truth);
  item.answer = item.truth + ".";
  item.think_high = fmt::format("{} is more than {}.", std::max(a, b), std::min(a, b));
  item.think_max =
      item.think_high + fmt::format(" So the {} one is {}.", larger ? "larger" : "smaller", truth);
  return item;
}

TalkItem count_up(Dice& dice, const Unseen& unseen) {
  static const Words kWords = {{"Count from {a} to {b}.", "Say the numbers from {a} to {b}."},
                               {"Please count from {a} up to {b}."}};
  const int a = dice.between(1, 90), b = a + dice.between(2, 7);
  TalkItem item;
  item.kind = "count";
  item.text = worded(dice, unseen, kWords, {{"a", std::to_string(a)}, {"b", std::to_string(b)}});
  for (int i = a; i <= b; ++i) item.truth += (i == a ? "" : ", ") + std::to_string(i);
  item.answer = item.truth + ".";
  item.think_high = fmt::format("{} numbers.", number_word(b - a + 1));
  item.think_high = capitalised(item.think_high);
  item.think_max = fmt::format("I start with {} and stop at {}. {}", a, b, item.think_high);
  return item;
}

TalkItem repeat(Dice& dice, const Unseen& unseen) {
  static const Words kWords = {{"Repeat after me: {s}", "Say this again: {s}", "Repeat: {s}"},
                               {"Please say this after me: {s}"}};
  const Lexicon& lexicon = Lexicon::get();
  const Theme& theme = dice.pick(lexicon.themes);
  std::vector<std::string> words;
  for (int i = dice.between(2, 5); i > 0; --i)
    words.push_back(theme.things.pick(dice, unseen.entities));
  TalkItem item;
  item.kind = "repeat";
  for (const std::string& word : words) item.truth += (item.truth.empty() ? "" : ", ") + word;
  item.text = worded(dice, unseen, kWords, {{"s", item.truth}});
  item.answer = item.truth;
  item.think_high = "I say the same words.";
  item.think_max = fmt::format("There are {} things. I say the same words in the same order.",
                               number_word(static_cast<int>(words.size())));
  return item;
}

TalkItem small_fact(Dice& dice, const Unseen& unseen) {
  static const Words kOpposite = {
      {"What is the opposite of {a}?", "Name the opposite of {a}.", "What is the contrary of {a}?"},
      {"Which word is the opposite of {a}?"}};
  static const Words kSound = {{"What does a {a} say?", "What sound does a {a} make?"},
                               {"Which sound comes from a {a}?"}};
  static const Words kBaby = {{"What is a young {a} called?", "What do you call a young {a}?",
                               "What is the name for a young {a}?"},
                              {"Which word is there for a young {a}?"}};
  static const Words kColour = {{"What colour is {a}?", "Which colour does {a} have?"},
                                {"Tell me what colour {a} is."}};
  static const Words kUse = {
      {"What do you need to {a}?", "With what do you {a}?", "Which thing is used to {a}?"},
      {"What would you take to {a}?"}};
  static const Words kHome = {{"Where does {a} live?", "Where is the home of {a}?"},
                              {"Tell me where {a} lives."}};
  static const Words kMany = {{"What is the plural of {a}?", "One {a}, two what?"},
                              {"What do you say for more than one {a}?"}};
  switch (dice.below(9)) {
    case 0:
      return from_list(dice, unseen, kOpposites, kOpposite, "{a} and {b} are opposites.");
    case 1:
      return from_list(dice, unseen, kSounds, kSound, "a {a} says {b}.");
    case 2:
      return from_list(dice, unseen, kYoung, kBaby, "a young {a} is a {b}.");
    case 3:
      return from_list(dice, unseen, kColours, kColour, "{a} is {b}.");
    case 4:
      return from_list(dice, unseen, kUses, kUse, "to {a} you need {b}.");
    case 5:
      return from_list(dice, unseen, kHomes, kHome, "{a} lives {b}.");
    case 6:
      return from_list(dice, unseen, kPlurals, kMany, "one {a}, two {b}.");
    case 7:
      return neighbour(dice, unseen, kDays, "day");
    default:
      return neighbour(dice, unseen, kMonths, "month");
  }
}

// What somebody tells of himself, and the question about it later.
struct Told {
  const char* statement;
  const char* reply;
  const char* question;
  const char* answer;
};
constexpr Told kTold[] = {
    {"My name is {x}.", "Nice to meet you, {x}!", "What is my name?", "Your name is {x}."},
    {"I am {x}.", "Hello, {x}!", "Who am I?", "You are {x}."},
    {"My dog is called {x}.", "What a good name for a dog!", "What is my dog called?",
     "Your dog is called {x}."},
    {"I have lost my {o}.", "I am sorry to hear that.", "What have I lost?",
     "You have lost your {o}."},
    {"I bought a {o} today.", "That sounds useful.", "What did I buy?", "You bought a {o}."},
    {"My favourite colour is {k}.", "I like {k} too.", "What is my favourite colour?",
     "Your favourite colour is {k}."},
    {"I am {n} years old.", "That is a good age.", "How old am I?", "You are {n} years old."},
    {"I live in {c}.", "I have heard of {c}.", "Where do I live?", "You live in {c}."},
    {"My friend {x} is a sailor.", "That must be exciting.", "Who is a sailor?",
     "Your friend {x} is a sailor."},
    {"I put the {o} in the drawer.", "I will remember that.", "What is in the drawer?",
     "The {o} is in the drawer."},
};

constexpr Fact kGreetings[] = {
    {"Hello!", "Hello! How can I help you?"},
    {"Good morning!", "Good morning! What can I do for you?"},
    {"Hi!", "Hi! What would you like to know?"},
    {"Good evening.", "Good evening! How can I help?"},
    {"How are you?", "I am fine, thank you. How are you?"},
    {"Who are you?", "I am triax, a small model that lives in a small world."},
    {"What can you do?",
     "I can answer questions about short stories, do sums, use tools and tell stories."},
    {"What are you?", "I am triax, a small language model."}};
constexpr Fact kGoodbyes[] = {{"Thank you!", "You are welcome!"},
                              {"Thanks a lot.", "You are welcome."},
                              {"Goodbye!", "Goodbye! See you soon."},
                              {"I have to go now.", "Goodbye, and take care!"},
                              {"That is all.", "I was glad to help."}};
const std::vector<std::string> kTowns = {"Paris", "Rome",   "Oslo",   "Lisbon", "Berlin",
                                         "Cairo", "Boston", "Vienna", "Dublin", "Athens"};

std::string at_effort(Effort effort, const char* high, const char* max) {
  return effort == Effort::low ? "" : effort == Effort::high ? high : max;
}

void greet(Dice& dice, Chat& chat) {
  const Fact& fact = kGreetings[dice.below(std::size(kGreetings))];
  chat.user(fact.a);
  chat.assistant(at_effort(chat.effort(), "A friendly answer.",
                           "The user wants to talk. I give a friendly answer."),
                 fact.b);
}

void say_goodbye(Dice& dice, Chat& chat) {
  const Fact& fact = kGoodbyes[dice.below(std::size(kGoodbyes))];
  chat.user(fact.a);
  chat.assistant(at_effort(chat.effort(), "A friendly answer.",
                           "The talk is coming to an end. I give a friendly answer."),
                 fact.b);
}

void ask_talk(Dice& dice, Chat& chat, const Unseen& unseen) {
  const TalkItem item = make_talk(dice, unseen);
  chat.user(item.text);
  chat.assistant(item.thinking(chat.effort()), item.answer);
}

}  // namespace

std::string TalkItem::thinking(Effort effort) const {
  return effort == Effort::low ? "" : effort == Effort::high ? think_high : think_max;
}

TalkItem make_talk(Dice& dice, const Unseen& unseen) {
  const double at = static_cast<double>(dice.below(100));
  if (at < 60) return small_fact(dice, unseen);
  if (at < 75) return compare(dice, unseen);
  if (at < 87) return count_up(dice, unseen);
  return repeat(dice, unseen);
}

Json talk_document(Dice& dice, Effort effort, const Unseen& unseen) {
  const Lexicon& lexicon = Lexicon::get();
  Chat chat(effort);
  if (dice.chance(0.5)) greet(dice, chat);
  const bool tells = dice.chance(0.5);
  const Told& told = kTold[dice.below(std::size(kTold))];
  const Words& names = dice.chance(0.5) ? lexicon.women : lexicon.men;
  std::string thing = dice.pick(lexicon.themes).things.pick(dice, unseen.entities);
  while (with_article(thing).starts_with("an ")) {
    thing = dice.pick(lexicon.themes).things.pick(dice, unseen.entities);
  }
  const Values values = {{"x", names.pick(dice, unseen.entities)},
                         {"o", thing},
                         {"k", lexicon.colours.pick(dice, unseen.entities)},
                         {"n", std::to_string(dice.between(5, 90))},
                         {"c", dice.pick(kTowns)}};
  if (tells) {
    chat.user(filled(told.statement, values));
    chat.assistant(at_effort(effort, "I keep this in mind.",
                             "The user tells me something. I keep it in mind."),
                   filled(told.reply, values));
  }
  for (int i = dice.between(tells ? 0 : 1, 3); i > 0; --i) ask_talk(dice, chat, unseen);
  if (tells) {
    chat.user(told.question);
    const std::string said = filled(told.statement, values);
    chat.assistant(effort == Effort::low    ? ""
                   : effort == Effort::high ? "The user said: " + said
                                            : "I look for what the user said before: " + said,
                   filled(told.answer, values));
  }
  if (dice.chance(0.25)) say_goodbye(dice, chat);
  return chat.document("dialogue");
}

}  // namespace triax::world
