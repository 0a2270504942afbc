/* The reaper of one session (decision P8): parent of the process that was asked for, foster parent
 * of everything that is orphaned below it, and the one that ends the tree. */
#ifndef RUNTIME_REAPER_H
#define RUNTIME_REAPER_H

#include "runtime/exec_child.h"
#include "runtime/maker_protocol.h"

/* Runs in a process that the process-maker forked with SIGCHLD blocked. `session` is its socket to
 * the runtime. `start` is the message that starts the program with its descriptors, or NULL when
 * one is to be waited for (main). Does not return: ends when the tree is gone. */
_Noreturn void reaper_run(const struct controls *controls, int session, const struct message *start,
                          const int descriptors[MESSAGE_DESCRIPTORS_MAX]);

#endif
