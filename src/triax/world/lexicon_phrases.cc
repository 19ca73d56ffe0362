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
go: raced to {p}
go: jogged to {p}
go: sneaked into {p}
go: sprinted to {p}
go: made for {p}
go: returned to {p}
go: slipped over to {p}
go: climbed over to {p}
go: drove to {p}
go: rode to {p}
go: crossed over to {p}
go: went off to {p}
go: turned up in {p}
go: stumbled to {p}
go: paced to {p}
go: danced to {p}
go: strode over to {p}
go: went across to {p}
go: walked straight on to {p}
go: was on {his} way to {p} and got there
go: {v} to {p}
go: {v} over to {p}
go: {v} off to {p}
go: {v} straight to {p}
go: {v} to {p}
go: {v} over to {p}
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
carry: hauled {o} to {p}
carry: pulled {o} to {p}
carry: rushed to {p} with {o}
carry: strolled to {p} with {o}
carry: went off to {p} and had {o} along
carry: left for {p} and took {o} with {him}
carry: bore {o} to {p}
carry: rolled {o} to {p}
carry: walked over to {p}, {o} in {his} arms
carry: came to {p} with {o}
carry: {v} {o} to {p}
carry: {v} to {p} with {o}
carry: {v} off to {p} and {v} {o} along
carry: {v} over to {p} with {o}
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
take: laid hands on {o}
take: took hold of {o}
take: helped {himself} to {o}
take: claimed {o}
take: caught {o}
take: went and got {o}
take: bent down for {o} and took it
take: decided to keep {o}
take: put {o} under {his} arm
take: plucked up {o}
take: got {o} and kept it close
take: picked up {o} and held on to it
take: took {o} and held it up
take+: scooped up {o}
take+: seized {o}
take+: got {o} and held it tight

find: found {o}
find: discovered {o}
find: came across {o}
find: spotted {o} and picked it up
find: stumbled over {o} and took it
find: noticed {o} and grabbed it
find: happened upon {o}
find: saw {o} and took it
find: chanced on {o}
find: dug up {o}
find: hit upon {o}
find: looked around and found {o}
find: caught sight of {o} and picked it up
find: {v} {o} and took it
find: {v} {o} and picked it up
find+: spied {o} and took it
find+: uncovered {o}

take_out: took {o} out of {c}
take_out: pulled {o} out of {c}
take_out: got {o} out of {c}
take_out: opened {c} and took out {o}
take_out: fished {o} out of {c}
take_out: removed {o} from {c}
take_out: lifted {o} out of {c}
take_out: slid {o} out of {c}
take_out: took {o} from {c}
take_out: shook {o} out of {c}
take_out: got {o} from {c}
take_out: emptied {c}, and {o} came out
take_out: pulled {o} from {c}
take_out: {v} {o} out of {c}
take_out: {v} {o} from {c}
take_out: {v} {o} out of {c}
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
drop: rested {o} on the floor
drop: put {o} away
drop: laid {o} down
drop: parted with {o}
drop: leaned {o} against a wall
drop: stood {o} in a corner
drop: did not want {o} any more and left it
drop: gave up {o}
drop: put {o} to one side
drop: threw {o} away
drop: was tired of {o} and put it down
drop: {v} {o} down
drop: {v} {o} away
drop: {v} {o} to one side
drop: {v} {o} onto the ground
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
put_in: threw {o} into {c}
put_in: pushed {o} into {c}
put_in: slid {o} into {c}
put_in: lowered {o} into {c}
put_in: squeezed {o} into {c}
put_in: buried {o} in {c}
put_in: stored {o} in {c}
put_in: sank {o} into {c}
put_in: set {o} in {c}
put_in: {v} {o} into {c}
put_in: {v} {o} in {c}
put_in: {v} {o} inside {c}
put_in: {v} {o} into {c}
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
give: brought {B} {o}
give: let {B} have {o}
give: returned {o} to {B}
give: slid {o} to {B}
give: trusted {B} with {o}
give: left {o} to {B}
give: made a present of {o} to {B}
give: offered {B} {o}, and {B} took it
give: threw {B} {o}
give: delivered {o} to {B}
give: {v} {o} to {B}
give: {v} {o} over to {B}
give: {v} {B} {o}
give: {v} {o} to {B}
give+: tossed {o} to {B}
give+: passed {B} {o}
give+: entrusted {o} to {B}

