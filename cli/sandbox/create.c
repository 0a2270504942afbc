/* openshell sandbox create: makes a sandbox, and waits until the gateway says what became of it
 * (decision P21). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/document.h"
#include "client/failure.h"
#include "client/interrupt.h"
#include "client/last_sandbox.h"
#include "client/pairs.h"
#include "client/report.h"
#include "client/sandbox_calls.h"
#include "client/settings.h"
#include "client/watch.h"
#include "proto/method_table.h"

enum terminal_choice { TERMINAL_AUTO, TERMINAL_YES, TERMINAL_NO };

enum {
    PROVISION_SECONDS = 300,
    /* A program that ends at once, mistyped or missing a library, ends a moment after its sandbox
     * became ready: what is worth waiting, in milliseconds, to say so. */
    END_AT_ONCE = 200,
    /* After Ctrl-C, in milliseconds: how long to wait for the name of what was made. */
    LAST_ANSWER_PATIENCE = 2000,
    /* For a deletion that goes on without us, in milliseconds. */
    DELETION_PATIENCE = 10000,
};

/* The gateway deletes what nobody keeps, where this command cannot do it any more. */
#define RETENTION_KEY "openshell.nvidia.com/retention"
#define RETENTION_EPHEMERAL "ephemeral"

static struct {
    const char *name;
    const char *from;
    struct option_list environment;
    struct option_list labels;
    bool detach;
    bool keep;
    bool no_keep;
    int terminal; /* enum terminal_choice */
} given;

static const struct option options[] = {
    {.type = OPTION_TEXT,
     .letter = 'n',
     .name = "name",
     .value = &given.name,
     .metavar = "NAME",
     .help = "Name it; the gateway chooses a name otherwise"},
    {.type = OPTION_TEXT,
     .name = "from",
     .value = &given.from,
     .metavar = "DIR",
     .help = "Start from the files of this directory, not from those of this machine"},
    {.type = OPTION_FLAG,
     .letter = 'd',
     .name = "detach",
     .value = &given.detach,
     .help = "Do not stay with the program: print the sandbox's name once it is ready"},
    {.type = OPTION_FLAG,
     .name = "no-keep",
     .value = &given.no_keep,
     .help = "Delete it when the program has ended",
     .conflicts = "keep output"},
    {.type = OPTION_FLAG,
     .name = "keep",
     .value = &given.keep,
     .help = "Keep it when the program has ended",
     .hidden = true},
    {.type = OPTION_LIST,
     .letter = 'e',
     .name = "env",
     .value = &given.environment,
     .metavar = "KEY=VALUE",
     .help = "Set a variable for everything that runs in it"},
    {.type = OPTION_LIST,
     .letter = 'l',
     .name = "label",
     .value = &given.labels,
     .metavar = "KEY=VALUE",
     .help = "Give it a label to select it by"},
    {.type = OPTION_CONSTANT,
     .letter = 't',
     .name = "tty",
     .value = &given.terminal,
     .constant = TERMINAL_YES,
     .help = "Give the program a terminal"},
    {.type = OPTION_CONSTANT,
     .name = "no-tty",
     .value = &given.terminal,
     .constant = TERMINAL_NO,
     .help = "Give the program no terminal"},
    OPTION_OWN_EXIT_CODE,
    OPTION_OUTPUT,
    {0},
};

/* ---- the request ---- */

/* The pieces of a request, which refers to them. */
struct request {
    Openshell__V1__CreateSandboxRequest message;
    Openshell__V1__SandboxSpec spec;
    Openshell__V1__SandboxTemplate template;
    Openshell__V1__CreateSandboxRequest__AnnotationsEntry retention;
    Openshell__V1__CreateSandboxRequest__AnnotationsEntry *annotations[1];
};

static bool set_environment(struct request *request, struct arena *arena, struct error *error)
{
    struct pair *pairs;
    size_t count;
    if (!pairs_parse(&given.environment, "env", PAIR_ENVIRONMENT, arena, &pairs, &count, error))
        return false;
    request->spec.n_environment = count;
    request->spec.environment =
        arena_array_of(arena, Openshell__V1__SandboxSpec__EnvironmentEntry *, count + 1);
    for (size_t i = 0; i < count; i++) {
        Openshell__V1__SandboxSpec__EnvironmentEntry *entry =
            arena_new_of(arena, Openshell__V1__SandboxSpec__EnvironmentEntry);
        openshell__v1__sandbox_spec__environment_entry__init(entry);
        entry->key = pairs[i].key;
        entry->value = pairs[i].value;
        request->spec.environment[i] = entry;
    }
    return true;
}

