/* One of the two processes of a local sandbox: spawned, or taken over from an earlier gateway. */
#ifndef GATEWAY_DRIVERS_LOCAL_PROCESS_H
#define GATEWAY_DRIVERS_LOCAL_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/reactor.h"
#include "gateway/drivers/local_spawner.h"

struct local_process {
    struct reactor *reactor;
    pid_t process; /* 0: not running */
    int descriptor;
    struct reactor_watch *watch;
    void (*on_end)(struct local_process *process, void *user);
    void *user;
};

/* Starts it with nothing of ours but these descriptors, which stay the caller's, and watches it.
 * `process` has reactor, on_end and user set. */
bool local_process_spawn(struct local_process *process, struct local_spawner *spawner,
                         enum spawner_program program, const int descriptors[SPAWNER_DESCRIPTORS],
                         struct error *error);

/* Watches the process that holds the lock file (decision P12). False when there is none, or it is
 * not the one that the file names. */
bool local_process_adopt(struct local_process *process, const char *lock_path);

bool local_process_running(const struct local_process *process);
/* Nothing when it has ended. */
void local_process_signal(const struct local_process *process, int number);
/* Stops watching; the process runs on. */
void local_process_forget(struct local_process *process);

/* A pipe whose read end is returned and into which the loop writes the bytes, which are taken over
 * and wiped. -1 and an error, the bytes wiped, when no pipe can be had. */
int local_pipe_feed(struct reactor *reactor, struct buffer *bytes, struct error *error);

#endif
