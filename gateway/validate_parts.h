/* Checks that several requests share; see validate.h. Each returns whether there was no violation.
 */
#ifndef GATEWAY_VALIDATE_PARTS_H
#define GATEWAY_VALIDATE_PARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "openshell.pb-c.h"

/* What every map<string, string> has as its entry. */
struct validate_pair {
    ProtobufCMessage base;
    char *key;
    char *value;
};

struct validate_environment_limits {
    size_t entries;
    size_t value;       /* bytes */
    size_t total;       /* bytes of all KEY=VALUE with their ends */
    const char *exempt; /* a name with the reserved prefix that is allowed, or NULL */
};

bool validate_environment(const char *field, const void *entries, size_t count,
                          const struct validate_environment_limits *limits, struct error *error);

struct validate_command_limits {
    size_t arguments;
    size_t argument; /* bytes */
    size_t total;    /* bytes of all, with their ends; 0: checked by the caller */
};

/* An empty command is right here. */
bool validate_command(const char *field, char *const *arguments, size_t count,
                      const struct validate_command_limits *limits, struct error *error);

bool validate_labels(const char *field, const void *entries, size_t count, struct error *error);
/* Any text, but none of the keys that belong to the gateway. */
bool validate_annotations(const char *field, const void *entries, size_t count,
                          struct error *error);

bool validate_text_length(const char *field, const char *text, size_t maximum, struct error *error);

/* The value as it is shown: escaped, and cut to a line. */
enum { VALIDATE_SHOWN_SIZE = 96 };
void validate_show(const char *text, char buffer[VALIDATE_SHOWN_SIZE]);

#endif
