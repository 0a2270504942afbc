#include "client/local_gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/paths.h"
#include "client/failure.h"

extern char **environ;

enum {
    READY_DESCRIPTOR = 3,     /* where the gateway finds the pipe on which it says it listens */
    LOG_TAIL = 4096,          /* bytes of the log that are looked at after a failure */
    END_PATIENCE = 1000,      /* milliseconds for a process to end that said nothing */
    STAT_MAX = 4096,          /* bytes of a /proc/PID/stat */
    LOCK_FILE_MAX = 1024,     /* bytes of a lock file */
    START_TIME_FIELD = 22 - 2 /* of /proc/PID/stat, counted after the name in parentheses */
};

char *local_gateway_log_path(struct error *error)
{
    CLEANUP_FREE char *state = paths_state_directory(error);
    if (state == NULL)
        return NULL;
    CLEANUP_FREE char *directory = memory_printf("%s/gateway", state);
    if (!file_make_private_directory(directory, error))
        return NULL;
    return memory_printf("%s/gateway.log", directory);
}

/* ---- starting ---- */

struct start {
    char *executable;
    char *log_path;
    int log;          /* open for appending */
    off_t log_before; /* its size when the gateway was started */
    int ready;        /* reading end of the pipe */
    pid_t process;
};

static bool open_log(struct start *start, struct error *error)
{
    start->log_path = local_gateway_log_path(error);
    if (start->log_path == NULL)
        return false;
    start->log = open(start->log_path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat status;
    if (start->log < 0 || fstat(start->log, &status) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot open the gateway's log '%s'",
                               start->log_path);
    start->log_before = status.st_size;
    return true;
}

/* A session of its own, nothing inherited but the log and the pipe: it outlives this command. */
static int spawn(struct start *start, int ready)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, start->log, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, start->log, STDERR_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ready, READY_DESCRIPTOR);
    posix_spawn_file_actions_addclosefrom_np(&actions, READY_DESCRIPTOR + 1);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    sigset_t signals;
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);

    char number[16];
    snprintf(number, sizeof(number), "%d", READY_DESCRIPTOR);
    char *arguments[] = {(char *)"openshell-gateway", (char *)"--ready-fd", number, NULL};
    int result =
        posix_spawn(&start->process, start->executable, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

static bool launch(struct start *start, struct error *error)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make a pipe");
    start->ready = ends[0];
    /* A descriptor that dup2 has to move cannot be one of its targets. */
    int moved = fcntl(ends[1], F_DUPFD_CLOEXEC, READY_DESCRIPTOR + 1);
    close(ends[1]);
    int result = moved < 0 ? errno : spawn(start, moved);
    if (moved >= 0)
        close(moved);
    if (result == 0)
        return true;
    error_set_errno(error, ERROR_INTERNAL, result, "cannot start '%s'", start->executable);
    error_set_reason(error, CLIENT_DOMAIN, CLIENT_REASON_GATEWAY_START_FAILED);
    return false;
}

/* The last line that the gateway wrote since it was started; NULL: none. */
static char *last_log_line(const struct start *start)
{
    struct stat status;
    if (fstat(start->log, &status) != 0 || status.st_size <= start->log_before)
        return NULL;
    off_t from = status.st_size - LOG_TAIL > start->log_before ? status.st_size - LOG_TAIL
                                                               : start->log_before;
    char text[LOG_TAIL + 1];
    ssize_t length = pread(start->log, text, LOG_TAIL, from);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\0'))
        length--;
    if (length <= 0)
        return NULL;
    text[length] = '\0';
    const char *line = strrchr(text, '\n');
    return memory_strdup(line != NULL ? line + 1 : text);
}

static bool explain_failure(struct start *start, const char *what, struct error *error)
{
    CLEANUP_FREE char *line = last_log_line(start);
    failure_set(error, CLIENT_REASON_GATEWAY_START_FAILED, "the gateway %s%s%s", what,
                line != NULL ? ": " : "", line != NULL ? line : "");
    failure_hint(error, "its log is %s", start->log_path);
    return false;
}

/* How a process ended that closed its pipe: its descriptors go a moment before it does. */
static void describe_end(pid_t process, char *what, size_t size)
{
    CLEANUP_CLOSE int descriptor = pidfd_open(process, 0);
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    poll(&wait, 1, END_PATIENCE);
    int status;
    if (waitpid(process, &status, WNOHANG) != process)
        snprintf(what, size, "gave up starting");
    else if (WIFEXITED(status))
        snprintf(what, size, "could not start (exit code %d)", WEXITSTATUS(status));
    else
        snprintf(what, size, "could not start (signal %d)", WTERMSIG(status));
}

static bool await_ready(struct start *start, struct error *error)
{
    int64_t until = clock_monotonic_milliseconds() + LOCAL_GATEWAY_START_PATIENCE;
    for (;;) {
        int64_t left = until - clock_monotonic_milliseconds();
        struct pollfd wait = {.fd = start->ready, .events = POLLIN};
        int result = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (result < 0 && errno == EINTR)
            continue;
        if (result <= 0)
            return explain_failure(start, "did not become ready within 10 seconds", error);
        char byte;
        ssize_t got = read(start->ready, &byte, 1);
        if (got == 1)
            return true;
        if (got < 0 && errno == EINTR)
            continue;
        break;
    }
    char what[64];
    describe_end(start->process, what, sizeof(what));
    return explain_failure(start, what, error);
}

