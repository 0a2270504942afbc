/* What every process of ours that outlives its starter does first. */
#ifndef BASE_DAEMON_H
#define BASE_DAEMON_H

#include <stdbool.h>

#include "base/error.h"

/* Keeps standard error and the descriptors 3 to `last_kept` (2: none of them); closes the others,
 * and puts /dev/null in the place of standard input and output. Ignores SIGPIPE, unblocks every
 * signal, forbids core files. */
bool daemon_prepare(int last_kept, struct error *error);

/* Keeps other processes of the same user from reading this one's memory. Apart, since the files
 * in /proc of a process that is not dumpable belong to root: what must be done through them comes
 * before. Call before reading a secret. */
bool daemon_protect_memory(struct error *error);

#endif
