/* Reads from top to bottom as the boundary is made: silence, maps, namespaces, root, rights; then
 * requests are served until the runtime ends. */
#include "runtime/process_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/descriptors.h"
#include "runtime/exec_child.h"
#include "runtime/identity.h"
#include "runtime/landlock.h"
#include "runtime/maker_protocol.h"
#include "runtime/namespaces.h"
#include "runtime/process_tree.h"
#include "runtime/reaper.h"
#include "runtime/root.h"
#include "runtime/seccomp.h"
#include "runtime/silence.h"
#include "runtime/syscalls.h"

enum {
    /* Between two looks for orphans that do not end at once. */
    ORPHAN_ROUND_MILLISECONDS = 20,
    REAP_AT_ONCE = 64,
};

struct process_maker {
    const struct maker_config *config;
    const struct places *places;
    int control;  /* to the runtime; requests, and the death link */
    int children; /* signalfd for SIGCHLD */
    int proc;
    struct controls controls;
    bool attached;
    bool orphans;                          /* processes without a reaper may be there */
    pid_t reapers[2 * MAKER_SESSIONS_MAX]; /* some of them may be ending */
    size_t reaper_count;
};

/* Ends everything: the kernel kills the rest of the pid namespace with its process 1. */
static _Noreturn void end_sandbox(void)
{
    _exit(0);
}

static void wait_for_maps(struct process_maker *maker)
{
    struct message message;
    int descriptors[MESSAGE_DESCRIPTORS_MAX];
    enum message_result result;
    do
        result = message_receive(maker->control, &message, descriptors, NULL);
    while (result == MESSAGE_NONE);
    if (result != MESSAGE_GOT || message.type != MESSAGE_BUILD)
        end_sandbox();
    maker->controls.process_limit = (unsigned)message.value;
}