static bool set_labels(struct request *request, struct arena *arena, struct error *error)
{
    struct pair *pairs;
    size_t count;
    if (!pairs_parse(&given.labels, "label", PAIR_LABEL, arena, &pairs, &count, error))
        return false;
    request->message.n_labels = count;
    request->message.labels =
        arena_array_of(arena, Openshell__V1__CreateSandboxRequest__LabelsEntry *, count + 1);
    for (size_t i = 0; i < count; i++) {
        Openshell__V1__CreateSandboxRequest__LabelsEntry *entry =
            arena_new_of(arena, Openshell__V1__CreateSandboxRequest__LabelsEntry);
        openshell__v1__create_sandbox_request__labels_entry__init(entry);
        entry->key = pairs[i].key;
        entry->value = pairs[i].value;
        request->message.labels[i] = entry;
    }
    return true;
}

/* A directory of this machine becomes "dir:/absolute/path"; the gateway runs on it too. */
static bool set_from(struct request *request, struct arena *arena, struct error *error)
{
    if (given.from == NULL)
        return true;
    char path[PATH_MAX], shown[PATH_MAX];
    struct stat status;
    text_escape(given.from, shown, sizeof(shown));
    if (realpath(given.from, path) == NULL || stat(path, &status) != 0 ||
        !S_ISDIR(status.st_mode)) {
        failure_set(error, CLIENT_REASON_FROM_INVALID, "'%.*s' is not a directory that exists", 256,
                    shown);
        failure_hint(error, "--from takes a directory with the files of a system");
        return false;
    }
    if (!text_is_utf8(path, strlen(path)))
        return failure_set(error, CLIENT_REASON_FROM_INVALID, "the path '%.*s' is not UTF-8 text",
                           256, shown);
    request->template.image = arena_printf(arena, "dir:%s", path);
    request->spec.template_ = &request->template;
    return true;
}

