#include "supervisor/relay.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/table.h"
#include "boundary/failure.h"
#include "boundary/operations.h"
#include "google/rpc/status.pb-c.h"
#include "method_table.h"
#include "supervisor/activity.h"

#define SESSION_FRAME(name) OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_##name
#define SESSION_EXIT(name) OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_##name

typedef Openshell__Ext__V1__SessionFrame session_frame;
typedef Openshell__Ext__V1__SessionStart session_start;

struct relays {
    struct gateway_link *link;
    const struct launch_supervisor *launch;
    const char *instance_id;
    struct relays_events events;
    struct table *by_channel;
};

struct relay {
    struct relays *relays;
    char *channel_id;
    struct rpc_call *gateway; /* NULL once that leg is over */
    struct rpc_call *runtime;
    struct exchange exchange;
    bool attachment;     /* to the main process; else an exec */
    bool lost;           /* its client went away without a word, or got an error */
    bool finished;       /* exit or error went to the gateway */
    bool gateway_unread; /* the next frame is read when the other leg has room */
    bool runtime_unread;
};

static bool has_room(struct rpc_call *call)
{
    return rpc_call_unsent(call) < RELAY_WINDOW_FRAMES;
}

static void free_when_over(struct relay *relay)
{
    struct relays *relays = relay->relays;
    if (relay->gateway != NULL || relay->runtime != NULL)
        return;
    table_remove(relays->by_channel, relay->channel_id);
    if (relay->attachment)
        relays->events.on_attachment_ended(!relay->lost, relays->events.user);
    free(relay->channel_id);
    free(relay);
}

/* ---- to the gateway ---- */

static void send_session(struct relay *relay, session_frame *frame)
{
    if (relay->gateway == NULL || relay->finished)
        return;
    Openshell__V1__RelayFrame message = OPENSHELL__V1__RELAY_FRAME__INIT;
    message.payload_case = OPENSHELL__V1__RELAY_FRAME__PAYLOAD_SESSION;
    message.session = frame;
    rpc_call_send(relay->gateway, &message.base);
    if (frame->frame_case == SESSION_FRAME(EXIT) || frame->frame_case == SESSION_FRAME(ERROR)) {
        relay->finished = true;
        rpc_call_half_close(relay->gateway);
    }
}

static void send_error(struct relay *relay, const struct error *error)
{
    relay->lost = true;
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    status.code = error->code == ERROR_OK ? ERROR_UNAVAILABLE : (int32_t)error->code;
    status.message = (char *)error->message;
    session_frame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = SESSION_FRAME(ERROR);
    frame.error = &status;
    send_session(relay, &frame);
}

static void send_started(struct relay *relay, Openshell__Ext__V1__SessionStarted *started)
{
    session_frame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = SESSION_FRAME(STARTED);
    frame.started = started;
    send_session(relay, &frame);
}

static void send_exec_started(struct relay *relay,
                              const Openshell__Sandbox__Protocol__V1__ExecStarted *from)
{
    Openshell__Ext__V1__SessionStarted started = OPENSHELL__EXT__V1__SESSION_STARTED__INIT;
    started.process_id = from->process_id;
    started.tty = from->terminal;
    send_started(relay, &started);
}

static void send_attached(struct relay *relay,
                          const Openshell__Sandbox__Protocol__V1__ProcessAttached *from)
{
    Openshell__Ext__V1__SessionStarted started = OPENSHELL__EXT__V1__SESSION_STARTED__INIT;
    started.process_id = (char *)MAIN_PROCESS_ID;
    started.tty = from->terminal;
    started.writer = from->writer;
    started.first_sequence = from->first_sequence;
    started.next_sequence = from->next_sequence;
    started.instance_id = (char *)relay->relays->instance_id;
    send_started(relay, &started);
}

