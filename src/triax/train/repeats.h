// Exercises in repeating: random tokens, and runs of them said again.
#pragma once

#include <cstdint>

#include "triax/tokenizer/tokenizer.h"
#include "triax/train/documents.h"

namespace triax::train {

// `source.documents` documents of at most `source.length` tokens, drawn from the seed. Each begins
// with distinct ordinary tokens of the vocabulary, uniformly drawn, which nobody can foresee and
// nothing is learned of; then come runs of them, as they stood or all from the start, of which
// every token but a run's first is a target. The one way to get it right is to look where the
// present token stood before and to say what followed: whatever text calls for that skill calls for
// many others too, and with tokens that it has seldom seen a model can do nothing else.
DocumentSet make_repeats(const DataSource& source, const Tokenizer& tokenizer, std::uint64_t seed);

}  // namespace triax::train
