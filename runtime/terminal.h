/* Terminals of the sandbox's own devpts. */
#ifndef RUNTIME_TERMINAL_H
#define RUNTIME_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* Opens a new terminal owned by the workload, with its size set. Both descriptors are close-on-exec
 * and the caller's. */
bool terminal_open(uid_t owner, gid_t group, unsigned columns, unsigned rows, int *ret_master,
                   int *ret_terminal, struct error *error);

/* Makes it the controlling terminal of this process, which leads a session without one. */
bool terminal_take(int terminal, struct error *error);

#endif
