#include "gateway/names.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/uuid.h"

/* At most nine letters each, so that two words and a hyphen fit. */
static const char *const FIRST_WORDS[] = {
    "amber",    "ample",  "azure",  "balmy",  "blithe", "bold",    "brave",   "breezy",  "bright",
    "brisk",    "bronze", "calm",   "candid", "cheery", "chief",   "civil",   "clean",   "clear",
    "clever",   "copper", "coral",  "cosmic", "cozy",   "crisp",   "curious", "dapper",  "daring",
    "deft",     "dewy",   "dusky",  "eager",  "early",  "earnest", "easy",    "emerald", "fabled",
    "fair",     "fleet",  "fluent", "fond",   "frank",  "fresh",   "frosty",  "gentle",  "gilded",
    "glad",     "golden", "grand",  "green",  "happy",  "hardy",   "hazel",   "hearty",  "honest",
    "humble",   "ivory",  "jade",   "jaunty", "jolly",  "jovial",  "keen",    "kind",    "lively",
    "loyal",    "lucid",  "lucky",  "lunar",  "mellow", "merry",   "mighty",  "mild",    "misty",
    "modest",   "neat",   "nimble", "noble",  "olive",  "opal",    "patient", "pearly",  "placid",
    "plucky",   "polite", "proud",  "quick",  "quiet",  "ready",   "robust",  "rosy",    "royal",
    "ruby",     "rustic", "sage",   "serene", "sharp",  "silver",  "smooth",  "snowy",   "sober",
    "solar",    "spry",   "stable", "steady", "stout",  "sturdy",  "sunny",   "swift",   "tidy",
    "tranquil", "trusty", "upbeat", "velvet", "vivid",  "warm",    "wise",    "witty",   "woven",
    "young",    "zesty",
};
static const char *const SECOND_WORDS[] = {
    "acorn",   "alder",   "anchor",  "apple",   "arbor",   "aspen",  "badger",  "bamboo",
    "basil",   "beacon",  "beaver",  "birch",   "bison",   "brook",  "canyon",  "cedar",
    "cherry",  "cliff",   "clover",  "comet",   "cove",    "crane",  "creek",   "cricket",
    "dahlia",  "dawn",    "delta",   "dolphin", "dune",    "eagle",  "elm",     "ember",
    "falcon",  "fern",    "finch",   "fjord",   "forest",  "fox",    "garden",  "gecko",
    "ginger",  "glacier", "glade",   "grove",   "gull",    "harbor", "hare",    "hawk",
    "hazel",   "heron",   "hill",    "holly",   "island",  "ivy",    "jasmine", "juniper",
    "kestrel", "koala",   "lagoon",  "lake",    "lantern", "lark",   "laurel",  "lemur",
    "lilac",   "lily",    "linden",  "lotus",   "lynx",    "magpie", "maple",   "marlin",
    "marsh",   "meadow",  "mesa",    "mint",    "moose",   "moss",   "myrtle",  "oak",
    "oasis",   "orchid",  "osprey",  "otter",   "owl",     "panda",  "peach",   "pebble",
    "pelican", "petrel",  "pine",    "plover",  "pond",    "poppy",  "prairie", "puffin",
    "quail",   "quartz",  "raven",   "reef",    "ridge",   "river",  "robin",   "rowan",
    "saffron", "salmon",  "sequoia", "sparrow", "spruce",  "stork",  "summit",  "swallow",
    "swan",    "tern",    "thistle", "thrush",  "tide",    "trout",  "tulip",   "tundra",
    "valley",  "violet",  "walnut",  "willow",  "wren",    "yew",    "zebra",
};

enum {
    FIRST_COUNT = sizeof(FIRST_WORDS) / sizeof(FIRST_WORDS[0]),
    SECOND_COUNT = sizeof(SECOND_WORDS) / sizeof(SECOND_WORDS[0]),
    ATTEMPTS_WITHOUT_DIGITS = 3,
    DIGITS = 4,
};

unsigned names_count(void)
{
    return FIRST_COUNT * SECOND_COUNT;
}

void names_at(unsigned number, char *buffer)
{
    snprintf(buffer, NAMES_GENERATED_MAX + 1, "%s-%s", FIRST_WORDS[number / SECOND_COUNT],
             SECOND_WORDS[number % SECOND_COUNT]);
}

void names_generate(unsigned attempt, char *buffer)
{
    uint64_t random;
    random_bytes(&random, sizeof(random));
    names_at((unsigned)(random % names_count()), buffer);
    if (attempt < ATTEMPTS_WITHOUT_DIGITS)
        return;
    /* Words that leave no room are cut; a hyphen before the digits would be one too many. */
    size_t length = strlen(buffer);
    if (length > NAMES_GENERATED_MAX - DIGITS - 1)
        length = NAMES_GENERATED_MAX - DIGITS - 1;
    while (length > 0 && buffer[length - 1] == '-')
        length--;
    snprintf(buffer + length, NAMES_GENERATED_MAX + 1 - length, "-%0*u", DIGITS,
             (unsigned)(random >> 32) % 10000);
}
