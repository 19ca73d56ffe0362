// The raw lists behind lexicon.h.
#pragma once

namespace triax::world {

extern const char* const kThemeText;
extern const char* const kPeopleText;
extern const char* const kPhraseText;

}  // namespace triax::world