get: got {o} from {B}
get: took {o} from {B}
get: received {o} from {B}
get: borrowed {o} from {B}
get: was handed {o} by {B}
get: was lent {o} by {B}
get: took over {o} from {B}
get: collected {o} from {B}
get: won {o} from {B}
get: was shown {o} by {B} and got it
get: had {o} handed over by {B}
get: {v} {o} from {B}
get: was {v} {o} by {B}
get: {v} {o} from {B}
get+: was given {o} by {B}
get+: accepted {o} from {B}

paint: painted {o} {k}
paint: gave {o} a coat of {k} paint
paint: coloured {o} {k}
paint: dipped {o} in {k} paint
paint: brushed {o} with {k} paint
paint: dyed {o} {k}
paint: turned {o} {k}
paint: made {o} {k}
paint: stained {o} {k}
paint: covered {o} in {k}
paint: decided that {o} should be {k} and painted it
paint: did {o} over in {k}
paint: rolled {o} in {k} paint
paint: {v} {o} {k}
paint: {v} {o} in {k}
paint: {v} {o} with {k} paint
paint+: sprayed {o} {k}
paint+: repainted {o} in {k}

gain: picked {m}
gain: found {m}
gain: bought {m}
gain: collected {m}
gain: won {m}
gain: was given {m}
gain: gathered {m}
gain: got {m}
gain: received {m}
gain: dug up {m}
gain: took {m}
gain: helped {himself} to {m}
gain: was handed {m}
gain: came home with {m}
gain: ran into {m}
gain: caught {m}
gain: {v} {m}
gain: {v} on {m}
gain+: earned {m}
gain+: came upon {m}

lose: lost {n}
lose: gave away {n}
lose: dropped {n}
lose: used {n}
lose: threw away {n}
lose: sold {n}
lose: traded {n}
lose: ate {n}
lose: broke {n}
lose: burned {n}
lose: gave up {n}
lose: left {n} behind
lose: parted with {n}
lose: spoiled {n}
lose: forgot {n} somewhere
lose: did without {n}
lose: ruined {n}
lose+: misplaced {n}
lose+: wasted {n}

hand: gave {n} to {B}
hand: handed {n} to {B}
hand: gave {B} {n}
hand: passed {n} to {B}
hand: lent {n} to {B}
hand: offered {n} to {B}, who took them
hand: brought {B} {n}
hand: let {B} have {n}
hand: threw {n} to {B}
hand: slid {n} over to {B}
hand: {v} {n} to {B}
hand: {v} {B} {n}
hand+: sent {n} to {B}

start_count: had {n}
start_count: owned {n}
start_count: carried {n} in {his} pockets
start_count: began the day with {n}
start_count: kept {n}
start_count: had brought {n}
start_count: started with {n}
start_count: held {n}
start_count: was the owner of {n}
start_count: had {n} at home
start_count+: possessed {n}

go_why: {A} went to {p} because {w}.
go_why: Because {w}, {A} went to {p}.
go_why: {A} ran to {p} because {w}.
go_why: {A} walked to {p} because {w}.
go_why: {A} hurried to {p} because {w}.
go_why: {A} made for {p} because {w}.
go_why: {A} left for {p} because {w}.
go_why: Since {w}, {A} went to {p}.
go_why: Because {w}, {A} ran to {p}.
go_why: Since {w}, {A} {v} to {p}.
go_why: {A} {v} to {p} because {w}.
go_why: {A} {v} off to {p} because {w}.
go_why: Because {w}, {A} {v} to {p}.
go_why: {A} went over to {p}, since {w}.
go_why+: As {w}, {A} set off for {p}.
go_why+: {A} headed for {p} because {w}.

say: "{s}," said {A}.
say: {A} said, "{s}."
say: "{s}!" cried {A}.
say: "{s}," {A} whispered.
say: {A} sighed. "{s}," {he} said.
say: "{s}," {A} told the others.
say: "{s}," called {A}.
say: {A} called out, "{s}!"
say: "{s}," {A} remarked.
say: {A} smiled. "{s}," {he} said.
say: {A} nodded. "{s}!" {he} cried.
say: "{s}," {v} {A}.
say: {A} {v}. "{s}," {he} said.
say: "{s}!" {v} {A}.
say: "{s}," {A} {v}.
say+: "{s}," murmured {A}.
say+: {A} laughed. "{s}!" {he} said.

