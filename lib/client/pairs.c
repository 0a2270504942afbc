#include "client/pairs.h"

#include <string.h>

#include "base/text.h"
#include "client/failure.h"

enum { SHOWN_MAX = 256 };

static bool is_identifier(const char *text)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char inside[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return text[0] != '\0' && strchr(letters, text[0]) != NULL &&
           strspn(text, inside) == strlen(text);
}

static bool split(const char *given, const char *option, enum pair_kind kind, struct arena *arena,
                  struct pair *pair, struct error *error)
{
    char shown[SHOWN_MAX];
    const char *equals = strchr(given, '=');
    text_escape(given, shown, sizeof(shown));
    if (equals == NULL || equals == given)
        return failure_usage(error, "option '--%s' needs KEY=VALUE, not '%s'", option, shown);
    pair->key = arena_memdup(arena, given, (size_t)(equals - given) + 1);
    pair->key[equals - given] = '\0';
    pair->value = (char *)equals + 1;
    text_escape(pair->key, shown, sizeof(shown));
    if (kind == PAIR_ENVIRONMENT && !is_identifier(pair->key)) {
        failure_usage(error, "option '--%s': '%s' cannot be a variable's name", option, shown);
        failure_hint(error, "it takes letters, digits and underscores, and no digit in front");
        return false;
    }
    if (!text_is_utf8(given, strlen(given)))
        return failure_usage(error, "option '--%s': the value of '%s' is not UTF-8 text", option,
                             shown);
    return true;
}

bool pairs_parse(const struct option_list *list, const char *option, enum pair_kind kind,
                 struct arena *arena, struct pair **ret_pairs, size_t *ret_count,
                 struct error *error)
{
    struct pair *pairs = arena_array_of(arena, struct pair, list->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct pair pair;
        if (!split(list->values[i], option, kind, arena, &pair, error))
            return false;
        size_t at = 0;
        while (at < count && strcmp(pairs[at].key, pair.key) != 0)
            at++;
        pairs[at] = pair;
        count += at == count;
    }
    *ret_pairs = pairs;
    *ret_count = count;
    return true;
}

bool pairs_check_words(char *const *words, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (text_is_utf8(words[i], strlen(words[i])))
            continue;
        char shown[SHOWN_MAX];
        text_escape(words[i], shown, sizeof(shown));
        return failure_usage(error, "the command's word %zu is not UTF-8 text: '%s'", i + 1, shown);
    }
    return true;
}