static void send_exit(struct relay *relay, const Openshell__Sandbox__Protocol__V1__Exited *exited)
{
    Openshell__Ext__V1__SessionExit exit_frame = OPENSHELL__EXT__V1__SESSION_EXIT__INIT;
    exit_frame.timed_out = exited->timed_out;
    exit_frame.output_held = exited->output_held;
    const exchange_exit_status *status = exited->status;
    exit_frame.status_case = SESSION_EXIT(UNKNOWN);
    exit_frame.unknown = (char *)"the runtime did not say how the process ended";
    if (status != NULL && status->status_case == EXCHANGE_STATUS(EXITED)) {
        exit_frame.status_case = SESSION_EXIT(EXITED);
        exit_frame.exited = status->exited;
    } else if (status != NULL && status->status_case == EXCHANGE_STATUS(SIGNALED)) {
        exit_frame.status_case = SESSION_EXIT(SIGNALED);
        exit_frame.signaled = status->signaled;
    } else if (status != NULL && status->status_case == EXCHANGE_STATUS(UNKNOWN)) {
        exit_frame.unknown = status->unknown;
    }
    session_frame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = SESSION_FRAME(EXIT);
    frame.exit = &exit_frame;
    send_session(relay, &frame);
}

static void pass_to_gateway(struct relay *relay, const exchange_frame *from)
{
    session_frame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    struct error error = {0};
    switch ((int)from->frame_case) {
    case EXCHANGE_FRAME(EXEC_STARTED):
        send_exec_started(relay, from->exec_started);
        break;
    case EXCHANGE_FRAME(PROCESS_ATTACHED):
        send_attached(relay, from->process_attached);
        break;
    case EXCHANGE_FRAME(STDOUT):
        frame.frame_case = SESSION_FRAME(STDOUT);
        frame.stdout = from->stdout;
        send_session(relay, &frame);
        break;
    case EXCHANGE_FRAME(STDERR):
        frame.frame_case = SESSION_FRAME(STDERR);
        frame.stderr = from->stderr;
        send_session(relay, &frame);
        break;
    case EXCHANGE_FRAME(SKIPPED):
        frame.frame_case = SESSION_FRAME(SKIPPED);
        frame.skipped = from->skipped;
        send_session(relay, &frame);
        break;
    case EXCHANGE_FRAME(EXITED):
        activity_session_ended(relay->channel_id, from->exited);
        send_exit(relay, from->exited);
        break;
    case EXCHANGE_FRAME(FAILURE):
        failure_decode(from->failure, &error);
        activity_session_refused(relay->channel_id, error.message);
        send_error(relay, &error);
        error_clear(&error);
        break;
    default:
        break;
    }
}

static void on_runtime_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct relay *relay = user;
    const exchange_frame *frame = (const exchange_frame *)message;
    struct error error = {0};
    if (!exchange_step(&relay->exchange, TO_SUPERVISOR, frame, &error)) {
        log_warn("the runtime broke the protocol: %s", error.message);
        send_error(relay, &error);
        error_clear(&error);
        rpc_call_cancel(call);
        return;
    }
    pass_to_gateway(relay, frame);
    if (relay->attachment)
        relay->relays->events.on_progress(relay->relays->events.user);
    if (relay->finished || relay->gateway == NULL)
        return;
    relay->runtime_unread = !has_room(relay->gateway);
    if (!relay->runtime_unread)
        rpc_call_read(call);
}

static void on_runtime_sent(struct rpc_call *call, void *user)
{
    (void)call;
    struct relay *relay = user;
    if (relay->gateway_unread && relay->gateway != NULL) {
        relay->gateway_unread = false;
        rpc_call_read(relay->gateway);
    }
}

static void on_runtime_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct relay *relay = user;
    relay->runtime = NULL;
    if (!relay->finished && relay->gateway != NULL) {
        struct error error = {0};
        error_copy(&error, status);
        if (error.code == ERROR_OK || error.code == ERROR_CANCELLED)
            error_set(&error, ERROR_UNAVAILABLE, "the runtime ended the stream without a result");
        else if (error.code == ERROR_UNAVAILABLE)
            error_prefix(&error, "the sandbox's runtime is out of reach");
        send_error(relay, &error);
        error_clear(&error);
    }
    if (relay->gateway_unread && relay->gateway != NULL) { /* it may still say that it gave up */
        relay->gateway_unread = false;
        rpc_call_read(relay->gateway);
    }
    free_when_over(relay);
}

/* ---- to the runtime ---- */

