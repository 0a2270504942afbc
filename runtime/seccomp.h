/* The system call filter of a workload (policy reference 2.3). */
#ifndef RUNTIME_SECCOMP_H
#define RUNTIME_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>

#include "base/error.h"

/* The compiled filter, made at the first call and then kept. */
const struct sock_fprog *seccomp_program(void);

/* Forbids new privileges and installs the filter, for good, for this process and all that it
 * forks. The process-maker does it once it is prepared, and needs none of what the filter refuses
 * from then on: so its children have the filter from their first instruction, and no exec pays for
 * compiling it. */
bool seccomp_enforce(struct error *error);

/* Whether this process is under the filter, by the kernel's word. */
bool seccomp_is_enforced(void);

/* Whether calls that the filter blocks are answered here as the filter answers them, and not as a
 * kernel without the filter would. */
bool seccomp_probe(void);

#endif
