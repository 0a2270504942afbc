/* ExecSandbox and ExecSandboxInteractive: a client's call on one side, a relay on the other, and
 * each side is read only as fast as the other takes it (decisions W3, W4, P4, P5, P6). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gateway/access.h"
#include "gateway/api/api.h"
#include "gateway/api/exec_start.h"
#include "gateway/message.h"
#include "gateway/relay.h"
#include "gateway/validate.h"

enum {
    END_OF_INPUT_MILLISECONDS = 20, /* decision W4 */
    TIMED_OUT_CODE = 124,
    SIGNAL_CODE = 128,
};

static const char output_held_line[] =
    "openshell: a background process still holds the output of this command\n";

struct exec {
    struct gateway *gateway;
    struct rpc_call *call; /* the client; NULL once its call is over */
    bool interactive;
    bool started;      /* the start message was taken */
    bool explicit_end; /* the client announced stdin_eof */
    bool keep_running;
    bool input_ended; /* no more input for the relay */
    bool end_pending; /* the relay is to be told so, after what waits */
    bool answered;    /* the client's status was decided */
    bool read_client; /* a read of the client is outstanding */
    bool read_relay;  /* a read of the relay is outstanding */

    struct access_request *access;
    struct relay *relay;
    bool relay_is_open;
    Openshell__V1__ExecSandboxRequest *request; /* until the relay is asked for */
    struct buffer waiting;                      /* input that the relay has not been given */
    size_t waiting_used;
    struct reactor_timer *end_timer;
};

static void read_client(struct exec *exec);
static void read_relay(struct exec *exec);

/* ---- ending ---- */

static void exec_free_when_over(struct exec *exec)
{
    if (exec->call != NULL || exec->relay != NULL || exec->access != NULL)
        return;
    reactor_timer_cancel(exec->end_timer);
    buffer_wipe(&exec->waiting);
    free(exec);
}

static void drop_relay(struct exec *exec, const char *abort)
{
    if (exec->access != NULL)
        access_cancel(exec->access);
    exec->access = NULL;
    if (exec->relay != NULL)
        relay_close(exec->relay, abort);
    exec->relay = NULL;
}

static void fail(struct exec *exec, const struct error *error)
{
    if (exec->call != NULL && !exec->answered)
        rpc_call_fail(exec->call, error);
    exec->answered = true;
}

static void fail_text(struct exec *exec, enum error_code code, const char *text)
{
    struct error error = {0};
    error_set(&error, code, "%s", text);
    fail(exec, &error);
    error_clear(&error);
}

/* The client is gone or broke the rules: the command goes too, unless it was told to stay. */
static void abandon(struct exec *exec, const char *why)
{
    reactor_timer_cancel(exec->end_timer);
    exec->end_timer = NULL;
    drop_relay(exec, exec->keep_running ? NULL : why);
}

/* ---- output ---- */

/* False, and the call failed, when the client's queue is full, which frames of at most RELAY_CHUNK
 * bytes never fill. */
static bool send_output(struct exec *exec, bool to_stderr, const void *data, size_t length)
{
    Openshell__V1__ExecSandboxStdout out = OPENSHELL__V1__EXEC_SANDBOX_STDOUT__INIT;
    Openshell__V1__ExecSandboxStderr err = OPENSHELL__V1__EXEC_SANDBOX_STDERR__INIT;
    Openshell__V1__ExecSandboxEvent event = OPENSHELL__V1__EXEC_SANDBOX_EVENT__INIT;
    ProtobufCBinaryData bytes = {.len = length, .data = (uint8_t *)data};
    if (to_stderr) {
        err.data = bytes;
        event.payload_case = OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDERR;
        event.stderr = &err;
    } else {
        out.data = bytes;
        event.payload_case = OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDOUT;
        event.stdout = &out;
    }
    if (rpc_call_send(exec->call, &event.base))
        return true;
    fail_text(exec, ERROR_RESOURCE_EXHAUSTED, "the output of the command is not read");
    return false;
}

