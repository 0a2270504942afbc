#include "gateway/api/pump.h"

#include <stdlib.h>

#include "gateway/api/exec_start.h"
#include "gateway/message.h"

/* ---- ending ---- */

void pump_free_when_over(struct pump *pump)
{
    if (pump->call != NULL || pump->relay != NULL || pump->access != NULL)
        return;
    pump->class->release(pump);
    buffer_wipe(&pump->waiting);
    free(pump);
}

void pump_leave(struct pump *pump, const char *abort)
{
    if (pump->access != NULL)
        access_cancel(pump->access);
    pump->access = NULL;
    if (pump->relay != NULL)
        relay_close(pump->relay, abort);
    pump->relay = NULL;
}

void pump_fail(struct pump *pump, const struct error *error)
{
    if (pump->call != NULL && !pump->answered)
        rpc_call_fail(pump->call, error);
    pump->answered = true;
}

void pump_fail_text(struct pump *pump, enum error_code code, const char *text)
{
    struct error error = {0};
    error_set(&error, code, "%s", text);
    pump_fail(pump, &error);
    error_clear(&error);
}

void pump_succeed(struct pump *pump)
{
    if (pump->call != NULL && !pump->answered)
        rpc_call_finish(pump->call);
    pump->answered = true;
}

void pump_abandon(struct pump *pump, const char *why)
{
    pump_leave(pump, pump->keep_running ? NULL : why);
}

/* ---- output ---- */

static void read_relay(struct pump *pump);

/* What to send has room, since the relay is read only when there is some: a queue that is full all
 * the same is the end. */
static void passed(struct pump *pump, bool queued)
{
    if (queued) {
        read_relay(pump);
        return;
    }
    pump_fail_text(pump, ERROR_RESOURCE_EXHAUSTED, pump->class->unread);
    pump_leave(pump, "the client does not read");
    pump_free_when_over(pump);
}

static void pass_output(struct pump *pump, bool to_stderr, const ProtobufCBinaryData *data)
{
    passed(pump, pump->call == NULL || pump->answered || data->len == 0 ||
                     pump->class->send_output(pump, to_stderr, data->data, data->len));
}

static void pass_error(struct pump *pump, const Google__Rpc__Status *status)
{
    struct error error = {0};
    exec_error_from_status(status, &error);
    pump_fail(pump, &error);
    error_clear(&error);
    pump_leave(pump, NULL);
}

static void on_frame(struct relay *relay, const Openshell__Ext__V1__SessionFrame *frame, void *user)
{
    struct pump *pump = user;
    const struct pump_class *class = pump->class;
    bool silent = pump->call == NULL || pump->answered;
    (void)relay;
    pump->read_relay = false;
    switch (frame->frame_case) {
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDOUT:
        pass_output(pump, false, &frame->stdout);
        return;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDERR:
        pass_output(pump, true, &frame->stderr);
        return;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STARTED:
        passed(pump,
               silent || class->send_started == NULL || class->send_started(pump, frame->started));
        return;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_SKIPPED:
        passed(pump,
               silent || class->send_skipped == NULL || class->send_skipped(pump, frame->skipped));
        return;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_EXIT:
        if (silent)
            pump_leave(pump, NULL);
        else
            class->ended(pump, frame->exit);
        break;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_ERROR:
        pass_error(pump, frame->error);
        break;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_ABORT:
        pump_fail_text(pump, ERROR_UNAVAILABLE, frame->abort);
        pump_leave(pump, NULL);
        break;
    default:
        pump_fail_text(pump, ERROR_UNAVAILABLE, "the supervisor broke the session's protocol");
        pump_leave(pump, "unexpected frame");
        break;
    }
    pump_free_when_over(pump);
}

/* The next frame is asked for when the client's side has room. */
static void read_relay(struct pump *pump)
{
    if (pump->relay == NULL || !pump->relay_is_open || pump->read_relay)
        return;
    if (pump->call != NULL && rpc_call_unsent(pump->call) >= RELAY_FRAMES_IN_FLIGHT)
        return;
    pump->read_relay = true;
    relay_read(pump->relay);
}

static void on_client_sent(struct rpc_call *call, void *user)
{
    (void)call;
    read_relay(user);
}

/* ---- input ---- */

static void read_client(struct pump *pump)
{
    if (!pump->interactive || pump->call == NULL || pump->read_client || pump->answered ||
        pump->hold_client)
        return;
    pump->read_client = true;
    rpc_call_read(pump->call);
}

static void send_end_of_input(struct pump *pump)
{
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDIN_EOF;
    frame.stdin_eof = true;
    relay_send(pump->relay, &frame);
    pump->end_pending = false;
}

