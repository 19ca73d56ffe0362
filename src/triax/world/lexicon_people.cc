// Names, adjectives, what people say, and why they go places. KIND+ never appears in training.
#include "triax/world/lexicon_data.h"

namespace triax::world {

const char* const kPeopleText = R"(
women: Mia, Anna, Lucy, Emma, Clara, Nora, Ella, Rosa, Julia, Sara, Lena, Maria, Eva, Ida, Hanna, Lily, Grace, Alice, Ruth, Helen, Martha, Sofia, Olivia, Nina, Zoe, Kate, Jane, Molly, Vera, Tina, Amy, Ines, Paula, Greta, Frida, Dora, Stella, Mary, Laura, Carmen
women+: Beatrice, Yasmin, Wanda, Odette, Priya, Thea, Jolanda, Philippa, Salome, Xenia
men: Tom, Ben, Max, Paul, Leo, Sam, Jack, Peter, Oscar, Felix, Hugo, Jonas, David, Noah, Adam, Henry, Karl, Emil, Anton, Simon, Victor, Martin, Daniel, Luke, Mark, George, Frank, Otto, Theo, Erik, Omar, Ali, Ivan, Pedro, Finn, Oliver, Walter, Bruno, Alex, Jim
men+: Quentin, Rashid, Casper, Ulrich, Desmond, Yannick, Ludwig, Bartholomew, Nico, Zoltan
colours: red, blue, green, yellow, white, black, brown, orange, pink, purple, grey, golden, violet, beige, scarlet, amber, ivory, olive, bronze, copper, lilac, cream, lemon, rusty, navy, ruddy, snowy, sandy, mint, plum, rosy, sooty
colours+: silver, turquoise, crimson
sizes: small, big, old, new, heavy, pretty, dusty, shiny, broken, strange, tiny, little, wooden, precious, funny, long, round, plain, fine, lovely, cheap, clean, dirty, thin, thick, empty, huge, famous, square, smooth, rough, ugly, light, curious, ancient, modern, crooked, bent, splendid, simple, rare, flat, soft, hard, sharp
sizes+: battered, enormous, peculiar

say: It will rain soon = it would rain soon
say: The soup was too salty = the soup was too salty
say: I am tired = {he} was tired
say: I am hungry = {he} was hungry
say: This is the best day of the year = it was the best day of the year
say: Somebody is watching us = somebody was watching them
say: The road is very long = the road was very long
say: The dog needs a bath = the dog needed a bath
say: I have forgotten my lunch = {he} had forgotten lunch
say: We should all sing a song = they should all sing a song
say: There are too many flies = there were too many flies
say: Tomorrow will be colder = tomorrow would be colder
say: My shoes are wet = {his} shoes were wet
say: The bread smells wonderful = the bread smelled wonderful
say: I can hear music = {he} could hear music
say: It is too early for supper = it was too early for supper
say: The moon looks strange = the moon looked strange
say: I once saw a bear = {he} had once seen a bear
say: The bus never comes on time = the bus never came on time
say: Old things are the best = old things were the best
say: My brother is a sailor = {his} brother was a sailor
say: The clouds look like sheep = the clouds looked like sheep
say: I would like a cup of tea = {he} would like a cup of tea
say: Cats are cleverer than dogs = cats were cleverer than dogs
say: Nobody ever listens = nobody ever listened
say: The stew is burning = the stew was burning
say: Winter is coming early = winter was coming early
say: I do not believe in ghosts = {he} did not believe in ghosts
say: That was a good joke = that had been a good joke
say: The birds are flying south = the birds were flying south
say: I lost a tooth last night = {he} had lost a tooth
say: A letter came from the mayor = a letter had come from the mayor
say: Honey is better than sugar = honey was better than sugar
say: The floor must be swept = the floor had to be swept
say: I dreamed of a whale = {he} had dreamed of a whale
say: The ice is too thin = the ice was too thin
say: There is a spider on the wall = there was a spider on the wall
say: The neighbours are very loud = the neighbours were very loud
say: I can whistle any tune = {he} could whistle any tune
say: The river is rising = the river was rising
say: My feet hurt = {his} feet hurt
say: The king is coming = the king was coming
say: I have seen this before = {he} had seen that before
say: The wind has turned = the wind had turned
say: It smells of apples = it smelled of apples
say: I never eat fish = {he} never ate fish
say: The clock is wrong = the clock was wrong
say: We are all friends here = they were all friends there
say: My uncle built this = {his} uncle had built that
say: There was a thief in the night = there had been a thief in the night
say: I want to go home = {he} wanted to go home
say: The stars are out = the stars were out
say: The door is locked = the door was locked
say: Nobody knows the way = nobody knew the way
say: I am the oldest of all = {he} was the oldest of all
say: The music is lovely = the music was lovely
say: The butter is gone = the butter was gone
say: Tomorrow is a holiday = the next day was a holiday
say: I like it here = {he} liked it there
say: My sister can fly a plane = {his} sister could fly a plane
say: The tea is cold = the tea was cold
say: Snow is good for the fields = snow was good for the fields
say: A fox was here = a fox had been there
say: I cannot sleep at night = {he} could not sleep at night
say+: My grandmother was a pilot = {his} grandmother had been a pilot
say+: The cheese has been stolen = the cheese had been stolen
say+: There will be fireworks tonight = there would be fireworks that night
say+: I have never been so happy = {he} had never been so happy
say+: The teacher is a secret singer = the teacher was a secret singer
say+: The milk has turned sour = the milk had turned sour
say+: Frogs bring good luck = frogs brought good luck
say+: I need a new hat = {he} needed a new hat

why: {he} was thirsty
why: {he} was hungry
why: {he} was tired
why: {he} was cold
why: {he} was bored
why: {he} was curious
why: {he} was afraid of the dark
why: {he} wanted to be alone
why: {he} had heard a noise
why: {he} wanted to rest
why: {he} was looking for a friend
why: it had begun to rain
why: the sun was too hot
why: {he} wanted to see the sunset
why: {he} had forgotten something there
why: somebody was calling
why: {he} wanted to wash {his} hands
why: {he} smelled smoke
why: {he} needed some fresh air
why: {he} was in a hurry
why: {he} wanted to play
why: {he} was late
why: a bee was following {him}
why: {he} wanted to hide
why: there was light in the window
why: {he} had a stomach ache
why: {he} wanted to surprise everybody
why: {he} had made a promise
why: {he} was angry
why: {he} wanted to read in peace
why: {he} had a plan
why: {he} was sad
why: {he} was feeling lucky
why: {he} wanted to dance
why: {he} had lost a bet
why: {he} wanted to draw a picture
why: it was too loud
why: it was getting late
why: there was nothing to do
why: {he} wanted to feed the birds
why: {he} had seen a light
why: {he} hoped for a letter
why: {he} was proud
why: {he} needed a place to think
why: a storm was coming
why: {he} had been told to
why: {he} liked the view
why: {he} was scared of the dog
why: {he} wanted to look at the clouds
why: somebody had knocked
why: {he} wanted to learn a song
why: {his} hands were cold
why: {his} head hurt
why: there was a strange sound
why: {he} had an appointment
why+: {he} had hiccups
why+: {he} wanted to count the stars
why+: {he} was homesick
why+: there was a smell of pancakes
why+: {he} wanted to practise a speech
)";

}  // namespace triax::world
