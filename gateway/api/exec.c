/* ExecSandbox and ExecSandboxInteractive (decisions W3, W4, P4, P5, P6). */
#include <string.h>

#include "base/memory.h"
#include "gateway/api/api.h"
#include "gateway/api/exec_start.h"
#include "gateway/api/pump.h"
#include "gateway/message.h"
#include "gateway/validate.h"

enum {
    END_OF_INPUT_MILLISECONDS = 20, /* decision W4 */
    TIMED_OUT_CODE = 124,
    SIGNAL_CODE = 128,
};

static const char output_held_line[] =
    "openshell: a background process still holds the output of this command\n";

struct exec {
    struct pump pump;
    bool explicit_end;                          /* the client announced stdin_eof */
    Openshell__V1__ExecSandboxRequest *request; /* lives as long as the call */
    struct reactor_timer *end_timer;
};

static struct exec *exec_of(struct pump *pump)
{
    return (struct exec *)pump;
}

/* ---- output ---- */

static bool send_output(struct pump *pump, bool to_stderr, const void *data, size_t length)
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
    return rpc_call_send(pump->call, &event.base);
}

static void send_exit(struct pump *pump, int32_t code)
{
    Openshell__V1__ExecSandboxExit exit = OPENSHELL__V1__EXEC_SANDBOX_EXIT__INIT;
    exit.exit_code = code;
    Openshell__V1__ExecSandboxEvent event = OPENSHELL__V1__EXEC_SANDBOX_EVENT__INIT;
    event.payload_case = OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_EXIT;
    event.exit = &exit;
    if (rpc_call_send(pump->call, &event.base))
        pump_succeed(pump);
    else
        pump_fail_text(pump, ERROR_RESOURCE_EXHAUSTED, pump->class->unread);
}

/* Nobody's word for how it ended is never success (decision P8). */
static void ended(struct pump *pump, const Openshell__Ext__V1__SessionExit *exit)
{
    if (exit->output_held)
        send_output(pump, true, output_held_line, sizeof(output_held_line) - 1);
    if (exit->timed_out)
        send_exit(pump, TIMED_OUT_CODE);
    else if (exit->status_case == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_EXITED)
        send_exit(pump, exit->exited);
    else if (exit->status_case == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_SIGNALED)
        send_exit(pump, SIGNAL_CODE + exit->signaled);
    else
        pump_fail_text(pump, ERROR_UNAVAILABLE,
                       exit->status_case == OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_UNKNOWN &&
                               exit->unknown[0] != '\0'
                           ? exit->unknown
                           : "nobody knows how the command ended");
    pump_leave(pump, NULL);
}

/* ---- the start ---- */

static Openshell__Ext__V1__SessionStart *session_start(struct pump *pump, struct arena *arena)
{
    const Openshell__V1__ExecSandboxRequest *request = exec_of(pump)->request;
    Openshell__Ext__V1__SessionStart *start = exec_session_start(request, pump->interactive, arena);
    /* What does not travel with the start follows it. */
    if (start->stdin.len < request->stdin.len) {
        buffer_append(&pump->waiting, request->stdin.data, request->stdin.len);
        pump->end_pending = !pump->interactive;
    }
    pump->input_ended = !pump->interactive;
    return start;
}

static void start(struct exec *exec, Openshell__V1__ExecSandboxRequest *request,
                  const char *field_prefix)
{
    const char *workspace = NULL;
    struct error error = {0};
    bool good = validate_exec_sandbox(request, field_prefix, &error);
    good &= validate_workspace_scope(request->workspace_scope, false, &workspace, &error);
    if (!good) {
        pump_fail(&exec->pump, &error);
        error_clear(&error);
        return;
    }
    exec->request = request;
    exec->explicit_end = request->explicit_stdin_eof;
    exec->pump.keep_running = request->keep_running;
    pump_acquire(&exec->pump, workspace, request->sandbox, ACCESS_USER);
}

static void take_first(struct pump *pump, const ProtobufCMessage *base)
{
    const Openshell__V1__ExecSandboxInput *message = (const Openshell__V1__ExecSandboxInput *)base;
    if (message->payload_case == OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_START)
        start(exec_of(pump), message_copy(rpc_call_arena(pump->call), &message->start->base),
              "start.");
    else
        pump_fail_text(pump, ERROR_INVALID_ARGUMENT, "the first message must be start");
}

/* ---- input ---- */

static void take(struct pump *pump, const ProtobufCMessage *base)
{
    const Openshell__V1__ExecSandboxInput *message = (const Openshell__V1__ExecSandboxInput *)base;
    switch (message->payload_case) {
    case OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN:
        pump_take_input(pump, &message->stdin);
        break;
    case OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN_EOF:
        pump_end_input(pump);
        break;
    case OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_RESIZE:
        pump_resize(pump, message->resize->cols, message->resize->rows);
        break;
    case OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_SIGNAL:
        pump_signal(pump, message->signal);
        break;
    default:
        pump_fail_text(pump, ERROR_INVALID_ARGUMENT, "unexpected message after start");
        pump_abandon(pump, "the client broke the protocol");
        break;
    }
}

static void end_waited(void *argument)
{
    struct exec *exec = argument;
    reactor_timer_cancel(exec->end_timer);
    exec->end_timer = NULL;
    if (exec->pump.call != NULL && !rpc_call_cancelled(exec->pump.call))
        pump_end_input(&exec->pump);
}

/* A half-close, a cancellation or a dead client: they look alike (decision W4). */
static void on_client_end(struct pump *pump)
{
    struct exec *exec = exec_of(pump);
    if (pump->input_ended)
        return;
    if (exec->explicit_end) {
        pump_fail_text(pump, ERROR_CANCELLED, "the input ended without stdin_eof");
        pump_abandon(pump, "the client's input broke off");
    } else {
        exec->end_timer = reactor_timer_start(pump->gateway->reactor, END_OF_INPUT_MILLISECONDS, 0,
                                              end_waited, exec);
    }
}

static void release(struct pump *pump)
{
    reactor_timer_cancel(exec_of(pump)->end_timer);
}

static struct exec *exec_new(struct rpc_call *call, struct gateway *gateway, bool interactive)
{
    static const struct pump_class class = {
        .unread = "the output of the command is not read",
        .take = take,
        .start = take_first,
        .on_end = on_client_end,
        .session_start = session_start,
        .send_output = send_output,
        .ended = ended,
        .release = release,
    };
    struct exec *exec = memory_new_of(struct exec);
    pump_begin(&exec->pump, &class, call, gateway, interactive);
    return exec;
}

void api_exec_sandbox(struct rpc_call *call, void *gateway)
{
    struct exec *exec = exec_new(call, gateway, false);
    start(exec, (Openshell__V1__ExecSandboxRequest *)rpc_call_request(call), "");
}

void api_exec_sandbox_interactive(struct rpc_call *call, void *gateway)
{
    exec_new(call, gateway, true);
}
