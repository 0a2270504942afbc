/* How many tasks a sandbox may have (decision B7).
 *
 * By RLIMIT_NPROC, for root too: the kernel counts it for each user of each user namespace, only
 * the first namespace's privileges are above it, and the workload has one user that it cannot
 * change. A control group would do the same, and the kernel takes 8 to 18 ms to move a process
 * into one. */
#ifndef RUNTIME_LIMITS_H
#define RUNTIME_LIMITS_H

#include <stdbool.h>

#include "base/error.h"

/* The limit that will hold: never more than the runtime itself may have. */
unsigned limits_possible(unsigned process_limit);

/* In the child that becomes the workload, after it took its identity. */
bool limits_enforce(unsigned process_limit, struct error *error);

#endif
