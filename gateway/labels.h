/* Labels and label selectors (behaviour reference 1.5). ASCII only. */
#ifndef GATEWAY_LABELS_H
#define GATEWAY_LABELS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "gateway/store/store.h"

enum {
    LABELS_SELECTOR_MAX = 64, /* pairs of one selector */
    LABELS_PREFIX_MAX = 253,
    LABELS_NAME_MAX = 63,
    LABELS_VALUE_MAX = 63,
};

/* "name" or "dns.prefix/name". False, with the rule that was broken in `*ret_rule` (a constant). */
bool labels_key_valid(const char *key, const char **ret_rule);
/* Empty, or at most 63 of [A-Za-z0-9._-] with a letter or digit at both ends. */
bool labels_value_valid(const char *value, const char **ret_rule);

/* "a=1, b=2" to pairs that live in the arena; blanks around a pair, a key and a value are dropped.
 * An empty text selects everything: no pairs. INVALID_ARGUMENT with a violation of `label_selector`
 * for each bad pair. */
bool labels_parse_selector(const char *text, struct arena *arena, struct store_label **ret_pairs,
                           size_t *ret_count, struct error *error);

#endif
