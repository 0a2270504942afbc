#include "runtime/reaper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "runtime/descriptors.h"
#include "runtime/process_tree.h"
#include "runtime/syscalls.h"
#include "runtime/terminal.h"

enum {
    /* Between two rounds of killing: what was killed needs a moment to end. */
    KILL_ROUND_MILLISECONDS = 20,
    REAP_AT_ONCE = 64,
};

struct reaper {
    const struct controls *controls;
    int session;  /* to the runtime */
    int channel;  /* to the child; -1 once the child executes, or is gone */
    int children; /* signalfd for SIGCHLD */
    int proc;
    pid_t child;
    bool started;      /* the child was told to start */
    bool exited;       /* the child ended */
    bool more;         /* there may be further exit statuses */
    int master;        /* of that, until it is given away */
    int64_t kill_time; /* monotonic; -1: nobody asked to kill */
    bool ending;       /* the runtime is gone or closed the session */
};

static void send_start_failed(struct reaper *reaper, int code, const struct error *error)
{
    message_send_error(reaper->session, MESSAGE_START_FAILED, code, error);
}

/* Gives the child what it waits for; opens its terminal, since the child may no longer. */
static void start_child(struct reaper *reaper, const struct message *start,
                        const int descriptors[MESSAGE_DESCRIPTORS_MAX])
{
    if (reaper->started)
        return;
    struct error error = {0};
    struct spec_header header;
    int given[4] = {descriptors[0], descriptors[1], descriptors[2], descriptors[3]};
    size_t count = 4;
    int terminal = -1;
    bool ready = pread(given[0], &header, sizeof(header), 0) == (ssize_t)sizeof(header) ||
                 error_set(&error, ERROR_INTERNAL, "a request to start a program is malformed");
    if (ready && header.terminal) {
        ready =
            terminal_open(reaper->controls->identity.user_id, reaper->controls->identity.group_id,
                          header.columns, header.rows, &reaper->master, &terminal, &error);
        given[1] = terminal;
        count = 2;
    }
    reaper->started = true;
    if (!ready || !message_send(reaper->channel, start, given, count, &error)) {
        send_start_failed(reaper, 126, &error);
        kill(reaper->child, SIGKILL);
        close(reaper->channel);
        reaper->channel = -1;
    }
    if (terminal >= 0)
        close(terminal);
}

/* The child executes, or says why not. */
static void handle_channel(struct reaper *reaper)
{
    struct message message;
    int descriptors[MESSAGE_DESCRIPTORS_MAX];
    enum message_result result = message_receive(reaper->channel, &message, descriptors, NULL);
    if (result == MESSAGE_NONE)
        return;
    if (result == MESSAGE_GOT) {
        message_send(reaper->session, &message, NULL, 0, NULL);
        if (message.type != MESSAGE_START_FAILED)
            return;
    } else if (reaper->started) {
        struct message started = {.type = MESSAGE_STARTED, .value = reaper->child};
        message_send(reaper->session, &started, &reaper->master, reaper->master >= 0 ? 1 : 0, NULL);
    } else {
        struct error error = {0};
        error_set(&error, ERROR_ABORTED, "the process ended before it was told to start");
        send_start_failed(reaper, 126, &error);
    }
    close(reaper->channel);
    reaper->channel = -1;
    if (reaper->master >= 0)
        close(reaper->master);
    reaper->master = -1;
}

/* Takes exit statuses. Returns false when no child is left; what did not have its turn is told by
 * `more`: a workload may end processes as fast as they are taken. */
static bool reap(struct reaper *reaper)
{
    reaper->more = false;
    for (int i = 0; i < REAP_AT_ONCE; i++) {
        int status;
        pid_t process = waitpid(-1, &status, WNOHANG);
        if (process < 0 && errno == EINTR)
            continue;
        if (process <= 0)
            return process == 0;
        if (process != reaper->child || reaper->exited)
            continue;
        while (reaper->channel >= 0)
            handle_channel(reaper);
        reaper->exited = true;
        message_send_simple(reaper->session, MESSAGE_EXITED, status);
    }
    reaper->more = true;
    return true;
}

static void signal_tree(struct reaper *reaper, int number)
{
    struct process_tree tree = process_tree_list(reaper->proc, getpid(), NULL, 0);
    process_tree_signal(&tree, number);
    process_tree_free(&tree);
}

static void begin_kill(struct reaper *reaper, int64_t grace)
{
    if (!reaper->started)
        grace = 0;
    if (grace > 0) {
        signal_tree(reaper, SIGTERM);
        /* A stopped process sees the signal only when it goes on. */
        signal_tree(reaper, SIGCONT);
    }
    int64_t time = clock_monotonic_milliseconds() + grace;
    if (reaper->kill_time < 0 || time < reaper->kill_time)
        reaper->kill_time = time;
}

static void end_session(struct reaper *reaper)
{
    reaper->ending = true;
    begin_kill(reaper, 0);
}

