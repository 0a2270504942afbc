#include "gateway/drivers/local_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "boundary/launch.h"
#include "boundary/owner_lock.h"

enum {
    CHILD_ENVIRONMENT_MAX = 5,
    FIRST_SAFE_DESCRIPTOR = 10,
    ADOPT_TRIES = 10,
    ADOPT_PAUSE_MILLISECONDS = 20,
};

/* ---- watching ---- */

static void reap(struct local_process *process)
{
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)process->descriptor, &info, WEXITED | WNOHANG) != 0 ||
        info.si_pid == 0)
        return;
    process->exit_status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static void on_readable(int events, void *user)
{
    (void)events;
    struct local_process *process = user;
    if (process->child)
        reap(process);
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

/* The clean environment of a child: nothing secret, nothing of the caller's but these. */
static void child_environment(char *ret_environment[CHILD_ENVIRONMENT_MAX])
{
    static const char *const passed[] = {"PATH", "OPENSHELL_EXEC_PATH", "LANG",
                                         "OPENSHELL_LOG_LEVEL"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
        const char *value = getenv(passed[i]);
        if (value != NULL)
            ret_environment[count++] = memory_printf("%s=%s", passed[i], value);
    }
    ret_environment[count] = NULL;
}

/* Copies of the descriptors that the actions below cannot overwrite while they move them. */
static bool lift(const struct local_spawn *spawn, int ret_lifted[4], struct error *error)
{
    const int from[4] = {spawn->log, spawn->config, spawn->secret, spawn->lock};
    for (size_t i = 0; i < 4; i++) {
        ret_lifted[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FIRST_SAFE_DESCRIPTOR);
        if (ret_lifted[i] < 0) {
            int saved = errno;
            while (i > 0)
                close(ret_lifted[--i]);
            return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, saved,
                                   "cannot duplicate a descriptor");
        }
    }
    return true;
}

static int spawn_child(const struct local_spawn *spawn, const int lifted[4], pid_t *ret_process)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, 0, 1);
    posix_spawn_file_actions_adddup2(&actions, lifted[0], 2);
    posix_spawn_file_actions_adddup2(&actions, lifted[1], LAUNCH_CONFIG_DESCRIPTOR);
    posix_spawn_file_actions_adddup2(&actions, lifted[2], LAUNCH_SECRET_DESCRIPTOR);
    posix_spawn_file_actions_adddup2(&actions, lifted[3], LAUNCH_LOCK_DESCRIPTOR);
    posix_spawn_file_actions_addclosefrom_np(&actions, LAUNCH_LOCK_DESCRIPTOR + 1);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const char *name = strrchr(spawn->executable, '/') + 1;
    char *arguments[] = {(char *)name, NULL};
    char *environment[CHILD_ENVIRONMENT_MAX];
    child_environment(environment);
    int result =
        posix_spawn(ret_process, spawn->executable, &actions, &attributes, arguments, environment);
    for (size_t i = 0; environment[i] != NULL; i++)
        free(environment[i]);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

/* A child that nobody will watch. */
static void discard(pid_t process)
{
    kill(process, SIGKILL);
    while (waitpid(process, NULL, 0) < 0 && errno == EINTR)
        ;
}

bool local_process_spawn(struct local_process *process, const struct local_spawn *spawn,
                         struct error *error)
{
    int lifted[4];
    if (!lift(spawn, lifted, error))
        return false;
    pid_t number = 0;
    int result = spawn_child(spawn, lifted, &number);
    for (size_t i = 0; i < 4; i++)
        close(lifted[i]);
    if (result != 0)
        return error_set_errno(error, ERROR_INTERNAL, result, "cannot start '%s'",
                               spawn->executable);
    int descriptor = pidfd_open(number, 0);
    if (descriptor < 0) {
        int saved = errno;
        discard(number);
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, saved, "cannot watch '%s'",
                               spawn->executable);
    }
    process->process = number;
    process->descriptor = descriptor;
    process->child = true;
    process->exit_status = -1;
    if (watch(process, error))
        return true;
    discard(number);
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
        process->child = false;
        process->exit_status = -1;
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
