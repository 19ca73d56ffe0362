// The teller: picks phrasings, joins, pronouns and connectives.
#include "triax/world/tell.h"

#include <algorithm>

#include "triax/core/error.h"
#include "triax/world/coin.h"

namespace triax::world {
namespace {

class Teller {
 public:
  Teller(Dice& dice, const Happening& happening, const Unseen& unseen)
      : dice_(dice),
        cast_(happening.cast),
        plot_(*happening.plot),
        events_(happening.events),
        unseen_(unseen),
        state_(happening.cast),
        mentioned_(happening.cast.things.size(), false) {}

  Told run() {
    if (dice_.chance(0.7)) aside(dice_.pick(cast_.theme->openings));
    if (dice_.chance(0.45)) aside(dice_.pick(plot_.openings));
    while (next_ < events_.size()) {
      tell_next();
      if (next_ < events_.size() && dice_.chance(0.07)) aside(dice_.pick(cast_.theme->remarks));
    }
    if (dice_.chance(0.25)) aside(dice_.pick(cast_.theme->closings));
    return std::move(told_);
  }

 private:
  using Values = std::vector<std::pair<std::string_view, std::string>>;

  const Person& person(int i) const { return cast_.people[static_cast<std::size_t>(i)]; }
  const Place& place(int i) const { return cast_.places[static_cast<std::size_t>(i)]; }
  const Event& event() const { return events_[next_]; }

  // The event is told: it has happened.
  void done() { state_.apply(events_[next_++]); }

  void aside(const std::string& text) {
    told_.sentences.push_back({text, next_});
    subject_ = -1;
    objects_.clear();
  }

  void sentence(std::string text) {
    told_.sentences.push_back({capitalised(std::move(text)), next_});
  }

  std::string phrase(const Words& words) {
    if (unseen_.templates && !words.held.empty() && dice_.chance(0.5)) {
      ++told_.unseen_phrases;
      return dice_.pick(words.held);
    }
    // Words of training alone: an item that goes beyond training is told in words that there are.
    const bool coins = unseen_.none();
    for (;;) {
      const std::string text = dice_.pick(words.train);
      if (coins || !leaves_verb(text)) return with_verb(text);
    }
  }

  static constexpr std::pair<const char*, const char*> kVerbs[] = {{"{v}", "ed"}, {"{V}", "ing"}};

  static bool leaves_verb(const std::string& text) {
    return std::any_of(std::begin(kVerbs), std::end(kVerbs), [&](const auto& verb) {
      return text.find(verb.first) != std::string::npos;
    });
  }

  // A verb where the phrase leaves it open.
  std::string with_verb(std::string text) {
    for (const auto& [mark, ending] : kVerbs) {
      for (std::size_t at; (at = text.find(mark)) != std::string::npos;) {
        text.replace(at, 3, coined_verb(dice_) + ending);
        ++told_.coined_verbs;
      }
    }
    return text;
  }

  // "a red key" when it is new, "the key" later.
  std::string thing(int index) {
    const auto at = static_cast<std::size_t>(index);
    const Thing& thing = cast_.things[at];
    const int colour = state_.colour(index);
    if (!mentioned_[at]) {
      mentioned_[at] = true;
      std::string words = thing.noun;
      if (first_colour_ >= 0) {
        words = cast_.colours[static_cast<std::size_t>(first_colour_)] + " " + words;
      } else if (!thing.adjective.empty()) {
        words = thing.adjective + " " + words;
      }
      return with_article(words);
    }
    if (colour >= 0 && dice_.chance(0.1)) {
      return "the " + cast_.colours[static_cast<std::size_t>(colour)] + " " + thing.noun;
    }
    return "the " + thing.noun;
  }

  // As thing(), or "it" where the thing is the only one that was spoken of just before.
  std::string thing_or_it(int index) {
    if (objects_.size() == 1 && objects_[0] == index && dice_.chance(0.6)) return "it";
    return thing(index);
  }

  std::string counted(const Event& e, const char* more) const {
    const Counted& what = cast_.counted[static_cast<std::size_t>(e.counted)];
    return number_word(e.number) + " " + more + (e.number == 1 ? what.one : what.many);
  }