/* False when the frame has no place in the stream. */
static bool send_runtime(struct relay *relay, exchange_frame *frame)
{
    struct error error = {0};
    if (!exchange_step(&relay->exchange, TO_RUNTIME, frame, &error)) {
        log_warn("the gateway broke the protocol: %s", error.message);
        error_clear(&error);
        return false;
    }
    return rpc_call_send(relay->runtime, &frame->base);
}

/* Input larger than a frame may be is passed on in several. */
static bool pass_input(struct relay *relay, ProtobufCBinaryData bytes)
{
    while (bytes.len > 0) {
        exchange_frame frame = EXCHANGE_FRAME_INIT;
        frame.frame_case = EXCHANGE_FRAME(STDIN);
        frame.stdin.data = bytes.data;
        frame.stdin.len = bytes.len < EXCHANGE_CHUNK_LIMIT ? bytes.len : EXCHANGE_CHUNK_LIMIT;
        if (!send_runtime(relay, &frame))
            return false;
        bytes.data += frame.stdin.len;
        bytes.len -= frame.stdin.len;
    }
    return true;
}

static bool pass_to_runtime(struct relay *relay, const session_frame *from)
{
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    Openshell__Sandbox__Protocol__V1__Resize resize =
        OPENSHELL__SANDBOX__PROTOCOL__V1__RESIZE__INIT;
    Openshell__Sandbox__Protocol__V1__Cancel cancel =
        OPENSHELL__SANDBOX__PROTOCOL__V1__CANCEL__INIT;
    switch ((int)from->frame_case) {
    case SESSION_FRAME(STDIN):
        return pass_input(relay, from->stdin);
    case SESSION_FRAME(STDIN_EOF):
        frame.frame_case = EXCHANGE_FRAME(STDIN_EOF);
        frame.stdin_eof = 1;
        break;
    case SESSION_FRAME(RESIZE):
        resize.columns = from->resize->columns;
        resize.rows = from->resize->rows;
        frame.frame_case = EXCHANGE_FRAME(RESIZE);
        frame.resize = &resize;
        break;
    case SESSION_FRAME(SIGNAL):
        frame.frame_case = EXCHANGE_FRAME(PROCESS_SIGNAL);
        frame.process_signal = from->signal;
        break;
    case SESSION_FRAME(ABORT):
        frame.frame_case = EXCHANGE_FRAME(CANCEL);
        frame.cancel = &cancel;
        break;
    default:
        return false;
    }
    return send_runtime(relay, &frame);
}

static bool is_abort(const Openshell__V1__RelayFrame *frame)
{
    return frame->payload_case == OPENSHELL__V1__RELAY_FRAME__PAYLOAD_SESSION &&
           frame->session->frame_case == SESSION_FRAME(ABORT);
}

static void on_gateway_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct relay *relay = user;
    const Openshell__V1__RelayFrame *frame = (const Openshell__V1__RelayFrame *)message;
    if (is_abort(frame))
        relay->lost = true;
    if (relay->runtime == NULL) { /* it ended while the frame was on its way */
        rpc_call_read(call);
        return;
    }
    if ((relay->attachment && is_abort(frame)) ||
        frame->payload_case != OPENSHELL__V1__RELAY_FRAME__PAYLOAD_SESSION ||
        !pass_to_runtime(relay, frame->session)) {
        rpc_call_cancel(relay->runtime); /* an exec is killed, an attachment ends */
        return;
    }
    relay->gateway_unread = !has_room(relay->runtime);
    if (!relay->gateway_unread)
        rpc_call_read(call);
}

static void on_gateway_sent(struct rpc_call *call, void *user)
{
    (void)call;
    struct relay *relay = user;
    if (relay->runtime_unread && relay->runtime != NULL) {
        relay->runtime_unread = false;
        rpc_call_read(relay->runtime);
    }
}

/* A leg that ends without an exit is an abort (decision W4): the runtime kills an exec whose stream
 * is cancelled, unless it keeps running. */
static void on_gateway_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct relay *relay = user;
    relay->gateway = NULL;
    if (status->code != ERROR_OK)
        relay->lost = true;
    if (relay->runtime != NULL && !relay->finished) {
        log_debug("a relay ended before its process: %s", status->message);
        rpc_call_cancel(relay->runtime);
    }
    free_when_over(relay);
}

