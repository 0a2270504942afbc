/* Which exec requests may start (isolation IB-22 to IB-25): each has an identifier and an expiry,
 * and an identifier is admitted once. */
#ifndef RUNTIME_EXEC_ADMISSION_H
#define RUNTIME_EXEC_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum {
    /* Requests expire 30 s after they were made; so much further ahead is no honest clock. */
    EXEC_EXPIRY_AHEAD_LIMIT_MILLISECONDS = 90 * 1000,
    EXEC_ADMITTED_LIMIT = 64 * 1024, /* identifiers kept at one time */
};

struct exec_admission;

struct exec_admission *exec_admission_new(void);
void exec_admission_free(struct exec_admission *admission);

/* Admits a request once, at `now` (milliseconds since the epoch; going back has no effect). Refused
 * with a failure of kind Invalid or Denied: an identifier that is no UUID, no expiry (0), one that
 * has passed or lies too far ahead, and an identifier that was admitted before. An admitted one is
 * kept until its expiry. */
bool exec_admission_admit(struct exec_admission *admission, const char *request_id, int64_t expiry,
                          int64_t now, struct error *error);

#endif
