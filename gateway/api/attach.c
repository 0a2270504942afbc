/* AttachMainProcess (decisions W2, P7): a client joins the main process of a sandbox. Leaving it
 * leaves the process alone; what its creator waits for is kept until a client said that it has it
 * (behaviour reference 1.4). */
#include <string.h>

#include "base/memory.h"
#include "gateway/api/api.h"
#include "gateway/api/pump.h"
#include "gateway/message.h"
#include "gateway/validate.h"

enum { TERMINAL_SIZE_MAX = 65535, INSTANCE_ID_MAX = 128 };

struct attach {
    struct pump pump;
    Openshell__Ext__V1__AttachMainProcessStart *start; /* lives as long as the call */
    bool writer;
    bool exited;      /* the result was sent; the client's word that it arrived is awaited */
    bool half_closed; /* it will not give it: that it was sent has to do */
};

static struct attach *attach_of(struct pump *pump)
{
    return (struct attach *)pump;
}

/* ---- to the client ---- */

static bool send_response(struct pump *pump,
                          Openshell__Ext__V1__AttachMainProcessResponse *response)
{
    return rpc_call_send(pump->call, &response->base);
}

static bool send_output(struct pump *pump, bool to_stderr, const void *data, size_t length)
{
    Openshell__Ext__V1__AttachMainProcessResponse response =
        OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_RESPONSE__INIT;
    ProtobufCBinaryData bytes = {.len = length, .data = (uint8_t *)data};
    response.payload_case = to_stderr
                                ? OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_RESPONSE__PAYLOAD_STDERR
                                : OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_RESPONSE__PAYLOAD_STDOUT;
    if (to_stderr)
        response.stderr = bytes;
    else
        response.stdout = bytes;
    return send_response(pump, &response);
}

static bool send_skipped(struct pump *pump, uint64_t count)
{
    Openshell__Ext__V1__AttachMainProcessResponse response =
        OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_RESPONSE__INIT;
    response.payload_case = OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_RESPONSE__PAYLOAD_SKIPPED;
    response.skipped = count;
    return send_response(pump, &response);
}

/* From here on the client knows whether it may write, so what it sends is read. */
static bool send_started(struct pump *pump, const Openshell__Ext__V1__SessionStarted *from)
{
    Openshell__Ext__V1__AttachMainProcessStarted started =
        OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_STARTED__INIT;
    started.tty = from->tty;
    started.writer = from->writer;
    started.first_sequence = from->first_sequence;
    if (from->next_sequence > from->first_sequence)
        started.replay_bytes = from->next_sequence - from->first_sequence;
    started.instance_id = from->instance_id;
    Openshell__Ext__V1__AttachMainProcessResponse response =
        OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_RESPONSE__INIT;
    response.payload_case = OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_RESPONSE__PAYLOAD_STARTED;
    response.started = &started;
    bool queued = send_response(pump, &response);
    attach_of(pump)->writer = from->writer;
    pump->hold_client = false;
    pump_go_on(pump);
    return queued;
}

static void ended(struct pump *pump, const Openshell__Ext__V1__SessionExit *exit)
{
    struct attach *attach = attach_of(pump);
    Openshell__Ext__V1__AttachMainProcessResponse response =
        OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_RESPONSE__INIT;
    response.payload_case = OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_RESPONSE__PAYLOAD_EXIT;
    response.exit = (Openshell__Ext__V1__SessionExit *)exit;
    attach->exited = true;
    if (!send_response(pump, &response)) {
        pump_fail_text(pump, ERROR_RESOURCE_EXHAUSTED, pump->class->unread);
        pump_leave(pump, "the client does not read");
    } else if (attach->half_closed) {
        pump_succeed(pump);
    } else {
        pump_go_on(pump);
    }
}

/* ---- the start ---- */

static bool check(const Openshell__Ext__V1__AttachMainProcessStart *start,
                  const char **ret_workspace, struct error *error)
{
    bool good = validate_workspace_scope(start->workspace_scope, false, ret_workspace, error);
    good &= validate_sandbox_reference("start.sandbox", start->sandbox, error);
    if (start->columns > TERMINAL_SIZE_MAX || start->rows > TERMINAL_SIZE_MAX) {
        error_add_violation(error, "start.columns, start.rows", "at most %d", TERMINAL_SIZE_MAX);
        good = false;
    }
    if (strlen(start->instance_id) > INSTANCE_ID_MAX) {
        error_add_violation(error, "start.instance_id", "at most %d characters", INSTANCE_ID_MAX);
        good = false;
    }
    return good;
}