say_reported: {A} said that {s}.
say_reported: {A} said again and again that {s}.
say_reported: {A} told everybody that {s}.
say_reported: {A} thought for a moment and said that {s}.
say_reported: {A} remarked that {s}.
say_reported: {A} explained that {s}.
say_reported: {A} whispered that {s}.
say_reported: {A} was sure that {s}.
say_reported: {A} let everybody know that {s}.
say_reported: {A} {v} that {s}.
say_reported: {A} {v} to everybody that {s}.
say_reported: {A} {v} and {v} that {s}.
say_reported+: {A} announced that {s}.
say_reported+: {A} mentioned that {s}.

told_go: "{A} has gone to {p}," said {B}.
told_go: {B} said that {A} had gone to {p}.
told_go: {B} told everybody that {A} had gone to {p}.
told_go: {B} sent {A} to {p}.
told_go: "{A} went to {p}," said {B}.
told_go: {B} explained that {A} had gone to {p}.
told_go: "{A} is in {p} now," {B} whispered.
told_go: {B} {v} that {A} had gone to {p}.
told_go: "{A} has left for {p}," said {B}.
told_go: "{A} has {v} off to {p}," said {B}.
told_go: {B} saw {A} off to {p}.
told_go+: "{A} is off to {p}," said {B}.
told_go+: {B} announced that {A} had gone to {p}.

person_at: {A} was {P}.
person_at: {A} was waiting {P}.
person_at: {A} stood {P}.
person_at: {A} had spent the morning {P}.
person_at: {A} was sitting {P}.
person_at: {A} was busy {P}.
person_at: {A} was standing {P}.
person_at: {A} was working {P}.
person_at: {A} had been {P} since dawn.
person_at: {A} was playing {P}.
person_at: {A} was to be found {P}.
person_at: {A} was hiding {P}.
person_at: {A} sat {P}.
person_at: {A} happened to be {P}.
person_at: {A} was {V} {P}.
person_at: {A} {v} {P}.
person_at: {A} was {V} {P}.
person_at+: {A} was resting {P}.
person_at+: {A} could be seen {P}.

thing_at: {O} lay {P}.
thing_at: There was {o} {P}.
thing_at: Somebody had left {o} {P}.
thing_at: {O} was lying {P}.
thing_at: {O} stood {P}.
thing_at: {O} was waiting {P}.
thing_at: {O} could be found {P}.
thing_at: Somebody had forgotten {o} {P}.
thing_at: There lay {o} {P}.
thing_at: {O} had been left {P}.
thing_at: {O} was {P}.
thing_at: {O} {v} {P}.
thing_at: There {v} {o} {P}.
thing_at: {O} had been {v} {P}.
thing_at+: {O} had been forgotten {P}.
thing_at+: There stood {o} {P}.

thing_in: {O} was in {c}.
thing_in: There was {o} in {c}.
thing_in: {O} was hidden in {c}.
thing_in: Somebody had put {o} in {c}.
thing_in: {O} had been put into {c}.
thing_in: {O} {v} in {c}.
thing_in: {O} was inside {c}.
thing_in: In {c} there was {o}.
thing_in+: {O} lay in {c}.

person_has: {A} had {o}.
person_has: {A} was holding {o}.
person_has: {A} was carrying {o}.
person_has: {A} held {o}.
person_has: {A} had {o} under {his} arm.
person_has: {A} had brought {o}.
person_has: {A} was playing with {o}.
person_has: {A} owned {o}.
person_has: {A} had {o} with {him}.
person_has: {A} was {V} {o}.
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
then: Before long
then: An hour later,
then: In the end
then: All at once
then: Without a word
then: Right after that,
then: As if by chance,
then: Quietly
then: Quickly
then: And then
then: In the afternoon
meanwhile: Meanwhile
meanwhile: In the meantime
meanwhile: At the same time
meanwhile: Just then
meanwhile: Elsewhere
meanwhile: While that happened,
meanwhile: At that moment
meanwhile: All the while
)";

}  // namespace triax::world
