#include "client/exec_session.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "client/failure.h"
#include "client/interrupt.h"
#include "proto/method_table.h"

enum { EXIT_CODE_UNKNOWN = 255 }; /* for a code that does not fit into an exit status */

/* ---- input ---- */

static void send_input(struct exec_session *session, Openshell__V1__ExecSandboxInput *input)
{
    if (!session->done && !rpc_call_send(session->call, &input->base))
        input_stream_stop(session->input);
}

static void on_input(const void *data, size_t length, void *user)
{
    Openshell__V1__ExecSandboxInput input = OPENSHELL__V1__EXEC_SANDBOX_INPUT__INIT;
    input.payload_case = OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN;
    input.stdin = (ProtobufCBinaryData){.data = (uint8_t *)data, .len = length};
    send_input(user, &input);
}

/* Decision W4: our gateway is told that the input ended, so that a client that died is never taken
 * for one that finished. */
static void on_input_end(void *user)
{
    struct exec_session *session = user;
    input_stream_stop(session->input);
    if (session->done)
        return;
    if (session->input_is_whole != NULL && !session->input_is_whole(session->user)) {
        rpc_call_cancel(session->call);
        return;
    }
    if (!session->connection->ours) {
        rpc_call_half_close(session->call);
        return;
    }
    Openshell__V1__ExecSandboxInput input = OPENSHELL__V1__EXEC_SANDBOX_INPUT__INIT;
    input.payload_case = OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN_EOF;
    input.stdin_eof = true;
    send_input(session, &input);
}

static void on_sent(struct rpc_call *call, void *user)
{
    (void)call;
    struct exec_session *session = user;
    input_stream_next(session->input);
}

/* ---- output ---- */

static void on_written(void *user)
{
    struct exec_session *session = user;
    session->writing = false;
    if (!session->done)
        rpc_call_read(session->call);
}

/* Nobody takes the output any more: the program is ended, as it would be by SIGPIPE at home. */
static void on_output_failed(int reason, void *user)
{
    struct exec_session *session = user;
    session->writing = false;
    session->output_failed = reason;
    if (!session->done)
        rpc_call_cancel(session->call);
}

static void on_errors_failed(int reason, void *user)
{
    (void)reason;
    struct exec_session *session = user;
    session->errors_lost = true;
    on_written(session);
}

static void take_output(struct exec_session *session, bool to_errors,
                        const ProtobufCBinaryData *data)
{
    if (session->output_failed != 0)
        return;
    if (to_errors && session->errors_lost) {
        rpc_call_read(session->call);
        return;
    }
    session->writing = true;
    if (output_stream_write(to_errors ? session->errors : session->output, data->data, data->len))
        on_written(session);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct exec_session *session = user;
    const Openshell__V1__ExecSandboxEvent *event = (const Openshell__V1__ExecSandboxEvent *)message;
    switch (event->payload_case) {
    case OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDOUT:
        take_output(session, false, &event->stdout->data);
        return;
    case OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDERR:
        if (session->take_errors == NULL) {
            take_output(session, true, &event->stderr->data);
            return;
        }
        session->take_errors(event->stderr->data.data, event->stderr->data.len, session->user);
        break;
    case OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_EXIT:
        session->exited = true;
        session->exit_code = event->exit->exit_code;
        input_stream_stop(session->input);
        break;
    default:
        break;
    }
    rpc_call_read(call);
}

static void on_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct exec_session *session = user;
    session->done = true;
    input_stream_stop(session->input);
    error_copy(&session->status, status);
}

/* ---- the call ---- */

static void on_interrupt(void *argument)
{
    struct exec_session *session = argument;
    if (session->call != NULL && !session->done)
        rpc_call_cancel(session->call);
}

bool exec_session_open(struct exec_session *session, struct connection *connection,
                       struct error *error)
{
    struct reactor *reactor = connection->reactor;
    session->connection = connection;
    const struct input_events input = {
        .on_data = on_input, .on_end = on_input_end, .user = session};
    const struct output_events output = {
        .on_written = on_written, .on_failed = on_output_failed, .user = session};
    const struct output_events errors = {
        .on_written = on_written, .on_failed = on_errors_failed, .user = session};
    session->input = input_stream_new(reactor, session->input_descriptor, &input, error);
    session->output = output_stream_new(reactor, session->output_descriptor, &output, error);
    session->errors = output_stream_new(reactor, STDERR_FILENO, &errors, error);
    return session->input != NULL && session->output != NULL && session->errors != NULL &&
           interrupt_start(reactor, on_interrupt, session, error);
}

void exec_session_run(struct exec_session *session, Openshell__V1__ExecSandboxRequest *start)
{
    static const struct rpc_call_events events = {
        .on_message = on_message, .on_sent = on_sent, .on_done = on_done};
    Openshell__V1__ExecSandboxInput input = OPENSHELL__V1__EXEC_SANDBOX_INPUT__INIT;
    input.payload_case = OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_START;
    input.start = start;
    session->call =
        rpc_call_start(session->connection->channel,
                       &rpc_openshell_v1_OpenShell_ExecSandboxInteractive, NULL, &events, session);
    rpc_call_send(session->call, &input.base);
    rpc_call_read(session->call);
    while (!session->done || (session->writing && interrupt_number() == 0))
        reactor_run_once(session->connection->reactor);
}

/* The remote program's exit code, or why there is none. */
int exec_session_result(struct exec_session *session, const char *sandbox, struct error *error)
{
    if (interrupt_number() != 0)
        return EXIT_SIGNALLED + interrupt_number();
    if (session->output_failed == EPIPE)
        return EXIT_SIGNALLED + SIGPIPE;
    if (session->output_failed != 0) {
        failure_set(error, CLIENT_REASON_OUTPUT_FAILED, "cannot write to standard output: %s",
                    strerror(session->output_failed));
        return -1;
    }
    /* A status that says that something went wrong is not covered up by a code of 0. */
    bool failed = session->status.code != ERROR_OK;
    if (session->exited && (!failed || session->exit_code != 0))
        return session->exit_code >= 0 && session->exit_code < 256 ? session->exit_code
                                                                   : EXIT_CODE_UNKNOWN;
    if (failed) {
        error_copy(error, &session->status);
        connection_check(session->connection, error);
        failure_about(error, sandbox);
        return -1;
    }
    failure_set(error, CLIENT_REASON_EXIT_UNKNOWN,
                "the gateway ended the call without saying how the program ended");
    return -1;
}
