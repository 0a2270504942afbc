#include "runtime/maker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "runtime/copied_root.h"
#include "runtime/limits.h"
#include "runtime/maker_internal.h"
#include "runtime/namespaces.h"
#include "runtime/process_maker.h"
#include "runtime/syscalls.h"

enum {
    PROCESS_LIMIT_MIN = 16,
    /* After KILL, how long the kernel may take (it waits for every process of the namespace). */
    END_MILLISECONDS = 5000,
};

static bool check_config(const struct maker_config *config, struct error *error)
{
    if (config->process_limit < PROCESS_LIMIT_MIN)
        return error_set(error, ERROR_INVALID_ARGUMENT, "a sandbox needs at least %d processes",
                         PROCESS_LIMIT_MIN);
    if (geteuid() == 0 && config->host_id_base < NAMESPACE_IDS)
        return error_set(error, ERROR_INVALID_ARGUMENT,
                         "as root a sandbox needs a range of host ids of its own");
    if (geteuid() != 0 && config->host_id_base != 0)
        return error_set(error, ERROR_INVALID_ARGUMENT,
                         "only root can give a sandbox a range of host ids");
    if (config->state_directory[0] != '/' || config->cache_directory[0] != '/' ||
        (config->from_directory != NULL && config->from_directory[0] != '/'))
        return error_set(error, ERROR_INVALID_ARGUMENT, "directories must be absolute");
    return true;
}

static void kill_and_wait(struct maker *maker)
{
    kill(maker->process, SIGKILL);
    while (waitpid(maker->process, NULL, 0) < 0 && errno == EINTR)
        ;
    maker->process = 0;
}

/* The process-maker may build: its ids are mapped, and its root is there. */
static bool send_build(struct maker *maker, struct error *error)
{
    struct message build = {.type = MESSAGE_BUILD, .value = (int32_t)maker->process_limit};
    return message_send(maker->control, &build, NULL, 0, error);
}

/* Forks, and tells the child to build, or starts to copy the root first. */
static bool fork_maker(struct maker *maker, const struct maker_config *config, struct error *error)
{
    int ends[2];
    if (!message_socketpair(ends, error))
        return false;
    maker->process = namespaces_clone(&maker->pidfd, error);
    if (maker->process == 0)
        process_maker_run(config, &maker->places, ends[1]);
    close(ends[1]);
    if (maker->places.host_sockets >= 0)
        close(maker->places.host_sockets); /* the process-maker has it */
    maker->places.host_sockets = -1;
    maker->control = ends[0];
    if (maker->process < 0)
        return false;
    bool copy = config->from_directory != NULL && !copied_root_exists(config->state_directory);
    if (message_want_sender(maker->control) &&
        namespaces_map_ids(maker->process, config->host_id_base, error) &&
        (copy ? copier_start(maker, config, error) : send_build(maker, error)) &&
        fcntl(maker->control, F_SETFL, O_NONBLOCK) == 0)
        return true;
    kill_and_wait(maker);
    return false;
}

struct maker *maker_spawn(const struct maker_config *config, struct error *error)
{
    if (!check_config(config, error))
        return NULL;
    struct maker *maker = memory_new_of(struct maker);
    maker->pidfd = maker->control = maker->copier_link = -1;
    maker->places.skeleton_lock = maker->places.host_sockets = -1;
    maker->can_switch = config->host_id_base != 0;
    if (!places_prepare(config, &maker->places, error)) {
        maker_free(maker);
        return NULL;
    }
    maker->process_limit = limits_possible(config->process_limit);
    if (!fork_maker(maker, config, error)) {
        maker->process = 0;
        maker_free(maker);
        return NULL;
    }
    return maker;
}

/* ---- the end ---- */

static void finish_requests(struct maker *maker, const struct error *error)
{
    if (!maker->ready) {
        maker->ready = true;
        maker->events.on_ready(maker, error, maker->events.user);
    }
    if (maker->attach_done != NULL)
        maker_main_prepared(maker, error);
    maker_done done = maker->measure_done;
    maker->measure_done = NULL;
    if (done != NULL)
        done(maker, error, maker->measure_user);
}

