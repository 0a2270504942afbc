#include "client/watch.h"

#include <stdlib.h>

#include "base/text.h"
#include "client/failure.h"
#include "client/interrupt.h"
#include "proto/method_table.h"

enum { PATIENCE_MAX_SECONDS = 7 * 24 * 3600 };

/* What ends the watching. */
enum goal {
    GOAL_SETTLED,   /* the gateway says that there is nothing more to wait for */
    GOAL_NOT_READY, /* a state that is not ready */
    GOAL_GONE,      /* the sandbox is removed */
};

/* One WatchSandbox call. */
struct stream {
    struct arena *arena; /* holds the newest state alone */
    const Openshell__V1__Sandbox *newest;
    enum goal goal;
    struct reactor *reactor;
    struct reactor_timer *timer;
    uint64_t patience;
    bool restart_patience;
    bool enough;
    bool timed_out;
    bool done;
    struct error status;
};

static void on_timer(void *argument)
{
    struct stream *stream = argument;
    stream->timed_out = true;
}

static void restart_timer(struct stream *stream)
{
    reactor_timer_cancel(stream->timer);
    stream->timer = reactor_timer_start(stream->reactor, stream->patience, 0, on_timer, stream);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct stream *stream = user;
    const Openshell__V1__SandboxStreamEvent *event =
        (const Openshell__V1__SandboxStreamEvent *)message;
    if (stream->timer != NULL && stream->restart_patience)
        restart_timer(stream);
    if (event->payload_case == OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_SANDBOX) {
        arena_reset(stream->arena);
        stream->newest = sandbox_copy(event->sandbox, stream->arena);
        if (stream->goal == GOAL_NOT_READY &&
            sandbox_outcome(stream->newest, NULL) != SANDBOX_READY)
            stream->enough = true;
    }
    rpc_call_read(call);
}

static void on_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct stream *stream = user;
    stream->done = true;
    error_copy(&stream->status, status);
}

static struct rpc_call *start(struct connection *connection, const char *sandbox, enum goal goal,
                              struct stream *stream)
{
    static const struct rpc_call_events events = {.on_message = on_message, .on_done = on_done};
    *stream = (struct stream){.goal = goal, .arena = arena_new(0)};
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.sandbox = (char *)sandbox;
    request.follow_status = true;
    request.follow_events = goal == GOAL_SETTLED;
    request.stop_on_terminal = goal == GOAL_SETTLED;
    struct rpc_call *call = rpc_call_start(
        connection->channel, &rpc_openshell_v1_OpenShell_WatchSandbox, NULL, &events, stream);
    rpc_call_send(call, &request.base);
    rpc_call_half_close(call);
    rpc_call_read(call);
    return call;
}

/* Runs the loop until the stream ended or is not needed any longer; ends it then. */
static void run(struct connection *connection, struct rpc_call *call, struct stream *stream)
{
    bool cancelled = false;
    while (!stream->done) {
        if (!cancelled && (stream->enough || stream->timed_out || interrupt_number() != 0)) {
            rpc_call_cancel(call);
            cancelled = true;
        }
        reactor_run_once(connection->reactor);
    }
}

static bool has_ended_well(const struct connection *connection, const struct stream *stream,
                           const struct watch *watch, struct error *error)
{
    if (interrupt_number() != 0)
        return failure_set(error, CLIENT_REASON_INTERRUPTED, "interrupted");
    if (stream->timed_out && stream->goal != GOAL_NOT_READY)
        return failure_set(error, CLIENT_REASON_TIMED_OUT, "sandbox '%s' %s for %lld seconds",
                           watch->sandbox,
                           watch->restart_patience ? "made no progress" : "was waited for",
                           (long long)watch->patience / 1000);
    if (!stream->enough && !stream->timed_out && stream->status.code != ERROR_OK) {
        error_copy(error, &stream->status);
        connection_check(connection, error);
        failure_about(error, watch->sandbox);
        return false;
    }
    if (stream->newest == NULL)
        return error_set(error, ERROR_INTERNAL, "the gateway said nothing about sandbox '%s'",
                         watch->sandbox);
    return true;
}

static const Openshell__V1__Sandbox *watch_once(struct connection *connection,
                                                const struct watch *watch, enum goal goal,
                                                struct error *error)
{
    struct stream stream;
    struct rpc_call *call = start(connection, watch->sandbox, goal, &stream);
    stream.reactor = connection->reactor;
    stream.patience = (uint64_t)watch->patience;
    stream.restart_patience = watch->restart_patience;
    if (watch->patience > 0)
        restart_timer(&stream);
    run(connection, call, &stream);
    reactor_timer_cancel(stream.timer);
    const Openshell__V1__Sandbox *newest = NULL;
    if (has_ended_well(connection, &stream, watch, error))
        newest = sandbox_copy(stream.newest, connection->arena);
    error_clear(&stream.status);
    arena_free(stream.arena);
    return newest;
}

const Openshell__V1__Sandbox *watch_linger(struct connection *connection, const char *sandbox,
                                           int64_t milliseconds, struct error *error)
{
    const struct watch watch = {.sandbox = sandbox, .patience = milliseconds};
    return watch_once(connection, &watch, GOAL_NOT_READY, error);
}

bool watch_gone(struct connection *connection, const char *sandbox, int64_t milliseconds)
{
    const struct watch watch = {.sandbox = sandbox, .patience = milliseconds};
    struct error error = {0};
    bool gone =
        watch_once(connection, &watch, GOAL_GONE, &error) != NULL || error.code == ERROR_NOT_FOUND;
    error_clear(&error);
    return gone;
}

const Openshell__V1__Sandbox *watch_wait(struct connection *connection, const struct watch *watch,
                                         struct error *error)
{
    for (;;) {
        const Openshell__V1__Sandbox *state = watch_once(connection, watch, GOAL_SETTLED, error);
        if (state == NULL || !watch->wait_for_end || sandbox_outcome(state, NULL) != SANDBOX_READY)
            return state;
        /* Ready ends the first kind of watching; the second kind ends with readiness. */
        state = watch_linger(connection, watch->sandbox, 0, error);
        if (state == NULL || sandbox_outcome(state, NULL) == SANDBOX_ENDED)
            return state;
    }
}

int64_t watch_patience(const char *variable, int fallback_seconds, struct error *error)
{
    const char *value = getenv(variable);
    long long seconds = fallback_seconds;
    if (value != NULL && value[0] != '\0' &&
        !text_parse_integer(value, 1, PATIENCE_MAX_SECONDS, &seconds)) {
        failure_usage(error, "the environment variable %s needs a number of seconds from 1 to %d",
                      variable, PATIENCE_MAX_SECONDS);
        return -1;
    }
    return (int64_t)seconds * 1000;
}
