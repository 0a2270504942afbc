/* The child that becomes a program of the workload: main and every exec go through the same steps,
 * so that none of them can be the one without a control. */
#ifndef RUNTIME_EXEC_CHILD_H
#define RUNTIME_EXEC_CHILD_H

#include <stdbool.h>

#include "runtime/identity.h"

/* What is applied to each process of the workload; made once, at attach, by the process-maker. */
struct controls {
    struct identity identity;
    int landlock_ruleset; /* -1: none */
    int landlock_abi;
    unsigned process_limit; /* RLIMIT_NPROC */
    bool composed;
};

/* Does not return. `channel` is the child's end of the socket pair to its reaper:
 *   reaper to child  MESSAGE_START, MESSAGE_MEASURE
 *   child to reaper  MESSAGE_START_FAILED, MESSAGE_MEASURED; end of file means that execve
 *                    succeeded, or that a copy helper runs
 * `session` is the session's socket, over which the child itself says MESSAGE_PREPARED, so that the
 * kernel vouches for who it is; it is closed then. */
_Noreturn void exec_child_run(const struct controls *controls, int channel, int session);

#endif
