#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/maker_internal.h"

enum {
    /* After the grace: the reaper is given this long, then the process-maker ends it, then the
     * session counts as ended. Together 5 s, as the header promises. */
    KILL_MILLISECONDS = 4000,
    KILL_LAST_MILLISECONDS = 1000,
};

static void close_descriptor(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static void release(struct maker_session *session)
{
    if (--session->references > 0)
        return;
    close_descriptor(&session->socket);
    close_descriptor(&session->input);
    close_descriptor(&session->output);
    close_descriptor(&session->error);
    free(session);
}

static void stop_watching(struct maker_session *session)
{
    reactor_watch_cancel(session->watch);
    session->watch = NULL;
    reactor_timer_cancel(session->kill_timer);
    session->kill_timer = NULL;
}

static void unlink_session(struct maker_session *session)
{
    struct maker *maker = session->maker;
    for (struct maker_session **link = &maker->sessions; *link != NULL; link = &(*link)->next)
        if (*link == session) {
            *link = session->next;
            maker->session_count--;
            break;
        }
    if (maker->main == session)
        maker->main = NULL;
}

/* ---- events ---- */

static void tell_started(struct maker_session *session, const struct error *error)
{
    if (session->started || session->closed || !session->requested)
        return;
    session->started = true;
    session->failed = error != NULL;
    if (session->events.on_started != NULL)
        session->events.on_started(session, error, session->user);
}

static void tell_exit(struct maker_session *session, const struct maker_exit *status)
{
    if (session->exited)
        return;
    session->exited = true;
    if (!session->closed && session->requested && session->events.on_exit != NULL)
        session->events.on_exit(session, status, session->user);
}

static void tell_empty(struct maker_session *session)
{
    if (session->empty)
        return;
    session->empty = true;
    stop_watching(session);
    if (!session->closed && session->requested && session->events.on_empty != NULL)
        session->events.on_empty(session, session->user);
    maker_session_emptied(session->maker);
}

/* Nothing more will come: what is missing is unknown, and said to be. */
static void give_up(struct maker_session *session, const char *reason)
{
    struct maker_exit status = {.kind = MAKER_UNKNOWN};
    struct error error = {0};
    snprintf(status.reason, sizeof(status.reason), "%s", reason);
    error_set(&error, ERROR_UNAVAILABLE, "%s", reason);
    if (session == session->maker->main && !session->requested)
        maker_main_prepared(session->maker, &error);
    tell_started(session, &error);
    tell_exit(session, &status);
    tell_empty(session);
    error_clear(&error);
}

static void handle_exited(struct maker_session *session, int wait_status)
{
    struct maker_exit status = {.kind = MAKER_UNKNOWN};
    if (WIFEXITED(wait_status)) {
        status.kind = MAKER_EXITED;
        status.value = WEXITSTATUS(wait_status);
    } else if (WIFSIGNALED(wait_status)) {
        status.kind = MAKER_SIGNALED;
        status.value = WTERMSIG(wait_status);
    } else {
        snprintf(status.reason, sizeof(status.reason), "the kernel gave the wait status %d",
                 wait_status);
    }
    tell_exit(session, &status);
}

static void handle_prepared(struct maker_session *session, const struct message_sender *sender)
{
    session->prepared = true;
    session->host_process = sender->process;
    if (session != session->maker->main)
        return;
    session->maker->host_user_id = sender->user_id;
    session->maker->host_group_id = sender->group_id;
    maker_main_prepared(session->maker, NULL);
}

static void handle_started(struct maker_session *session, const struct message *message,
                           int descriptors[MESSAGE_DESCRIPTORS_MAX])
{
    session->process = message->value;
    if (session->terminal && descriptors[0] >= 0) {
        fcntl(descriptors[0], F_SETFL, O_RDWR | O_NONBLOCK);
        session->input = fcntl(descriptors[0], F_DUPFD_CLOEXEC, 0);
        session->output = descriptors[0];
        descriptors[0] = -1;
    }
    tell_started(session, NULL);
}

static void handle_start_failed(struct maker_session *session, const struct message *message)
{
    struct error error = {0};
    message_get_error(message, &error);
    if (session == session->maker->main && !session->requested)
        maker_main_prepared(session->maker, &error);
    else
        tell_started(session, &error);
    error_clear(&error);
}

static void handle_message(struct maker_session *session, struct message *message,
                           const struct message_sender *sender,
                           int descriptors[MESSAGE_DESCRIPTORS_MAX])
{
    switch (message->type) {
    case MESSAGE_REAPER:
        session->reaper = message->value;
        break;
    case MESSAGE_PREPARED:
        handle_prepared(session, sender);
        break;
    case MESSAGE_MEASURED:
        maker_main_measured(session->maker, message);
        break;
    case MESSAGE_STARTED:
        handle_started(session, message, descriptors);
        break;
    case MESSAGE_START_FAILED:
        message->text[sizeof(message->text) - 1] = '\0';
        handle_start_failed(session, message);
        break;
    case MESSAGE_EXITED:
        handle_exited(session, message->value);
        break;
    case MESSAGE_EMPTY:
        tell_empty(session);
        break;
    default:
        break;
    }
}

/* Returns whether the other end is closed. A callback may close the session, which only marks it
 * as long as somebody works with it. */
static bool receive(struct maker_session *session)
{
    while (!session->empty && session->socket >= 0) {
        struct message message;
        struct message_sender sender = {0};
        int descriptors[MESSAGE_DESCRIPTORS_MAX];
        enum message_result result =
            message_receive(session->socket, &message, descriptors, &sender);
        if (result == MESSAGE_NONE)
            return false;
        if (result == MESSAGE_END)
            return true;
        handle_message(session, &message, &sender, descriptors);
        for (size_t i = 0; i < MESSAGE_DESCRIPTORS_MAX; i++)
            if (descriptors[i] >= 0)
                close(descriptors[i]);
    }
    return false;
}

static void on_socket(int events, void *argument)
{
    (void)events;
    struct maker_session *session = argument;
    session->references++;
    if (receive(session) && !session->empty)
        give_up(session, session->failed
                             ? "it could not be started"
                             : "its reaper was killed, most likely by the workload itself");
    release(session);
}

void session_finish(struct maker_session *session, const char *reason)
{
    session->references++;
    receive(session);
    if (!session->empty)
        give_up(session, reason);
    release(session);
}

struct maker_session *session_new(struct maker *maker, int *ret_other_end, struct error *error)
{
    if (maker->session_count >= MAKER_SESSIONS_MAX + (maker->main != NULL)) {
        error_set(
            error, ERROR_RESOURCE_EXHAUSTED,
            "the sandbox keeps %zu sessions already: end background processes of earlier ones",
            maker->session_count);
        return NULL;
    }
    int ends[2];
    if (!message_socketpair(ends, error))
        return NULL;
    struct maker_session *session = memory_new_of(struct maker_session);
    *session = (struct maker_session){
        .maker = maker,
        .socket = ends[0],
        .input = -1,
        .output = -1,
        .error = -1,
        .references = 1,
    };
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    message_want_sender(ends[0]);
    session->watch =
        reactor_watch_start(maker->reactor, ends[0], UV_READABLE, on_socket, session, error);
    if (session->watch == NULL) {
        close(ends[1]);
        release(session);
        return NULL;
    }
    session->next = maker->sessions;
    maker->sessions = session;
    maker->session_count++;
    *ret_other_end = ends[1];
    return session;
}

/* ---- requests ---- */

/* Pipes for the three streams. `ret_theirs` are the workload's ends. */
static bool make_streams(struct maker_session *session, int ret_theirs[3], struct error *error)
{
    int *const ours[3] = {&session->input, &session->output, &session->error};
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0)
            return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot make a pipe");
        int mine = i == 0 ? 1 : 0;
        *ours[i] = ends[mine];
        ret_theirs[i] = ends[1 - mine];
        fcntl(ends[mine], F_SETFL, O_NONBLOCK);
        /* Or the workload could not open its own /dev/stdout (decision B16). */
        const struct maker *maker = session->maker;
        if (maker->can_switch && fchown(ends[mine], maker->host_user_id, maker->host_group_id) != 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot give a pipe away");
    }
    return true;
}

