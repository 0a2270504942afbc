/* openshell logs */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/document.h"
#include "client/failure.h"
#include "client/last_sandbox.h"
#include "client/log_lines.h"
#include "client/report.h"
#include "client/settings.h"
#include "client/terminal.h"
#include "proto/method_table.h"

enum {
    LINES_MAX = 1000 * 1000,
    READER_MILLISECONDS = 1000, /* between two looks for whoever reads */
};

static struct {
    long long lines;
    bool tail;
    const char *since;
    struct option_list sources;
    const char *level;
} given = {.lines = 200, .level = ""};

static const struct option options[] = {
    {.type = OPTION_NUMBER,
     .letter = 'n',
     .name = "lines",
     .value = &given.lines,
     .metavar = "N",
     .help = "Show the last N lines; 0 means all that are kept, and 200 with --tail",
     .fallback = "200",
     .maximum = LINES_MAX},
    {.type = OPTION_FLAG,
     .name = "tail",
     .value = &given.tail,
     .help = "Go on with what comes, until it is interrupted or the sandbox is deleted"},
    {.type = OPTION_TEXT,
     .name = "since",
     .value = &given.since,
     .metavar = "DURATION",
     .help = "Only lines of this last span of time, as 30s, 5m or 2h"},
    {.type = OPTION_LIST,
     .name = "source",
     .value = &given.sources,
     .metavar = "SOURCE",
     .help = "Only lines of this source: gateway, sandbox or all; may be given several times",
     .fallback = "all",
     .completes = "words gateway sandbox all"},
    {.type = OPTION_TEXT,
     .name = "level",
     .value = &given.level,
     .metavar = "LEVEL",
     .help = "Only lines of this level or a graver one: error, warn, info, debug or trace",
     .completes = "words error warn info debug trace"},
    OPTION_OUTPUT,
    {0},
};

/* What the requests of both calls share. */
struct wanted {
    Google__Protobuf__Timestamp since;
    bool has_since;
    char *level; /* in capitals */
    char **sources;
    size_t source_count;
};

/* "all" is dropped; an empty list means every source. */
static bool read_sources(struct wanted *wanted, struct error *error)
{
    wanted->sources = memory_new((given.sources.count + 1) * sizeof(char *));
    for (size_t i = 0; i < given.sources.count; i++) {
        const char *source = given.sources.values[i];
        if (strcmp(source, "all") == 0)
            continue;
        if (strcmp(source, "gateway") != 0 && strcmp(source, "sandbox") != 0) {
            CLEANUP_FREE char *shown = text_escaped(source);
            failure_usage(error, "option '--source' does not know '%s'", shown);
            failure_hint(error, "it takes one of: gateway sandbox all");
            return false;
        }
        wanted->sources[wanted->source_count++] = (char *)source;
    }
    return true;
}

static bool read_options(struct wanted *wanted, struct error *error)
{
    *wanted = (struct wanted){.level = memory_strdup(given.level)};
    google__protobuf__timestamp__init(&wanted->since);
    if (given.since != NULL) {
        int64_t seconds, now = clock_realtime_milliseconds();
        if (!log_since_parse(given.since, &seconds, error))
            return false;
        int64_t since = now - seconds * 1000;
        wanted->has_since = true;
        wanted->since.seconds = since > 1000 ? since / 1000 : 1;
        wanted->since.nanos = since > 1000 ? (int32_t)(since % 1000) * 1000000 : 0;
    }
    enum log_level level;
    if (given.level[0] != '\0' && !log_level_parse(given.level, &level))
        report_notice("'%s' is no level that is known: lines of every level are shown",
                      given.level);
    for (char *at = wanted->level; *at != '\0'; at++)
        *at = (char)toupper((unsigned char)*at);
    if (given.tail && settings.output == OUTPUT_YAML)
        return failure_usage(error, "options '--tail' and '--output yaml' exclude each other");
    return read_sources(wanted, error);
}

/* ---- once ---- */