/* ---- opening ---- */

static bool name_is_set(const session_start *start, const char *entry)
{
    size_t length = strcspn(entry, "=");
    for (size_t i = 0; i < start->n_environment; i++)
        if (strlen(start->environment[i]->key) == length &&
            memcmp(start->environment[i]->key, entry, length) == 0)
            return true;
    return false;
}

/* The sandbox's own environment, and over it what this exec asks for. */
static size_t make_environment(const struct launch_supervisor *launch, const session_start *start,
                               struct arena *arena, ProtobufCBinaryData **ret_entries)
{
    size_t count = 0, most = start->n_environment;
    char *const *own = launch->main.environment;
    for (char *const *entry = own; entry != NULL && *entry != NULL; entry++)
        most++;
    ProtobufCBinaryData *entries = arena_array_of(arena, ProtobufCBinaryData, most + 1);
    for (char *const *entry = own; entry != NULL && *entry != NULL; entry++)
        if (!name_is_set(start, *entry))
            entries[count++] = (ProtobufCBinaryData){strlen(*entry), (uint8_t *)*entry};
    for (size_t i = 0; i < start->n_environment; i++) {
        const Openshell__Ext__V1__SessionStart__EnvironmentEntry *from = start->environment[i];
        size_t name = strlen(from->key);
        uint8_t *text = arena_alloc(arena, name + 1 + from->value.len);
        memcpy(text, from->key, name);
        text[name] = '=';
        if (from->value.len > 0)
            memcpy(text + name + 1, from->value.data, from->value.len);
        entries[count++] = (ProtobufCBinaryData){name + 1 + from->value.len, text};
    }
    *ret_entries = entries;
    return count;
}

static bool send_exec(struct relay *relay, const session_start *start)
{
    Openshell__Sandbox__Protocol__V1__Exec exec = OPENSHELL__SANDBOX__PROTOCOL__V1__EXEC__INIT;
    exec.request_id = start->request_id;
    exec.expiry = start->expiry;
    exec.command = start->command;
    exec.n_command = start->n_command;
    exec.n_environment = make_environment(relay->relays->launch, start,
                                          rpc_call_arena(relay->runtime), &exec.environment);
    exec.workdir = start->workdir;
    exec.terminal = start->tty;
    exec.columns = start->columns;
    exec.rows = start->rows;
    exec.login_shell = !start->no_login_shell;
    exec.timeout = start->timeout;
    exec.keep_running = start->keep_running;
    exec.helper = (uint32_t)start->helper;
    exec.stdin = start->stdin;
    exec.stdin_complete = start->stdin_complete;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(EXEC);
    frame.exec = &exec;
    return send_runtime(relay, &frame);
}

/* A place in the output means something in the run that it was counted in. */
static bool send_attach(struct relay *relay, const session_start *start)
{
    Openshell__Sandbox__Protocol__V1__AttachProcess attach =
        OPENSHELL__SANDBOX__PROTOCOL__V1__ATTACH_PROCESS__INIT;
    attach.process_id = (char *)MAIN_PROCESS_ID;
    attach.read_only = start->read_only;
    attach.columns = start->columns;
    attach.rows = start->rows;
    if (strcmp(start->instance_id, relay->relays->instance_id) == 0)
        attach.from_sequence = start->from_sequence;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(ATTACH_PROCESS);
    frame.attach_process = &attach;
    return send_runtime(relay, &frame);
}

/* Both legs open at once: claiming the relay and starting the process do not wait for each other.
 */
static void open_gateway_leg(struct relay *relay, struct rpc_channel *channel,
                             const char *channel_id)
{
    static const struct rpc_call_events EVENTS = {
        .on_message = on_gateway_message, .on_sent = on_gateway_sent, .on_done = on_gateway_done};
    struct rpc_call_options options = {.bearer = relay->relays->launch->gateway_token};
    relay->gateway =
        rpc_call_start(channel, &rpc_openshell_v1_OpenShell_RelayStream, &options, &EVENTS, relay);
    Openshell__V1__RelayInit init = OPENSHELL__V1__RELAY_INIT__INIT;
    init.channel_id = (char *)channel_id;
    Openshell__V1__RelayFrame frame = OPENSHELL__V1__RELAY_FRAME__INIT;
    frame.payload_case = OPENSHELL__V1__RELAY_FRAME__PAYLOAD_INIT;
    frame.init = &init;
    rpc_call_send(relay->gateway, &frame.base);
    rpc_call_read(relay->gateway);
}