  void tell_next() {
    switch (event().what) {
      case What::person_at:
        tell_people();
        break;
      case What::thing_at:
        if (found_now()) {
          tell_action();
        } else {
          tell_thing();
        }
        break;
      case What::thing_in: {
        const Event e = event();
        first_colour_ = e.colour;
        const std::string container = thing(e.container);
        const std::string what = thing(e.thing);
        first_colour_ = -1;
        done();
        sentence(filled(phrase(Phrases::get().thing_in),
                        {{"O", capitalised(what)}, {"o", what}, {"c", container}}));
        subject_ = -1;
        objects_.clear();
        break;
      }
      case What::say:
        tell_saying();
        break;
      case What::go:
        if (event().reason >= 0) {
          tell_reason();
        } else if (dice_.chance(0.06) && tell_by_another()) {
          break;
        } else {
          tell_action();
        }
        break;
      default:
        tell_action();
    }
  }

  // Several people who are first seen in the same place share a sentence.
  void tell_people() {
    const int where = event().place;
    std::vector<std::string> names;
    const int first = event().actor;
    while (next_ < events_.size() && event().what == What::person_at && event().place == where) {
      names.push_back(person(event().actor).name);
      done();
    }
    if (names.size() == 1) {
      sentence(
          filled(phrase(Phrases::get().person_at), {{"A", names[0]}, {"P", place(where).where()}}));
      spoken_of(first, {});
    } else {
      std::string list = names[0];
      for (std::size_t i = 1; i < names.size(); ++i) {
        list += (i + 1 == names.size() ? " and " : ", ") + names[i];
      }
      sentence(list + " were " + place(where).where() + ".");
      subject_ = -1;
      objects_.clear();
    }
  }

  void tell_thing() {
    const Event e = event();
    first_colour_ = e.colour;
    const std::string what = thing(e.thing);
    first_colour_ = -1;
    done();
    sentence(filled(phrase(Phrases::get().thing_at),
                    {{"O", capitalised(what)}, {"o", what}, {"P", place(e.place).where()}}));
    subject_ = -1;
    objects_ = {e.thing};
  }

  // The thing is introduced by being found.
  bool found_now() {
    if (next_ + 1 >= events_.size()) return false;
    const Event& then = events_[next_ + 1];
    return then.what == What::take && then.thing == event().thing && dice_.chance(0.75);
  }

  void tell_saying() {
    const Event e = event();
    const Saying& saying = cast_.sayings[static_cast<std::size_t>(e.saying)];
    const bool direct = dice_.chance(0.6);
    const Person& who = person(e.actor);
    const std::string said =
        direct
            ? saying.direct
            : filled(saying.reported, {{"he", who.he()}, {"his", who.his()}, {"him", who.him()}});
    const Phrases& phrases = Phrases::get();
    done();
    sentence(filled(phrase(direct ? phrases.say : phrases.say_reported),
                    {{"A", who.name}, {"s", said}, {"he", who.he()}}));
    spoken_of(e.actor, {});
  }

  void tell_reason() {
    const Event e = event();
    const Person& who = person(e.actor);
    const std::string why = filled(cast_.reasons[static_cast<std::size_t>(e.reason)],
                                   {{"he", who.he()}, {"his", who.his()}, {"him", who.him()}});
    done();
    sentence(filled(phrase(Phrases::get().go_why),
                    {{"A", who.name}, {"p", "the " + place(e.place).noun}, {"w", why}}));
    spoken_of(e.actor, {});
  }

  // "Tom has gone to the barn," said Mia.
  bool tell_by_another() {
    const Event e = event();
    std::vector<int> others;
    for (int i = 0; i < static_cast<int>(cast_.people.size()); ++i) {
      if (i != e.actor && state_.known_person(i)) others.push_back(i);
    }
    if (others.empty()) return false;
    const int by = dice_.pick(others);
    done();
    sentence(filled(phrase(Phrases::get().told_go), {{"A", person(e.actor).name},
                                                     {"B", person(by).name},
                                                     {"p", "the " + place(e.place).noun}}));
    subject_ = -1;
    objects_.clear();
    return true;
  }

