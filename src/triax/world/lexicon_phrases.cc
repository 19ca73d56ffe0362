// How things are told. KIND: PHRASE; KIND+ never appears in training. The predicates stand after a
// subject; `go_why`, `say`, `say_reported`, `told_go` and the introductions are whole sentences.
#include "triax/world/lexicon_data.h"

namespace triax::world {

const char* const kPhraseText = R"(
go: went to {p}
go: walked to {p}
go: ran to {p}
go: hurried to {p}
go: strolled to {p}
go: wandered to {p}
go: came to {p}
go: headed for {p}
go: set off for {p}
go: rushed to {p}
go: marched to {p}
go: tiptoed to {p}
go: made {his} way to {p}
go: walked over to {p}
go: stepped over to {p}
go: dashed to {p}
go: crept to {p}
go: skipped to {p}
go: left for {p}
go: moved on to {p}
go: travelled to {p}
go+: trotted to {p}
go+: drifted over to {p}
go+: hopped over to {p}
go+: went straight to {p}

carry: carried {o} to {p}
carry: took {o} to {p}
carry: brought {o} to {p}
carry: walked to {p} with {o}
carry: ran to {p} with {o} in {his} hand
carry: dragged {o} to {p}
carry: went to {p} and took {o} along
carry: hurried to {p} with {o} under {his} arm
carry: moved {o} to {p}
carry+: lugged {o} to {p}
carry+: headed for {p} with {o}
carry+: set off for {p} and carried {o} along

take: picked up {o}
take: took {o}
take: grabbed {o}
take: lifted {o}
take: fetched {o}
take: got hold of {o}
take: snatched {o}
take: reached for {o} and took it
take: gathered up {o}
take: collected {o}
take: pocketed {o}
take+: scooped up {o}
take+: seized {o}
take+: got {o} and held it tight

find: found {o}
find: discovered {o}
find: came across {o}
find: spotted {o} and picked it up
find: stumbled over {o} and took it
find: noticed {o} and grabbed it
find+: spied {o} and took it
find+: uncovered {o}

take_out: took {o} out of {c}
take_out: pulled {o} out of {c}
take_out: got {o} out of {c}
take_out: opened {c} and took out {o}
take_out: fished {o} out of {c}
take_out: removed {o} from {c}
take_out+: drew {o} out of {c}
take_out+: fetched {o} from {c}

drop: put down {o}
drop: put {o} down
drop: left {o} there
drop: dropped {o}
drop: set {o} down
drop: laid {o} on the ground
drop: let go of {o}
drop: left {o} behind
drop: forgot {o} there
drop: placed {o} in a corner
drop+: got rid of {o}
drop+: set {o} aside

put_in: put {o} in {c}
put_in: placed {o} in {c}
put_in: hid {o} in {c}
put_in: packed {o} into {c}
put_in: tucked {o} into {c}
put_in: slipped {o} into {c}
put_in: dropped {o} into {c}
put_in: stuffed {o} into {c}
put_in: locked {o} in {c}
put_in: opened {c} and put {o} inside
put_in+: laid {o} in {c}
put_in+: stowed {o} in {c}

give: gave {o} to {B}
give: handed {o} to {B}
give: passed {o} to {B}
give: gave {B} {o}
give: handed {B} {o}
give: lent {o} to {B}
give: threw {o} to {B}
give: offered {o} to {B}, who took it
give: presented {B} with {o}
give+: tossed {o} to {B}
give+: passed {B} {o}
give+: entrusted {o} to {B}

get: got {o} from {B}
get: took {o} from {B}
get: received {o} from {B}
get: borrowed {o} from {B}
get+: was given {o} by {B}
get+: accepted {o} from {B}

paint: painted {o} {k}
paint: gave {o} a coat of {k} paint
paint: coloured {o} {k}
paint: dipped {o} in {k} paint
paint: brushed {o} with {k} paint
paint+: sprayed {o} {k}
paint+: repainted {o} in {k}

gain: picked {m}
gain: found {m}
gain: bought {m}
gain: collected {m}
gain: won {m}
gain: was given {m}
gain: gathered {m}
gain+: earned {m}
gain+: came upon {m}

lose: lost {n}
lose: gave away {n}
lose: dropped {n}
lose: used {n}
lose: threw away {n}
lose: sold {n}
lose: traded {n}
lose+: misplaced {n}
lose+: wasted {n}

hand: gave {n} to {B}
hand: handed {n} to {B}
hand: gave {B} {n}
hand: passed {n} to {B}
hand+: sent {n} to {B}

start_count: had {n}
start_count: owned {n}
start_count: carried {n} in {his} pockets
start_count: began the day with {n}
start_count+: possessed {n}

go_why: {A} went to {p} because {w}.
go_why: Because {w}, {A} went to {p}.
go_why: {A} ran to {p} because {w}.
go_why: {A} walked to {p} because {w}.
go_why: {A} hurried to {p} because {w}.
go_why+: As {w}, {A} set off for {p}.
go_why+: {A} headed for {p} because {w}.

say: "{s}," said {A}.
say: {A} said, "{s}."
say: "{s}!" cried {A}.
say: "{s}," {A} whispered.
say: {A} sighed. "{s}," {he} said.
say: "{s}," {A} told the others.
say+: "{s}," murmured {A}.
say+: {A} laughed. "{s}!" {he} said.

say_reported: {A} said that {s}.
say_reported: {A} said again and again that {s}.
say_reported: {A} told everybody that {s}.
say_reported: {A} thought for a moment and said that {s}.
say_reported+: {A} announced that {s}.
say_reported+: {A} mentioned that {s}.

told_go: "{A} has gone to {p}," said {B}.
told_go: {B} said that {A} had gone to {p}.
told_go: {B} told everybody that {A} had gone to {p}.
told_go: {B} sent {A} to {p}.
told_go+: "{A} is off to {p}," said {B}.
told_go+: {B} announced that {A} had gone to {p}.

person_at: {A} was {P}.
person_at: {A} was waiting {P}.
person_at: {A} stood {P}.
person_at: {A} had spent the morning {P}.
person_at: {A} was sitting {P}.
person_at: {A} was busy {P}.
person_at+: {A} was resting {P}.
person_at+: {A} could be seen {P}.

thing_at: {O} lay {P}.
thing_at: There was {o} {P}.
thing_at: Somebody had left {o} {P}.
thing_at: {O} was lying {P}.
thing_at: {O} stood {P}.
thing_at+: {O} had been forgotten {P}.
thing_at+: There stood {o} {P}.

thing_in: {O} was in {c}.
thing_in: There was {o} in {c}.
thing_in+: {O} lay in {c}.

person_has: {A} had {o}.
person_has: {A} was holding {o}.
person_has: {A} was carrying {o}.
person_has+: {A} had {o} in {his} hand.

then: Then
then: After that,
then: Later,
then: Soon
then: A little later,
then: Next,
then: At last
then: Suddenly
then: Some time later
meanwhile: Meanwhile
meanwhile: In the meantime
meanwhile: At the same time
meanwhile: Just then
)";

}  // namespace triax::world
