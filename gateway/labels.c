#include "gateway/labels.h"

#include <string.h>

#include "base/text.h"

static bool is_alphanumeric(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9');
}

static bool is_name_character(char character)
{
    return is_alphanumeric(character) || character == '.' || character == '_' || character == '-';
}

static bool is_word(const char *text, size_t length)
{
    if (length == 0 || !is_alphanumeric(text[0]) || !is_alphanumeric(text[length - 1]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_name_character(text[i]))
            return false;
    return true;
}

/* Labels of lowercase letters, digits and hyphens with dots between, 63 characters each. */
static bool is_dns_subdomain(const char *text, size_t length)
{
    size_t start = 0;
    if (length > LABELS_PREFIX_MAX)
        return false;
    for (size_t i = 0; i <= length; i++) {
        if (i < length && text[i] != '.') {
            bool fits = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9') ||
                        text[i] == '-';
            if (!fits)
                return false;
            continue;
        }
        if (i == start || i - start > LABELS_NAME_MAX || text[start] == '-' || text[i - 1] == '-')
            return false;
        start = i + 1;
    }
    return true;
}

bool labels_key_valid(const char *key, const char **ret_rule)
{
    const char *slash = strchr(key, '/');
    const char *name = slash != NULL ? slash + 1 : key;
    if (slash != NULL && !is_dns_subdomain(key, (size_t)(slash - key))) {
        *ret_rule = "the part before '/' must be a DNS name of at most 253 characters";
        return false;
    }
    if (strlen(name) > LABELS_NAME_MAX || !is_word(name, strlen(name))) {
        *ret_rule = "a key has 1 to 63 of the characters A-Z a-z 0-9 . _ - with a letter or digit "
                    "first and last";
        return false;
    }
    return true;
}

bool labels_value_valid(const char *value, const char **ret_rule)
{
    size_t length = strlen(value);
    if (length == 0 || (length <= LABELS_VALUE_MAX && is_word(value, length)))
        return true;
    *ret_rule = "a value is empty or has 1 to 63 of the characters A-Z a-z 0-9 . _ - with a letter "
                "or digit first and last";
    return false;
}

/* A copy of [start, end) without blanks around it. */
static char *trimmed(struct arena *arena, const char *start, const char *end)
{
    while (start < end && *start == ' ')
        start++;
    while (end > start && end[-1] == ' ')
        end--;
    char *text = arena_alloc(arena, (size_t)(end - start) + 1);
    memcpy(text, start, (size_t)(end - start));
    return text;
}

static void add_violation(struct error *error, const char *pair, const char *rule)
{
    char shown[128];
    text_escape(pair, shown, sizeof(shown));
    error_add_violation(error, "label_selector", "'%s': %s", shown, rule);
}

static bool parse_pair(const char *start, const char *end, struct arena *arena,
                       struct store_label *ret_pair, struct error *error)
{
    const char *pair = trimmed(arena, start, end);
    const char *equals = strchr(pair, '=');
    const char *rule = "a selector consists of key=value pairs with commas between";
    if (equals == NULL) {
        add_violation(error, pair, rule);
        return false;
    }
    ret_pair->key = trimmed(arena, pair, equals);
    ret_pair->value = trimmed(arena, equals + 1, equals + 1 + strlen(equals + 1));
    if (labels_key_valid(ret_pair->key, &rule) && labels_value_valid(ret_pair->value, &rule))
        return true;
    add_violation(error, pair, rule);
    return false;
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " ")] == '\0';
}

bool labels_parse_selector(const char *text, struct arena *arena, struct store_label **ret_pairs,
                           size_t *ret_count, struct error *error)
{
    *ret_pairs = NULL;
    *ret_count = 0;
    if (is_blank(text))
        return true;
    struct store_label *pairs = arena_array_of(arena, struct store_label, LABELS_SELECTOR_MAX);
    size_t count = 0;
    bool valid = true;
    for (const char *start = text;;) {
        const char *end = strchrnul(start, ',');
        if (count == LABELS_SELECTOR_MAX) {
            error_add_violation(error, "label_selector", "a selector has at most %d pairs",
                                LABELS_SELECTOR_MAX);
            return false;
        }
        if (!parse_pair(start, end, arena, &pairs[count++], error))
            valid = false;
        if (*end == '\0')
            break;
        start = end + 1;
    }
    *ret_pairs = pairs;
    *ret_count = count;
    return valid;
}
