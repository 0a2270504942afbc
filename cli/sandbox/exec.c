/* openshell sandbox exec: runs a program in a sandbox, with this process's input and output.
 *
 * It ends when the remote program has ended, whatever standard input does meanwhile. Input is read
 * only when the piece before was taken, and a message only when the output before was written, so
 * that a slow side slows the other down. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/command.h"
#include "client/connection.h"
#include "client/failure.h"
#include "client/interrupt.h"
#include "client/last_sandbox.h"
#include "client/pairs.h"
#include "client/settings.h"
#include "client/streams.h"
#include "proto/method_table.h"
#include "proto/openshell.pb-c.h"

enum terminal_choice { TERMINAL_AUTO, TERMINAL_YES, TERMINAL_NO };

enum { EXIT_CODE_UNKNOWN = 255 }; /* for a code that does not fit into an exit status */

static struct {
    const char *name;
    const char *workdir;
    long long timeout;
    struct option_list environment;
    bool no_login_shell;
    bool keep_running;
    int terminal; /* enum terminal_choice */
} given;

static const struct option options[] = {
    {.type = OPTION_TEXT,
     .letter = 'n',
     .name = "name",
     .value = &given.name,
     .metavar = "NAME",
     .help = "The sandbox, in place of the word NAME",
     .completes = "sandboxes"},
    {.type = OPTION_LIST,
     .letter = 'e',
     .name = "env",
     .value = &given.environment,
     .metavar = "KEY=VALUE",
     .help = "Set a variable for this program"},
    {.type = OPTION_TEXT,
     .letter = 'w',
     .name = "workdir",
     .value = &given.workdir,
     .metavar = "DIR",
     .help = "Run it in this directory of the sandbox",
     .completes = "nothing"},
    {.type = OPTION_NUMBER,
     .name = "timeout",
     .value = &given.timeout,
     .metavar = "SECONDS",
     .help = "Kill it with everything it started after this long, and exit with 124; 0: never",
     .fallback = "0",
     .minimum = 0,
     .maximum = 315576000},
    {.type = OPTION_CONSTANT,
     .letter = 't',
     .name = "tty",
     .value = &given.terminal,
     .constant = TERMINAL_YES,
     .help = "Give it a terminal"},
    {.type = OPTION_CONSTANT,
     .name = "no-tty",
     .value = &given.terminal,
     .constant = TERMINAL_NO,
     .help = "Give it no terminal"},
    {.type = OPTION_FLAG,
     .name = "no-login-shell",
     .value = &given.no_login_shell,
     .help = "Run it directly, without the profile of a login shell"},
    {.type = OPTION_FLAG,
     .name = "keep-running",
     .value = &given.keep_running,
     .help = "Let it go on when this command is interrupted or dies"},
    OPTION_OWN_EXIT_CODE,
    {0},
};

struct session {
    struct connection *connection;
    struct rpc_call *call;
    struct input_stream *input;
    struct output_stream *output;
    struct output_stream *errors;
    bool errors_lost;  /* standard error cannot be written to: the rest of it is dropped */
    bool writing;      /* a piece of output is not written yet */
    int output_failed; /* errno of standard output, or 0 */
    bool exited;
    int exit_code;
    bool done;
    struct error status;
};

/* ---- input ---- */

static void send_input(struct session *session, Openshell__V1__ExecSandboxInput *input)
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
    struct session *session = user;
    input_stream_stop(session->input);
    if (session->done)
        return;
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
    struct session *session = user;
    input_stream_next(session->input);
}

/* ---- output ---- */

static void on_written(void *user)
{
    struct session *session = user;
    session->writing = false;
    if (!session->done)
        rpc_call_read(session->call);
}

/* Nobody takes the output any more: the program is ended, as it would be by SIGPIPE at home. */
static void on_output_failed(int reason, void *user)
{
    struct session *session = user;
    session->writing = false;
    session->output_failed = reason;
    if (!session->done)
        rpc_call_cancel(session->call);
}

static void on_errors_failed(int reason, void *user)
{
    (void)reason;
    struct session *session = user;
    session->errors_lost = true;
    on_written(session);
}

static void take_output(struct session *session, bool to_errors, const ProtobufCBinaryData *data)
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
    struct session *session = user;
    const Openshell__V1__ExecSandboxEvent *event = (const Openshell__V1__ExecSandboxEvent *)message;
    switch (event->payload_case) {
    case OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDOUT:
        take_output(session, false, &event->stdout->data);
        return;
    case OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDERR:
        take_output(session, true, &event->stderr->data);
        return;
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
    struct session *session = user;
    session->done = true;
    input_stream_stop(session->input);
    error_copy(&session->status, status);
}

/* ---- the start ---- */

static void on_interrupt(void *argument)
{
    struct session *session = argument;
    if (session->call != NULL && !session->done)
        rpc_call_cancel(session->call);
}

/* Only where it is asked for: a terminal that is not in raw mode would echo everything twice. */
static bool wants_terminal(void)
{
    return given.terminal == TERMINAL_YES;
}

