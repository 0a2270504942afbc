#include "gateway/logs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "gateway/api/request.h"
#include "gateway/conditions.h"
#include "gateway/lifecycle.h"
#include "gateway/records.h"
#include "gateway/validate.h"
#include "gateway/watch.h"

typedef Openshell__V1__SandboxLogLine__FieldsEntry line_field;

/* ---- the gateway's own ---- */

void logs_note(struct gateway *gateway, const char *sandbox_id, enum log_level level,
               const char *target, const struct log_field *fields, const char *format, ...)
{
    char message[1024], escaped[2048], values[LOG_FIELDS_LIMIT][512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    text_escape(message, escaped, sizeof(escaped));

    line_field entries[LOG_FIELDS_LIMIT], *pointers[LOG_FIELDS_LIMIT];
    size_t count = 0;
    for (; fields != NULL && fields[count].key != NULL && count < LOG_FIELDS_LIMIT; count++) {
        text_escape(fields[count].value, values[count], sizeof(values[count]));
        openshell__v1__sandbox_log_line__fields_entry__init(&entries[count]);
        entries[count].key = (char *)fields[count].key;
        entries[count].value = values[count];
        pointers[count] = &entries[count];
    }
    Openshell__V1__SandboxLogLine line = OPENSHELL__V1__SANDBOX_LOG_LINE__INIT;
    line.level = (char *)log_level_name(level);
    line.target = (char *)target;
    line.message = escaped;
    line.n_fields = count;
    line.fields = pointers;
    journal_add_line(journals_obtain(gateway->journals, sandbox_id), &line, JOURNAL_SOURCE_GATEWAY);
    watch_journal_changed(gateway, sandbox_id);
}

static bool same_as_last(const struct journal *journal, const char *phase, const char *reason,
                         const char *message)
{
    const struct journal_entry *last = journal != NULL ? journal_last_event(journal) : NULL;
    return last != NULL && last->event->n_metadata > 0 &&
           strcmp(last->event->metadata[0]->value, phase) == 0 &&
           strcmp(last->event->reason, reason) == 0 && strcmp(last->event->message, message) == 0;
}

void logs_note_state(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox)
{
    const char *id = sandbox->metadata->id;
    if (sandbox->status == NULL)
        return;
    const Openshell__V1__SandboxCondition *ready = conditions_get(sandbox->status, CONDITION_READY);
    const char *phase = lifecycle_phase_name(sandbox->status->phase);
    const char *reason = ready != NULL ? ready->reason : "";
    const char *message = ready != NULL ? ready->message : "";
    if (same_as_last(journals_find(gateway->journals, id), phase, reason, message))
        return;
    bool failed = sandbox->status->phase == PHASE(ERROR);
    Openshell__V1__PlatformEvent__MetadataEntry entry =
        OPENSHELL__V1__PLATFORM_EVENT__METADATA_ENTRY__INIT;
    Openshell__V1__PlatformEvent__MetadataEntry *entries[] = {&entry};
    entry.key = (char *)"phase";
    entry.value = (char *)phase;
    Openshell__V1__PlatformEvent event = OPENSHELL__V1__PLATFORM_EVENT__INIT;
    event.source = (char *)JOURNAL_SOURCE_GATEWAY;
    event.type = (char *)(failed ? "Warning" : "Normal");
    event.reason = (char *)reason;
    event.message = (char *)message;
    event.n_metadata = 1;
    event.metadata = entries;
    journal_add_event(journals_obtain(gateway->journals, id), &event);
    const struct log_field fields[] = {{"phase", phase}, {"reason", reason}, {NULL, NULL}};
    logs_note(gateway, id, failed ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, "lifecycle", fields,
              "the sandbox is %s%s%s", lifecycle_phase_word(sandbox->status->phase),
              message[0] != '\0' ? ": " : "", message);
}

/* ---- pushed lines ---- */

void logs_take(struct gateway *gateway, const char *sandbox_id,
               Openshell__V1__SandboxLogLine *const *lines, size_t count)
{
    struct journal *journal = journals_obtain(gateway->journals, sandbox_id);
    bool changed = false;
    for (size_t i = 0; i < count && i < LOGS_BATCH_LIMIT; i++)
        changed |= journal_add_line(journal, lines[i], JOURNAL_SOURCE_SANDBOX);
    if (changed)
        watch_journal_changed(gateway, sandbox_id);
}

static void on_batch(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    const Openshell__V1__PushSandboxLogsRequest *batch =
        (const Openshell__V1__PushSandboxLogsRequest *)message;
    const struct principal *principal = rpc_call_principal(call);
    if (batch->sandbox_id[0] != '\0' && strcmp(batch->sandbox_id, principal->sandbox_id) != 0) {
        struct error error = {0};
        error_set(&error, ERROR_PERMISSION_DENIED, "the sandbox is not the caller's");
        request_refuse(call, &error);
        return;
    }
    if (batch->sandbox_id[0] != '\0')
        logs_take(user, principal->sandbox_id, batch->logs, batch->n_logs);
    rpc_call_read(call);
}

static void on_batches_end(struct rpc_call *call, void *user)
{
    (void)user;
    Openshell__V1__PushSandboxLogsResponse response =
        OPENSHELL__V1__PUSH_SANDBOX_LOGS_RESPONSE__INIT;
    rpc_call_respond(call, &response.base);
}

void logs_push(struct rpc_call *call, void *gateway)
{
    static const struct rpc_call_events events = {.on_message = on_batch, .on_end = on_batches_end};
    rpc_call_accept(call, &events, gateway);
    rpc_call_read(call);
}

/* ---- reading ---- */

struct lookup {
    const char *workspace;
    const char *name;
    Openshell__V1__Sandbox *sandbox;
};

static bool load(struct store_transaction *store, void *argument, struct error *error)
{
    struct request *request = argument;
    struct lookup *lookup = request->detail;
    return record_load_sandbox(store, request->arena, lookup->workspace, lookup->name,
                               &lookup->sandbox, error);
}

static int compare_times(const void *left, const void *right)
{
    const Google__Protobuf__Timestamp *first =
        (*(const Openshell__V1__SandboxLogLine *const *)left)->event_time;
    const Google__Protobuf__Timestamp *second =
        (*(const Openshell__V1__SandboxLogLine *const *)right)->event_time;
    if (first->seconds != second->seconds)
        return first->seconds < second->seconds ? -1 : 1;
    return (first->nanos > second->nanos) - (first->nanos < second->nanos);
}

/* A supervisor's lines come a moment later than the gateway's own. */
static void respond(struct request *request, const struct journal *journal)
{
    const Openshell__V1__GetSandboxLogsRequest *message =
        (const Openshell__V1__GetSandboxLogsRequest *)request->message;
    struct journal_filter filter;
    journal_filter_init(&filter, message->since_time, message->sources, message->n_sources,
                        message->min_level);
    struct journal_reader reader = {.lines = true};
    journal_seek_tail(journal, &filter, JOURNAL_LINES_LIMIT, 0, &reader);
    Openshell__V1__GetSandboxLogsResponse response = OPENSHELL__V1__GET_SANDBOX_LOGS_RESPONSE__INIT;
    response.buffer_total = (uint32_t)journal_line_count(journal);
    response.logs =
        arena_array_of(request->arena, Openshell__V1__SandboxLogLine *, response.buffer_total + 1);
    const struct journal_entry *entry;
    uint64_t lost;
    while ((entry = journal_read(journal, &reader, &lost)) != NULL)
        if (journal_filter_matches(&filter, entry))
            response.logs[response.n_logs++] = entry->line;
    qsort(response.logs, response.n_logs, sizeof(*response.logs), compare_times);
    if (message->lines > 0 && response.n_logs > message->lines) {
        response.logs += response.n_logs - message->lines;
        response.n_logs = message->lines;
    }
    request_respond(request, &response.base);
}

static void loaded(void *argument, const struct error *error)
{
    struct request *request = argument;
    const struct lookup *lookup = request->detail;
    if (error != NULL) {
        request_fail(request, error);
        return;
    }
    const struct journal *journal =
        journals_find(request->gateway->journals, lookup->sandbox->metadata->id);
    if (journal != NULL) {
        respond(request, journal);
        return;
    }
    Openshell__V1__GetSandboxLogsResponse response = OPENSHELL__V1__GET_SANDBOX_LOGS_RESPONSE__INIT;
    request_respond(request, &response.base);
}

void logs_get(struct rpc_call *call, void *gateway)
{
    const Openshell__V1__GetSandboxLogsRequest *message =
        (const Openshell__V1__GetSandboxLogsRequest *)rpc_call_request(call);
    const char *workspace;
    struct error error = {0};
    bool good = validate_workspace_scope(message->workspace_scope, false, &workspace, &error);
    good &= validate_sandbox_reference("sandbox", message->sandbox, &error);
    if (!good) {
        request_refuse(call, &error);
        return;
    }
    struct request *request = request_begin(call, gateway);
    struct lookup *lookup = arena_new_of(request->arena, struct lookup);
    lookup->workspace = arena_strdup(request->arena, workspace);
    lookup->name = arena_strdup(request->arena, message->sandbox);
    request->detail = lookup;
    store_read(request->gateway->store, load, loaded, request);
}
