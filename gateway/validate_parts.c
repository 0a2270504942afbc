#include "gateway/validate_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "gateway/labels.h"
#include "gateway/lifecycle.h"
#include "gateway/validate.h"

enum { ANNOTATION_KEY_MAX = 317, ANNOTATIONS_TOTAL_MAX = 256 * 1024 };

/* Every map<string, string> that is checked here has this shape. */
_Static_assert(sizeof(struct validate_pair) == sizeof(Openshell__V1__SandboxSpec__EnvironmentEntry),
               "entries of maps look alike");

static const struct validate_pair *pair_at(const void *entries, size_t index)
{
    return ((const struct validate_pair *const *)entries)[index];
}

static bool check_count(const char *field, size_t count, size_t maximum, struct error *error)
{
    if (count <= maximum)
        return true;
    error_add_violation(error, field, "%zu entries are more than %zu", count, maximum);
    return false;
}

static int compare_keys(const void *left, const void *right)
{
    const struct validate_pair *a = *(const struct validate_pair *const *)left;
    const struct validate_pair *b = *(const struct validate_pair *const *)right;
    return strcmp(a->key, b->key);
}

/* A map has no key twice, but its wire form can. Bounded by check_count before. */
static bool check_twice(const char *field, const void *entries, size_t count, struct error *error)
{
    if (count < 2)
        return true;
    const struct validate_pair **sorted = memory_allocate(count * sizeof(*sorted));
    memcpy(sorted, entries, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_keys);
    bool valid = true;
    for (size_t i = 1; i < count; i++) {
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) != 0)
            continue;
        char shown[VALIDATE_SHOWN_SIZE];
        validate_show(sorted[i]->key, shown);
        error_add_violation(error, field, "'%s' is given twice", shown);
        valid = false;
    }
    free(sorted);
    return valid;
}

static char *entry_field(const char *field, const char *key)
{
    char shown[VALIDATE_SHOWN_SIZE];
    validate_show(key, shown);
    return memory_printf("%s[%s]", field, shown);
}

static bool is_identifier(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    if (name[0] == '\0' || strchr(letters, name[0]) == NULL)
        return false;
    const char *rest = name + strspn(name, letters);
    while (*rest != '\0') {
        if (strchr("0123456789", *rest) == NULL && strchr(letters, *rest) == NULL)
            return false;
        rest++;
    }
    return true;
}

static bool check_variable(const char *field, const struct validate_pair *pair,
                           const struct validate_environment_limits *limits, struct error *error)
{
    CLEANUP_FREE char *name = entry_field(field, pair->key);
    bool valid = true;
    if (strlen(pair->key) > VALIDATE_ENVIRONMENT_KEY_MAX) {
        error_add_violation(error, name, "a name has at most %d characters",
                            VALIDATE_ENVIRONMENT_KEY_MAX);
        valid = false;
    } else if (!is_identifier(pair->key)) {
        error_add_violation(error, name,
                            "a name has letters, digits and '_', and begins with no digit");
        valid = false;
    } else if (text_has_prefix(pair->key, "OPENSHELL_") &&
               (limits->exempt == NULL || strcmp(pair->key, limits->exempt) != 0)) {
        error_add_violation(error, name, "names that begin with OPENSHELL_ are reserved");
        valid = false;
    }
    if (strlen(pair->value) > limits->value) {
        error_add_violation(error, name, "a value of %zu bytes is over the limit of %zu",
                            strlen(pair->value), limits->value);
        valid = false;
    }
    return valid;
}

bool validate_environment(const char *field, const void *entries, size_t count,
                          const struct validate_environment_limits *limits, struct error *error)
{
    if (!check_count(field, count, limits->entries, error))
        return false;
    bool valid = check_twice(field, entries, count, error);
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        const struct validate_pair *pair = pair_at(entries, i);
        total += strlen(pair->key) + strlen(pair->value) + 2;
        if (!check_variable(field, pair, limits, error))
            valid = false;
    }
    if (total > limits->total) {
        error_add_violation(error, field, "%zu bytes in all are more than %zu", total,
                            limits->total);
        valid = false;
    }
    return valid;
}

bool validate_command(const char *field, char *const *arguments, size_t count,
                      const struct validate_command_limits *limits, struct error *error)
{
    bool valid = true;
    if (count > limits->arguments) {
        error_add_violation(error, field, "%zu words are more than %zu", count, limits->arguments);
        return false;
    }
    if (count > 0 && arguments[0][0] == '\0') {
        CLEANUP_FREE char *name = memory_printf("%s[0]", field);
        error_add_violation(error, name, "the program's name is empty");
        valid = false;
    }
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(arguments[i]);
        total += length + 1;
        if (length <= limits->argument)
            continue;
        CLEANUP_FREE char *name = memory_printf("%s[%zu]", field, i);
        error_add_violation(error, name, "a word of %zu bytes is over the limit of %zu", length,
                            limits->argument);
        valid = false;
    }
    if (limits->total != 0 && total > limits->total) {
        error_add_violation(error, field, "%zu bytes in all are more than %zu", total,
                            limits->total);
        valid = false;
    }
    return valid;
}

bool validate_labels(const char *field, const void *entries, size_t count, struct error *error)
{
    if (!check_count(field, count, VALIDATE_MAP_MAX, error))
        return false;
    bool valid = check_twice(field, entries, count, error);
    for (size_t i = 0; i < count; i++) {
        const struct validate_pair *pair = pair_at(entries, i);
        const char *rule;
        if (labels_key_valid(pair->key, &rule) && labels_value_valid(pair->value, &rule))
            continue;
        CLEANUP_FREE char *name = entry_field(field, pair->key);
        char shown[VALIDATE_SHOWN_SIZE];
        validate_show(pair->value, shown);
        error_add_violation(error, name, "%s (value '%s')", rule, shown);
        valid = false;
    }
    return valid;
}

bool validate_annotations(const char *field, const void *entries, size_t count, struct error *error)
{
    if (!check_count(field, count, VALIDATE_MAP_MAX, error))
        return false;
    bool valid = check_twice(field, entries, count, error);
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        const struct validate_pair *pair = pair_at(entries, i);
        CLEANUP_FREE char *name = entry_field(field, pair->key);
        total += strlen(pair->key) + strlen(pair->value);
        if (pair->key[0] == '\0' || strlen(pair->key) > ANNOTATION_KEY_MAX) {
            error_add_violation(error, name, "a key has 1 to %d bytes", ANNOTATION_KEY_MAX);
            valid = false;
        }
        if (text_has_prefix(pair->key, ANNOTATION_INTERNAL_PREFIX)) {
            error_add_violation(error, name, "keys that begin with %s are the gateway's own",
                                ANNOTATION_INTERNAL_PREFIX);
            valid = false;
        }
    }
    if (total > ANNOTATIONS_TOTAL_MAX) {
        error_add_violation(error, field, "%zu bytes in all are more than %d", total,
                            ANNOTATIONS_TOTAL_MAX);
        valid = false;
    }
    return valid;
}
