// Syllables and pieces of words, put together by lot.
#include "triax/world/coin.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

namespace triax::world {
namespace {

// Everyday pieces of nouns.
constexpr const char* kRoots[] = {
    "acorn",  "alley",   "almond",  "apron",   "arch",   "arm",     "ash",     "attic",   "axe",
    "back",   "bake",    "ball",    "band",    "bank",   "bar",     "bark",    "barn",    "barrel",
    "basin",  "bath",    "beach",   "bead",    "beam",   "bean",    "bear",    "bed",     "bee",
    "bell",   "belt",    "bench",   "berry",   "bird",   "blade",   "block",   "board",   "boat",
    "bolt",   "bone",    "book",    "boot",    "bottle", "bottom",  "bow",     "bowl",    "branch",
    "brass",  "bread",   "brick",   "bridge",  "bronze", "brook",   "brush",   "bush",    "butter",
    "cabin",  "cake",    "camp",    "canal",   "candle", "cap",     "card",    "castle",  "cat",
    "cave",   "cell",    "chain",   "chair",   "chalk",  "cherry",  "chimney", "church",  "city",
    "clay",   "clip",    "cloak",   "clock",   "cloth",  "cloud",   "coach",   "coal",    "coast",
    "coat",   "coffee",  "comb",    "copper",  "corn",   "corner",  "cotton",  "court",   "cow",
    "crane",  "creek",   "crest",   "cross",   "crow",   "cup",     "curtain", "deck",    "deer",
    "desk",   "dinner",  "dish",    "dock",    "dog",    "door",    "dough",   "dove",    "drain",
    "dream",  "drum",    "duck",    "dust",    "eagle",  "ear",     "earth",   "east",    "elm",
    "end",    "engine",  "face",    "farm",    "field",  "fig",     "fire",    "fish",    "flag",
    "flame",  "flat",    "flint",   "floor",   "flour",  "flower",  "fog",     "foot",    "forest",
    "fork",   "fox",     "frame",   "frog",    "front",  "fruit",   "game",    "garden",  "gate",
    "glass",  "glove",   "goat",    "gold",    "goose",  "grain",   "grape",   "grass",   "gravel",
    "green",  "ground",  "guard",   "guest",   "gum",    "hair",    "half",    "hall",    "ham",
    "hand",   "harbour", "hat",     "hawk",    "hay",    "head",    "heart",   "heat",    "hedge",
    "heel",   "herb",    "high",    "hill",    "hip",    "honey",   "hook",    "horn",    "horse",
    "house",  "ice",     "ink",     "iron",    "ivory",  "jam",     "jar",     "jelly",   "joint",
    "kite",   "knee",    "knife",   "knot",    "lace",   "lake",    "lamb",    "lamp",    "land",
    "lane",   "leaf",    "leather", "lemon",   "light",  "lime",    "line",    "linen",   "lion",
    "lip",    "lock",    "log",     "loft",    "loop",   "low",     "lumber",  "lunch",   "magnet",
    "mail",   "maple",   "marble",  "market",  "marsh",  "mast",    "match",   "meal",    "meat",
    "metal",  "milk",    "mill",    "mint",    "mirror", "moon",    "moss",    "moth",    "mouth",
    "mud",    "music",   "mustard", "nail",    "neck",   "needle",  "nest",    "net",     "night",
    "north",  "nose",    "nut",     "oak",     "oat",    "oil",     "olive",   "onion",   "oven",
    "owl",    "paint",   "palm",    "pan",     "paper",  "park",    "paste",   "path",    "pea",
    "pear",   "pen",     "pepper",  "picture", "pie",    "pig",     "pin",     "pine",    "pipe",
    "pit",    "plank",   "plate",   "plum",    "pocket", "pool",    "port",    "post",    "pot",
    "powder", "press",   "print",   "pump",    "purse",  "rabbit",  "rack",    "rail",    "rain",
    "ram",    "ranch",   "reed",    "rest",    "rice",   "ring",    "river",   "road",    "rock",
    "roll",   "roof",    "room",    "root",    "rope",   "rose",    "row",     "rubber",  "rug",
    "saddle", "sail",    "salt",    "sand",    "saw",    "school",  "screw",   "sea",     "seat",
    "seed",   "shade",   "shaft",   "sheep",   "sheet",  "shelf",   "shell",   "ship",    "shirt",
    "shoe",   "shop",    "side",    "sign",    "silk",   "sink",    "skin",    "sky",     "sleep",
    "slate",  "sleeve",  "slip",    "smoke",   "snail",  "snow",    "soap",    "sock",    "soil",
    "soup",   "south",   "spark",   "spice",   "spider", "spoon",   "spring",  "square",  "stable",
    "stack",  "stage",   "stair",   "stamp",   "star",   "station", "steam",   "steel",   "step",
    "stick",  "stone",   "stool",   "store",   "storm",  "stove",   "straw",   "stream",  "street",
    "string", "sugar",   "sun",     "swan",    "table",  "tail",    "tank",    "tar",     "tea",
    "tent",   "thorn",   "thread",  "tile",    "timber", "tin",     "toast",   "toe",     "tooth",
    "top",    "torch",   "tower",   "town",    "toy",    "track",   "train",   "tray",    "tree",
    "trunk",  "tub",     "tube",    "tulip",   "valley", "vase",    "vine",    "wagon",   "walk",
    "wall",   "walnut",  "ward",    "wash",    "water",  "wave",    "wax",     "weather", "wheat",
    "wheel",  "whistle", "willow",  "wind",    "window", "wine",    "wing",    "winter",  "wire",
    "wolf",   "wood",    "wool",    "work",    "worm",   "yard",    "yarn"};

std::string root(Dice& dice) {
  return kRoots[dice.below(std::size(kRoots))];
}

// One of each list. The choices are statements of their own: operands of + may be evaluated in any
// order, and then the same seed would give other words with another compiler.
std::string in_order(Dice& dice, std::initializer_list<const std::vector<std::string>*> lists) {
  std::string out;
  for (const auto* list : lists) out += dice.pick(*list);
  return out;
}

std::string two_roots(Dice& dice, const char* between) {
  const std::string first = root(dice);
  return first + between + root(dice);
}

bool listed_name(const std::string& name) {
  const Lexicon& words = Lexicon::get();
  for (const Words* list : {&words.women, &words.men}) {
    for (const auto* names : {&list->train, &list->held}) {
      if (std::find(names->begin(), names->end(), name) != names->end()) return true;
    }
  }
  return false;
}

}  // namespace

std::string any_letters(Dice& dice) {
  static const std::vector<std::string> kBefore = {
      "b",  "c",  "d",  "f",  "g",  "h",  "j",  "k",  "l",  "m",  "n",  "p",  "qu", "r",  "s",
      "t",  "v",  "w",  "z",  "br", "ch", "cr", "dr", "fl", "gr", "kn", "pl", "sh", "st", "str",
      "th", "tr", "wh", "bl", "cl", "fr", "gl", "pr", "sc", "sk", "sl", "sp", "sw", "",   "y"};
  static const std::vector<std::string> kVowels = {"a",  "e",  "i",  "o",  "u",  "ai", "ea",
                                                   "ee", "ie", "oa", "oo", "ou", "er", "ar"};
  static const std::vector<std::string> kAfter = {"",  "",   "",   "b",  "ck", "d",  "g",
                                                  "l", "m",  "n",  "p",  "r",  "s",  "t",
                                                  "x", "ll", "nd", "ng", "nt", "rt", "st"};
  for (;;) {
    std::string out;
    for (int n = dice.chance(0.15) ? 3 : dice.between(1, 2); n > 0; --n) {
      out += in_order(dice, {&kBefore, &kVowels, &kAfter});
    }
    const bool capital = dice.chance(0.3);
    if (!is_held_word(out)) return capital ? capitalised(out) : out;
  }
}

std::string made_up_name(Dice& dice, bool woman) {
  static const std::vector<std::string> kStarts = {
      "Bra", "Cor", "Dal", "Fen", "Gri", "Hul", "Jor",  "Kel", "Lam", "Mor",
      "Nel", "Pal", "Ril", "Sol", "Tar", "Ul",  "Vel",  "Wil", "Zan", "Tri",
      "Bel", "Cas", "Dro", "Ef",  "Fal", "Gan", "Hesp", "Ish", "Jun", "Kor",
      "Lu",  "Mab", "Nor", "Ost", "Pen", "Ru",  "Sed",  "Tul", "Vas", "Yar"};
  static const std::vector<std::string> kMiddles = {"",   "da", "li", "mo", "ne", "ri",
                                                    "su", "ta", "bo", "ce", "du", "fi",
                                                    "ga", "ho", "ju", "ke", "pa", "lo"};
  static const std::vector<std::string> kHers = {"ka", "na", "lia", "ra",  "mi",  "le",   "sha",
                                                 "vi", "ca", "dia", "sta", "tta", "resa", "bine"};
  static const std::vector<std::string> kHis = {"ko",  "n",   "lus", "rok",  "m",   "dan", "ric",
                                                "vor", "bin", "do",  "gard", "kas", "mon", "ster"};
  for (;;) {
    const std::string name = in_order(dice, {&kStarts, &kMiddles, woman ? &kHers : &kHis});
    if (!listed_name(name)) return name;
  }
}

std::string made_up_thing(Dice& dice) {
  static const std::vector<std::string> kStarts = {
      "bli", "cru", "dor", "fla", "glo", "hup", "jim", "kno", "mub", "pli", "quo", "snu",
      "tru", "wif", "zin", "vor", "bra", "cho", "dri", "fem", "gru", "lin", "pas", "ski"};
  static const std::vector<std::string> kMiddles = {"", "", "ba", "do", "ki", "lu", "ne", "ro"};
  static const std::vector<std::string> kEnds = {"cket", "bit",  "fle",  "gle", "mper", "ddle",
                                                 "nk",   "rgle", "zzle", "pok", "tter", "mbo",
                                                 "lop",  "xen",  "vig",  "sto"};
  return in_order(dice, {&kStarts, &kMiddles, &kEnds});
}

std::string in_company(Dice& dice, std::string question) {
  static const std::vector<std::string> kBefore = {
      "Hello! ",    "Excuse me. ",         "Hm. ",       "And now this. ",
      "Good day! ", "I have a question. ", "Next one. ", "Quick question. "};
  if (dice.chance(0.12) && !question.empty() &&
      (question.back() == '.' || question.back() == '?')) {
    question.insert(question.size() - 1, ", please");
  }
  return dice.chance(0.08) ? dice.pick(kBefore) + question : question;
}

std::string coined_noun(Dice& dice) {
  for (;;) {
    const std::size_t which = dice.below(10);
    const std::string word = which < 3   ? any_letters(dice)
                             : which < 6 ? two_roots(dice, "")
                             : which < 8 ? two_roots(dice, " ")
                             : which < 9 ? root(dice)
                                         : made_up_thing(dice);
    std::string lower = word;
    if (lower[0] >= 'A' && lower[0] <= 'Z') lower[0] = static_cast<char>(lower[0] + 32);
    if (!is_held_word(lower)) return lower;
  }
}

Place coined_place(Dice& dice) {
  static const std::vector<std::string> kPrepositions = {"in", "in", "in", "in", "on",
                                                         "on", "at", "at", "by", "under"};
  return {dice.pick(kPrepositions), coined_noun(dice)};
}

std::string coined_verb(Dice& dice) {
  static const std::vector<std::string> kStarts = {
      "b", "bl", "cr", "d", "dr", "f",  "fl", "g",  "gl", "gr", "h",  "j", "kl", "l",  "m", "n",
      "p", "pl", "pr", "r", "sc", "sk", "sl", "sn", "sp", "st", "sw", "t", "tr", "tw", "v", "w"};
  static const std::vector<std::string> kVowels = {"a", "e", "i", "o", "u", "oo", "ea", "ou"};
  static const std::vector<std::string> kEnds = {"b",  "ck", "ft", "g", "k",   "lk", "lt", "mp",
                                                 "nd", "nk", "nt", "p", "rk",  "rp", "rt", "sh",
                                                 "sk", "sp", "st", "t", "tch", "x",  "zz", "mbl"};
  return in_order(dice, {&kStarts, &kVowels, &kEnds});
}

}  // namespace triax::world
