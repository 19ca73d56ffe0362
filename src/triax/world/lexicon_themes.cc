// The themes. A line is KIND: WORDS; KIND+ is the part that training never sees. Words are
// separated by commas. Places are PREPOSITION:NOUN, counted things ONE/MANY.
#include "triax/world/lexicon_data.h"

namespace triax::world {

const char* const kThemeText = R"(
theme: house
places: in:kitchen, in:hall, in:attic, in:cellar, in:bedroom, in:bathroom, on:balcony, in:garden, in:pantry, in:study, on:porch, in:nursery
places+: in:laundry, in:dining room, on:terrace
things: key, lamp, candle, pillow, clock, mirror, spoon, teapot, kettle, broom, blanket, vase, cup, plate, book, pen, letter, ring, hairbrush, slipper, hammer, towel, photograph, radio
things+: thimble, saucer, ladle, cushion, corkscrew
containers: box, basket, drawer, chest, suitcase, jar, bag, biscuit tin
containers+: hamper, sewing kit
counted: egg/eggs, apple/apples, cookie/cookies, nail/nails, sock/socks
counted+: napkin/napkins, button/buttons
opening: It was a quiet morning in the old house.
opening: Rain was falling on the roof all day.
opening: The house was full of people that afternoon.
opening: Nobody could find anything in the house that day.
opening: On Sunday the whole family was at home.
opening: The old house creaked in the wind.
remark: The stairs creaked.
remark: A door closed somewhere above.
remark: The clock struck three.
remark: The cat slept through it all.
remark: Somebody was singing in the next room.
remark: It smelled of fresh bread.
remark: The wind rattled the windows.
closing: In the evening everybody sat down to soup.
closing: Then the lights went out, one after another.
closing: And so the day in the old house came to an end.

theme: farm
places: in:barn, in:stable, in:field, in:orchard, by:well, at:gate, in:meadow, in:henhouse, on:hill, by:pond, in:shed, in:farmhouse
places+: in:dairy, in:vineyard, by:haystack
things: rope, bucket, saddle, shovel, rake, lantern, hat, whistle, horseshoe, bell, ladder, axe, glove, boot, scarf, brush, coat, apron, fork, map, saw, stool
things+: sickle, harness, trowel, pitchfork
containers: crate, sack, basket, barrel, cart, trunk
containers+: wheelbarrow, hutch
counted: egg/eggs, apple/apples, pear/pears, carrot/carrots, potato/potatoes, pumpkin/pumpkins
counted+: turnip/turnips, melon/melons
opening: The rooster crowed and the farm woke up.
opening: It was harvest time, and everybody was busy.
opening: A thick fog lay over the farm.
opening: The cows were already in the meadow.
opening: It was the hottest day of the summer.
remark: A cow mooed.
remark: The dog chased a butterfly.
remark: The hens scattered in all directions.
remark: Clouds were gathering in the west.
remark: A tractor rumbled along the road.
remark: The geese made a terrible noise.
closing: At sunset the work was done.
closing: That night the farm was quiet again.
closing: The animals went to sleep, and so did the people.

theme: harbour
places: on:pier, in:lighthouse, on:beach, in:boathouse, at:quay, on:ship, in:harbour office, on:island, in:cave, in:tavern, on:bridge, in:warehouse
places+: on:sandbank, in:shipyard, on:ferry
things: sail, anchor, flag, compass, telescope, oar, painting, fishing rod, raincoat, pearl, whistle, knife, chart, flute, banjo, lifebelt, spyglass, paddle, hook, rope, pipe, lantern
things+: rudder, sextant, cork, buoy
containers: chest, barrel, hatbox, crate, rowing boat, bucket
containers+: sea bag, keg
counted: fish/fish, shell/shells, crab/crabs, coin/coins, lemon/lemons
counted+: mussel/mussels, pebble/pebbles
opening: The tide was low, and the harbour lay still.
opening: A strange ship had come in during the night.
opening: The gulls were screaming over the harbour.
opening: The fishermen came home early that day.
opening: A storm was on its way.
remark: A gull stole a piece of bread.
remark: The waves slapped against the stones.
remark: A horn sounded far out at sea.
remark: The wind smelled of salt.
remark: The lighthouse blinked twice.
remark: Somebody laughed on the other side of the water.
closing: The lighthouse was lit, and the boats came home.
closing: By evening the sea was as smooth as glass.
closing: Then the tide came in and washed all the footprints away.

theme: school
places: in:classroom, in:library, in:gym, in:schoolyard, in:canteen, in:music room, in:corridor, on:stage, in:workshop, in:cloakroom, at:bus stop, in:staff room
places+: in:laboratory, in:art room, on:playing field
things: paintbrush, ruler, eraser, notebook, stapler, globe, drum, violin, football, kite, trophy, puppet, mask, magnet, crayon, dictionary, whistle, calculator, poster, scarf, microscope, trumpet
things+: sharpener, tambourine, sponge, protractor
containers: satchel, locker, box, backpack, drawer, cardboard tube
containers+: lunchbox, folder
counted: marble/marbles, sticker/stickers, cookie/cookies, pencil/pencils, stamp/stamps
counted+: badge/badges, paper star/paper stars
opening: The bell rang, and the long break began.
opening: It was the last day before the holidays.
opening: The school play was to be that evening.
opening: The teacher was late that morning.
opening: Everybody had brought something to show.
remark: The bell rang again.
remark: Somebody dropped a pile of books.
remark: Two boys were arguing about football.
remark: A pigeon landed on the window sill.
remark: The teacher looked at her watch.
remark: The corridor was full of noise.
closing: Then the last bell rang, and everybody went home.
closing: The teacher wrote one word on the board: well done.
closing: On the way home they were still laughing about it.

theme: castle
places: in:throne room, in:tower, in:dungeon, in:courtyard, in:armoury, on:wall, in:chapel, in:great hall, in:rose garden, in:treasury, at:drawbridge, in:royal kitchen
places+: in:guardroom, in:falconry, in:moat house
things: crown, sword, shield, goblet, scroll, banner, dagger, helmet, necklace, harp, torch, cloak, horn, lamp, ring, bow, arrow, sceptre, bracelet, lute, medal, glove, tiara
things+: gauntlet, tapestry, chalice, amulet
containers: chest, casket, barrel, saddlebag, pouch, wooden box
containers+: coffer, quiver
counted: coin/coins, jewel/jewels, candle/candles, rose/roses, plum/plums
counted+: ruby/rubies, feather/feathers
opening: The king was asleep, and the castle was quiet.
opening: A messenger had arrived at dawn.
opening: There was to be a great feast that night.
opening: The queen had lost something, and everybody was looking for it.
opening: Snow lay on the towers of the castle.
remark: A guard yawned.
remark: The torches flickered.
remark: Trumpets sounded in the distance.
remark: A raven sat on the wall and watched.
remark: The jester told a joke, but nobody laughed.
remark: Footsteps echoed on the stones.
closing: At midnight the feast was over.
closing: The queen smiled and said nothing.
closing: And the castle slept until the morning.

theme: village
places: at:market, in:bakery, in:post office, in:church, in:park, in:mill, at:station, at:inn, in:smithy, on:village green, in:town hall, by:fountain
places+: in:pharmacy, in:cinema, at:fairground
things: umbrella, newspaper, parcel, bicycle bell, camera, loaf, cake, wallet, ticket, cane, watch, hat, doll, trumpet, ball, kite, guitar, toy train, jacket, mug, chessboard, telescope
things+: accordion, postcard, monocle, yo-yo
containers: basket, bag, trolley, box, handbag, suitcase
containers+: tote, carton
counted: apple/apples, bun/buns, flower/flowers, cherry/cherries, balloon/balloons, stamp/stamps
counted+: peach/peaches, pretzel/pretzels
opening: It was market day in the village.
opening: The village was getting ready for the summer fair.
opening: Nobody had expected snow in April.
opening: The train was late again.
opening: Early in the morning the streets were empty.
remark: The church bell rang.
remark: A dog barked at the postman.
remark: The baker waved from his window.
remark: An old man was feeding the pigeons.
remark: It began to drizzle.
remark: A band was practising somewhere.
remark: A cart rolled by.
closing: In the evening the lamps were lit along the street.
closing: People talked about it for weeks.
closing: And then it was time for supper.

theme: forest
places: in:cabin, by:river, in:clearing, in:cave, under:old oak, on:cliff, at:campsite, in:treehouse, by:waterfall, on:path, in:valley, at:spring
places+: in:ravine, on:ridge, at:beaver dam
things: tent, flashlight, magnifier, blanket, axe, compass, canteen, map, rope, pocketknife, feather, acorn, mirror, drum, flute, lantern, nest, bone, stick, boomerang, kettle, bugle
things+: hammock, slingshot, antler, periscope
containers: rucksack, basket, hollow log, pouch, box, sleeping bag
containers+: knapsack, canoe
counted: berry/berries, mushroom/mushrooms, nut/nuts, stone/stones, pine cone/pine cones
counted+: chestnut/chestnuts, fern/ferns
opening: Mist was rising between the trees.
opening: The children had put up their camp near the river.
opening: An owl had been calling all night.
opening: The path through the forest was long and dark.
opening: The first snow had fallen in the forest.
remark: A twig snapped.
remark: A deer looked up and vanished.
remark: An owl hooted.
remark: Sunlight fell through the leaves.
remark: A woodpecker hammered away.
remark: The river murmured over its stones.
closing: They sat by the fire until the stars came out.
closing: The forest kept its secrets.
closing: At dusk they found the way home.
)";

}  // namespace triax::world