/* The gateway runs in another directory than this command, and finds its parts by this too. */
static void make_exec_path_absolute(void)
{
    const char *given = getenv("OPENSHELL_EXEC_PATH");
    if (given == NULL || given[0] == '\0' || given[0] == '/')
        return;
    char *absolute = realpath(given, NULL);
    if (absolute != NULL)
        setenv("OPENSHELL_EXEC_PATH", absolute, 1);
    free(absolute);
}

static bool start_and_await(struct error *error)
{
    struct start start = {.log = -1, .ready = -1};
    make_exec_path_absolute();
    start.executable = paths_libexec("openshell-gateway");
    bool ready = open_log(&start, error) && launch(&start, error) && await_ready(&start, error);
    if (start.log >= 0)
        close(start.log);
    if (start.ready >= 0)
        close(start.ready);
    free(start.log_path);
    free(start.executable);
    return ready;
}

int local_gateway_start(bool *ret_started, struct error *error)
{
    CLEANUP_FREE char *directory = paths_run_directory(error);
    if (directory == NULL)
        return -1;
    CLEANUP_FREE char *lock_path = memory_printf("%s/start.lock", directory);
    CLEANUP_FREE char *socket_path = memory_printf("%s/gateway.sock", directory);
    CLEANUP_CLOSE int lock = file_lock(lock_path, LOCAL_GATEWAY_START_PATIENCE, error);
    if (lock < 0)
        return -1;
    if (ret_started != NULL)
        *ret_started = false;
    /* Whoever held the lock before may have started it. */
    int descriptor = file_unix_connect(socket_path, NULL);
    if (descriptor >= 0)
        return descriptor;
    if (!start_and_await(error))
        return -1;
    if (ret_started != NULL)
        *ret_started = true;
    return file_unix_connect(socket_path, error);
}

bool local_gateway_run(struct error *error)
{
    CLEANUP_FREE char *executable = paths_libexec("openshell-gateway");
    char *arguments[] = {(char *)"openshell-gateway", NULL};
    execv(executable, arguments);
    error_set_errno(error, ERROR_INTERNAL, errno, "cannot run '%s'", executable);
    return false;
}

/* ---- the running one ---- */

/* Field 22 of /proc/PID/stat, or NULL: with the id it names one process for good. */
static char *start_time_of(pid_t process)
{
    CLEANUP_FREE char *path = memory_printf("/proc/%d/stat", (int)process);
    struct buffer buffer = BUFFER_INIT(STAT_MAX);
    char *found = NULL;
    if (file_read(path, &buffer, NULL)) {
        /* The name may contain anything; the last parenthesis ends it. */
        const char *at = strrchr(buffer_text(&buffer), ')');
        for (int field = 0; at != NULL && field < START_TIME_FIELD; field++)
            at = strchr(at + 1, ' ');
        if (at != NULL)
            found = memory_printf("%.*s", (int)strcspn(at + 1, " "), at + 1);
    }
    buffer_free(&buffer);
    return found;
}

/* Reads "PID START_TIME" from a lock file that a process holds. */
static bool read_owner(int lock, pid_t *ret_process, char **ret_start_time)
{
    struct buffer buffer = BUFFER_INIT(LOCK_FILE_MAX);
    long long process = 0;
    bool valid = false;
    if (file_read_descriptor(lock, &buffer, NULL)) {
        const char *text = buffer_text(&buffer);
        size_t digits = strspn(text, "0123456789");
        char number[16];
        if (digits > 0 && digits < sizeof(number) && text[digits] == ' ') {
            snprintf(number, sizeof(number), "%.*s", (int)digits, text);
            const char *time = text + digits + 1;
            if (sscanf(number, "%lld", &process) == 1 && process > 1) {
                *ret_start_time = memory_printf("%.*s", (int)strspn(time, "0123456789"), time);
                valid = true;
            }
        }
    }
    buffer_free(&buffer);
    *ret_process = (pid_t)process;
    return valid;
}

int local_gateway_find(pid_t *ret_process, struct error *error)
{
    CLEANUP_FREE char *directory = paths_run_directory(error);
    if (directory == NULL)
        return -1;
    CLEANUP_FREE char *path = memory_printf("%s/gateway.lock", directory);
    CLEANUP_CLOSE int lock = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) {
        if (errno != ENOENT)
            error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '%s'", path);
        return -1;
    }
    pid_t process;
    char *start_time = NULL;
    if (!read_owner(lock, &process, &start_time))
        return -1;
    CLEANUP_FREE char *expected = start_time;
    int descriptor = pidfd_open(process, 0);
    CLEANUP_FREE char *actual = descriptor >= 0 ? start_time_of(process) : NULL;
    /* The lock is tried last, so that a gateway that is just starting never finds it taken here:
     * the process that is named holds it, unless the file lies. */
    if (actual == NULL || strcmp(actual, expected) != 0 || flock(lock, LOCK_SH | LOCK_NB) == 0) {
        if (descriptor >= 0)
            close(descriptor);
        return -1;
    }
    *ret_process = process;
    return descriptor;
}

bool local_gateway_stop(int process_descriptor, struct error *error)
{
    if (pidfd_send_signal(process_descriptor, SIGTERM, NULL, 0) != 0 && errno != ESRCH)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot stop the gateway");
    int64_t until = clock_monotonic_milliseconds() + LOCAL_GATEWAY_STOP_PATIENCE;
    for (;;) {
        int64_t left = until - clock_monotonic_milliseconds();
        struct pollfd wait = {.fd = process_descriptor, .events = POLLIN};
        int result = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (result > 0)
            return true;
        if (result < 0 && errno == EINTR)
            continue;
        return failure_set(error, CLIENT_REASON_TIMED_OUT,
                           "the gateway has not ended within %d seconds",
                           LOCAL_GATEWAY_STOP_PATIENCE / 1000);
    }
}
