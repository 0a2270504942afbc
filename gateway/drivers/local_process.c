#include "gateway/drivers/local_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "boundary/owner_lock.h"

enum {
    ADOPT_TRIES = 10,
    ADOPT_PAUSE_MILLISECONDS = 20,
};

/* ---- watching ---- */

static void on_readable(int events, void *user)
{
    (void)events;
    struct local_process *process = user;
    local_process_forget(process);
    process->on_end(process, process->user);
}

static bool watch(struct local_process *process, struct error *error)
{
    process->watch = reactor_watch_start(process->reactor, process->descriptor, UV_READABLE,
                                         on_readable, process, error);
    return process->watch != NULL;
}

bool local_process_running(const struct local_process *process)
{
    return process->process != 0;
}

void local_process_signal(const struct local_process *process, int number)
{
    if (local_process_running(process) &&
        pidfd_send_signal(process->descriptor, number, NULL, 0) != 0 && errno != ESRCH)
        log_warn("cannot signal process %d: %s", process->process, strerror(errno));
}

void local_process_forget(struct local_process *process)
{
    if (!local_process_running(process))
        return;
    reactor_watch_cancel(process->watch);
    close(process->descriptor);
    process->watch = NULL;
    process->descriptor = -1;
    process->process = 0;
}

/* ---- spawning ---- */

bool local_process_spawn(struct local_process *process, struct local_spawner *spawner,
                         enum spawner_program program, const int descriptors[SPAWNER_DESCRIPTORS],
                         struct error *error)
{
    pid_t number = 0;
    int descriptor = local_spawner_run(spawner, program, descriptors, &number, error);
    if (descriptor < 0)
        return false;
    process->process = number;
    process->descriptor = descriptor;
    if (watch(process, error))
        return true;
    pidfd_send_signal(descriptor, SIGKILL, NULL, 0);
    local_process_forget(process);
    return false;
}

/* ---- taking over ---- */

/* A process writes its name right after its start: wait for that. */
static bool read_settled(const char *path, struct owner_lock *lock, struct error *error)
{
    for (int i = 0;; i++) {
        if (owner_lock_read(path, lock, error))
            return true;
        if (i == ADOPT_TRIES || error->code != ERROR_FAILED_PRECONDITION)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = ADOPT_PAUSE_MILLISECONDS * 1000000L}, NULL);
    }
}

bool local_process_adopt(struct local_process *process, const char *lock_path)
{
    struct owner_lock lock;
    struct error error = {0};
    if (!owner_lock_is_held(lock_path) || !read_settled(lock_path, &lock, &error)) {
        if (error.code != ERROR_OK)
            log_error("%s", error.message);
        error_clear(&error);
        return false;
    }
    process->descriptor = owner_lock_open_process(&lock, &error);
    if (process->descriptor >= 0) {
        process->process = lock.process;
        if (watch(process, &error))
            return true;
        local_process_forget(process);
    }
    if (error.code != ERROR_NOT_FOUND)
        log_error("%s", error.message);
    error_clear(&error);
    return false;
}

/* ---- pipes ---- */

struct feed {
    struct reactor_watch *watch;
    struct buffer bytes;
    int descriptor;
};

static void feed_free(struct feed *feed)
{
    reactor_watch_cancel(feed->watch);
    close(feed->descriptor);
    buffer_wipe(&feed->bytes);
    free(feed);
}

/* True when nothing is left to write, or nobody left to read it. */
static bool feed_write(struct feed *feed)
{
    while (feed->bytes.length > 0) {
        ssize_t written = write(feed->descriptor, feed->bytes.data, feed->bytes.length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno != EAGAIN;
        buffer_consume(&feed->bytes, (size_t)written);
    }
    return true;
}

static void on_writable(int events, void *user)
{
    (void)events;
    struct feed *feed = user;
    if (feed_write(feed))
        feed_free(feed);
}

int local_pipe_feed(struct reactor *reactor, struct buffer *bytes, struct error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot make a pipe");
        buffer_wipe(bytes);
        return -1;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    struct feed *feed = memory_new_of(struct feed);
    feed->descriptor = ends[1];
    feed->bytes = *bytes;
    *bytes = BUFFER_INIT(bytes->maximum);
    if (feed_write(feed)) {
        feed_free(feed);
        return ends[0];
    }
    feed->watch =
        reactor_watch_start(reactor, feed->descriptor, UV_WRITABLE, on_writable, feed, error);
    if (feed->watch != NULL)
        return ends[0];
    feed_free(feed);
    close(ends[0]);
    return -1;
}
