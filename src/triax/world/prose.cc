// A grammar of tales: each part has several forms, each form several phrasings; a sub-plot may come
// between. Names and things are those of the lexicon.
#include "triax/world/prose.h"

#include <vector>

namespace triax::world {
namespace {

using Values = std::vector<std::pair<std::string_view, std::string>>;
using Lines = std::vector<std::string>;

// {A} the hero, {B} a friend, {C} a stranger; {o} the thing with "the", {an} with its article; {p}
// {q} places with "the", {P} {Q} with prepositions; {he} {him} {his} {He} of the hero; {bhe} {Bhe}
// of the friend; {n} an animal.
const Lines kBeginnings = {
    "Once upon a time there was a {job} called {A}, who lived {P}.",
    "{A} was a {adj} {job}, and everybody {P} knew {him}.",
    "Long ago, {P}, there lived a {job} named {A}.",
    "One {day} {A} woke up early and looked out of the window.",
    "There was once a {adj} {job}. {His} name was {A}.",
    "In a far country lived {A}, the {job}.",
    "It was {A}'s birthday, but nobody seemed to know it.",
    "{A} and {B} were the best of friends, and {A} was the older one.",
};
const Lines kWishes = {
    "More than anything else, {he} wanted {an}.",
    "{He} had one treasure: {an}. One day it was gone.",
    "For years {he} had dreamed of {an}.",
    "That day {he} found {an} {Q}, and nobody knew whose it was.",
    "An old woman had promised {him} {an}, if only {he} was brave.",
    "{His} grandfather had left {him} {an}, but where was it?",
    "{He} had to bring {an} to {q} before night.",
    "Every night {he} heard somebody whisper about {an}.",
};
const Lines kTroubles = {
    "But a {n} stood in the way and would not move.",
    "But the bridge was broken, and the river was deep.",
    "On the way it grew dark, and {he} lost the path.",
    "Then a storm came up, and the rain fell in buckets.",
    "But {C} wanted {o} too, and {C} was quicker.",
    "But the door was locked, and nobody had the key.",
    "A {n} jumped out of the bushes and ran off with it.",
    "But {he} was afraid of the dark, and it was very dark {Q}.",
    "\"You will never get it,\" said {C}, and laughed.",
    "But there was a hole in {his} bag, and everything fell out.",
};
const Lines kSubplots = {
    "Meanwhile {B} was baking a cake and knew nothing of all this.",
    "At home the soup was getting cold, and {B} began to worry.",
    "That same morning a {n} had moved into the attic, and nobody had noticed.",
    "{B} had troubles too: {bhis} shoes were too small.",
    "Somewhere else {C} was counting money and smiling.",
    "In the meantime it had begun to snow.",
};
const Lines kHelps = {
    "Then {he} met {B}. \"I will help you,\" said {B}.",
    "\"Let us try it together,\" {B} said, and they did.",
    "A little {n} showed {him} the way.",
    "{He} sat down and thought. Then {he} had an idea.",
    "\"Do not cry,\" said {B}. \"Two heads are better than one.\"",
    "{He} asked everybody {Q}, and at last a child had seen it.",
    "{He} took a deep breath and went on.",
    "{B} came running with a rope and a lamp.",
    "{He} gave the {n} a piece of bread, and at once it was friendly.",
    "{He} remembered what {his} mother had said: never give up.",
};
const Lines kTurns = {
    "So they went to {q}, and there it was.",
    "Step by step they came nearer.",
    "They pulled and pushed until it worked.",
    "In the end {C} said, \"I am sorry,\" and gave it back.",
    "The {n} yawned, turned round and went to sleep.",
    "Under a stone {Q} lay {o}, as good as new.",
    "It took the whole night, but it was done.",
    "\"Here it is!\" cried {B} and held up {o}.",
};
const Lines kEndings = {
    "From that day on {A} and {B} did everything together.",
    "{A} laughed, and {B} laughed too.",
    "That evening {o} stood on the table, and everybody came to see it.",
    "{A} gave {o} to {B}, because friends are worth more than things.",
    "And if {he} has not lost it, {he} has it still.",
    "\"What a day!\" said {A}, and fell asleep at once.",
    "{He} never told anybody, but {he} smiled whenever it rained.",
    "And they all had cake.",
};
const Lines kMorals = {"Those who share have more.",
                       "It is never too late to ask for help.",
                       "Small steps lead far.",
                       "Who looks closely finds a lot.",
                       "Even a strong bear needs a friend.",
                       "Patience opens many doors.",
                       "A kind word costs nothing.",
                       "Courage grows with every step."};

const Lines kJobs = {"baker",    "fisherman", "girl scout", "teacher",   "tailor",   "farmer",
                     "gardener", "painter",   "pilot",      "carpenter", "musician", "postman",
                     "shepherd", "cook",      "clockmaker", "hunter",    "doctor",   "magician"};
const Lines kTempers = {"clever",  "shy",      "cheerful", "lazy",   "brave", "young", "lonely",
                        "curious", "stubborn", "gentle",   "clumsy", "proud", "quiet", "merry"};
const Lines kAnimals = {"fox", "goat",  "bear",     "goose",    "dog",    "wolf", "donkey",
                        "cat", "raven", "hedgehog", "squirrel", "badger", "pony", "rabbit"};
const Lines kDays = {"morning",      "winter morning", "spring day", "Sunday",
                     "rainy Monday", "summer morning", "grey day"};

struct Who {
  std::string name;
  bool woman;
};

Who someone(Dice& dice, const Unseen& unseen, const std::vector<std::string>& taken) {
  const Lexicon& words = Lexicon::get();
  for (;;) {
    const bool woman = dice.chance(0.5);
    const std::string name = (woman ? words.women : words.men).pick(dice, unseen.entities);
    bool fresh = true;
    for (const std::string& other : taken) fresh = fresh && other != name;
    if (fresh) return {name, woman};
  }
}

void add(std::string& text, const std::string& line, const Values& values) {
  text += (text.empty() ? "" : " ") + capitalised(filled(line, values));
}

// A line that speaks of the stranger or the animal only where they have appeared.
const std::string& fitting(Dice& dice, const Lines& lines, const std::string& text,
                           const std::string& stranger, const std::string& animal) {
  const auto has = [](const std::string& in, const std::string& what) {
    return in.find(what) != std::string::npos;
  };
  for (;;) {
    const std::string& line = dice.pick(lines);
    if (has(line, "{C}") && !has(text, stranger)) continue;
    if (has(line, "{n}") && !has(text, " " + animal)) continue;
    return line;
  }
}

const std::string& another(Dice& dice, const Lines& lines, const std::string& than) {
  for (;;) {
    const std::string& line = dice.pick(lines);
    if (line != than) return line;
  }
}

}  // namespace

Tale make_tale(Dice& dice, const Unseen& unseen) {
  const Theme& theme = dice.pick(Lexicon::get().themes);
  const Who a = someone(dice, unseen, {}), b = someone(dice, unseen, {a.name}),
            c = someone(dice, unseen, {a.name, b.name});
  const std::string thing = theme.things.pick(dice, unseen.entities);
  const std::string described =
      dice.chance(0.5) ? Lexicon::get().colours.pick(dice, false) + " " + thing : thing;
  const Place& home = theme.places.pick(dice, unseen.entities);
  const Place* far = &home;
  while (far->noun == home.noun) far = &theme.places.pick(dice, unseen.entities);
  const std::string he = a.woman ? "she" : "he", his = a.woman ? "her" : "his";
  std::string job = dice.pick(kJobs);
  if (job == "girl scout" && !a.woman) job = "sailor";
  if (job == "fisherman" && a.woman) job = "weaver";
  if (job == "postman" && a.woman) job = "singer";
  const std::string animal = dice.pick(kAnimals);
  const Values values = {{"A", a.name},
                         {"B", b.name},
                         {"C", c.name},
                         {"o", "the " + thing},
                         {"an", with_article(described)},
                         {"p", "the " + home.noun},
                         {"P", home.where()},
                         {"q", "the " + far->noun},
                         {"Q", far->where()},
                         {"he", he},
                         {"He", capitalised(he)},
                         {"him", a.woman ? "her" : "him"},
                         {"his", his},
                         {"His", capitalised(his)},
                         {"bhe", b.woman ? "she" : "he"},
                         {"bhis", b.woman ? "her" : "his"},
                         {"job", job},
                         {"adj", dice.pick(kTempers)},
                         {"n", animal},
                         {"day", dice.pick(kDays)}};
  Tale tale{"", a.name, thing};
  add(tale.text, dice.pick(kBeginnings), values);
  add(tale.text, dice.pick(kWishes), values);
  const std::string& trouble = dice.pick(kTroubles);
  add(tale.text, trouble, values);
  if (dice.chance(0.35)) add(tale.text, dice.pick(kSubplots), values);
  const std::string& help = dice.pick(kHelps);
  add(tale.text, help, values);
  if (dice.chance(0.4)) {
    add(tale.text, another(dice, kTroubles, trouble), values);
    add(tale.text, another(dice, kHelps, help), values);
  }
  add(tale.text, fitting(dice, kTurns, tale.text, c.name, animal), values);
  add(tale.text, dice.pick(kEndings), values);
  if (dice.chance(0.3)) add(tale.text, dice.pick(kMorals), values);
  return tale;
}

Json tale_document(Dice& dice, Effort effort, const Unseen& unseen) {
  const Tale tale = make_tale(dice, unseen);
  static const Words kThing = {{"Tell me a story about {o}.", "Tell a story with {o} in it.",
                                "Can you tell me a story about {o}?", "I want a story about {o}."},
                               {"Please make up a story about {o}."}};
  static const Words kHero = {
      {"Tell me a story about {A}.", "Tell a short story about {A} and {o}.",
       "I want a story about {A} and {o}."},
      {"Please make up a story about {A}."}};
  const Words& words = dice.chance(0.6) ? kThing : kHero;
  Chat chat(effort);
  chat.user(filled(unseen.templates ? dice.pick(words.held) : dice.pick(words.train),
                   {{"A", tale.hero}, {"o", with_article(tale.thing)}}));
  chat.assistant(effort == Effort::low ? ""
                 : effort == Effort::high
                     ? "A story about " + tale.hero + " and the " + tale.thing + "."
                     : "I need a hero, a thing and some trouble. The hero is " + tale.hero +
                           ". The thing is the " + tale.thing + ". It should end well.",
                 tale.text);
  return chat.document("tale");
}

Json tale_text(Dice& dice, const Unseen& unseen) {
  return text_document("prose", make_tale(dice, unseen).text);
}

}  // namespace triax::world