static void open_runtime_leg(struct relay *relay, struct running_boundary *running,
                             const session_start *start)
{
    static const struct rpc_call_events EVENTS = {
        .on_message = on_runtime_message, .on_sent = on_runtime_sent, .on_done = on_runtime_done};
    relay->exchange = (struct exchange){OPERATION_NONE, STATE_BOUND, STATE_SILENT};
    relay->runtime = running_boundary_stream(running, &EVENTS, relay);
    bool asked = relay->runtime != NULL &&
                 (relay->attachment ? send_attach(relay, start) : send_exec(relay, start));
    if (asked) {
        rpc_call_read(relay->runtime);
        return;
    }
    struct error error = {0};
    error_set(&error, ERROR_UNAVAILABLE, "the runtime cannot be reached");
    send_error(relay, &error);
    if (relay->runtime != NULL)
        rpc_call_cancel(relay->runtime);
}

static bool target_known(const Openshell__V1__RelayOpen *open, struct error *error)
{
    if (open->target_case != OPENSHELL__V1__RELAY_OPEN__TARGET_SESSION ||
        open->session->start == NULL)
        return error_set(error, ERROR_UNIMPLEMENTED,
                         "this supervisor relays exec and attach sessions only");
    const session_start *start = open->session->start;
    if (start->kind != OPENSHELL__EXT__V1__SESSION_START__KIND__KIND_EXEC &&
        start->kind != OPENSHELL__EXT__V1__SESSION_START__KIND__KIND_ATTACH_MAIN)
        return error_set(error, ERROR_INVALID_ARGUMENT, "the session's kind is not known");
    return true;
}

bool relays_open(struct relays *relays, struct running_boundary *running,
                 const Openshell__V1__RelayOpen *open, struct error *error)
{
    if (!target_known(open, error))
        return false;
    if (running == NULL)
        return error_set(error, ERROR_UNAVAILABLE, "the sandbox is not running");
    if (open->channel_id[0] == '\0' || table_get(relays->by_channel, open->channel_id) != NULL)
        return error_set(error, ERROR_INVALID_ARGUMENT, "the channel has no name of its own");
    if (table_count(relays->by_channel) >= RELAYS_LIMIT)
        return error_set(error, ERROR_RESOURCE_EXHAUSTED, "more than %d sessions at once",
                         RELAYS_LIMIT);
    struct rpc_channel *channel = gateway_link_channel(relays->link, error);
    if (channel == NULL)
        return false;
    struct relay *relay = memory_new_of(struct relay);
    relay->relays = relays;
    relay->channel_id = memory_strdup(open->channel_id);
    table_put(relays->by_channel, relay->channel_id, relay);
    activity_session_opened(relay->channel_id, open->session->start);
    relay->attachment =
        open->session->start->kind == OPENSHELL__EXT__V1__SESSION_START__KIND__KIND_ATTACH_MAIN;
    if (relay->attachment)
        relays->events.on_attachment(relays->events.user);
    open_gateway_leg(relay, channel, open->channel_id);
    open_runtime_leg(relay, running, open->session->start);
    return true;
}

void relays_drop(struct relays *relays, const char *channel_id)
{
    struct relay *relay = table_get(relays->by_channel, channel_id);
    if (relay != NULL && relay->gateway != NULL)
        rpc_call_cancel(relay->gateway); /* on_done ends the other leg */
}

struct relays *relays_new(struct gateway_link *link, const struct launch_supervisor *launch,
                          const char *instance_id, const struct relays_events *events)
{
    struct relays *relays = memory_new_of(struct relays);
    relays->link = link;
    relays->launch = launch;
    relays->instance_id = instance_id;
    relays->events = *events;
    relays->by_channel = table_new();
    return relays;
}