static int make_spec(const struct maker_session_spec *spec, struct error *error)
{
    if (spec->argc > 0 && spec->argv[0][0] == '\0') {
        error_set(error, ERROR_INVALID_ARGUMENT, "the name of the program is empty");
        return -1;
    }
    const struct spec_header header = {
        .argument_count = (uint32_t)spec->argc,
        .environment_count = (uint32_t)spec->environment_count,
        .columns = (uint16_t)(spec->columns > UINT16_MAX ? UINT16_MAX : spec->columns),
        .rows = (uint16_t)(spec->rows > UINT16_MAX ? UINT16_MAX : spec->rows),
        .terminal = spec->terminal,
        .login_shell = spec->login_shell,
        .helper = (uint8_t)spec->helper,
    };
    const char *workdir = spec->workdir != NULL ? spec->workdir : "";
    const struct blob_string_list lists[] = {
        {&workdir, 1},
        {spec->argv, spec->argc},
        {spec->environment, spec->environment_count},
    };
    return blob_create(&header, sizeof(header), lists, 3, error);
}

/* Sends the order to start over `socket`, with `reaper_end` after the spec when there is one. */
static bool send_start(struct maker_session *session, const struct maker_session_spec *spec,
                       int socket, enum message_type type, int reaper_end, struct error *error)
{
    int theirs[3] = {-1, -1, -1};
    CLEANUP_CLOSE int blob = make_spec(spec, error);
    bool sent = blob >= 0 && (spec->terminal || make_streams(session, theirs, error));
    if (sent) {
        int descriptors[MESSAGE_DESCRIPTORS_MAX];
        size_t count = 0;
        descriptors[count++] = blob;
        if (reaper_end >= 0)
            descriptors[count++] = reaper_end;
        for (int i = 0; i < 3 && !spec->terminal; i++)
            descriptors[count++] = theirs[i];
        struct message message = {.type = type};
        sent = message_send(socket, &message, descriptors, count, error);
    }
    for (int i = 0; i < 3; i++)
        close_descriptor(&theirs[i]);
    return sent;
}

