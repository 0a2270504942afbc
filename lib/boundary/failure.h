/* The vocabulary of failures between supervisor and runtime (behaviour reference 8.8): one table of
 * kinds, carried in a `struct error` as the reason and on the wire as a Failure frame. */
#ifndef BOUNDARY_FAILURE_H
#define BOUNDARY_FAILURE_H

#include <stdbool.h>

#include "base/error.h"
#include "boundary/protocol.h"

#define FAILURE_DOMAIN "sandbox.openshell.protocol"

enum failure_kind {
    FAILURE_UNKNOWN = 0, /* not one of these: a transport's error, or a newer peer's kind */
    FAILURE_DENIED = 1,
    FAILURE_ATTACH = 2,
    FAILURE_DESCRIPTOR = 3,
    FAILURE_UNAVAILABLE = 4,
    FAILURE_UNSUPPORTED = 5,
    FAILURE_PROTOCOL_VIOLATION = 6,
    FAILURE_TERMINATED = 7,
    FAILURE_PROCESS = 8,
    FAILURE_INVALID = 9,
};

/* "Denied" and so on. */
const char *failure_kind_name(enum failure_kind kind);

/* Sets the error with the usual code of the kind. Always false. */
bool failure_set(struct error *error, enum failure_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Gives an error of another origin a kind; code and message stay. */
void failure_classify(struct error *error, enum failure_kind kind);
enum failure_kind failure_kind_of(const struct error *error);

typedef Openshell__Sandbox__Protocol__V1__Failure failure_message;

/* Fills a Failure; its text is the error's own and lives as long as that. An error without a kind
 * is sent as Unavailable. */
void failure_encode(const struct error *error, failure_message *ret_message);
/* Always false. */
bool failure_decode(const failure_message *message, struct error *error);

#endif
