/* The supervisor's log lines on their way to the gateway (behaviour reference 2.9): in batches, and
 * kept for a gateway that is away or new. */
#ifndef SUPERVISOR_LOG_PUSH_H
#define SUPERVISOR_LOG_PUSH_H

#include "base/log.h"
#include "supervisor/gateway_link.h"

enum {
    LOG_PUSH_KEPT_LIMIT = 200, /* lines; the oldest go first */
    LOG_PUSH_BATCH_LIMIT = 50, /* lines of one message; so many are sent at once */
    LOG_PUSH_PAUSE = 500,      /* milliseconds until fewer are sent */
    LOG_PUSH_BACKOFF_LEAST = 1000,
    LOG_PUSH_BACKOFF_MOST = 30 * 1000,
    LOG_PUSH_END = 250, /* milliseconds that the end of the process waits for the last lines */
};

struct log_push;

/* Takes every line that is logged from now on. Everything given outlives it. */
struct log_push *log_push_start(struct reactor *reactor, struct gateway_link *link,
                                const struct launch_supervisor *launch);
/* A session was accepted: it is time to try again what failed. With `again` the gateway may be a
 * new one, so it gets what is kept once more; it knows what it has. */
void log_push_session(struct log_push *push, bool again);
/* Sends what is left and calls `done` once, soon in any case. Nothing is taken afterwards. */
void log_push_finish(struct log_push *push, void (*done)(void *user), void *user);

#endif
