/* The gateway's end of its spawner (boundary/spawner.h). */
#ifndef GATEWAY_DRIVERS_LOCAL_SPAWNER_H
#define GATEWAY_DRIVERS_LOCAL_SPAWNER_H

#include <sys/types.h>

#include "base/error.h"
#include "boundary/spawner.h"

struct local_spawner {
    char *executable;
    pid_t process; /* 0: not running */
    int socket;
};

/* Starts it, so that it is warm when it is needed. A failure is only logged: it is tried again. */
void local_spawner_open(struct local_spawner *spawner);
void local_spawner_close(struct local_spawner *spawner);

/* Starts a program with these descriptors, which stay the caller's, in a session of its own and
 * with a clean environment. A spawner that died is replaced. Waits for at most five seconds.
 * Returns a pidfd, or -1. */
int local_spawner_run(struct local_spawner *spawner, enum spawner_program program,
                      const int descriptors[SPAWNER_DESCRIPTORS], pid_t *ret_process,
                      struct error *error);

#endif