/* The process-maker is gone: everybody who waits is told, the owner last. */
static void finish(struct maker *maker)
{
    if (maker->gone)
        return;
    maker->gone = true;
    copier_stop(maker);
    reactor_watch_cancel(maker->control_watch);
    reactor_watch_cancel(maker->process_watch);
    reactor_timer_cancel(maker->end_timer);
    maker->control_watch = maker->process_watch = NULL;
    maker->end_timer = NULL;
    struct error error = {0};
    error_set(&error, ERROR_UNAVAILABLE, "the sandbox ended");
    finish_requests(maker, &error);
    error_clear(&error);
    /* A callback may close any session, so start over after each. */
    for (struct maker_session *session = maker->sessions; session != NULL;) {
        if (session->empty) {
            session = session->next;
            continue;
        }
        session_finish(session, "the sandbox ended");
        session = maker->sessions;
    }
    maker->events.on_gone(maker, maker->events.user);
}

static void handle_control(struct maker *maker);

static void on_process(int events, void *argument)
{
    (void)events;
    struct maker *maker = argument;
    pid_t result = waitpid(maker->process, NULL, WNOHANG);
    if (result == 0 || (result < 0 && errno == EINTR))
        return;
    maker->process = 0;
    /* What it said before it ended, above all why it could not build. */
    handle_control(maker);
    finish(maker);
}

static void kill_maker(struct maker *maker);

static void on_end_timer(void *argument)
{
    struct maker *maker = argument;
    if (!maker->killed) {
        kill_maker(maker);
        return;
    }
    log_warn("the kernel does not end the processes of the sandbox");
    finish(maker);
}

static void set_end_timer(struct maker *maker, unsigned milliseconds)
{
    reactor_timer_cancel(maker->end_timer);
    maker->end_timer = reactor_timer_start(maker->reactor, milliseconds, 0, on_end_timer, maker);
}

static void kill_maker(struct maker *maker)
{
    maker->killed = true;
    if (maker->process > 0)
        kill(maker->process, SIGKILL);
    set_end_timer(maker, END_MILLISECONDS);
}

static bool has_processes(const struct maker *maker)
{
    for (const struct maker_session *session = maker->sessions; session != NULL;
         session = session->next)
        if (!session->empty)
            return true;
    return false;
}

void maker_session_emptied(struct maker *maker)
{
    if (maker->ending && !maker->killed && !has_processes(maker))
        kill_maker(maker);
}

void maker_terminate(struct maker *maker, unsigned grace_milliseconds)
{
    if (maker->gone || maker->killed)
        return;
    maker->ending = true;
    if (grace_milliseconds == 0 || !has_processes(maker)) {
        kill_maker(maker);
        return;
    }
    for (struct maker_session *session = maker->sessions; session != NULL; session = session->next)
        if (!session->empty)
            message_send_simple(session->socket, MESSAGE_KILL, (int32_t)grace_milliseconds);
    set_end_timer(maker, grace_milliseconds);
}

void maker_free(struct maker *maker)
{
    if (maker == NULL)
        return;
    copier_stop(maker);
    if (maker->process > 0)
        kill_and_wait(maker);
    while (maker->sessions != NULL) {
        /* Nothing is delivered any more. */
        maker->sessions->empty = true;
        maker_session_close(maker->sessions);
    }
    reactor_watch_cancel(maker->control_watch);
    reactor_watch_cancel(maker->process_watch);
    reactor_timer_cancel(maker->end_timer);
    places_release(&maker->places);
    if (maker->control >= 0)
        close(maker->control);
    if (maker->pidfd >= 0)
        close(maker->pidfd);
    for (size_t i = 0; i < maker->warning_count; i++)
        free(maker->warnings[i]);
    free(maker);
}

/* ---- messages of the process-maker ---- */