static bool wants_terminal(void)
{
    if (given.terminal != TERMINAL_AUTO)
        return given.terminal == TERMINAL_YES;
    return !given.detach && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static void set_retention(struct request *request)
{
    openshell__v1__create_sandbox_request__annotations_entry__init(&request->retention);
    request->retention.key = (char *)RETENTION_KEY;
    request->retention.value = (char *)RETENTION_EPHEMERAL;
    request->annotations[0] = &request->retention;
    request->message.annotations = request->annotations;
    request->message.n_annotations = 1;
}

static bool fill_request(struct request *request, const struct invocation *invocation,
                         struct arena *arena, struct error *error)
{
    openshell__v1__create_sandbox_request__init(&request->message);
    openshell__v1__sandbox_spec__init(&request->spec);
    openshell__v1__sandbox_template__init(&request->template);
    request->message.spec = &request->spec;
    if (given.name != NULL)
        request->message.name = (char *)given.name;
    request->spec.command = invocation->trailing;
    request->spec.n_command = invocation->trailing_count;
    request->spec.tty = wants_terminal();
    /* Otherwise the command waits for the result and deletes: the gateway might be first. */
    if (given.no_keep && given.detach)
        set_retention(request);
    return pairs_check_words(invocation->trailing, invocation->trailing_count, error) &&
           set_environment(request, arena, error) && set_labels(request, arena, error) &&
           set_from(request, arena, error);
}

/* ---- the call ---- */

struct creation {
    struct connection *connection;
    bool done;
    const Openshell__V1__SandboxResponse *response; /* in the connection's arena */
    struct error error;
};

static void on_created(const ProtobufCMessage *message, const struct error *error, void *user)
{
    struct creation *creation = user;
    creation->done = true;
    if (message == NULL) {
        error_copy(&creation->error, error);
        return;
    }
    struct arena *arena = creation->connection->arena;
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(arena, size + 1);
    protobuf_c_message_pack(message, bytes);
    creation->response =
        openshell__v1__sandbox_response__unpack(arena_protobuf_allocator(arena), size, bytes);
}

static void stop_waiting(void *argument)
{
    *(bool *)argument = true;
}

/* The call is not cancelled by Ctrl-C: the gateway would go on, and nobody would know with what.
 * The answer is waited for a little longer instead. */
static void create(struct creation *creation, const struct request *request)
{
    struct reactor *reactor = creation->connection->reactor;
    struct reactor_timer *timer = NULL;
    bool waited_enough = false;
    const struct rpc_call_options limit = {.deadline = CALL_DEADLINE};
    rpc_unary(creation->connection->channel, &rpc_openshell_v1_OpenShell_CreateSandbox, &limit,
              &request->message.base, on_created, creation);
    while (!creation->done && !waited_enough) {
        if (interrupt_number() != 0 && timer == NULL)
            timer =
                reactor_timer_start(reactor, LAST_ANSWER_PATIENCE, 0, stop_waiting, &waited_enough);
        reactor_run_once(reactor);
    }
    reactor_timer_cancel(timer);
}

/* ---- what became of it ---- */

/* Ctrl-C: says what is left, or deletes what nobody wanted to keep. */
static void leave(struct connection *connection, const char *name, struct error *error)
{
    if (name == NULL) {
        failure_set(error, CLIENT_REASON_INTERRUPTED,
                    "interrupted before the gateway answered; a sandbox may have been made");
        failure_hint(error, "see with: openshell sandbox list");
        return;
    }
    struct error ignored = {0};
    if (given.no_keep && sandbox_delete(connection, name, NULL, &ignored)) {
        failure_set(error, CLIENT_REASON_INTERRUPTED, "interrupted; sandbox '%s' is deleted", name);
    } else {
        failure_set(error, CLIENT_REASON_INTERRUPTED, "interrupted; sandbox '%s' is left", name);
        failure_hint(error, "delete it with: openshell sandbox delete %s", name);
    }
    error_clear(&ignored);
}

static void print_record(const Openshell__V1__Sandbox *sandbox,
                         const Openshell__V1__SandboxResponse *response)
{
    json_t *document = sandbox_document(sandbox), *urls = json_object();
    for (size_t i = 0; i < response->n_service_urls; i++)
        json_object_set_new(urls, response->service_urls[i]->key,
                            document_text(response->service_urls[i]->value));
    json_object_set_new(document, "service_urls", urls);
    document_print(document, settings.output, stdout);
}

static void print_name(const char *name)
{
    CLEANUP_FREE char *shown = text_escaped(name);
    printf("%s\n", shown);
}

/* Says it for people, prints what scripts read, and gives the exit code; -1 for a failure.
 * `program` is NULL for the shell that runs where none is given. */
static int conclude(const Openshell__V1__Sandbox *sandbox, const char *program,
                    const Openshell__V1__SandboxResponse *response, struct error *error)
{
    const char *name = sandbox_name(sandbox);
    int exit_code = EXIT_SUCCESS;
    enum sandbox_outcome outcome = sandbox_outcome(sandbox, &exit_code);
    if (outcome != SANDBOX_READY && outcome != SANDBOX_ENDED) {
        sandbox_failure(sandbox, error);
        return -1;
    }
    if (settings.output != OUTPUT_TABLE)
        print_record(sandbox, response);
    else if (given.detach)
        print_name(name);
    if (given.no_keep && !given.detach)
        return exit_code;
    if (outcome == SANDBOX_READY)
        report_notice("sandbox '%s' is ready", name);
    else if (exit_code == 0)
        report_notice("sandbox '%s' has completed: its main process ended with code 0", name);
    else
        report_notice("the main process of sandbox '%s'%s%s%s failed with code %d", name,
                      program != NULL ? " (" : "", program != NULL ? program : "",
                      program != NULL ? ")" : "", exit_code);
    return exit_code;
}

static const Openshell__V1__Sandbox *await(struct connection *connection, const char *name,
                                           bool runs_program, int64_t patience, struct error *error)
{
    const struct watch watch = {.sandbox = name,
                                .patience = patience,
                                .restart_patience = true,
                                .wait_for_end = given.no_keep && !given.detach};
    const Openshell__V1__Sandbox *sandbox = watch_wait(connection, &watch, error);
    if (sandbox != NULL && runs_program && !given.detach &&
        sandbox_outcome(sandbox, NULL) == SANDBOX_READY)
        sandbox = watch_linger(connection, name, END_AT_ONCE, error);
    if (sandbox == NULL && interrupt_number() != 0)
        leave(connection, name, error);
    else if (sandbox == NULL && failure_is(error, CLIENT_REASON_TIMED_OUT))
        failure_hint(error, "see how it comes on with: openshell sandbox get %s", name);
    return sandbox;
}

/* Whether it is gone: the gateway may be deleting it already, which is waited for. */
static bool discard(struct connection *connection, const char *name, struct error *error)
{
    Openshell__V1__DeletionOutcome outcome = 0;
    if (!sandbox_delete(connection, name, &outcome, error))
        return false;
    if (outcome == OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_ACCEPTED)
        watch_gone(connection, name, DELETION_PATIENCE);
    return true;
}

/* Deletes what is not kept. The result is known by then: what it was is said all the same. */
static int finish(struct connection *connection, const char *name, int code, struct error *error)
{
    if (!given.no_keep || given.detach)
        return code;
    struct error failed = {0};
    if (discard(connection, name, &failed))
        return code;
    if (code < 0) {
        report_error(&failed);
        error_clear(&failed);
        return code;
    }
    report_notice("the main process ended with code %d", code);
    error_copy(error, &failed);
    error_prefix(error, "cannot delete sandbox '%s'", name);
    error_clear(&failed);
    return -1;
}

struct used {
    const char *gateway;
    const char *sandbox;
};

static void note_used(void *argument)
{
    const struct used *used = argument;
    last_sandbox_note(used->gateway, used->sandbox);
}

static void refused(struct creation *creation, struct error *error)
{
    error_copy(error, &creation->error);
    connection_check(creation->connection, error);
    if (given.name != NULL)
        failure_about(error, given.name);
}

static bool check_given(const struct invocation *invocation, struct error *error)
{
    if (settings.output != OUTPUT_TABLE && invocation->trailing_count > 0 && !given.detach) {
        failure_usage(error, "option '--output' with a program needs '--detach'");
        return false;
    }
    return true;
}

static int run(const struct invocation *invocation, struct error *error)
{
    struct request request;
    struct connection connection;
    struct creation creation = {.connection = &connection};
    struct arena *arena = arena_new(0);
    int64_t patience = watch_patience("OPENSHELL_PROVISION_TIMEOUT", PROVISION_SECONDS, error);
    if (patience < 0 || !check_given(invocation, error) ||
        !fill_request(&request, invocation, arena, error) ||
        !connection_open(&connection, CONNECTION_START, error) ||
        !interrupt_start(connection.reactor, NULL, NULL, error))
        return -1;
    request.message.workspace_scope = &connection.workspace;
    create(&creation, &request);
    if (creation.response == NULL || creation.response->sandbox == NULL) {
        if (interrupt_number() != 0 && !creation.done)
            leave(&connection, given.name, error);
        else
            refused(&creation, error);
        return -1;
    }
    const char *name = sandbox_name(creation.response->sandbox);
    /* Once the wait has begun: a file system may be slow. */
    struct used used = {.gateway = connection.gateway.name, .sandbox = name};
    if (!given.no_keep)
        reactor_timer_start(connection.reactor, 1, 0, note_used, &used);
    const char *program = invocation->trailing_count > 0 ? invocation->trailing[0] : NULL;
    const Openshell__V1__Sandbox *sandbox =
        await(&connection, name, program != NULL, patience, error);
    if (sandbox == NULL)
        return -1;
    int code = conclude(sandbox, program, creation.response, error);
    return finish(&connection, name, code, error);
}

const struct command command_sandbox_create = {
    .usage = "[OPTIONS] [-- PROGRAM [ARGUMENTS]]",
    .description =
        "Creates a sandbox and runs a program in it, its main process: a shell where none is\n"
        "given. Waits until the sandbox is ready or its program has ended, without news for\n"
        "$OPENSHELL_PROVISION_TIMEOUT seconds at most (300). Exits with 0 when it is ready,\n"
        "and with the program's own code when that ended at once. The sandbox stays until it\n"
        "is deleted; with --no-keep and without --detach, this command waits for the end of\n"
        "the program, exits with its code, and deletes the sandbox.",
    .examples = "  openshell sandbox create --name demo --detach\n"
                "  openshell sandbox create --no-keep -- make check\n"
                "  openshell sandbox create --from ./rootfs --label team=red -- /bin/agent",
    .options = options,
    .trailing = true,
    .run = run,
};
