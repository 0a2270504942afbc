#include "daemons/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/daemon.h"
#include "base/log.h"
#include "base/trim.h"
#include "boundary/launch.h"
#include "boundary/spawner.h"
#include "rpc/tls_stream.h"
#include "runtime/main.h"
#include "supervisor/main.h"

enum { FIRST_SAFE_DESCRIPTOR = 10 };

static const struct program {
    const char *name;
    int (*main)(int argc, char **argv);
} PROGRAMS[] = {
    [SPAWNER_RUNTIME] = {"openshell-sandbox", runtime_main},
    [SPAWNER_SUPERVISOR] = {"openshell-supervisor", supervisor_main},
};

struct spawner {
    char *name; /* the text of this process's argv, to be overwritten */
    size_t name_size;
    int children; /* signalfd for SIGCHLD */
};

/* The text of argv lies in one piece. */
static void find_name(struct spawner *spawner, int argc, char **argv)
{
    spawner->name = argv[0];
    spawner->name_size = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
}

static void take_name(const struct spawner *spawner, const char *name)
{
    memset(spawner->name, 0, spawner->name_size);
    snprintf(spawner->name, spawner->name_size, "%s", name);
    prctl(PR_SET_NAME, name);
}

/* Puts what was received where boundary/launch.h says. */
static bool place_descriptors(const int received[SPAWNER_DESCRIPTORS])
{
    static const int places[SPAWNER_DESCRIPTORS] = {
        [SPAWNER_LOG] = STDERR_FILENO,
        [SPAWNER_CONFIG] = LAUNCH_CONFIG_DESCRIPTOR,
        [SPAWNER_SECRET] = LAUNCH_SECRET_DESCRIPTOR,
        [SPAWNER_LOCK] = LAUNCH_LOCK_DESCRIPTOR,
    };
    int lifted[SPAWNER_DESCRIPTORS];
    for (size_t i = 0; i < SPAWNER_DESCRIPTORS; i++) {
        lifted[i] = fcntl(received[i], F_DUPFD_CLOEXEC, FIRST_SAFE_DESCRIPTOR);
        if (lifted[i] < 0)
            return false;
    }
    for (size_t i = 0; i < SPAWNER_DESCRIPTORS; i++)
        if (dup2(lifted[i], places[i]) < 0)
            return false;
    return close_range(LAUNCH_LOCK_DESCRIPTOR + 1, ~0u, 0) == 0;
}

/* In the child, which goes on as if it had been executed. */
static int become(const struct spawner *spawner, const struct program *program,
                  const int received[SPAWNER_DESCRIPTORS])
{
    if (setsid() < 0 || !place_descriptors(received))
        _exit(EXIT_FAILURE);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    take_name(spawner, program->name);
    char *arguments[] = {(char *)program->name, NULL};
    return program->main(1, arguments);
}

static void reap(const struct spawner *spawner)
{
    struct signalfd_siginfo information[8];
    while (read(spawner->children, information, sizeof(information)) > 0)
        continue;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static void reply(int process, int descriptor)
{
    struct spawner_reply reply = {.process = process, .error_number = process == 0 ? errno : 0};
    /* A gateway that is gone is noticed at the next read. */
    spawner_send(SPAWNER_SOCKET_DESCRIPTOR, &reply, sizeof(reply), &descriptor, process != 0);
}

/* Returns true in the child, with what its main returned. */
static bool handle(const struct spawner *spawner, const struct spawner_request *request,
                   const int received[SPAWNER_DESCRIPTORS], int *ret_status)
{
    if ((request->program != SPAWNER_RUNTIME && request->program != SPAWNER_SUPERVISOR) ||
        received[0] < 0) {
        errno = EINVAL;
        reply(0, -1);
        return false;
    }
    pid_t process = fork();
    if (process == 0) {
        *ret_status = become(spawner, &PROGRAMS[request->program], received);
        return true;
    }
    /* It is not reaped before the next look at SIGCHLD. */
    int descriptor = process > 0 ? pidfd_open(process, 0) : -1;
    if (descriptor < 0) {
        int saved = errno;
        if (process > 0)
            kill(process, SIGKILL);
        errno = saved;
        process = 0;
    }
    reply(process, descriptor);
    if (descriptor >= 0)
        close(descriptor);
    return false;
}

static int serve(const struct spawner *spawner)
{
    struct pollfd polled[] = {{.fd = SPAWNER_SOCKET_DESCRIPTOR, .events = POLLIN},
                              {.fd = spawner->children, .events = POLLIN}};
    for (;;) {
        if (poll(polled, 2, -1) < 0 && errno != EINTR)
            return EXIT_FAILURE;
        if (polled[1].revents != 0)
            reap(spawner);
        if (polled[0].revents == 0)
            continue;
        struct spawner_request request;
        int received[SPAWNER_DESCRIPTORS];
        if (!spawner_receive(SPAWNER_SOCKET_DESCRIPTOR, &request, sizeof(request), received,
                             SPAWNER_DESCRIPTORS))
            return EXIT_SUCCESS; /* the gateway is gone */
        int status;
        if (handle(spawner, &request, received, &status))
            return status;
        for (size_t i = 0; i < SPAWNER_DESCRIPTORS; i++)
            close(received[i]);
    }
}

static bool open_children(struct spawner *spawner, struct error *error)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    sigprocmask(SIG_BLOCK, &children, NULL);
    spawner->children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    return spawner->children >= 0 ||
           error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot watch children");
}

int spawner_main(int argc, char **argv)
{
    struct spawner spawner;
    struct error error = {0};
    log_init("spawner", LOG_LEVEL_INFO);
    find_name(&spawner, argc, argv);
    if (!daemon_prepare(SPAWNER_SOCKET_DESCRIPTOR, &error) || !open_children(&spawner, &error)) {
        log_error("%s", error.message);
        return EXIT_FAILURE;
    }
    tls_warm_up();
    trim_memory();
    return serve(&spawner);
}
