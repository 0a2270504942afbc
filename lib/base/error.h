/* Errors as values: what was being done, to what, what went wrong, what to do.
 *
 * Functions that can fail take a last parameter `struct error *error` and return false or NULL.
 * An error carries what a gRPC status with google.rpc.ErrorInfo and BadRequest carries, so it can
 * cross a process boundary without loss. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* The gRPC status codes, by number. */
enum error_code {
    ERROR_OK = 0,
    ERROR_CANCELLED = 1,
    ERROR_UNKNOWN = 2,
    ERROR_INVALID_ARGUMENT = 3,
    ERROR_DEADLINE_EXCEEDED = 4,
    ERROR_NOT_FOUND = 5,
    ERROR_ALREADY_EXISTS = 6,
    ERROR_PERMISSION_DENIED = 7,
    ERROR_RESOURCE_EXHAUSTED = 8,
    ERROR_FAILED_PRECONDITION = 9,
    ERROR_ABORTED = 10,
    ERROR_OUT_OF_RANGE = 11,
    ERROR_UNIMPLEMENTED = 12,
    ERROR_INTERNAL = 13,
    ERROR_UNAVAILABLE = 14,
    ERROR_DATA_LOSS = 15,
    ERROR_UNAUTHENTICATED = 16,
};

/* The domain of reasons that the gateway gives (behaviour reference 4.0). */
#define ERROR_DOMAIN_GATEWAY "openshell.nvidia.com"

enum {
    ERROR_MESSAGE_MAX = 1024,
    ERROR_METADATA_MAX = 8,
    ERROR_VIOLATIONS_MAX = 64,
};

struct error_metadata {
    char *key;
    char *value;
};

struct error_violation {
    char *field;
    char *description;
};

/* Zero-initialise before use: `struct error error = {0};`. Text over a bound is cut at a character
 * boundary; metadata and violations over a bound are dropped. */
struct error {
    enum error_code code;
    char message[ERROR_MESSAGE_MAX];
    char domain[64];
    char reason[64];
    struct error_metadata metadata[ERROR_METADATA_MAX];
    size_t metadata_count;
    struct error_violation violations[ERROR_VIOLATIONS_MAX];
    size_t violation_count;
};

/* Sets code and message, dropping whatever the error held. `error` may be NULL. Always returns
 * false, so that a caller can write `return error_set(...)`. */
bool error_set(struct error *error, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set, with ": " and the text of `errnum` appended. */
bool error_set_errno(struct error *error, enum error_code code, int errnum, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Puts "text: " before the message. */
void error_prefix(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Adds ErrorInfo domain and reason. */
void error_set_reason(struct error *error, const char *domain, const char *reason);

/* Adds one ErrorInfo metadata entry; both strings are copied. */
void error_add_metadata(struct error *error, const char *key, const char *value);

/* The value of a metadata entry, or NULL. Owned by the error. */
const char *error_get_metadata(const struct error *error, const char *key);

/* Adds one BadRequest field violation and, where the error has no code yet, makes it
 * INVALID_ARGUMENT with reason INVALID_ARGUMENT and a message that lists every violation. */
void error_add_violation(struct error *error, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Deep copy; `to` must be zero or hold a valid error. */
void error_copy(struct error *to, const struct error *from);

/* Frees what the error owns and makes it ERROR_OK. */
void error_clear(struct error *error);

/* "INVALID_ARGUMENT" and so on; "UNKNOWN" for a number outside the enum. */
const char *error_code_name(enum error_code code);

#endif
