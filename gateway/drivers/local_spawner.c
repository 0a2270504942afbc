#include "gateway/drivers/local_spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/paths.h"

enum {
    ENVIRONMENT_MAX = 5,
    FIRST_SAFE_DESCRIPTOR = 10,
    REPLY_MILLISECONDS = 5000,
};

/* The clean environment of a child: nothing secret, nothing of the caller's but these. */
static void make_environment(char *ret_environment[ENVIRONMENT_MAX])
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

/* The spawner's end is above what the actions overwrite. */
static int spawn(const char *executable, int socket, pid_t *ret_process)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, socket, SPAWNER_SOCKET_DESCRIPTOR);
    posix_spawn_file_actions_addclosefrom_np(&actions, SPAWNER_SOCKET_DESCRIPTOR + 1);
    posix_spawn_file_actions_addchdir_np(&actions, "/");
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char *arguments[] = {(char *)"openshell-daemons", (char *)SPAWNER_ARGUMENT, NULL};
    char *environment[ENVIRONMENT_MAX];
    make_environment(environment);
    int result =
        posix_spawn(ret_process, executable, &actions, &attributes, arguments, environment);
    for (size_t i = 0; environment[i] != NULL; i++)
        free(environment[i]);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

static bool start(struct local_spawner *spawner, struct error *error)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot make a socket pair");
    int lifted = fcntl(ends[1], F_DUPFD_CLOEXEC, FIRST_SAFE_DESCRIPTOR);
    int result = lifted < 0 ? errno : spawn(spawner->executable, lifted, &spawner->process);
    if (lifted >= 0)
        close(lifted);
    close(ends[1]);
    if (result != 0) {
        close(ends[0]);
        spawner->process = 0;
        return error_set_errno(error, ERROR_INTERNAL, result, "cannot start '%s'",
                               spawner->executable);
    }
    spawner->socket = ends[0];
    return true;
}

/* Ends it. What it started goes on. */
static void stop(struct local_spawner *spawner)
{
    if (spawner->process == 0)
        return;
    close(spawner->socket);
    kill(spawner->process, SIGKILL);
    while (waitpid(spawner->process, NULL, 0) < 0 && errno == EINTR)
        continue;
    spawner->process = 0;
    spawner->socket = -1;
}

void local_spawner_open(struct local_spawner *spawner)
{
    *spawner =
        (struct local_spawner){.executable = paths_libexec("openshell-daemons"), .socket = -1};
    struct error error = {0};
    if (!start(spawner, &error))
        log_warn("%s", error.message);
    error_clear(&error);
}

void local_spawner_close(struct local_spawner *spawner)
{
    stop(spawner);
    free(spawner->executable);
    spawner->executable = NULL;
}

static bool send_request(struct local_spawner *spawner, enum spawner_program program,
                         const int descriptors[SPAWNER_DESCRIPTORS], struct error *error)
{
    const struct spawner_request request = {.program = program};
    for (int attempt = 0; attempt < 2; attempt++) {
        if (spawner->process == 0 && !start(spawner, error))
            return false;
        if (spawner_send(spawner->socket, &request, sizeof(request), descriptors,
                         SPAWNER_DESCRIPTORS))
            return true;
        int saved = errno;
        log_warn("the spawner is gone: %s", strerror(saved));
        stop(spawner);
        errno = saved;
    }
    return error_set_errno(error, ERROR_UNAVAILABLE, errno, "the spawner ends at once");
}

int local_spawner_run(struct local_spawner *spawner, enum spawner_program program,
                      const int descriptors[SPAWNER_DESCRIPTORS], pid_t *ret_process,
                      struct error *error)
{
    if (!send_request(spawner, program, descriptors, error))
        return -1;
    struct pollfd polled = {.fd = spawner->socket, .events = POLLIN};
    struct spawner_reply reply;
    int descriptor = -1;
    int ready;
    do
        ready = poll(&polled, 1, REPLY_MILLISECONDS);
    while (ready < 0 && errno == EINTR);
    if (ready <= 0 || !spawner_receive(spawner->socket, &reply, sizeof(reply), &descriptor, 1)) {
        stop(spawner);
        error_set(error, ERROR_UNAVAILABLE, "the spawner did not answer");
        return -1;
    }
    if (descriptor < 0)
        error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, reply.error_number,
                        "cannot start a process");
    *ret_process = reply.process;
    return descriptor;
}
