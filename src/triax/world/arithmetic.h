// Sums: bare and in words, with the written method as thinking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "triax/world/dice.h"
#include "triax/world/document.h"
#include "triax/world/lexicon.h"

namespace triax::world {

enum class Operation : std::uint8_t { add, subtract, multiply };

struct Sum {
  Operation operation = Operation::add;
  int a = 0, b = 0;

  int result() const;
  std::string expression() const;  // "478 + 256"
};

// Is this pair of operands kept out of training? By a hash of the unordered pair, of those with an
// operand of 20 or more; one in 25. The same for every operation and in word problems.
bool held_pair(int a, int b);

// Addition and subtraction up to 3 digits, multiplication of one digit by up to two. With `held`
// the operands are a held-out pair, else never one.
Sum draw_sum(Dice& dice, bool held);

struct SumItem {
  std::vector<Sum> sums;  // one after the other: the result of one is an operand of the next
  std::string text;       // the question
  std::string answer;     // "734."
  std::string truth;      // "734"
  std::string think_low, think_high, think_max;
  bool in_words = false;

  const std::string& thinking(Effort effort) const;
};

SumItem make_sum(Dice& dice, bool held, const Unseen& unseen);      // "What is 478 + 256?"
SumItem make_problem(Dice& dice, bool held, const Unseen& unseen);  // a word problem

// The written method at three lengths: the digits from the right; column by column; the same in
// words, with a check.
std::string digits_from_the_right(int n);
std::string column_method(const Sum& sum);
std::string column_method_in_words(const Sum& sum);

}  // namespace triax::world
