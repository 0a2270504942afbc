/* The local gateway as a process: whether it runs, starting it, stopping it (decisions P12, P18).
 *
 * Its lock, not a process id, says that it runs. */
#ifndef CLIENT_LOCAL_GATEWAY_H
#define CLIENT_LOCAL_GATEWAY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

enum {
    LOCAL_GATEWAY_START_PATIENCE = 10 * 1000, /* milliseconds */
    LOCAL_GATEWAY_STOP_PATIENCE = 20 * 1000,  /* milliseconds */
};

/* Starts the gateway in a session of its own unless one runs, and waits until it listens. Of
 * several at once one starts it and the others wait. Returns a connected socket, or -1 with the
 * last line of the gateway's log. `ret_started` (may be NULL): whether this call did it. */
int local_gateway_start(bool *ret_started, struct error *error);

/* Becomes the gateway, in the foreground, with this terminal as its log. Returns only on failure,
 * false. */
bool local_gateway_run(struct error *error);

/* A descriptor of the running gateway's process, and its id; -1 without an error when none runs. */
int local_gateway_find(pid_t *ret_process, struct error *error);

/* Asks the process to end and waits for it. */
bool local_gateway_stop(int process_descriptor, struct error *error);

/* Where its log is; owned by the caller. */
char *local_gateway_log_path(struct error *error);

#endif