static void prepare_session(struct maker_session *session, const struct maker_session_spec *spec,
                            const struct maker_session_events *events, void *user)
{
    session->events = *events;
    session->user = user;
    session->requested = true;
    session->terminal = spec->terminal;
}

struct maker_session *maker_exec(struct maker *maker, const struct maker_session_spec *spec,
                                 const struct maker_session_events *events, void *user,
                                 struct error *error)
{
    if (maker->gone || maker->ending) {
        error_set(error, ERROR_UNAVAILABLE, "the sandbox ended");
        return NULL;
    }
    if (!maker->attached) {
        error_set(error, ERROR_FAILED_PRECONDITION, "the sandbox has no policy yet");
        return NULL;
    }
    CLEANUP_CLOSE int other_end = -1;
    struct maker_session *session = session_new(maker, &other_end, error);
    if (session == NULL)
        return NULL;
    prepare_session(session, spec, events, user);
    if (send_start(session, spec, maker->control, MESSAGE_EXEC, other_end, error))
        return session;
    session->empty = true;
    maker_session_close(session);
    return NULL;
}

struct maker_session *maker_start_main(struct maker *maker, const struct maker_session_spec *spec,
                                       const struct maker_session_events *events, void *user,
                                       struct error *error)
{
    struct maker_session *session = maker->main;
    if (maker->gone || maker->ending || !maker->attached || session == NULL || session->empty) {
        error_set(error, ERROR_FAILED_PRECONDITION, "no main process waits to be started");
        return NULL;
    }
    if (session->requested) {
        error_set(error, ERROR_FAILED_PRECONDITION, "the main process was started already");
        return NULL;
    }
    if (!send_start(session, spec, session->socket, MESSAGE_START, -1, error))
        return NULL;
    prepare_session(session, spec, events, user);
    return session;
}

static int take(int *descriptor)
{
    int taken = *descriptor;
    *descriptor = -1;
    return taken;
}

int maker_session_take_input(struct maker_session *session)
{
    return take(&session->input);
}

int maker_session_take_output(struct maker_session *session)
{
    return take(&session->output);
}

int maker_session_take_error(struct maker_session *session)
{
    return take(&session->error);
}

pid_t maker_session_process(const struct maker_session *session)
{
    return session->process;
}

void maker_session_signal(struct maker_session *session, int number)
{
    if (!session->empty && number > 0 && number < _NSIG)
        message_send_simple(session->socket, MESSAGE_SIGNAL, number);
}

static void on_kill_timer(void *argument)
{
    struct maker_session *session = argument;
    struct maker *maker = session->maker;
    reactor_timer_cancel(session->kill_timer);
    session->kill_timer = NULL;
    if (session->kill_stage++ == 0) {
        if (session->reaper > 0)
            message_send_simple(maker->control, MESSAGE_END_SESSION, session->reaper);
        session->kill_timer =
            reactor_timer_start(maker->reactor, KILL_LAST_MILLISECONDS, 0, on_kill_timer, session);
        return;
    }
    session->references++;
    receive(session);
    if (!session->empty)
        give_up(session, "its processes did not end in time");
    release(session);
}

void maker_session_kill(struct maker_session *session, unsigned grace_milliseconds)
{
    struct maker *maker = session->maker;
    if (session->empty || maker->gone)
        return;
    message_send_simple(session->socket, MESSAGE_KILL, (int32_t)grace_milliseconds);
    reactor_timer_cancel(session->kill_timer);
    session->kill_stage = 0;
    session->kill_timer =
        reactor_timer_start(maker->reactor, (uint64_t)grace_milliseconds + KILL_MILLISECONDS, 0,
                            on_kill_timer, session);
}

void maker_session_close(struct maker_session *session)
{
    if (session == NULL || session->closed)
        return;
    session->closed = true;
    stop_watching(session);
    unlink_session(session);
    /* The end of file makes the reaper kill what is left. */
    session->empty = true;
    release(session);
}
