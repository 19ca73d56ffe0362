// The plot grammars: how they open, and what happens how often in them.
#include "triax/world/plot.h"

namespace triax::world {
namespace {

std::vector<Plot> make_plots() {
  return {
      {"errand",
       false,
       {"There was much to carry that day.", "Everybody had an errand to do.",
        "The list of errands was long."},
       {4, 3, 1.5, 1, 1, 2, 2, 0.3, 0.3}},
      {"lost and found",
       false,
       {"Something had been lost, and everybody was looking for it.", "They searched high and low.",
        "Things had a way of getting lost here."},
       {4, 3, 2.5, 0.8, 1.5, 1, 4, 0.4, 0.3}},
      {"gifts",
       false,
       {"It was a day for giving presents.", "Everybody wanted to be kind that day.",
        "They had promised to share."},
       {3, 2, 0.7, 0.6, 1, 5, 2, 0.3, 0.2}},
      {"market",
       false,
       {"There was a lot of buying and selling.", "Everybody was counting and collecting.",
        "They all wanted to have the most."},
       {2, 1, 0.5, 0.3, 0.5, 1, 0.7, 0.3, 0.2}},
      {"tidying up",
       false,
       {"Everything had to be put away before evening.", "It was time to tidy up.",
        "The place was a terrible mess."},
       {2.5, 3, 1, 5, 2, 0.7, 2.5, 0.3, 0.2}},
      {"workshop",
       false,
       {"There was paint everywhere.", "They had decided to give everything a new colour.",
        "The smell of paint hung in the air."},
       {2.5, 3, 1.2, 0.6, 1, 1.5, 2.5, 0.3, 0.2}},
      {"journey",
       false,
       {"Nobody wanted to stay in one place.", "There was much coming and going.",
        "They were all on their feet that day."},
       {6, 2, 1.2, 0.6, 0.8, 1.2, 1.5, 0.4, 0.8}},
      {"quarrel",
       false,
       {"There was a quarrel in the air.", "They could not agree about anything.",
        "Everybody had something to say."},
       {3, 2, 1, 0.6, 1, 2, 1.5, 1.5, 0.6}},
      {"hiding",
       false,
       {"They were playing a game of hiding things.", "Somebody was always hiding something.",
        "It was a game: hide it, and let the others look."},
       {4, 3, 3, 3, 2, 0.8, 2, 0.3, 0.3}},
      {"feast",
       false,
       {"There was to be a feast, and nothing was ready.", "They were getting ready for a party.",
        "Guests were coming, and all hands were needed."},
       {3, 3, 1.5, 2, 1.5, 2, 2, 0.5, 0.3}},
      {"relay",
       true,
       {"They were passing things on, from hand to hand.", "It was a kind of race, with a prize."},
       {4, 2, 0.7, 0.4, 0.8, 4.5, 1.5, 0.4, 0.2}},
      {"moving house",
       true,
       {"Today was the day of the big move.", "Everything had to go somewhere else."},
       {4.5, 3.5, 2.5, 2.5, 1, 1, 2.5, 0.3, 0.2}},
  };
}

}  // namespace

const std::vector<Plot>& plots() {
  static const std::vector<Plot> all = make_plots();
  return all;
}

}  // namespace triax::world
