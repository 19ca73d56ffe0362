// The families: their names, schemas and questions.
#include "triax/world/tool_families.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "triax/world/arithmetic.h"
#include "triax/world/coin.h"

namespace triax::world {
namespace {

const Words kCities = {
    {"Paris",  "London", "Rome",   "Lisbon", "Oslo",    "Berlin",  "Madrid", "Cairo",
     "Tokyo",  "Delhi",  "Boston", "Lima",   "Athens",  "Vienna",  "Dublin", "Prague",
     "Seoul",  "Sydney", "Moscow", "Warsaw", "Nairobi", "Toronto", "Geneva", "Havana",
     "Naples", "Porto",  "Bergen", "Lyon",   "Cork",    "Turin"},
    {"Quito", "Riga", "Zagreb", "Jakarta", "Utrecht", "Malmo", "Kyoto", "Accra"}};

struct Gloss {
  const char* word;
  const char* meaning;
};
constexpr Gloss kGlosses[] = {
    {"lantern", "a lamp that can be carried"},
    {"orchard", "a field where fruit trees grow"},
    {"anchor", "a heavy hook that holds a ship"},
    {"compass", "an instrument that points to the north"},
    {"whisper", "to speak very quietly"},
    {"harvest", "the time when crops are gathered"},
    {"meadow", "a field of grass and flowers"},
    {"kettle", "a pot for boiling water"},
    {"thief", "a person who steals"},
    {"blizzard", "a storm with much snow"},
    {"island", "land with water all around it"},
    {"jester", "a man who makes a king laugh"},
    {"ladder", "two poles with steps between them"},
    {"needle", "a thin tool for sewing"},
    {"oar", "a pole for rowing a boat"},
    {"pearl", "a white jewel that grows in a shell"},
    {"quarrel", "an angry talk between people"},
    {"raft", "a flat boat made of logs"},
    {"saddle", "a seat for the rider of a horse"},
    {"tailor", "a person who makes clothes"},
    {"umbrella", "a roof of cloth against the rain"},
    {"village", "a small place where people live"},
    {"wizard", "a man who can do magic"},
    {"canyon", "a deep valley with steep sides"},
    {"dawn", "the time when the sun comes up"},
    {"echo", "a sound that comes back"},
    {"fog", "a cloud that lies on the ground"},
    {"glacier", "a river of ice"},
    {"hermit", "a person who lives alone"},
    {"infant", "a very young child"},
};
constexpr Gloss kHeldGlosses[] = {
    {"ferry", "a ship that carries people across water"},
    {"spade", "a tool for digging"},
    {"tunnel", "a way under the ground"},
    {"orphan", "a child without parents"},
    {"drizzle", "very light rain"},
    {"cradle", "a small bed for a baby"},
};

// What `coin` makes, drawn again while it is one of the held-out words.
std::string not_held(Dice& dice, std::string (*coin)(Dice&)) {
  for (;;) {
    std::string word = coin(dice);
    if (!is_held_tool_word(word)) return word;
  }
}

std::string city(Dice& dice, const Unseen& unseen) {
  if (unseen.none() && dice.chance(0.5)) return capitalised(not_held(dice, any_letters));
  return kCities.pick(dice, unseen.entities);
}

std::string person(Dice& dice, const Unseen& unseen) {
  const Lexicon& words = Lexicon::get();
  if (unseen.none() && dice.chance(0.4)) return made_up_name(dice, dice.chance(0.5));
  return (dice.chance(0.5) ? words.women : words.men).pick(dice, unseen.entities);
}

std::string thing(Dice& dice, const Unseen& unseen) {
  if (unseen.none() && dice.chance(0.5)) return coined_noun(dice);
  return dice.pick(Lexicon::get().themes).things.pick(dice, unseen.entities);
}

Place place(Dice& dice, const Unseen& unseen) {
  if (unseen.none() && dice.chance(0.5)) return coined_place(dice);
  return dice.pick(Lexicon::get().themes).places.pick(dice, unseen.entities);
}

// "a small lampyard for copper gates"
std::string coined_meaning(Dice& dice) {
  static const std::vector<std::string> kBetween = {
      "for", "that lies on", "made of", "with", "that is like", "used for", "near", "without"};
  std::string first = coined_noun(dice);
  if (dice.chance(0.5)) first = Lexicon::get().sizes.pick(dice, false) + " " + first;
  const std::string& between = dice.pick(kBetween);
  const std::string second = coined_noun(dice);
  return with_article(first) + " " + between + " " +
         (dice.chance(0.5) ? second + "s" : with_article(second));
}

std::string clock_time(Dice& dice) {
  const int hour = dice.between(0, 23), minute = 5 * dice.between(0, 11);
  return fmt::format("{}:{:02}", hour, minute);
}

// One of the wordings, the last of them never in training.
std::string worded(Dice& dice, const Unseen& unseen, const std::vector<std::string>& texts,
                   const std::vector<std::pair<std::string_view, std::string>>& values) {
  const std::string& text = unseen.templates ? texts.back() : texts[dice.below(texts.size() - 1)];
  const std::string out = filled(text, values);
  return unseen.none() ? in_company(dice, out) : out;
}

ToolQuestion ask_calculator(Dice& dice, const Unseen& unseen) {
  Sum sum;
  do {
    sum.operation = static_cast<Operation>(dice.below(3));
    sum.a = dice.between(100, 9999);
    sum.b = dice.between(sum.operation == Operation::multiply ? 11 : 100,
                         sum.operation == Operation::multiply ? 99 : 9999);
    if (sum.operation == Operation::subtract && sum.a < sum.b) std::swap(sum.a, sum.b);
  } while (held_pair(sum.a, sum.b));
  const std::string e = sum.expression(), r = std::to_string(sum.result());
  return {worded(dice, unseen,
                 {"What is {e}?", "Compute {e}.", "How much is {e}?", "Calculate {e}.",
                  "Work out {e} with a tool.", "I need the result of {e}.", "Find {e}.",
                  "Tell me {e}.", "What comes out of {e}?", "Can you work out {e}?"},
                 {{"e", e}}),
          {{"expression", e}},
          r,
          r + "."};
}

ToolQuestion ask_clock(Dice& dice, const Unseen& unseen) {
  const std::string where = city(dice, unseen), time = clock_time(dice);
  return {
      worded(dice, unseen,
             {"What time is it in {c}?", "What is the time in {c}?", "How late is it in {c} now?",
              "Tell me the time in {c}.", "I need the time in {c}.", "Do they have noon in {c}?",
              "What do the clocks say in {c}?", "Please tell me what time it is in {c}."},
             {{"c", where}}),
      {{"city", where}},
      time,
      fmt::format("It is {} in {}.", time, where)};
}

ToolQuestion ask_weather(Dice& dice, const Unseen& unseen) {
  static const std::vector<std::string> kSkies = {"sunny", "rainy", "cloudy", "windy",
                                                  "foggy", "snowy", "stormy", "clear"};
  const std::string where = city(dice, unseen), sky = dice.pick(kSkies);
  return {
      worded(dice, unseen,
             {"What is the weather like in {c}?", "How is the weather in {c}?",
              "Is it raining in {c}?", "Tell me the weather in {c}.", "Do I need a coat in {c}?",
              "What is it like outside in {c}?", "I am going to {c}. How will the weather be?",
              "Please tell me about the weather in {c}."},
             {{"c", where}}),
      {{"city", where}},
      sky,
      fmt::format("It is {} in {}.", sky, where)};
}

ToolQuestion ask_where_is(Dice& dice, const Unseen& unseen) {
  const std::string what = thing(dice, unseen);
  const std::string where = place(dice, unseen).where();
  return {worded(dice, unseen,
                 {"Where is my {o}?", "I cannot find my {o}. Where is it?",
                  "Where did I leave my {o}?", "Find my {o}.", "My {o} is gone. Where is it?",
                  "I need my {o}.", "Can you see my {o}?", "Please look for my {o}."},
                 {{"o", what}}),
          {{"thing", what}},
          where,
          fmt::format("Your {} is {}.", what, where)};
}

struct Unit {
  const char* from;
  const char* to;
  double factor;
};
constexpr Unit kUnits[] = {
    {"metres", "centimetres", 100},  {"kilometres", "metres", 1000}, {"hours", "minutes", 60},
    {"minutes", "seconds", 60},      {"days", "hours", 24},          {"weeks", "days", 7},
    {"kilograms", "grams", 1000},    {"feet", "inches", 12},         {"dozens", "pieces", 12},
    {"litres", "millilitres", 1000}, {"years", "months", 12},        {"yards", "feet", 3},
};

ToolQuestion ask_convert(Dice& dice, const Unseen& unseen) {
  const Unit& unit = kUnits[dice.below(std::size(kUnits))];
  const int value = dice.between(2, 99);
  const std::string n = std::to_string(value);
  const std::string r = std::to_string(static_cast<int>(value * unit.factor));
  return {
      worded(dice, unseen,
             {"How many {t} are {n} {f}?", "Convert {n} {f} to {t}.", "What are {n} {f} in {t}?",
              "Change {n} {f} into {t}.", "I have {n} {f}. How many {t} is that?",
              "Give me {n} {f} in {t}.", "{n} {f} in {t}?", "Please convert {n} {f} to {t}."},
             {{"n", n}, {"f", unit.from}, {"t", unit.to}}),
      {{"value", value}, {"from", unit.from}, {"to", unit.to}},
      r,
      fmt::format("{} {} are {} {}.", n, unit.from, r, unit.to)};
}

ToolQuestion ask_dictionary(Dice& dice, const Unseen& unseen) {
  std::string word, meaning;
  if (unseen.none() && dice.chance(0.6)) {
    word = not_held(dice, coined_noun);
    meaning = coined_meaning(dice);
  } else {
    const Gloss& gloss = unseen.entities ? kHeldGlosses[dice.below(std::size(kHeldGlosses))]
                                         : kGlosses[dice.below(std::size(kGlosses))];
    word = gloss.word;
    meaning = gloss.meaning;
  }
  return {worded(dice, unseen,
                 {"What does the word {w} mean?", "What is the meaning of {w}?", "Look up {w}.",
                  "Explain the word {w}.", "I read the word {w}. What is it?",
                  "Tell me the meaning of {w}.", "What is meant by {w}?",
                  "Please look up the word {w}."},
                 {{"w", word}}),
          {{"word", word}},
          meaning,
          capitalised(meaning) + "."};
}

ToolQuestion ask_note(Dice& dice, const Unseen& unseen) {
  std::string text;
  if (dice.chance(0.5)) {
    text = "the " + thing(dice, unseen);
    text += " is " + place(dice, unseen).where();
  } else {
    text = person(dice, unseen);
    text += dice.chance(0.5) ? " needs the " : " has the ";
    text += thing(dice, unseen);
  }
  return {worded(dice, unseen,
                 {"Write down that {t}.", "Make a note that {t}.", "Note that {t}.",
                  "Remember that {t}.", "Do not forget that {t}.", "Keep in mind that {t}.",
                  "I must not forget that {t}.", "Please note down that {t}."},
                 {{"t", text}}),
          {{"text", text}},
          "saved",
          "I have noted it."};
}

ToolQuestion ask_phone(Dice& dice, const Unseen& unseen) {
  const std::string who = person(dice, unseen);
  const int area = dice.between(200, 999), line = dice.between(1000, 9999);
  const std::string number = fmt::format("{}-{}", area, line);
  return {worded(dice, unseen,
                 {"What is the phone number of {A}?", "What is {A}'s number?",
                  "Give me the number of {A}.", "How can I call {A}?", "I want to call {A}.",
                  "Which number does {A} have?", "Tell me the number of {A}.",
                  "Please find the phone number of {A}."},
                 {{"A", who}}),
          {{"person", who}},
          number,
          fmt::format("The number of {} is {}.", who, number)};
}

ToolQuestion ask_stock(Dice& dice, const Unseen& unseen) {
  const Counted what = dice.pick(Lexicon::get().themes).counted.pick(dice, unseen.entities);
  const int n = dice.between(2, 400);
  return {worded(dice, unseen,
                 {"How many {c} are in the shop?", "How many {c} do we have?",
                  "How many {c} are in stock?", "Count the {c} in the shop.",
                  "Tell me how many {c} there are.", "Are there enough {c}? How many?",
                  "What number of {c} is on the shelf?", "Please check how many {c} we have."},
                 {{"c", what.many}}),
          {{"item", what.many}},
          std::to_string(n),
          fmt::format("There are {} {}.", n, what.many)};
}

ToolQuestion ask_alarm(Dice& dice, const Unseen& unseen) {
  const std::string time = clock_time(dice);
  return {worded(dice, unseen,
                 {"Wake me at {t}.", "Set an alarm for {t}.", "I must get up at {t}.",
                  "Let me sleep until {t}.", "It should ring at {t}.",
                  "My train goes soon: wake me at {t}.", "Ring at {t}.",
                  "Please set the alarm to {t}."},
                 {{"t", time}}),
          {{"time", time}},
          "done",
          fmt::format("The alarm is set for {}.", time)};
}

ToolQuestion ask_message(Dice& dice, const Unseen& unseen) {
  static const std::vector<std::string> kNews = {
      "dinner is ready",        "the train is late", "we are at home",    "the shop is closed",
      "the key is in the hall", "it is raining",     "the game is over",  "the dog is back",
      "the cake is gone",       "school is out",     "the boat is ready", "all is well"};
  const std::string who = person(dice, unseen);
  std::string text = dice.pick(kNews);
  if (unseen.none() && dice.chance(0.5)) {
    text = "the " + thing(dice, unseen);
    text += dice.chance(0.5) ? " is " + place(dice, unseen).where() : " is ready";
  }
  return {
      worded(dice, unseen,
             {"Tell {A} that {t}.", "Send {A} a message that {t}.", "Let {A} know that {t}.",
              "Say to {A} that {t}.", "I want {A} to know that {t}.", "{A} should know that {t}.",
              "Write to {A} that {t}.", "Please tell {A} that {t}."},
             {{"A", who}, {"t", text}}),
      {{"person", who}, {"text", text}},
      "sent",
      fmt::format("I have told {}.", who)};
}

ToolQuestion ask_price(Dice& dice, const Unseen& unseen) {
  const std::string what = thing(dice, unseen);
  const int n = dice.between(2, 90);
  return {worded(dice, unseen,
                 {"What does a {o} cost?", "How much is a {o}?", "What is the price of a {o}?",
                  "I want a {o}. What is it sold for?", "Please find out what a {o} costs."},
                 {{"o", what}}),
          {{"item", what}},
          fmt::format("{} coins", n),
          fmt::format("It costs {} coins.", n)};
}

ToolQuestion ask_population(Dice& dice, const Unseen& unseen) {
  const std::string where = city(dice, unseen);
  const int n = dice.between(2, 90);
  return {worded(dice, unseen,
                 {"How many people live in {c}?", "What is the population of {c}?",
                  "How big is {c}?", "Please find out how many people live in {c}."},
                 {{"c", where}}),
          {{"city", where}},
          fmt::format("{} thousand", n),
          fmt::format("{} thousand people live in {}.", n, where)};
}

ToolQuestion ask_owner(Dice& dice, const Unseen& unseen) {
  const std::string what = thing(dice, unseen), who = person(dice, unseen);
  return {worded(dice, unseen,
                 {"Who owns the {o}?", "Whose {o} is this?", "Who is the owner of the {o}?",
                  "To whom does the {o} belong?", "I found the {o}. Who does it belong to?",
                  "Tell me who owns the {o}.", "Please find out whose {o} this is."},
                 {{"o", what}}),
          {{"thing", what}},
          who,
          fmt::format("The {} belongs to {}.", what, who)};
}

// Names that parameters share, by role.
const Words kCityNames = {{"city", "place", "town", "where", "city_name", "location"},
                          {"spot", "region"}};
const Words kThingNames = {{"thing", "object", "name", "what", "item", "query"},
                           {"article", "possession"}};
const Words kPersonNames = {{"person", "name", "who", "to", "friend", "contact"},
                            {"recipient", "someone"}};
const Words kTextNames = {{"text", "message", "content", "note", "words", "body"},
                          {"sentence", "info"}};

std::vector<ToolFamily> first_families() {
  return {
      {"calculator",
       false,
       {{"calculator", "calculate", "compute", "math", "calc", "do_sum", "arithmetic", "reckon"},
        {"number_machine", "solve_sum"}},
       {"Computes a sum.", "Works out an expression with numbers.", "Calculates exactly."},
       {{"expression",
         {{"expression", "sum", "formula", "input", "problem"}, {"task", "equation"}},
         "string",
         "what to compute",
         {}}},
       "a sum",
       &ask_calculator},
      {"clock",
       false,
       {{"clock", "get_time", "time_in", "world_clock", "tell_time", "current_time", "time_now"},
        {"watch", "local_time"}},
       {"Tells the time in a city.", "The time of day in a city.", "Gives the current time."},
       {{"city", kCityNames, "string", "the city", {}}},
       "the time",
       &ask_clock},
      {"weather",
       false,
       {{"weather", "get_weather", "weather_in", "sky", "forecast", "weather_report", "outside"},
        {"look_at_sky", "rain_check"}},
       {"Tells the weather in a city.", "The weather of a place now.", "Reports rain and sun."},
       {{"city", kCityNames, "string", "the city", {}}},
       "the weather",
       &ask_weather},
      {"where_is",
       false,
       {{"where_is", "find_thing", "find", "locate", "search_house", "lost_and_found", "finder"},
        {"seek", "track_down"}},
       {"Finds a lost thing.", "Tells where a thing is.", "Looks for things."},
       {{"thing", kThingNames, "string", "the thing", {}}},
       "where a thing is",
       &ask_where_is},
      {"convert",
       false,
       {{"convert", "convert_units", "units", "unit_converter", "change_units", "measure"},
        {"rescale", "unit_change"}},
       {"Converts units.", "Changes a value to another unit.", "Turns one unit into another."},
       {{"value",
         {{"value", "amount", "number", "quantity"}, {"size", "figure"}},
         "number",
         "how much",
         {}},
        {"from",
         {{"from", "from_unit", "unit", "source"}, {"old_unit"}},
         "string",
         "unit of the value",
         {}},
        {"to", {{"to", "to_unit", "target", "into"}, {"new_unit"}}, "string", "unit wanted", {}}},
       "units",
       &ask_convert},
  };
}

std::vector<ToolFamily> middle_families() {
  return {
      {"dictionary",
       false,
       {{"dictionary", "define", "look_up", "meaning", "explain_word", "lexicon", "word_info"},
        {"glossary", "what_means"}},
       {"Explains a word.", "Gives the meaning of a word.", "Looks up words."},
       {{"word", {{"word", "term", "entry", "key"}, {"vocab", "lemma"}}, "string", "the word", {}}},
       "a word",
       &ask_dictionary},
      {"notes",
       false,
       {{"add_note", "note", "notes", "write_note", "save_note", "remember", "memo"},
        {"jot_down", "notebook"}},
       {"Saves a note.", "Writes something down.", "Keeps a note for later."},
       {{"text", kTextNames, "string", "what to keep", {}}},
       "a note",
       &ask_note},
      {"phone_book",
       false,
       {{"phone_book", "get_number", "contacts", "phone", "find_number", "address_book"},
        {"directory", "dial_info"}},
       {"Finds a phone number.", "Gives the number of a person.", "Looks up phone numbers."},
       {{"person", kPersonNames, "string", "the person", {}}},
       "a phone number",
       &ask_phone},
      {"stock",
       false,
       {{"stock", "count_items", "inventory", "in_stock", "check_stock", "store_count"},
        {"shelf_count", "supplies"}},
       {"Counts goods in the shop.", "Tells how many there are.", "Checks the stock."},
       {{"item", kThingNames, "string", "the goods", {}}},
       "how many there are",
       &ask_stock},
      {"alarm",
       false,
       {{"alarm", "set_alarm", "wake_me", "timer", "alarm_clock", "wake_up"},
        {"ring_bell", "morning_call"}},
       {"Sets an alarm.", "Rings at a time.", "Wakes the user."},
       {{"time", {{"time", "at", "when", "hour"}, {"moment"}}, "string", "when to ring", {}}},
       "an alarm",
       &ask_alarm},
  };
}

std::vector<ToolFamily> last_families() {
  return {
      {"message",
       false,
       {{"send_message", "message", "tell", "send", "text_person", "mail"}, {"deliver", "pass_on"}},
       {"Sends a message.", "Tells a person something.", "Writes to a person."},
       {{"person", kPersonNames, "string", "who gets it", {}},
        {"text", kTextNames, "string", "what to say", {}}},
       "a message",
       &ask_message},
      {"owner",
       false,
       {{"owner", "who_owns", "owner_of", "belongs_to", "find_owner", "whose"},
        {"property_list", "ownership"}},
       {"Tells who owns a thing.", "Finds the owner.", "Names the owner of a thing."},
       {{"thing", kThingNames, "string", "the thing", {}}},
       "an owner",
       &ask_owner},
      {"price",
       true,
       {{"price", "get_price", "price_of"}, {"cost", "shop_price", "price_tag"}},
       {"Tells the price of a thing.", "Finds what a thing costs."},
       {{"item", kThingNames, "string", "the thing", {}}},
       "a price",
       &ask_price},
      {"population",
       true,
       {{"population", "count_people"}, {"people_in", "census"}},
       {"Tells how many people live in a city.", "Counts the people of a city."},
       {{"city", kCityNames, "string", "the city", {}}},
       "the people of a city",
       &ask_population},
  };
}

std::vector<ToolFamily> make_families() {
  std::vector<ToolFamily> all;
  for (auto part : {first_families(), middle_families(), last_families()}) {
    for (ToolFamily& family : part) all.push_back(std::move(family));
  }
  return all;
}

}  // namespace

const std::vector<ToolFamily>& all_tool_families() {
  static const std::vector<ToolFamily> families = make_families();
  return families;
}

bool is_held_tool_word(const std::string& word) {
  static const std::set<std::string> held = [] {
    std::set<std::string> out(kCities.held.begin(), kCities.held.end());
    for (const Gloss& gloss : kHeldGlosses) out.insert(gloss.word);
    for (const ToolFamily& family : all_tool_families()) {
      out.insert(family.names.held.begin(), family.names.held.end());
      if (family.held) out.insert(family.names.train.begin(), family.names.train.end());
      for (const Parameter& p : family.parameters) {
        out.insert(p.names.held.begin(), p.names.held.end());
      }
    }
    return out;
  }();
  return held.count(word) + held.count(capitalised(word)) > 0;
}

}  // namespace triax::world