static void send_exit(struct exec *exec, int32_t code)
{
    Openshell__V1__ExecSandboxExit exit = OPENSHELL__V1__EXEC_SANDBOX_EXIT__INIT;
    exit.exit_code = code;
    Openshell__V1__ExecSandboxEvent event = OPENSHELL__V1__EXEC_SANDBOX_EVENT__INIT;
    event.payload_case = OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_EXIT;
    event.exit = &exit;
    if (!rpc_call_send(exec->call, &event.base)) {
        fail_text(exec, ERROR_RESOURCE_EXHAUSTED, "the output of the command is not read");
        return;
    }
    rpc_call_finish(exec->call);
    exec->answered = true;
}

/* Nobody's word for how it ended is never success (decision P8). */
static void ended(struct exec *exec, const Openshell__Ext__V1__SessionExit *exit)
{
    if (exec->call == NULL || exec->answered)
        return;
    if (exit->output_held)
        send_output(exec, true, output_held_line, sizeof(output_held_line) - 1);
    if (exit->timed_out)
        send_exit(exec, TIMED_OUT_CODE);
    else if (exit->status_case == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_EXITED)
        send_exit(exec, exit->exited);
    else if (exit->status_case == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_SIGNALED)
        send_exit(exec, SIGNAL_CODE + exit->signaled);
    else
        fail_text(exec, ERROR_UNAVAILABLE,
                  exit->status_case == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_UNKNOWN &&
                          exit->unknown[0] != '\0'
                      ? exit->unknown
                      : "nobody knows how the command ended");
}

static void on_frame(struct relay *relay, const Openshell__Ext__V1__SessionFrame *frame, void *user)
{
    struct exec *exec = user;
    (void)relay;
    exec->read_relay = false;
    switch (frame->frame_case) {
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDOUT:
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDERR: {
        bool to_stderr = frame->frame_case == OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDERR;
        const ProtobufCBinaryData *data = to_stderr ? &frame->stderr : &frame->stdout;
        if (exec->call != NULL && !exec->answered && data->len > 0 &&
            !send_output(exec, to_stderr, data->data, data->len)) {
            drop_relay(exec, "the client does not read");
            break;
        }
        read_relay(exec);
        return;
    }
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STARTED:
        read_relay(exec);
        return;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_EXIT:
        ended(exec, frame->exit);
        drop_relay(exec, NULL);
        break;
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_ERROR: {
        struct error error = {0};
        exec_error_from_status(frame->error, &error);
        fail(exec, &error);
        error_clear(&error);
        drop_relay(exec, NULL);
        break;
    }
    case OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_ABORT:
        fail_text(exec, ERROR_UNAVAILABLE, frame->abort);
        drop_relay(exec, NULL);
        break;
    default:
        fail_text(exec, ERROR_UNAVAILABLE, "the supervisor broke the session's protocol");
        drop_relay(exec, "unexpected frame");
        break;
    }
    exec_free_when_over(exec);
}

/* The next frame is asked for when the client's side has room. */
static void read_relay(struct exec *exec)
{
    if (exec->relay == NULL || !exec->relay_is_open || exec->read_relay)
        return;
    if (exec->call != NULL && rpc_call_unsent(exec->call) >= RELAY_FRAMES_IN_FLIGHT)
        return;
    exec->read_relay = true;
    relay_read(exec->relay);
}

static void on_client_sent(struct rpc_call *call, void *user)
{
    (void)call;
    read_relay(user);
}

/* ---- input ---- */

static void send_end_of_input(struct exec *exec)
{
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDIN_EOF;
    frame.stdin_eof = true;
    relay_send(exec->relay, &frame);
    exec->end_pending = false;
}