static int show(struct connection *connection, const char *name, struct wanted *wanted,
                struct error *error)
{
    Openshell__V1__GetSandboxLogsRequest request = OPENSHELL__V1__GET_SANDBOX_LOGS_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.sandbox = (char *)name;
    request.lines = (uint32_t)given.lines;
    request.since_time = wanted->has_since ? &wanted->since : NULL;
    request.n_sources = wanted->source_count;
    request.sources = wanted->sources;
    request.min_level = wanted->level;
    const Openshell__V1__GetSandboxLogsResponse *response = connection_call(
        connection, &rpc_openshell_v1_OpenShell_GetSandboxLogs, &request.base, error);
    if (response == NULL) {
        failure_about(error, name);
        return -1;
    }
    if (settings.output != OUTPUT_TABLE) {
        json_t *document = json_object(), *logs = json_array();
        for (size_t i = 0; i < response->n_logs; i++)
            json_array_append_new(logs, log_line_document(response->logs[i]));
        json_object_set_new(document, "logs", logs);
        json_object_set_new(document, "buffer_total", json_integer(response->buffer_total));
        document_print(document, settings.output, stdout);
        return EXIT_SUCCESS;
    }
    for (size_t i = 0; i < response->n_logs; i++)
        log_line_print(response->logs[i], terminal_colours(STDOUT_FILENO), stdout);
    if (given.since != NULL && response->buffer_total > 0)
        report_notice("the gateway keeps a limited number of lines, %u now; earlier ones of this "
                      "span of time may be missing",
                      response->buffer_total);
    return EXIT_SUCCESS;
}

/* ---- following ---- */

struct following {
    struct rpc_call *call;
    bool ended; /* standard output takes no more */
    bool done;
    struct error status;
};

static void show_warning(const char *message)
{
    if (settings.output == OUTPUT_JSON) {
        json_t *document = json_object();
        json_object_set_new(document, "warning", document_text(message));
        document_print_line(document, stdout);
    } else {
        fflush(stdout);
        report_notice("%s", message);
    }
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct following *following = user;
    const Openshell__V1__SandboxStreamEvent *event =
        (const Openshell__V1__SandboxStreamEvent *)message;
    if (event->payload_case == OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_LOG) {
        if (settings.output == OUTPUT_JSON)
            document_print_line(log_line_document(event->log), stdout);
        else
            log_line_print(event->log, terminal_colours(STDOUT_FILENO), stdout);
    } else if (event->payload_case == OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_WARNING) {
        show_warning(event->warning->message);
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        following->ended = true;
        rpc_call_cancel(call);
        return;
    }
    rpc_call_read(call);
}

static void on_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct following *following = user;
    error_copy(&following->status, status);
    following->done = true;
}

/* Whoever reads may go away while there is nothing to write. */
static void look_for_reader(void *argument)
{
    struct following *following = argument;
    if (following->ended || !report_reader_gone())
        return;
    following->ended = true;
    rpc_call_cancel(following->call);
}

static int follow(struct connection *connection, const char *name, struct wanted *wanted,
                  struct error *error)
{
    static const struct rpc_call_events events = {.on_message = on_message, .on_done = on_done};
    struct following following = {0};
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.sandbox = (char *)name;
    request.follow_logs = true;
    request.log_tail_lines = (uint32_t)given.lines;
    request.since_time = wanted->has_since ? &wanted->since : NULL;
    request.n_log_sources = wanted->source_count;
    request.log_sources = wanted->sources;
    request.log_min_level = wanted->level;
    following.call = rpc_call_start(connection->channel, &rpc_openshell_v1_OpenShell_WatchSandbox,
                                    NULL, &events, &following);
    rpc_call_send(following.call, &request.base);
    rpc_call_half_close(following.call);
    rpc_call_read(following.call);
    struct reactor_timer *timer = reactor_timer_start(
        connection->reactor, READER_MILLISECONDS, READER_MILLISECONDS, look_for_reader, &following);
    while (!following.done)
        reactor_run_once(connection->reactor);
    reactor_timer_cancel(timer);
    if (following.ended)
        return EXIT_SUCCESS; /* the caller sees what standard output says */
    if (following.status.code == ERROR_OK)
        return EXIT_SUCCESS;
    error_copy(error, &following.status);
    connection_check(connection, error);
    failure_about(error, name);
    return -1;
}

static int run(const struct invocation *invocation, struct error *error)
{
    struct connection connection;
    struct wanted wanted;
    if (!read_options(&wanted, error) || !connection_open(&connection, CONNECTION_START, error))
        return -1;
    char *name = last_sandbox_or(invocation->words != NULL ? invocation->words[0] : NULL,
                                 connection.gateway.name, error);
    if (name == NULL)
        return -1;
    return given.tail ? follow(&connection, name, &wanted, error)
                      : show(&connection, name, &wanted, error);
}

const struct command command_logs = {
    .usage = "[OPTIONS] [NAME]",
    .description =
        "Shows what the gateway and the sandbox's supervisor say about a sandbox: each step of\n"
        "its start, sessions that begin and end, what was refused and why. Without NAME it is\n"
        "the sandbox that was used last. The output of its programs is not part of it.",
    .examples = "  openshell logs demo\n"
                "  openshell logs demo --tail --level warn\n"
                "  openshell logs --since 5m --source sandbox -o json",
    .options = options,
    .most_words = 1,
    .run = run,
};
