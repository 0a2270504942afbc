/* The lock file of a supervisor or a runtime: who it is, whether it lives, and how it ended by its
 * own decision (decision P12).
 *
 * The driver creates and locks the file and gives the open descriptor to the child, so the lock
 * lasts exactly as long as the child. The file's text is
 *     PID START_TIME\n
 *     ended: REASON\n
 * where the second line is written by a process that ends by its own decision: of two that ended,
 * the one without it is the culprit (decisions P9, P10). START_TIME is field 22 of /proc/PID/stat.
 */
#ifndef BOUNDARY_OWNER_LOCK_H
#define BOUNDARY_OWNER_LOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* Reasons; "failed: TEXT" besides these. */
#define OWNER_ENDED_STOPPED "stopped"                 /* asked to */
#define OWNER_ENDED_BOUNDARY_LOST "boundary-lost"     /* runtime: its process-maker is gone */
#define OWNER_ENDED_RUNTIME_LOST "runtime-lost"       /* supervisor: its connection is gone */
#define OWNER_ENDED_SUPERVISOR_LOST "supervisor-lost" /* runtime: its connection is gone */
#define OWNER_ENDED_REFUSED "refused"                 /* before start, with exit status 78 */

enum { OWNER_EXIT_REFUSED = 78 }; /* decision A2 */

struct owner_lock {
    pid_t process;
    uint64_t start_time;
    char ended[256]; /* the REASON; "" when it wrote none */
};

/* For the driver, before it starts the child: creates the file (0600) or empties it, and locks it.
 * Returns the descriptor, close-on-exec, or -1; ABORTED when a living process holds the lock. */
int owner_lock_create(const char *path, struct error *error);

/* For the child: checks that it holds the lock and writes the first line. */
bool owner_lock_claim(int descriptor, struct error *error);
/* Appends "ended: REASON"; control characters become spaces. Failing is no reason to go on. */
void owner_lock_end(int descriptor, const char *reason);

/* NOT_FOUND when there is no file, FAILED_PRECONDITION when it has no whole first line (yet). */
bool owner_lock_read(const char *path, struct owner_lock *ret_lock, struct error *error);
/* Whether a living process holds it; false when there is no file. Takes a shared lock for an
 * instant, so owner_lock_create tries again for up to 100 ms. */
bool owner_lock_is_held(const char *path);

/* A pidfd of that very process: its start time is checked after the pidfd was opened. -1 with
 * NOT_FOUND when it is gone or another process has its number. */
int owner_lock_open_process(const struct owner_lock *lock, struct error *error);

#endif