/* Gives the relay as much of the waiting input as it takes, in frames of bounded size. */
static void pump_input(struct exec *exec)
{
    if (exec->relay == NULL || !exec->relay_is_open)
        return;
    while (exec->waiting_used < exec->waiting.length &&
           relay_unsent(exec->relay) < RELAY_FRAMES_IN_FLIGHT) {
        size_t length = exec->waiting.length - exec->waiting_used;
        if (length > RELAY_CHUNK)
            length = RELAY_CHUNK;
        Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
        frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_STDIN;
        frame.stdin.data = exec->waiting.data + exec->waiting_used;
        frame.stdin.len = length;
        if (!relay_send(exec->relay, &frame))
            return;
        exec->waiting_used += length;
    }
    if (exec->waiting_used < exec->waiting.length)
        return;
    exec->waiting_used = 0;
    exec->waiting.length = 0;
    if (exec->end_pending)
        send_end_of_input(exec);
    else if (relay_unsent(exec->relay) < RELAY_FRAMES_IN_FLIGHT)
        read_client(exec);
}

/* One message is at most RPC_MESSAGE_LIMIT, and the next is read when this one is gone. */
static void take_input(struct exec *exec, const ProtobufCBinaryData *data)
{
    if (exec->input_ended) {
        fail_text(exec, ERROR_INVALID_ARGUMENT, "input after its end");
        abandon(exec, "the client broke the protocol");
        return;
    }
    buffer_append(&exec->waiting, data->data, data->len);
    pump_input(exec);
}

static void end_input(struct exec *exec)
{
    if (exec->input_ended)
        return;
    exec->input_ended = true;
    exec->end_pending = true;
    pump_input(exec);
}

static void read_client(struct exec *exec)
{
    if (!exec->interactive || exec->call == NULL || exec->read_client || exec->answered)
        return;
    exec->read_client = true;
    rpc_call_read(exec->call);
}

static void forward(struct exec *exec, Openshell__Ext__V1__SessionFrame *frame)
{
    if (exec->relay != NULL)
        relay_send(exec->relay, frame);
    pump_input(exec); /* reads on */
}

static void forward_resize(struct exec *exec, const Openshell__V1__ExecSandboxWindowResize *resize)
{
    Openshell__Ext__V1__SessionResize size = OPENSHELL__EXT__V1__SESSION_RESIZE__INIT;
    size.columns = resize->cols;
    size.rows = resize->rows;
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_RESIZE;
    frame.resize = &size;
    forward(exec, &frame);
}

static void forward_signal(struct exec *exec, uint32_t number)
{
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_SIGNAL;
    frame.signal = number;
    forward(exec, &frame);
}

/* ---- the relay ---- */

static void on_open(struct relay *relay, void *user)
{
    (void)relay;
    struct exec *exec = user;
    exec->relay_is_open = true;
    read_relay(exec);
    pump_input(exec);
}

static void on_relay_sent(struct relay *relay, void *user)
{
    (void)relay;
    pump_input(user);
}

static void on_closed(struct relay *relay, const struct error *error, void *user)
{
    (void)relay;
    struct exec *exec = user;
    exec->relay = NULL;
    fail(exec, error);
    exec_free_when_over(exec);
}

static void acquired(struct access_handle *handle, const struct error *refusal, void *user)
{
    static const struct relay_events events = {
        .on_open = on_open, .on_frame = on_frame, .on_sent = on_relay_sent, .on_closed = on_closed};
    struct exec *exec = user;
    exec->access = NULL;
    if (refusal != NULL) {
        fail(exec, refusal);
        exec_free_when_over(exec);
        return;
    }
    struct arena *arena = arena_new(0);
    struct error error = {0};
    Openshell__Ext__V1__SessionStart *start =
        exec_session_start(exec->request, exec->interactive, arena);
    /* What does not travel with the start follows it. */
    if (start->stdin.len < exec->request->stdin.len) {
        buffer_append(&exec->waiting, exec->request->stdin.data, exec->request->stdin.len);
        exec->end_pending = !exec->interactive;
    }
    exec->input_ended = !exec->interactive;
    exec->relay = relay_open(handle, start, &events, exec, &error);
    if (exec->relay == NULL)
        fail(exec, &error);
    error_clear(&error);
    arena_free(arena);
    exec_free_when_over(exec);
}

/* ---- the client ---- */

