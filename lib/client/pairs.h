/* KEY=VALUE options: --env, --label. */
#ifndef CLIENT_PAIRS_H
#define CLIENT_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "client/options.h"

struct pair {
    char *key;
    char *value;
};

enum pair_kind {
    PAIR_LABEL,      /* the gateway knows what a label may be */
    PAIR_ENVIRONMENT /* the key is an identifier */
};

/* Splits each at its first "="; of one key given twice the last wins. The pairs live in the arena.
 * `option` is for messages. */
bool pairs_parse(const struct option_list *list, const char *option, enum pair_kind kind,
                 struct arena *arena, struct pair **ret_pairs, size_t *ret_count,
                 struct error *error);

/* The words of a command; the wire carries UTF-8 alone. */
bool pairs_check_words(char *const *words, size_t count, struct error *error);

#endif