  void spoken_of(int subject, std::vector<int> people) {
    subject_ = subject;
    others_ = std::move(people);
    objects_.clear();
  }

  // "she" where the sentence before had the same subject and nobody else whom it could mean.
  std::string subject(int actor) {
    const bool other = std::any_of(others_.begin(), others_.end(),
                                   [&](int i) { return person(i).woman == person(actor).woman; });
    if (subject_ == actor && !other && dice_.chance(0.55)) return person(actor).he();
    return person(actor).name;
  }

  std::string connective(int actor) {
    if (told_.sentences.empty()) return "";
    const Phrases& phrases = Phrases::get();
    if (subject_ >= 0 && subject_ != actor && dice_.chance(0.1)) {
      return dice_.pick(phrases.meanwhile) + " ";
    }
    if (dice_.chance(0.16)) return dice_.pick(phrases.then) + " ";
    return "";
  }

  void tell_action() {
    const Event first = event().what == What::thing_at ? events_[next_ + 1] : event();
    if (first.what == What::give && dice_.chance(0.3)) {
      tell_getting(first);
      return;
    }
    const std::string link = connective(first.actor);
    std::string text = link + subject(first.actor) + " ";
    std::vector<int> people, objects;
    if (subject_ != first.actor) objects_.clear();
    text += predicate(people, objects);
    if (joins(first)) {
      objects_ = objects;
      text += " and " + predicate(people, objects);
    }
    sentence(text + ".");
    subject_ = first.actor;
    others_ = people;
    std::sort(objects.begin(), objects.end());
    objects.erase(std::unique(objects.begin(), objects.end()), objects.end());
    objects_ = objects;
  }

  void tell_getting(const Event& e) {
    const std::string what = thing(e.thing);
    const std::string link = connective(e.other);
    const Person& who = person(e.other);
    done();
    sentence(link + filled(who.name + " " + phrase(Phrases::get().obtain) + ".",
                           {{"o", what}, {"B", person(e.actor).name}}));
    subject_ = e.other;
    others_ = {e.actor};
    objects_ = {e.thing};
  }

  // May the next event go into the same sentence?
  bool joins(const Event& before) {
    if (next_ >= events_.size() || !dice_.chance(0.35)) return false;
    const Event& e = event();
    if (e.what == What::thing_at) {
      return next_ + 1 < events_.size() && events_[next_ + 1].what == What::take &&
             events_[next_ + 1].actor == before.actor && events_[next_ + 1].thing == e.thing;
    }
    if (e.actor != before.actor || e.reason >= 0) return false;
    switch (e.what) {
      case What::go:
        return before.what != What::go;
      case What::take:
      case What::take_out:
      case What::drop:
      case What::put_in:
      case What::give:
      case What::paint:
      case What::gain:
      case What::lose:
      case What::hand:
        return true;
      default:
        return false;
    }
  }

  // What the subject does, with its event; people and things that it names are appended.
  std::string predicate(std::vector<int>& people, std::vector<int>& objects) {
    const Phrases& p = Phrases::get();
    if (event().what == What::thing_at) return finding(objects);
    const Event e = event();
    const Person& who = person(e.actor);
    Values values = {
        {"his", who.his()}, {"him", who.him()}, {"he", who.he()}, {"himself", who.him() + "self"}};
    first_colour_ = e.what == What::person_has ? e.colour : -1;
    if (e.what == What::go) return going(e, objects);
    if (e.thing >= 0) {
      values.emplace_back("o", e.what == What::person_has ? thing(e.thing) : thing_or_it(e.thing));
      objects.push_back(e.thing);
    }
    first_colour_ = -1;
    if (e.container >= 0) {
      values.emplace_back("c", thing(e.container));
      objects.push_back(e.container);
    }
    if (e.other >= 0) {
      values.emplace_back("B", person(e.other).name);
      people.push_back(e.other);
    }
    if (e.counted >= 0) {
      values.emplace_back("n", counted(e, ""));
      values.emplace_back("m", counted(e, "more "));
    }
    if (e.colour >= 0) values.emplace_back("k", cast_.colours[static_cast<std::size_t>(e.colour)]);
    done();
    if (e.what == What::person_has) return with_object(owning(phrase(p.person_has)), values);
    return with_object(phrase(words_of(e.what)), values);
  }