/* `request` lives as long as the call. */
static void start(struct exec *exec, Openshell__V1__ExecSandboxRequest *request,
                  const char *field_prefix)
{
    const char *workspace = NULL;
    struct error error = {0};
    bool good = validate_exec_sandbox(request, field_prefix, &error);
    good &= validate_workspace_scope(request->workspace_scope, false, &workspace, &error);
    if (!good) {
        fail(exec, &error);
        error_clear(&error);
        return;
    }
    exec->started = true;
    exec->request = request;
    exec->explicit_end = request->explicit_stdin_eof;
    exec->keep_running = request->keep_running;
    exec->access =
        access_acquire(exec->gateway, workspace, request->sandbox, ACCESS_USER, acquired, exec);
}

static void on_client_message(struct rpc_call *call, const ProtobufCMessage *base, void *user)
{
    struct exec *exec = user;
    const Openshell__V1__ExecSandboxInput *message = (const Openshell__V1__ExecSandboxInput *)base;
    exec->read_client = false;
    if (exec->answered)
        return;
    if (!exec->started) {
        if (message->payload_case == OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_START)
            start(exec, message_copy(rpc_call_arena(call), &message->start->base), "start.");
        else
            fail_text(exec, ERROR_INVALID_ARGUMENT, "the first message must be start");
        return;
    }
    switch (message->payload_case) {
    case OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN:
        take_input(exec, &message->stdin);
        break;
    case OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN_EOF:
        end_input(exec);
        break;
    case OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_RESIZE:
        forward_resize(exec, message->resize);
        break;
    case OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_SIGNAL:
        forward_signal(exec, message->signal);
        break;
    default:
        fail_text(exec, ERROR_INVALID_ARGUMENT, "unexpected message after start");
        abandon(exec, "the client broke the protocol");
        break;
    }
    exec_free_when_over(exec);
}

static void end_waited(void *argument)
{
    struct exec *exec = argument;
    reactor_timer_cancel(exec->end_timer);
    exec->end_timer = NULL;
    if (exec->call != NULL && !rpc_call_cancelled(exec->call))
        end_input(exec);
}

/* A half-close, a cancellation or a dead client: they look alike (decision W4). */
static void on_client_end(struct rpc_call *call, void *user)
{
    (void)call;
    struct exec *exec = user;
    exec->read_client = false;
    if (!exec->started) {
        fail_text(exec, ERROR_INVALID_ARGUMENT,
                  "the stream is empty; the first message must be "
                  "start");
    } else if (exec->input_ended || exec->answered) {
        return;
    } else if (exec->explicit_end) {
        fail_text(exec, ERROR_CANCELLED, "the input ended without stdin_eof");
        abandon(exec, "the client's input broke off");
    } else {
        exec->end_timer = reactor_timer_start(exec->gateway->reactor, END_OF_INPUT_MILLISECONDS, 0,
                                              end_waited, exec);
    }
    exec_free_when_over(exec);
}

static void on_client_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    struct exec *exec = user;
    exec->call = NULL;
    abandon(exec, "the client went away");
    exec_free_when_over(exec);
}

static struct exec *exec_new(struct rpc_call *call, struct gateway *gateway, bool interactive)
{
    static const struct rpc_call_events events = {.on_message = on_client_message,
                                                  .on_end = on_client_end,
                                                  .on_sent = on_client_sent,
                                                  .on_done = on_client_done};
    struct exec *exec = memory_new_of(struct exec);
    exec->gateway = gateway;
    exec->call = call;
    exec->interactive = interactive;
    exec->waiting = BUFFER_INIT(RPC_MESSAGE_LIMIT * 2);
    rpc_call_accept(call, &events, exec);
    return exec;
}

void api_exec_sandbox(struct rpc_call *call, void *gateway)
{
    struct exec *exec = exec_new(call, gateway, false);
    start(exec, (Openshell__V1__ExecSandboxRequest *)rpc_call_request(call), "");
}

void api_exec_sandbox_interactive(struct rpc_call *call, void *gateway)
{
    read_client(exec_new(call, gateway, true));
}
