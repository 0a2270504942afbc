/* Names that the gateway gives to sandboxes without one: two words, as "quiet-otter". */
#ifndef GATEWAY_NAMES_H
#define GATEWAY_NAMES_H

enum {
    NAMES_GENERATED_MAX = 19, /* characters (behaviour reference 1.5) */
    NAMES_ATTEMPTS = 16,      /* tries until a free one is found; see record_insert_sandbox */
};

/* A random name into `buffer` of NAMES_GENERATED_MAX + 1 bytes. `attempt` counts from 0: from the
 * fourth on the name ends in random digits too, so that a crowded workspace finds one. */
void names_generate(unsigned attempt, char *buffer);

/* How many different names there are without digits. */
unsigned names_count(void);
/* The name of a number below names_count(); for tests. */
void names_at(unsigned number, char *buffer);

#endif