/* Whether the runtime is still there; asked between the steps of building. */
static bool is_linked(const struct process_maker *maker)
{
    struct pollfd polled = {.fd = maker->control, .events = POLLIN};
    char byte;
    return poll(&polled, 1, 0) == 0 || recv(maker->control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static bool build_boundary(struct process_maker *maker, struct root *root, struct error *error)
{
    bool can_switch = maker->config->host_id_base != 0;
    maker->controls.identity.can_switch = can_switch;
    maker->controls.composed = maker->places->rootfs == NULL;

    if (!namespaces_separate(error) || !root_gather(root, maker->places, error))
        return false;
    if (maker->places->host_sockets >= 0)
        close(maker->places->host_sockets);
    if (!is_linked(maker))
        end_sandbox();
    /* The sources are open; from here on nothing needs the caller's rights over files. */
    if (!identity_become_inner_root(can_switch, error) || !root_assemble(root, error) ||
        !root_enter(root, error))
        return false;
    if (!namespaces_set_host_name(maker->config->sandbox_name, error) ||
        !namespaces_raise_loopback(error))
        return false;
    maker->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (maker->proc < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '/proc'");
    return identity_reduce(IDENTITY_BUILDER, error);
}

/* ---- requests ---- */

static void close_all(int descriptors[MESSAGE_DESCRIPTORS_MAX])
{
    for (size_t i = 0; i < MESSAGE_DESCRIPTORS_MAX; i++) {
        if (descriptors[i] >= 0)
            close(descriptors[i]);
        descriptors[i] = -1;
    }
}

/* Forks a reaper, which forks the child. `start` is NULL for main. */
static bool fork_session(struct process_maker *maker, int session, const struct message *start,
                         const int descriptors[MESSAGE_DESCRIPTORS_MAX], struct error *error)
{
    if (maker->reaper_count == sizeof(maker->reapers) / sizeof(maker->reapers[0]))
        return error_set(error, ERROR_RESOURCE_EXHAUSTED, "the sandbox keeps %zu sessions already",
                         maker->reaper_count);
    pid_t reaper = syscall_fork();
    if (reaper < 0)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno,
                               "cannot start a process: the sandbox's limit may be reached");
    if (reaper == 0) {
        close(maker->control);
        close(maker->children);
        reaper_run(&maker->controls, session, start, descriptors);
    }
    maker->reapers[maker->reaper_count++] = reaper;
    return true;
}

static void send_warning(const char *text, void *user)
{
    struct process_maker *maker = user;
    struct message message = {.type = MESSAGE_WARNING};
    size_t length = strnlen(text, sizeof(message.text) - 1);
    memcpy(message.text, text, length);
    message_send(maker->control, &message, NULL, 0, NULL);
}

/* The home of the workload, where a copied root has none. */
static void make_home(const struct identity *identity)
{
    if (mkdir(identity->home, 0755) == 0 &&
        chown(identity->home, identity->user_id, identity->group_id) != 0)
        rmdir(identity->home);
}

/* A composed root gives a name to the ids that the policy chose. */
static bool name_identity(const struct controls *controls, struct error *error)
{
    const struct identity *identity = &controls->identity;
    if (!controls->composed ||
        (identity->user_id == NAMESPACE_WORKLOAD_ID && identity->group_id == NAMESPACE_WORKLOAD_ID))
        return true;
    CLEANUP_FREE char *passwd = places_passwd(identity->user_id, identity->group_id);
    CLEANUP_FREE char *group = places_group(identity->group_id);
    return root_replace_accounts(passwd, group, error);
}

static bool prepare_controls(struct process_maker *maker, int policy, struct error *error)
{
    struct policy_header header;
    struct blob blob;
    if (!blob_open(policy, &header, sizeof(header), &blob, error))
        return false;
    const char *user = blob_next(&blob);
    const char *group = blob_next(&blob);
    const char **read_only = blob_next_array(&blob, header.read_only_count);
    const char **read_write = blob_next_array(&blob, header.read_write_count);
    if (user == NULL || group == NULL || read_only == NULL || read_write == NULL)
        return error_set(error, ERROR_INTERNAL, "the policy is malformed");

    struct controls *controls = &maker->controls;
    if (!identity_find(user, group, controls->identity.can_switch, &controls->identity, error))
        return false;
    make_home(&controls->identity);
    struct landlock_request request = {
        .read_only = read_only,
        .read_only_count = header.read_only_count,
        .read_write = read_write,
        .read_write_count = header.read_write_count,
        .include_workdir = header.include_workdir,
        .required = header.landlock_required,
        .has_filesystem = header.has_filesystem,
        .home = controls->identity.home,
    };
    bool prepared = name_identity(controls, error) &&
                    landlock_build(&request, send_warning, maker, &controls->landlock_ruleset,
                                   &controls->landlock_abi, error) &&
                    identity_map(&controls->identity, controls->composed, error) &&
                    identity_reduce(IDENTITY_STARTER, error) && seccomp_enforce(error);
    free(read_only);
    free(read_write);
    return prepared;
}

static void handle_attach(struct process_maker *maker, int descriptors[MESSAGE_DESCRIPTORS_MAX])
{
    struct error error = {0};
    static const int none[MESSAGE_DESCRIPTORS_MAX] = {-1, -1, -1, -1, -1};
    struct message reply = {.type = MESSAGE_ATTACHED};
    bool attached = !maker->attached && prepare_controls(maker, descriptors[0], &error) &&
                    fork_session(maker, descriptors[1], NULL, none, &error);
    if (!attached) {
        if (error.code == ERROR_OK)
            error_set(&error, ERROR_FAILED_PRECONDITION, "the sandbox is attached already");
        message_send_error(maker->control, MESSAGE_ATTACHED, 0, &error);
        error_clear(&error);
        return;
    }
    maker->attached = true;
    reply.controls.landlock_abi = maker->controls.landlock_abi;
    reply.controls.landlock_installed = maker->controls.landlock_ruleset >= 0;
    message_send(maker->control, &reply, NULL, 0, NULL);
}

static void handle_exec(struct process_maker *maker, const struct message *message,
                        const int descriptors[MESSAGE_DESCRIPTORS_MAX])
{
    struct error error = {0};
    int session = descriptors[1];
    const int start[MESSAGE_DESCRIPTORS_MAX] = {descriptors[0], descriptors[2], descriptors[3],
                                                descriptors[4], -1};
    bool forked = maker->attached ? fork_session(maker, session, message, start, &error)
                                  : error_set(&error, ERROR_FAILED_PRECONDITION,
                                              "the sandbox has no policy yet");
    if (forked)
        return;
    message_send_error(session, MESSAGE_START_FAILED, 126, &error);
    error_clear(&error);
}

static bool forget_reaper(struct process_maker *maker, pid_t process)
{
    for (size_t i = 0; i < maker->reaper_count; i++)
        if (maker->reapers[i] == process) {
            maker->reapers[i] = maker->reapers[--maker->reaper_count];
            return true;
        }
    return false;
}

static void handle_end_session(struct process_maker *maker, pid_t process)
{
    for (size_t i = 0; i < maker->reaper_count; i++)
        if (maker->reapers[i] == process)
            kill(process, SIGKILL);
}

static void handle_control(struct process_maker *maker)
{
    struct message message;
    int descriptors[MESSAGE_DESCRIPTORS_MAX];
    enum message_result result = message_receive(maker->control, &message, descriptors, NULL);
    if (result == MESSAGE_END)
        end_sandbox();
    if (result != MESSAGE_GOT)
        return;
    switch (message.type) {
    case MESSAGE_PING:
        message_send_simple(maker->control, MESSAGE_PONG, 0);
        break;
    case MESSAGE_ATTACH:
        handle_attach(maker, descriptors);
        break;
    case MESSAGE_EXEC:
        handle_exec(maker, &message, descriptors);
        break;
    case MESSAGE_END_SESSION:
        handle_end_session(maker, message.value);
        break;
    default:
        break;
    }
    close_all(descriptors);
}

/* ---- children ---- */

/* A reaper ended, or the workload stopped it, or an orphan came here and ended. Returns whether
 * there may be more: a workload may end and stop processes as fast as they are seen to. */
static bool reap(struct process_maker *maker)
{
    for (int i = 0; i < REAP_AT_ONCE; i++) {
        siginfo_t information = {0};
        if (waitid(P_ALL, 0, &information, WEXITED | WSTOPPED | WNOHANG) != 0) {
            if (errno == EINTR)
                continue;
            return false;
        }
        if (information.si_pid == 0)
            return false;
        if (information.si_code == CLD_STOPPED) {
            /* A workload with the reaper's id can stop it; not for long. */
            kill(information.si_pid, SIGCONT);
            continue;
        }
        bool clean = information.si_code == CLD_EXITED && information.si_status == 0;
        if (forget_reaper(maker, information.si_pid) && !clean)
            maker->orphans = true;
    }
    return true;
}

/* Only a session whose reaper was killed leaves orphans here (decision P8). */
static void kill_orphans(struct process_maker *maker)
{
    if (!maker->orphans)
        return;
    enum process_tree_result result =
        process_tree_kill(maker->proc, getpid(), maker->reapers, maker->reaper_count);
    if (result == PROCESS_TREE_BLIND)
        end_sandbox(); /* nothing else would end them */
    maker->orphans = result == PROCESS_TREE_KILLED;
}

static _Noreturn void serve(struct process_maker *maker)
{
    bool more = false;
    for (;;) {
        struct pollfd polled[] = {
            {.fd = maker->control, .events = POLLIN},
            {.fd = maker->children, .events = POLLIN},
        };
        int timeout = more ? 0 : maker->orphans ? ORPHAN_ROUND_MILLISECONDS : -1;
        if (poll(polled, 2, timeout) < 0 && errno != EINTR)
            end_sandbox();
        if (polled[1].revents != 0 || more) {
            struct signalfd_siginfo information[8];
            while (read(maker->children, information, sizeof(information)) > 0)
                ;
            more = reap(maker);
        }
        kill_orphans(maker);
        if (polled[0].revents != 0)
            handle_control(maker);
    }
}

static void open_children(struct process_maker *maker)
{
    sigset_t children;
    sigemptyset(&children);
    sigaddset(&children, SIGCHLD);
    maker->children = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
    if (maker->children < 0)
        end_sandbox();
}

_Noreturn void process_maker_run(const struct maker_config *config, const struct places *places,
                                 int control)
{
    struct process_maker maker = {
        .config = config,
        .places = places,
        .control = control,
        .controls = {.landlock_ruleset = -1},
    };
    struct error error = {0};
    struct root root;
    silence_descriptors(control, places->host_sockets);
    wait_for_maps(&maker);
    silence_process();
    open_children(&maker);
    if (!build_boundary(&maker, &root, &error)) {
        message_send_error(control, MESSAGE_READY, 0, &error);
        end_sandbox();
    }
    struct message ready = {.type = MESSAGE_READY, .root = root.facts};
    message_send(control, &ready, NULL, 0, NULL);
    serve(&maker);
}