  static const Words& words_of(What what) {
    const Phrases& p = Phrases::get();
    switch (what) {
      case What::take:
        return p.take;
      case What::take_out:
        return p.take_out;
      case What::drop:
        return p.drop;
      case What::put_in:
        return p.put_in;
      case What::give:
        return p.give;
      case What::paint:
        return p.paint;
      case What::gain:
        return p.gain;
      case What::lose:
        return p.lose;
      case What::hand:
        return p.hand;
      default:
        return p.start_count;
    }
  }

  // "gave Tom it" is no English: such phrasings turn round.
  static std::string with_object(std::string phrase, const Values& values) {
    const auto object = std::find_if(values.begin(), values.end(),
                                     [](const auto& value) { return value.first == "o"; });
    if (object != values.end() && object->second == "it") {
      const std::size_t at = phrase.find("{B} {o}");
      if (at != std::string::npos) phrase.replace(at, 7, "{o} to {B}");
      const std::size_t with = phrase.find("presented {B} with {o}");
      if (with != std::string::npos) return filled("gave {o} to {B}", values);
      for (const char* particle : {" up {o}", " down {o}"}) {
        const std::size_t found = phrase.find(particle);
        if (found == std::string::npos) continue;
        const std::string word = std::string(particle).substr(1, std::string(particle).size() - 5);
        phrase.replace(found, std::string(particle).size(), " {o} " + word);
      }
    }
    return filled(phrase, values);
  }

  // The introductions are sentences with {A}; here only what follows the subject is wanted.
  static std::string owning(const std::string& sentence) {
    std::string text = sentence.substr(4);
    if (!text.empty() && text.back() == '.') text.pop_back();
    return text;
  }

  std::string finding(std::vector<int>& objects) {
    const Event lies = event();
    first_colour_ = lies.colour;
    const std::string what = thing(lies.thing);
    first_colour_ = -1;
    done();
    done();
    objects.push_back(lies.thing);
    std::string text = filled(phrase(Phrases::get().find), {{"o", what}});
    if (text.find(" and ") == std::string::npos && dice_.chance(0.5)) {
      text += " " + place(lies.place).where();
    }
    return text;
  }

  std::string going(const Event& e, std::vector<int>& objects) {
    const Phrases& p = Phrases::get();
    const Person& who = person(e.actor);
    Values values = {{"p", "the " + place(e.place).noun}, {"his", who.his()}, {"him", who.him()}};
    const std::vector<int> held = state_.held_by(e.actor);
    if (!held.empty() && dice_.chance(0.45)) {
      const int what = dice_.pick(held);
      values.emplace_back("o", thing_or_it(what));
      objects.push_back(what);
      done();
      return filled(phrase(p.carry), values);
    }
    done();
    return filled(phrase(p.go), values);
  }

  Dice& dice_;
  const Cast& cast_;
  const Plot& plot_;
  const std::vector<Event>& events_;
  const Unseen& unseen_;
  State state_;  // before the event that is told next
  std::vector<bool> mentioned_;
  std::size_t next_ = 0;
  Told told_;
  int first_colour_ = -1;     // of the thing that is being introduced
  int subject_ = -1;          // of the sentence before
  std::vector<int> others_;   // people it named otherwise
  std::vector<int> objects_;  // things it named
};

}  // namespace

std::string Told::text() const {
  std::string out;
  for (const Sentence& sentence : sentences) {
    if (!out.empty()) out += ' ';
    out += sentence.text;
  }
  return out;
}

Told tell(Dice& dice, const Happening& happening, const Unseen& unseen) {
  return Teller(dice, happening, unseen).run();
}

}  // namespace triax::world