static void take_first(struct pump *pump, const ProtobufCMessage *base)
{
    const Openshell__Ext__V1__AttachMainProcessRequest *message =
        (const Openshell__Ext__V1__AttachMainProcessRequest *)base;
    struct attach *attach = attach_of(pump);
    if (message->payload_case != OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_START) {
        pump_fail_text(pump, ERROR_INVALID_ARGUMENT, "the first message must be start");
        return;
    }
    const char *workspace = NULL;
    struct error error = {0};
    attach->start = message_copy(rpc_call_arena(pump->call), &message->start->base);
    pump->hold_client = true;
    if (check(attach->start, &workspace, &error))
        pump_acquire(pump, workspace, attach->start->sandbox, ACCESS_ATTACH);
    else
        pump_fail(pump, &error);
    error_clear(&error);
}

static Openshell__Ext__V1__SessionStart *session_start(struct pump *pump, struct arena *arena)
{
    const Openshell__Ext__V1__AttachMainProcessStart *from = attach_of(pump)->start;
    Openshell__Ext__V1__SessionStart *start = arena_new_of(arena, Openshell__Ext__V1__SessionStart);
    openshell__ext__v1__session_start__init(start);
    start->kind = OPENSHELL__EXT__V1__SESSION_START__KIND__KIND_ATTACH_MAIN;
    start->columns = from->columns;
    start->rows = from->rows;
    start->read_only = from->read_only;
    start->from_sequence = from->from_sequence;
    start->instance_id = from->instance_id;
    return start;
}

/* ---- from the client ---- */

static void leave(struct pump *pump)
{
    pump_succeed(pump);
    pump_leave(pump, NULL);
}

static void refuse(struct pump *pump, enum error_code code, const char *text)
{
    pump_fail_text(pump, code, text);
    pump_leave(pump, "the client broke the protocol");
}

/* What only the writer may send. After the end it has no meaning any more. */
static void take_control(struct pump *pump,
                         const Openshell__Ext__V1__AttachMainProcessRequest *message)
{
    if (attach_of(pump)->exited) {
        pump_go_on(pump);
        return;
    }
    if (!attach_of(pump)->writer) {
        refuse(pump, ERROR_FAILED_PRECONDITION,
               "another client writes to the main process; this one only reads");
        return;
    }
    switch (message->payload_case) {
    case OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_STDIN:
        pump_take_input(pump, &message->stdin);
        break;
    case OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_STDIN_EOF:
        pump_end_input(pump);
        break;
    case OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_RESIZE:
        pump_resize(pump, message->resize->columns, message->resize->rows);
        break;
    default:
        pump_signal(pump, message->signal);
        break;
    }
}

static void take(struct pump *pump, const ProtobufCMessage *base)
{
    const Openshell__Ext__V1__AttachMainProcessRequest *message =
        (const Openshell__Ext__V1__AttachMainProcessRequest *)base;
    switch (message->payload_case) {
    case OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_STDIN:
    case OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_STDIN_EOF:
    case OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_RESIZE:
    case OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_SIGNAL:
        take_control(pump, message);
        break;
    case OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_RECEIVED:
        if (attach_of(pump)->exited)
            leave(pump);
        else
            refuse(pump, ERROR_INVALID_ARGUMENT, "there is no result yet");
        break;
    case OPENSHELL__EXT__V1__ATTACH_MAIN_PROCESS_REQUEST__PAYLOAD_DETACH:
        leave(pump);
        break;
    default:
        refuse(pump, ERROR_INVALID_ARGUMENT, "unexpected message after start");
        break;
    }
}

/* It reads on, or is gone: then the end of the call follows (decision W4). */
static void on_client_end(struct pump *pump)
{
    struct attach *attach = attach_of(pump);
    attach->half_closed = true;
    if (attach->exited)
        pump_succeed(pump);
}

static void release(struct pump *pump)
{
    (void)pump;
}

void api_attach_main_process(struct rpc_call *call, void *gateway)
{
    static const struct pump_class class = {
        .unread = "the output of the main process is not read",
        .take = take,
        .start = take_first,
        .on_end = on_client_end,
        .session_start = session_start,
        .send_output = send_output,
        .send_skipped = send_skipped,
        .send_started = send_started,
        .ended = ended,
        .release = release,
    };
    struct attach *attach = memory_new_of(struct attach);
    pump_begin(&attach->pump, &class, call, gateway, true);
}
