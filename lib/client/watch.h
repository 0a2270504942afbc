/* Waiting for a sandbox by WatchSandbox: the gateway says when there is nothing more to wait for.
 */
#ifndef CLIENT_WATCH_H
#define CLIENT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "client/connection.h"
#include "client/sandbox.h"

struct watch {
    const char *sandbox;
    /* How long to wait until it is ready, in milliseconds; 0: for ever. */
    int64_t patience;
    bool restart_patience; /* count from what was heard last, not from the beginning */
    bool wait_for_end;     /* go on after it became ready, until that is over */
};

/* Waits until the gateway says that the sandbox is ready or that it will not become so by itself.
 * With `wait_for_end` a sandbox that is ready is waited for too. Returns the last state, which
 * lives in the connection's arena. NULL: TIMED_OUT after the patience, INTERRUPTED by a signal that
 * interrupt_start notes, or what the gateway answered. */
const Openshell__V1__Sandbox *watch_wait(struct connection *connection, const struct watch *watch,
                                         struct error *error);

/* Goes on watching a sandbox that is ready, for this many milliseconds, and returns as soon as it
 * is not ready any more. The newest state in either case; NULL as watch_wait. */
const Openshell__V1__Sandbox *watch_linger(struct connection *connection, const char *sandbox,
                                           int64_t milliseconds, struct error *error);

/* Waits until a sandbox that is being deleted is gone; whether it was, after at most so long. */
bool watch_gone(struct connection *connection, const char *sandbox, int64_t milliseconds);

/* The patience in an environment variable of seconds, or the fallback: milliseconds; -1 with a
 * usage error for something else than a number. */
int64_t watch_patience(const char *variable, int fallback_seconds, struct error *error);

#endif
