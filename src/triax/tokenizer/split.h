// From text to pre-token pieces: slicing, then the eight alternatives of the split pattern.
//
// The alternatives, in order; the first that matches at a position wins, each greedy with
// backtracking (U = Lu, Lt, Lm, Lo, M without Han; L = Ll, Lm, Lo, M without Han):
//   1  Han+
//   2  [not CR, LF, letter, number]? U* L+ contraction?
//   3  [not CR, LF, letter, number]? U+ L* contraction?
//   4  number{1,3}
//   5  space? [not white space, letter, number]+ [CR LF]*
//   6  white space* [CR LF]+
//   7  white space+, not followed by a non-space
//   8  white space+
// contraction = 's 't 're 've 'm 'll 'd by simple case folding (U+017F counts as s).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace triax {

// End of the piece that starts at text[at]; at < text.size(). `text` is well-formed UTF-8 and ends
// where the pattern may not look further (end of a slice, or a special token). The pieces of a text
// cover it without gaps; finding all of them takes time linear in its length.
std::size_t next_piece(std::string_view text, std::size_t at);

// Limits of the slicing, in code points.
struct SliceLimits {
  std::size_t part = 400'000;  // the whole text is cut this often
  std::size_t run = 25'000;    // longest run of space or of non-space within a slice
};

// Cuts well-formed text before the pattern sees it: every `part` code points, and each part again
// where a run of space (kCharSliceSpace) or of non-space would pass `run`. No empty slices.
std::vector<std::string_view> slices(std::string_view text, const SliceLimits& limits = {});

}  // namespace triax
