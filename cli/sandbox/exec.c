/* openshell sandbox exec: runs a program in a sandbox, with this process's input and output. */
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/command.h"
#include "client/connection.h"
#include "client/exec_session.h"
#include "client/failure.h"
#include "client/last_sandbox.h"
#include "client/pairs.h"
#include "client/settings.h"

enum terminal_choice { TERMINAL_AUTO, TERMINAL_YES, TERMINAL_NO };

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

/* ---- the start ---- */

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
    struct exec_session session = {.input_descriptor = STDIN_FILENO,
                                   .output_descriptor = STDOUT_FILENO};
    Openshell__V1__ExecSandboxRequest start;
    Google__Protobuf__Duration limit;
    struct arena *arena = arena_new(0);
    if (!pairs_check_words(invocation->trailing, invocation->trailing_count, error) ||
        !fill_start(&start, &limit, invocation, arena, error) ||
        !connection_open(&connection, CONNECTION_START, error))
        return -1;
    start.sandbox =
        last_sandbox_or(word != NULL ? word : given.name, connection.gateway.name, error);
    if (start.sandbox == NULL || !exec_session_open(&session, &connection, error))
        return -1;
    start.workspace_scope = &connection.workspace;
    start.explicit_stdin_eof = connection.ours;
    exec_session_run(&session, &start);
    if (session.exited)
        last_sandbox_note(connection.gateway.name, start.sandbox);
    return exec_session_result(&session, start.sandbox, error);
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
