/* What the gateway asks of whatever runs sandboxes.
 *
 * All calls and callbacks are on the loop. A `done` callback is called exactly once, maybe before
 * the call that took it returned. The gateway has at most one call in flight for a sandbox. */
#ifndef GATEWAY_DRIVERS_DRIVER_H
#define GATEWAY_DRIVERS_DRIVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/reactor.h"
#include "boundary/launch.h"

struct driver;

/* One launch attempt. Everything belongs to the caller and is not kept. */
struct driver_launch {
    const char *sandbox_id;
    const char *sandbox_name;
    const char *generation; /* UUID, new at each start */
    uint64_t auth_epoch;
    const char *gateway_token; /* secret */
    const char *sandbox_token; /* secret */
    struct launch_main main;
    const char *from_directory; /* NULL: a root composed from the host */
    uint32_t host_id_base;      /* 0 for an ordinary user's gateway */
};

/* How the compute of a sandbox ended. */
enum driver_end_cause {
    DRIVER_END_ABSENT,          /* there is no trace of any */
    DRIVER_END_STOPPED,         /* both parts ended because they were told to */
    DRIVER_END_REFUSED,         /* the boundary refused the configuration (decision A2) */
    DRIVER_END_SUPERVISOR_LOST, /* decision P9 */
    DRIVER_END_RUNTIME_LOST,    /* decision P10 */
    DRIVER_END_FAILED,          /* one of them gave up and said why */
};

struct driver_end {
    enum driver_end_cause cause;
    char text[256]; /* for a person; made harmless; "" unless FAILED */
};

struct driver_events {
    /* The compute of a sandbox ended without driver_stop or driver_delete in flight. */
    void (*on_ended)(const char *sandbox_id, const struct driver_end *end, void *user);
    void *user;
};

typedef void (*driver_done)(const struct error *error, void *user);

struct driver_class {
    const char *name;
    const char *version;
    bool cpu_limit, memory_limit; /* can be enforced */

    /* Starts a supervisor and a runtime; the state of earlier launches is kept. ABORTED when
     * something of an earlier launch still runs: stop it first. */
    void (*start)(struct driver *driver, const struct driver_launch *launch, driver_done done,
                  void *user);
    /* Ends both, the workload with grace; the state is kept. Nothing to stop is success. */
    void (*stop)(struct driver *driver, const char *sandbox_id, driver_done done, void *user);
    /* Ends both and removes every trace. Nothing to delete is success. */
    void (*remove)(struct driver *driver, const char *sandbox_id, driver_done done, void *user);
    /* Takes over what an earlier gateway started (decision P12): true when something runs, which is
     * then told to connect again and watched; false when nothing does, with how it ended. */
    bool (*adopt)(struct driver *driver, const char *sandbox_id, struct driver_end *ret_end);
    /* Whether the supervisor of a sandbox runs. */
    bool (*running)(struct driver *driver, const char *sandbox_id);
    /* Whether the process is a supervisor of ours. */
    bool (*owns)(struct driver *driver, pid_t process);
    /* Lets everything that runs go on and forgets it. */
    void (*close)(struct driver *driver);
};

/* Embedded first in a driver's own structure. */
struct driver {
    const struct driver_class *class;
    struct driver_events events;
};

struct local_driver_options {
    struct reactor *reactor;
    const char *run_directory;   /* R, absolute */
    const char *state_directory; /* S, absolute */
    const char *gateway_id;
    const char *gateway_socket;
    const char *verification_key_id;
    const char *verification_key_pem;
};

/* Runs sandboxes as processes of this machine. Strings are copied. */
struct driver *local_driver_new(const struct local_driver_options *options,
                                const struct driver_events *events, struct error *error);

#endif