/* Gives the relay as much of the waiting input as it takes, in frames of bounded size. */
void pump_go_on(struct pump *pump)
{
    if (pump->relay == NULL || !pump->relay_is_open)
        return;
    while (pump->waiting_used < pump->waiting.length &&
           relay_unsent(pump->relay) < RELAY_FRAMES_IN_FLIGHT) {
        size_t length = pump->waiting.length - pump->waiting_used;
        if (length > RELAY_CHUNK)
            length = RELAY_CHUNK;
        Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
        frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDIN;
        frame.stdin.data = pump->waiting.data + pump->waiting_used;
        frame.stdin.len = length;
        if (!relay_send(pump->relay, &frame))
            return;
        pump->waiting_used += length;
    }
    if (pump->waiting_used < pump->waiting.length)
        return;
    pump->waiting_used = 0;
    pump->waiting.length = 0;
    if (pump->end_pending)
        send_end_of_input(pump);
    else if (relay_unsent(pump->relay) < RELAY_FRAMES_IN_FLIGHT)
        read_client(pump);
}

void pump_take_input(struct pump *pump, const ProtobufCBinaryData *data)
{
    if (pump->input_ended) {
        pump_fail_text(pump, ERROR_INVALID_ARGUMENT, "input after its end");
        pump_abandon(pump, "the client broke the protocol");
        return;
    }
    buffer_append(&pump->waiting, data->data, data->len);
    pump_go_on(pump);
}

void pump_end_input(struct pump *pump)
{
    if (pump->input_ended)
        return;
    pump->input_ended = true;
    pump->end_pending = true;
    pump_go_on(pump);
}

static void forward(struct pump *pump, Openshell__Ext__V1__SessionFrame *frame)
{
    if (pump->relay != NULL)
        relay_send(pump->relay, frame);
    pump_go_on(pump); /* reads on */
}

void pump_resize(struct pump *pump, uint32_t columns, uint32_t rows)
{
    Openshell__Ext__V1__SessionResize size = OPENSHELL__EXT__V1__SESSION_RESIZE__INIT;
    size.columns = columns;
    size.rows = rows;
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_RESIZE;
    frame.resize = &size;
    forward(pump, &frame);
}

void pump_signal(struct pump *pump, uint32_t number)
{
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_SIGNAL;
    frame.signal = number;
    forward(pump, &frame);
}

/* ---- the relay ---- */

static void on_open(struct relay *relay, void *user)
{
    (void)relay;
    struct pump *pump = user;
    pump->relay_is_open = true;
    read_relay(pump);
    pump_go_on(pump);
}

static void on_relay_sent(struct relay *relay, void *user)
{
    (void)relay;
    pump_go_on(user);
}

static void on_closed(struct relay *relay, const struct error *error, void *user)
{
    (void)relay;
    struct pump *pump = user;
    pump->relay = NULL;
    pump_fail(pump, error);
    pump_free_when_over(pump);
}

static void open_relay(struct pump *pump, struct access_handle *handle)
{
    static const struct relay_events events = {
        .on_open = on_open, .on_frame = on_frame, .on_sent = on_relay_sent, .on_closed = on_closed};
    struct arena *arena = arena_new(0);
    struct error error = {0};
    pump->relay =
        relay_open(handle, pump->class->session_start(pump, arena), &events, pump, &error);
    if (pump->relay == NULL)
        pump_fail(pump, &error);
    error_clear(&error);
    arena_free(arena);
}

static void acquired(struct access_handle *handle, const struct error *refusal, void *user)
{
    struct pump *pump = user;
    pump->access = NULL;
    if (refusal != NULL)
        pump_fail(pump, refusal);
    else
        open_relay(pump, handle);
    pump_free_when_over(pump);
}

void pump_acquire(struct pump *pump, const char *workspace, const char *sandbox,
                  enum access_purpose purpose)
{
    pump->started = true;
    pump->access = access_acquire(pump->gateway, workspace, sandbox, purpose, acquired, pump);
}

/* ---- the client ---- */

static void on_client_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct pump *pump = user;
    (void)call;
    pump->read_client = false;
    if (pump->answered)
        return;
    if (pump->started)
        pump->class->take(pump, message);
    else
        pump->class->start(pump, message);
    pump_free_when_over(pump);
}

static void on_client_end(struct rpc_call *call, void *user)
{
    (void)call;
    struct pump *pump = user;
    pump->read_client = false;
    if (!pump->started)
        pump_fail_text(pump, ERROR_INVALID_ARGUMENT,
                       "the stream is empty; the first message must be start");
    else if (!pump->answered)
        pump->class->on_end(pump);
    pump_free_when_over(pump);
}

static void on_client_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct pump *pump = user;
    pump->call = NULL;
    bool delivered = pump->answered && status->code == ERROR_OK;
    pump_leave(pump, delivered || pump->keep_running ? NULL : "the client went away");
    pump_free_when_over(pump);
}

void pump_begin(struct pump *pump, const struct pump_class *class, struct rpc_call *call,
                struct gateway *gateway, bool interactive)
{
    static const struct rpc_call_events events = {.on_message = on_client_message,
                                                  .on_end = on_client_end,
                                                  .on_sent = on_client_sent,
                                                  .on_done = on_client_done};
    pump->class = class;
    pump->gateway = gateway;
    pump->call = call;
    pump->interactive = interactive;
    pump->waiting = BUFFER_INIT(RPC_MESSAGE_LIMIT * 2);
    rpc_call_accept(call, &events, pump);
    read_client(pump);
}
