/* What a copy says on a terminal while it runs: bytes, rate, time left where the size is known. */
#ifndef CLIENT_COPY_PROGRESS_H
#define CLIENT_COPY_PROGRESS_H

#include "base/reactor.h"
#include "client/copy.h"

struct copy_progress;

/* NULL, and nothing is shown, where standard error is no terminal. */
struct copy_progress *copy_progress_start(struct reactor *reactor, const struct copy *copy);
/* Erases the line. NULL is allowed. */
void copy_progress_stop(struct copy_progress *progress);

/* The last line of a copy that is whole. */
void copy_progress_summary(const struct copy *copy, const struct copy_result *result);

/* "12.3 MiB" into a buffer of 32 bytes. */
void copy_format_bytes(uint64_t bytes, char *buffer, size_t size);

#endif
