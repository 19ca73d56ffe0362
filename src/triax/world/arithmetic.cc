// Sums and their written methods.
#include "triax/world/arithmetic.h"

#include <algorithm>
#include <array>

#include "triax/core/error.h"
#include "triax/core/rng.h"
#include "triax/world/coin.h"

namespace triax::world {
namespace {

constexpr std::uint64_t kPairKey = 0x70616972732E3031ull;
constexpr int kSmallest = 20;  // a pair of smaller numbers is never held out

int number_of_digits(Dice& dice, int digits) {
  static constexpr std::array<int, 4> kPowers = {1, 10, 100, 1000};
  const auto d = static_cast<std::size_t>(digits);
  return dice.between(digits == 1 ? 0 : kPowers[d - 1], kPowers[d] - 1);
}

Sum any_sum(Dice& dice) {
  const double kind = dice.chance(0.4) ? 0 : dice.chance(0.6) ? 1 : 2;
  Sum sum;
  if (kind == 2) {
    sum.operation = Operation::multiply;
    sum.a = dice.between(2, 9);
    sum.b = number_of_digits(dice, dice.chance(0.35) ? 1 : 2);
    if (dice.chance(0.4)) std::swap(sum.a, sum.b);
    return sum;
  }
  const auto digits = [&] { return dice.chance(0.15) ? 1 : dice.chance(0.5) ? 2 : 3; };
  sum.a = number_of_digits(dice, digits());
  sum.b = number_of_digits(dice, digits());
  if (kind == 1) {
    sum.operation = Operation::subtract;
    if (sum.a < sum.b) std::swap(sum.a, sum.b);
  }
  return sum;
}

int digit(int n, int at) {
  while (at-- > 0) n /= 10;
  return n % 10;
}

int length(int n) {
  return n < 10 ? 1 : n < 100 ? 2 : n < 1000 ? 3 : 4;
}

const char* place_name(int at) {
  static constexpr std::array<const char*, 4> kNames = {"Ones", "Tens", "Hundreds", "Thousands"};
  return kNames[static_cast<std::size_t>(at)];
}

// One column of a method: what is reckoned, the digit written, what is carried or borrowed.
struct Column {
  std::string terms;  // "8+6", "13-6", "7*4+1"
  std::string words;  // "8 plus 6"
  int value = 0, write = 0, carry = 0;
  bool borrow = false;
};

std::vector<Column> columns(const Sum& sum) {
  std::vector<Column> out;
  int carry = 0;
  const int top = sum.operation == Operation::multiply ? std::max(sum.a, sum.b) : sum.a;
  const int low = sum.operation == Operation::multiply ? std::min(sum.a, sum.b) : sum.b;
  const int n = std::max(length(top), sum.operation == Operation::multiply ? 1 : length(low));
  for (int at = 0; at < n; ++at) {
    Column c;
    const int x = digit(top, at), y = sum.operation == Operation::multiply ? low : digit(low, at);
    const std::string xs = std::to_string(x), ys = std::to_string(y), cs = std::to_string(carry);
    if (sum.operation == Operation::subtract) {
      c.borrow = x < y + carry;
      c.value = x + (c.borrow ? 10 : 0) - y - carry;
      const std::string from = std::to_string(x + (c.borrow ? 10 : 0));
      c.terms = from + "-" + ys + (carry != 0 ? "-1" : "");
      c.words = from + " minus " + ys + (carry != 0 ? " minus 1" : "");
      c.write = c.value;
      carry = c.borrow ? 1 : 0;
    } else {
      const bool times = sum.operation == Operation::multiply;
      c.value = (times ? x * y : x + y) + carry;
      c.terms = xs + (times ? "*" : "+") + ys + (carry != 0 ? "+" + cs : "");
      c.words = xs + (times ? " times " : " plus ") + ys + (carry != 0 ? " plus " + cs : "");
      c.write = c.value % 10;
      carry = c.value / 10;
    }
    c.carry = carry;
    out.push_back(c);
  }
  return out;
}

std::string low_thinking(const std::vector<Sum>& sums) {
  std::string text;
  for (const Sum& sum : sums) {
    for (const Column& c : columns(sum)) {
      text += (text.empty() ? "" : " ") + c.terms + "=" + std::to_string(c.value);
    }
  }
  return text;
}

std::string asked(Dice& dice, const Sum& sum, const Unseen& unseen) {
  const std::string a = std::to_string(sum.a), b = std::to_string(sum.b);
  static const std::array<Words, 3> kInWords = {
      Words{{"What is {a} plus {b}?", "Add {a} and {b}.", "What do {a} and {b} make together?",
             "How much is {a} plus {b}?", "Find {a} plus {b}.", "Put {a} and {b} together.",
             "What is the total of {a} and {b}?", "What comes out of {a} plus {b}?",
             "{a} and {b} together: how much is that?", "Could you add {b} to {a}?",
             "I have {a}. What is it with {b} more?"},
            {"Please add {a} to {b}.", "What is the sum of {a} and {b}?"}},
      Words{{"What is {a} minus {b}?", "Subtract {b} from {a}.", "Take {b} away from {a}.",
             "How much is {a} minus {b}?", "Find {a} minus {b}.", "Remove {b} from {a}.",
             "What is the difference between {a} and {b}?", "What comes out of {a} minus {b}?",
             "By how much is {a} more than {b}?", "Could you subtract {b} from {a}?",
             "I have {a}. What is it without {b}?"},
            {"Please take {b} from {a}.", "What is {a} less {b}?"}},
      Words{{"What is {a} times {b}?", "Multiply {a} by {b}.", "How much is {a} times {b}?",
             "What is {a} multiplied by {b}?", "Find {a} times {b}.", "What do {a} times {b} make?",
             "What is the product of {a} and {b}?", "What comes out of {a} times {b}?",
             "Could you multiply {a} by {b}?", "Take {a} {b} times: how much is that?"},
            {"Please multiply {a} and {b}.", "What do you get for {a} times {b}?"}}};
  static const Words kAround = {
      {"What is {e}?", "{e} = ?", "{e}", "Compute {e}.", "How much is {e}?", "Calculate {e}.",
       "Work out {e}.", "Tell me {e}.", "I need {e}.", "Evaluate {e}.", "Could you compute {e}?",
       "Give me the result of {e}.", "What does {e} give?", "Find {e}.", "Say what {e} is.",
       "What is {e} equal to?", "I want to know {e}.", "Would you reckon {e} for me?"},
      {"Please tell me what {e} is.", "Can you work out {e}?", "Solve {e}."}};
  const Words& words =
      dice.chance(0.5) ? kAround : kInWords[static_cast<std::size_t>(sum.operation)];
  const std::string text = unseen.templates ? dice.pick(words.held) : dice.pick(words.train);
  const std::string out = filled(text, {{"a", a}, {"b", b}, {"e", sum.expression()}});
  return unseen.none() ? in_company(dice, out) : out;
}

}  // namespace

int Sum::result() const {
  return operation == Operation::add ? a + b : operation == Operation::subtract ? a - b : a * b;
}

std::string Sum::expression() const {
  const char* sign = operation == Operation::add        ? " + "
                     : operation == Operation::subtract ? " - "
                                                        : " * ";
  return std::to_string(a) + sign + std::to_string(b);
}

bool held_pair(int a, int b) {
  if (std::max(a, b) < kSmallest) return false;
  const auto low = static_cast<std::uint64_t>(std::min(a, b));
  const auto high = static_cast<std::uint64_t>(std::max(a, b));
  return splitmix64_at(kPairKey, low << 32 | high) % 25 == 0;
}

Sum draw_sum(Dice& dice, bool held) {
  for (;;) {
    const Sum sum = any_sum(dice);
    if (held_pair(sum.a, sum.b) == held) return sum;
  }
}

std::string digits_from_the_right(int n) {
  std::string text = std::to_string(n);
  std::reverse(text.begin(), text.end());
  return text;
}

std::string column_method(const Sum& sum) {
  std::string text;
  for (const Column& c : columns(sum)) {
    text += c.terms + "=" + std::to_string(c.value);
    if (c.carry != 0)
      text += c.borrow ? " borrow 1"
                       : ", " + std::to_string(c.write) + " carry " + std::to_string(c.carry);
    text += ". ";
  }
  return text + std::to_string(sum.result()) + ".";
}

std::string column_method_in_words(const Sum& sum) {
  std::string text = "Work out " + sum.expression() + ". ";
  int at = 0;
  const std::vector<Column> all = columns(sum);
  for (const Column& c : all) {
    text += std::string(place_name(at)) + ": " + c.words + " is " + std::to_string(c.value);
    if (sum.operation == Operation::subtract) {
      if (c.borrow) text += ", borrow 1";
    } else {
      text += ", write " + std::to_string(c.write);
      if (c.carry != 0) text += ", carry " + std::to_string(c.carry);
    }
    text += ". ";
    ++at;
  }
  text += "From the right: " + digits_from_the_right(sum.result()) + ". ";
  return text + "So it is " + std::to_string(sum.result()) + ".";
}

const std::string& SumItem::thinking(Effort effort) const {
  return effort == Effort::low ? think_low : effort == Effort::high ? think_high : think_max;
}

namespace {

void explain_sums(SumItem& item) {
  item.think_low = low_thinking(item.sums);
  for (const Sum& sum : item.sums) {
    const std::string space = item.think_high.empty() ? "" : " ";
    item.think_high += space + sum.expression() + ". " + column_method(sum);
    item.think_max += space + column_method_in_words(sum);
  }
  item.truth = std::to_string(item.sums.back().result());
  item.answer = item.truth + ".";
}

// {A} and {B} people, {c} things, {a} {b} {d} numbers.
struct ProblemText {
  Operation operation;
  bool held;
  const char* text;
};

constexpr ProblemText kProblems[] = {
    {Operation::add, false,
     "{A} has {a} {c}. {B} gives {him} {b} more. How many {c} does {A} have?"},
    {Operation::add, false, "{A} has {a} {c} and {B} has {b}. How many {c} do they have together?"},
    {Operation::add, false,
     "There are {a} {c} in one box and {b} in another. How many {c} are there in all?"},
    {Operation::add, false,
     "{A} picked {a} {c} on Monday and {b} on Tuesday. How many {c} is that?"},
    {Operation::add, false, "{A} finds {a} {c} and then {b} more. How many {c} is that in all?"},
    {Operation::add, false,
     "On one shelf there are {a} {c}, on another {b}. How many {c} are on both?"},
    {Operation::add, false, "{A} had {a} {c} and got {b} from {B}. How many has {he} got now?"},
    {Operation::add, false, "{A} bakes for {a} people, {B} for {b}. For how many is that?"},
    {Operation::add, true,
     "{A} owns {a} {c}. Then {he} buys {b} more. How many {c} does {he} own now?"},
    {Operation::subtract, false, "{A} has {a} {c}. {He} gives {b} to {B}. How many {c} are left?"},
    {Operation::subtract, false,
     "There were {a} {c} in the shop. {b} were sold. How many {c} are left?"},
    {Operation::subtract, false,
     "{A} has {a} {c}. {B} has {b}. How many more {c} does {A} have than {B}?"},
    {Operation::subtract, false,
     "{A} had {a} {c} and lost {b}. How many {c} does {he} still have?"},
    {Operation::subtract, false,
     "{A} had {a} {c}. {He} used {b}. How many {c} does {he} have now?"},
    {Operation::subtract, false, "A box held {a} {c}. {B} took out {b}. How many are in it now?"},
    {Operation::subtract, false, "{a} {c} were counted, and {b} were broken. How many were whole?"},
    {Operation::subtract, false,
     "{A} needs {a} {c} and has {b}. How many {c} does {he} still need?"},
    {Operation::subtract, true, "Of {a} {c}, {b} were thrown away. How many {c} remain?"},
    {Operation::multiply, false, "{A} has {a} boxes with {b} {c} in each. How many {c} are there?"},
    {Operation::multiply, false, "Each of {a} children gets {b} {c}. How many {c} are needed?"},
    {Operation::multiply, false, "One bag holds {b} {c}. How many {c} are in {a} bags?"},
    {Operation::multiply, false, "{A} buys {a} packs of {b} {c}. How many {c} is that?"},
    {Operation::multiply, false, "There are {a} rows of {b} {c}. How many {c} are there in all?"},
    {Operation::multiply, false,
     "{A} and {his} friends are {a} people. Each of them has {b} {c}. How many is that together?"},
    {Operation::multiply, false, "{b} {c} fit in a cart. How many {c} fit in {a} carts?"},
    {Operation::multiply, true, "{a} people carry {b} {c} each. How many {c} do they carry?"},
};

// A sum that fits the problem.
Sum problem_sum(Dice& dice, bool held, Operation operation) {
  for (;;) {
    const Sum first = draw_sum(dice, held);
    if (first.operation != operation || first.a < 2 || first.b < 2) continue;
    return first;
  }
}

}  // namespace

SumItem make_sum(Dice& dice, bool held, const Unseen& unseen) {
  SumItem item;
  item.sums = {draw_sum(dice, held)};
  item.text = asked(dice, item.sums[0], unseen);
  explain_sums(item);
  return item;
}

SumItem make_problem(Dice& dice, bool held, const Unseen& unseen) {
  const Lexicon& words = Lexicon::get();
  SumItem item;
  item.in_words = true;
  const ProblemText* problem = nullptr;
  do {
    problem = &kProblems[dice.below(std::size(kProblems))];
  } while (problem->held != unseen.templates);
  Sum sum = problem_sum(dice, held, problem->operation);
  if (sum.operation == Operation::multiply && sum.a > 9) std::swap(sum.a, sum.b);
  item.sums = {sum};
  const bool woman = dice.chance(0.5);
  const auto somebody = [&](bool she) {
    if (unseen.none() && dice.chance(0.4)) return made_up_name(dice, she);
    return (she ? words.women : words.men).pick(dice, unseen.entities);
  };
  const std::string name = somebody(woman);
  std::string other = name;
  while (other == name) other = somebody(dice.chance(0.5));
  std::string things = dice.pick(words.themes).counted.pick(dice, unseen.entities).many;
  if (unseen.none() && dice.chance(0.5)) things = coined_noun(dice) + "s";
  const std::string he = woman ? "she" : "he";
  item.text = filled(problem->text, {{"A", name},
                                     {"B", other},
                                     {"c", things},
                                     {"a", std::to_string(sum.a)},
                                     {"b", std::to_string(sum.b)},
                                     {"he", he},
                                     {"He", capitalised(he)},
                                     {"his", woman ? "her" : "his"},
                                     {"him", woman ? "her" : "him"}});
  explain_sums(item);
  return item;
}

}  // namespace triax::world
