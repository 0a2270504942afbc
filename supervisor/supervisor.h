/* One supervisor: what its parts share, and the order of a start. */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include <stdbool.h>

#include "base/uuid.h"
#include "supervisor/admission.h"
#include "supervisor/boundary.h"
#include "supervisor/gateway_session.h"
#include "supervisor/log_push.h"
#include "supervisor/main_process.h"
#include "supervisor/relay.h"

enum {
    /* From the first step to a running main process; a repair of the configuration that a person
     * makes does not count. */
    STARTUP_MILLISECONDS = 60 * 1000,
    /* Beyond the grace, for a stop. */
    STOP_EXTRA_MILLISECONDS = 5 * 1000,
};

/* Everything stays the caller's and outlives the run. */
struct supervisor_options {
    struct reactor *reactor;
    struct rpc_runtime *rpc;
    const struct launch_supervisor *launch;
    int listener; /* where the runtime connects */
    int lock;     /* for the reason of the end */
};

/* Starts the sandbox and looks after it; returns the exit status. */
int supervisor_run(const struct supervisor_options *options);

/* ---- shared by supervisor.c and startup.c ---- */

struct supervisor {
    struct supervisor_options options;
    char instance_id[UUID_SIZE];
    struct boundary *boundary;
    struct gateway_link *link;
    struct log_push *log;
    bool had_session;
    struct admission *admission;
    struct gateway_session *session;
    struct main_process *main;
    struct relays *relays;
    struct running_boundary *running;
    struct startup *startup;
    bool stopping;
    bool ended;
    int exit_status;
    struct reactor_timer *stop_timer;
};

/* Writes the reason and leaves the loop, once. */
void supervisor_end(struct supervisor *supervisor, const char *reason, int status);
/* With "failed: " before the message. */
void supervisor_fail(struct supervisor *supervisor, const struct error *error);

/* startup.c: goes through the launch order; ends in supervisor_running or supervisor_end. */
void startup_begin(struct supervisor *supervisor);
void supervisor_running(struct supervisor *supervisor, struct running_boundary *running);

#endif
