/* How many tasks a sandbox may have (decision B7). */
#ifndef RUNTIME_LIMITS_H
#define RUNTIME_LIMITS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct limits {
    const char *mechanism; /* "cgroup", "rlimit" or "none" */
    unsigned process_limit;
    char *cgroup; /* path of the sandbox's own control group, or NULL; owned */
};

/* As root, makes a control group with a limit of tasks where there is a pids controller, and
 * removes groups that dead runtimes left. Otherwise the limit is RLIMIT_NPROC, which the kernel
 * counts for each user namespace. Never raises a limit: `process_limit` is what holds. */
void limits_prepare(unsigned process_limit, struct limits *ret_limits);

/* Puts the process-maker into the group; before it is in a cgroup namespace. Falls back to the
 * other mechanism. */
void limits_place(struct limits *limits, pid_t process);

/* What the workload itself has to be given as RLIMIT_NPROC; 0: nothing. */
unsigned limits_resource_limit(const struct limits *limits);
/* In the child that becomes the workload, after it took its identity. 0 does nothing. */
bool limits_enforce(unsigned resource_limit, struct error *error);

/* Removes the group, which is empty once the process-maker ended. */
void limits_release(struct limits *limits);

#endif