static void handle_ready(struct maker *maker, const struct message *message)
{
    struct error error = {0};
    if (maker->ready)
        return;
    maker->ready = true;
    bool failed = message_get_error(message, &error);
    if (!failed)
        maker->root = message->root;
    maker->events.on_ready(maker, failed ? &error : NULL, maker->events.user);
    error_clear(&error);
}

static void complete_attach(struct maker *maker, const struct error *error)
{
    maker_done done = maker->attach_done;
    maker->attach_done = NULL;
    maker->attached = error == NULL;
    if (done != NULL)
        done(maker, error, maker->attach_user);
}

/* Controls are prepared when the process-maker says so, and applied when main itself does. */
static void attach_if_complete(struct maker *maker)
{
    if (maker->attach_done != NULL && maker->attached && maker->main != NULL &&
        maker->main->prepared)
        complete_attach(maker, NULL);
}

void maker_main_prepared(struct maker *maker, const struct error *error)
{
    if (error != NULL) {
        complete_attach(maker, error);
        return;
    }
    attach_if_complete(maker);
}

static void handle_attached(struct maker *maker, const struct message *message)
{
    struct error error = {0};
    if (message_get_error(message, &error)) {
        complete_attach(maker, &error);
        error_clear(&error);
        return;
    }
    maker->controls = message->controls;
    maker->attached = true;
    attach_if_complete(maker);
}

static void measure_if_complete(struct maker *maker)
{
    if (maker->measure_done == NULL || !maker->measure_ponged || !maker->measure_answered)
        return;
    struct error error = {0};
    maker_done done = maker->measure_done;
    maker->measure_done = NULL;
    bool collected = evidence_collect(maker, maker->evidence, &error);
    done(maker, collected ? NULL : &error, maker->measure_user);
    error_clear(&error);
}

void maker_main_measured(struct maker *maker, const struct message *message)
{
    maker->main_facts = message->main;
    maker->measure_answered = true;
    measure_if_complete(maker);
}

static void handle_message(struct maker *maker, const struct message *message,
                           const struct message_sender *sender)
{
    switch (message->type) {
    case MESSAGE_READY:
        handle_ready(maker, message);
        break;
    case MESSAGE_WARNING:
        if (maker->on_warning != NULL)
            maker->on_warning(message->text, maker->attach_user);
        break;
    case MESSAGE_ATTACHED:
        handle_attached(maker, message);
        break;
    case MESSAGE_PONG:
        maker->measure_ponged = sender->process == maker->process;
        measure_if_complete(maker);
        break;
    default:
        break;
    }
}

static void handle_control(struct maker *maker)
{
    for (;;) {
        struct message message;
        struct message_sender sender = {0};
        int descriptors[MESSAGE_DESCRIPTORS_MAX];
        enum message_result result =
            message_receive(maker->control, &message, descriptors, &sender);
        if (result == MESSAGE_END && maker->control_watch != NULL)
            /* The pidfd tells the rest. */
            reactor_watch_update(maker->control_watch, 0);
        if (result != MESSAGE_GOT)
            return;
        message.text[sizeof(message.text) - 1] = '\0';
        handle_message(maker, &message, &sender);
        if (maker->gone)
            return;
    }
}

static void on_control(int events, void *argument)
{
    (void)events;
    handle_control(argument);
}

static void keep_warning(struct maker *maker, const char *text)
{
    if (maker->warning_count < sizeof(maker->warnings) / sizeof(maker->warnings[0]))
        maker->warnings[maker->warning_count++] = memory_strdup(text);
}

/* The copy of the root is there, or cannot be had. */
static void on_copier(int events, void *argument)
{
    (void)events;
    struct maker *maker = argument;
    struct error error = {0};
    struct message message;
    enum message_result result;
    while ((result = copier_receive(maker, &message)) == MESSAGE_GOT &&
           message.type == MESSAGE_WARNING)
        keep_warning(maker, message.text);
    if (result == MESSAGE_NONE)
        return;
    if (result == MESSAGE_END)
        error_set(&error, ERROR_INTERNAL, "the process that copied the root was killed");
    else
        message_get_error(&message, &error);
    copier_stop(maker);
    if (error.code == ERROR_OK && send_build(maker, &error))
        return;
    maker->ready = true;
    maker->events.on_ready(maker, &error, maker->events.user);
    error_clear(&error);
}

