/* The system call filter of a workload (policy reference 2.3). */
#ifndef RUNTIME_SECCOMP_H
#define RUNTIME_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>

#include "base/error.h"

/* The compiled filter, made at the first call and then kept. */
const struct sock_fprog *seccomp_program(void);

/* Installs it for this process, for good. Needs no_new_privs. */
bool seccomp_enforce(struct error *error);

/* Whether calls that the filter blocks are answered here as the filter answers them, and not as a
 * kernel without the filter would. */
bool seccomp_probe(void);

#endif