static void set_terminal(Openshell__V1__ExecSandboxRequest *start)
{
    struct winsize size = {.ws_col = 80, .ws_row = 24};
    start->tty = wants_terminal();
    if (!start->tty)
        return;
    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) != 0)
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    start->cols = size.ws_col != 0 ? size.ws_col : 80;
    start->rows = size.ws_row != 0 ? size.ws_row : 24;
}

static bool set_environment(Openshell__V1__ExecSandboxRequest *start, struct arena *arena,
                            struct error *error)
{
    struct pair *pairs;
    size_t count;
    if (!pairs_parse(&given.environment, "env", PAIR_ENVIRONMENT, arena, &pairs, &count, error))
        return false;
    start->n_environment = count;
    start->environment =
        arena_array_of(arena, Openshell__V1__ExecSandboxRequest__EnvironmentEntry *, count + 1);
    for (size_t i = 0; i < count; i++) {
        Openshell__V1__ExecSandboxRequest__EnvironmentEntry *entry =
            arena_new_of(arena, Openshell__V1__ExecSandboxRequest__EnvironmentEntry);
        openshell__v1__exec_sandbox_request__environment_entry__init(entry);
        entry->key = pairs[i].key;
        entry->value = pairs[i].value;
        start->environment[i] = entry;
    }
    return true;
}

static bool fill_start(Openshell__V1__ExecSandboxRequest *start, Google__Protobuf__Duration *limit,
                       const struct invocation *invocation, struct arena *arena,
                       struct error *error)
{
    openshell__v1__exec_sandbox_request__init(start);
    google__protobuf__duration__init(limit);
    start->command = invocation->trailing;
    start->n_command = invocation->trailing_count;
    start->workdir = given.workdir != NULL ? (char *)given.workdir : start->workdir;
    start->no_login_shell = given.no_login_shell;
    start->keep_running = given.keep_running;
    limit->seconds = given.timeout;
    if (given.timeout > 0)
        start->execution_timeout = limit;
    set_terminal(start);
    return set_environment(start, arena, error);
}

static bool open_streams(struct session *session, struct error *error)
{
    struct reactor *reactor = session->connection->reactor;
    const struct input_events input = {
        .on_data = on_input, .on_end = on_input_end, .user = session};
    const struct output_events output = {
        .on_written = on_written, .on_failed = on_output_failed, .user = session};
    const struct output_events errors = {
        .on_written = on_written, .on_failed = on_errors_failed, .user = session};
    session->input = input_stream_new(reactor, STDIN_FILENO, &input, error);
    session->output = output_stream_new(reactor, STDOUT_FILENO, &output, error);
    session->errors = output_stream_new(reactor, STDERR_FILENO, &errors, error);
    return session->input != NULL && session->output != NULL && session->errors != NULL;
}

static void run_session(struct session *session, Openshell__V1__ExecSandboxRequest *start)
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
static int result_of(struct session *session, const char *sandbox, struct error *error)
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

static int run(const struct invocation *invocation, struct error *error)
{
    const char *word = invocation->word_count > 0 ? invocation->words[0] : NULL;
    if (word != NULL && given.name != NULL) {
        failure_usage(error, "the sandbox is named twice, by '--name' and by a word");
        return -1;
    }
    if (invocation->trailing_count == 0) {
        failure_usage(error, "there is nothing to run; put the program after --");
        return -1;
    }
    struct connection connection;
    struct session session = {.connection = &connection};
    Openshell__V1__ExecSandboxRequest start;
    Google__Protobuf__Duration limit;
    struct arena *arena = arena_new(0);
    if (!pairs_check_words(invocation->trailing, invocation->trailing_count, error) ||
        !fill_start(&start, &limit, invocation, arena, error) ||
        !connection_open(&connection, CONNECTION_START, error))
        return -1;
    start.sandbox =
        last_sandbox_or(word != NULL ? word : given.name, connection.gateway.name, error);
    if (start.sandbox == NULL || !open_streams(&session, error) ||
        !interrupt_start(connection.reactor, on_interrupt, &session, error))
        return -1;
    start.workspace_scope = &connection.workspace;
    start.explicit_stdin_eof = connection.ours;
    run_session(&session, &start);
    if (session.exited)
        last_sandbox_note(connection.gateway.name, start.sandbox);
    return result_of(&session, start.sandbox, error);
}

const struct command command_sandbox_exec = {
    .usage = "[OPTIONS] [NAME] -- PROGRAM [ARGUMENTS]",
    .description =
        "Runs a program in a sandbox, with the input and output of this command, and exits\n"
        "with its exit code: 128+N when signal N ended it, 124 after --timeout. Ctrl-C and\n"
        "SIGTERM end the program with everything it started, and so does a reader of the\n"
        "output that goes away (exit code 141). Standard input is read as long as the\n"
        "program runs. Without NAME it is the sandbox that was used last.",
    .examples = "  openshell sandbox exec demo -- ls -l\n"
                "  openshell sandbox exec demo -- sh -c 'cat >data' <data\n"
                "  openshell sandbox exec demo --timeout 60 -- make check",
    .options = options,
    .most_words = 1,
    .trailing = true,
    .run = run,
};