/* ---- requests ---- */

bool maker_watch(struct maker *maker, struct reactor *reactor, const struct maker_events *events,
                 struct error *error)
{
    maker->reactor = reactor;
    maker->events = *events;
    maker->control_watch =
        reactor_watch_start(reactor, maker->control, UV_READABLE, on_control, maker, error);
    if (maker->control_watch == NULL)
        return false;
    maker->process_watch =
        reactor_watch_start(reactor, maker->pidfd, UV_READABLE, on_process, maker, error);
    if (maker->process_watch == NULL)
        return false;
    if (maker->copier != 0)
        maker->copier_watch =
            reactor_watch_start(reactor, maker->copier_link, UV_READABLE, on_copier, maker, error);
    return maker->copier == 0 || maker->copier_watch != NULL;
}

static bool send_attach(struct maker *maker, const struct maker_policy *policy, struct error *error)
{
    const struct policy_header header = {
        .read_only_count = (uint32_t)policy->read_only_count,
        .read_write_count = (uint32_t)policy->read_write_count,
        .include_workdir = policy->include_workdir,
        .landlock_required = policy->landlock_required,
        .has_filesystem = policy->has_filesystem,
    };
    const char *const identity[] = {policy->run_as_user != NULL ? policy->run_as_user : "",
                                    policy->run_as_group != NULL ? policy->run_as_group : ""};
    const struct blob_string_list lists[] = {
        {identity, 2},
        {policy->read_only, policy->read_only_count},
        {policy->read_write, policy->read_write_count},
    };
    CLEANUP_CLOSE int blob = blob_create(&header, sizeof(header), lists, 3, error);
    CLEANUP_CLOSE int other_end = -1;
    if (blob < 0)
        return false;
    maker->main = session_new(maker, &other_end, error);
    struct message message = {.type = MESSAGE_ATTACH};
    return maker->main != NULL &&
           message_send(maker->control, &message, (int[]){blob, other_end}, 2, error);
}

void maker_attach(struct maker *maker, const struct maker_policy *policy,
                  void (*on_warning)(const char *text, void *user), maker_done done, void *user)
{
    struct error error = {0};
    if (maker->gone || maker->ending)
        error_set(&error, ERROR_UNAVAILABLE, "the sandbox ended");
    else if (maker->attach_requested)
        error_set(&error, ERROR_FAILED_PRECONDITION, "the sandbox is attached already");
    else {
        maker->attach_requested = true;
        maker->on_warning = on_warning;
        maker->attach_user = user;
        for (size_t i = 0; i < maker->warning_count && on_warning != NULL; i++)
            on_warning(maker->warnings[i], user);
        if (send_attach(maker, policy, &error)) {
            maker->attach_done = done;
            return;
        }
    }
    done(maker, &error, user);
    error_clear(&error);
}

void maker_measure(struct maker *maker, struct maker_evidence *ret_evidence, maker_done done,
                   void *user)
{
    struct error error = {0};
    if (maker->gone || maker->ending)
        error_set(&error, ERROR_UNAVAILABLE, "the sandbox ended");
    else if (!maker->attached || maker->main == NULL || maker->main->requested)
        error_set(&error, ERROR_FAILED_PRECONDITION,
                  "only a main process that waits can be measured");
    else if (maker->measure_done != NULL)
        error_set(&error, ERROR_FAILED_PRECONDITION, "a measurement is under way");
    else if (!message_send_simple(maker->control, MESSAGE_PING, 0) ||
             !message_send_simple(maker->main->socket, MESSAGE_MEASURE, 0))
        error_set(&error, ERROR_UNAVAILABLE, "the sandbox does not answer");
    else {
        maker->evidence = ret_evidence;
        maker->measure_ponged = maker->measure_answered = false;
        maker->measure_done = done;
        maker->measure_user = user;
        return;
    }
    done(maker, &error, user);
    error_clear(&error);
}