static void handle_session(struct reaper *reaper)
{
    struct message message;
    int descriptors[MESSAGE_DESCRIPTORS_MAX];
    enum message_result result = message_receive(reaper->session, &message, descriptors, NULL);
    if (result == MESSAGE_END)
        end_session(reaper);
    if (result != MESSAGE_GOT)
        return;
    switch (message.type) {
    case MESSAGE_START:
        if (reaper->channel >= 0)
            start_child(reaper, &message, descriptors);
        break;
    case MESSAGE_MEASURE:
        if (reaper->channel >= 0)
            message_send(reaper->channel, &message, NULL, 0, NULL);
        break;
    case MESSAGE_SIGNAL:
        /* Until it is reaped, which only happens here, the number is the child's, and its group's
         * once it has made a session. */
        if (!reaper->exited && kill(-reaper->child, message.value) != 0)
            kill(reaper->child, message.value);
        break;
    case MESSAGE_KILL:
        begin_kill(reaper, message.value);
        break;
    default:
        break;
    }
    for (size_t i = 0; i < MESSAGE_DESCRIPTORS_MAX; i++)
        if (descriptors[i] >= 0)
            close(descriptors[i]);
}

static int wait_milliseconds(struct reaper *reaper)
{
    if (reaper->more)
        return 0;
    if (reaper->kill_time < 0)
        return -1;
    int64_t left = reaper->kill_time - clock_monotonic_milliseconds();
    return left <= 0 ? 0 : left > 60000 ? 60000 : (int)left;
}

static void kill_if_due(struct reaper *reaper)
{
    if (reaper->kill_time < 0 || clock_monotonic_milliseconds() < reaper->kill_time)
        return;
    if (process_tree_kill(reaper->proc, getpid(), NULL, 0) == PROCESS_TREE_BLIND)
        _exit(1); /* the process-maker kills what is left */
    reaper->kill_time = clock_monotonic_milliseconds() + KILL_ROUND_MILLISECONDS;
}

static void drain_signals(int descriptor)
{
    struct signalfd_siginfo information[8];
    while (read(descriptor, information, sizeof(information)) > 0)
        ;
}

static _Noreturn void serve(struct reaper *reaper)
{
    for (;;) {
        struct pollfd polled[] = {
            {.fd = reaper->channel, .events = POLLIN},
            {.fd = reaper->children, .events = POLLIN},
            {.fd = reaper->ending ? -1 : reaper->session, .events = POLLIN},
        };
        if (poll(polled, 3, wait_milliseconds(reaper)) < 0 && errno != EINTR)
            _exit(1);
        if (polled[0].revents != 0)
            handle_channel(reaper);
        if (polled[1].revents != 0 || reaper->more) {
            drain_signals(reaper->children);
            if (!reap(reaper))
                break;
        }
        if (polled[2].revents != 0)
            handle_session(reaper);
        kill_if_due(reaper);
    }
    message_send_simple(reaper->session, MESSAGE_EMPTY, 0);
    _exit(0);
}

/* Becomes the foster parent and forks the child. */
static bool prepare(struct reaper *reaper, int *ret_child_end, struct error *error)
{
    int ends[2];
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    prctl(PR_SET_NAME, "openshell-reap");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot become a reaper");
    reaper->children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    reaper->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (reaper->children < 0 || reaper->proc < 0)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot prepare a session");
    if (!message_socketpair(ends, error))
        return false;
    reaper->channel = ends[0];
    *ret_child_end = ends[1];
    reaper->child = syscall_fork();
    if (reaper->child < 0)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno,
                               "cannot start a process: the sandbox's limit may be reached");
    return true;
}

_Noreturn void reaper_run(const struct controls *controls, int session, const struct message *start,
                          const int descriptors[MESSAGE_DESCRIPTORS_MAX])
{
    struct error error = {0};
    struct reaper reaper = {
        .controls = controls,
        .session = session,
        .channel = -1,
        .master = -1,
        .kill_time = -1,
    };
    int child_end = -1;
    if (!prepare(&reaper, &child_end, &error)) {
        send_start_failed(&reaper, 126, &error);
        _exit(1);
    }
    if (reaper.child == 0)
        exec_child_run(controls, child_end, session);
    int kept[] = {session,        reaper.channel, reaper.children, reaper.proc,
                  descriptors[0], descriptors[1], descriptors[2],  descriptors[3]};
    descriptors_keep_only(kept, sizeof(kept) / sizeof(kept[0]));
    identity_reduce(IDENTITY_REAPER, NULL);
    message_send_simple(session, MESSAGE_REAPER, getpid());
    if (start != NULL) {
        struct message order = *start;
        order.type = MESSAGE_START;
        start_child(&reaper, &order, descriptors);
        for (size_t i = 0; i < MESSAGE_DESCRIPTORS_MAX; i++)
            if (descriptors[i] >= 0)
                close(descriptors[i]);
    }
    serve(&reaper);
}
