#include "gateway/api/exec_start.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "gateway/records.h"
#include "rpc/status.h"

enum { DEFAULT_COLUMNS = 80, DEFAULT_ROWS = 24 };

static ProtobufCBinaryData bytes_of(char *text)
{
    return (ProtobufCBinaryData){.len = strlen(text), .data = (uint8_t *)text};
}

static void set_command(Openshell__Ext__V1__SessionStart *start,
                        const Openshell__V1__ExecSandboxRequest *request, struct arena *arena)
{
    start->n_command = request->n_command;
    start->command = arena_array_of(arena, ProtobufCBinaryData, request->n_command);
    for (size_t i = 0; i < request->n_command; i++)
        start->command[i] = bytes_of(request->command[i]);
}

static void set_environment(Openshell__Ext__V1__SessionStart *start,
                            const Openshell__V1__ExecSandboxRequest *request, struct arena *arena)
{
    start->n_environment = request->n_environment;
    start->environment = arena_array_of(arena, Openshell__Ext__V1__SessionStart__EnvironmentEntry *,
                                        request->n_environment);
    for (size_t i = 0; i < request->n_environment; i++) {
        Openshell__Ext__V1__SessionStart__EnvironmentEntry *entry =
            arena_new_of(arena, Openshell__Ext__V1__SessionStart__EnvironmentEntry);
        openshell__ext__v1__session_start__environment_entry__init(entry);
        entry->key = request->environment[i]->key;
        entry->value = bytes_of(request->environment[i]->value);
        start->environment[i] = entry;
    }
}

Openshell__Ext__V1__SessionStart *
exec_session_start(const Openshell__V1__ExecSandboxRequest *request, bool more_input,
                   struct arena *arena)
{
    Openshell__Ext__V1__SessionStart *start = arena_new_of(arena, Openshell__Ext__V1__SessionStart);
    openshell__ext__v1__session_start__init(start);
    start->kind = OPENSHELL__EXT__V1__SESSION_START__KIND__KIND_EXEC;
    set_command(start, request, arena);
    set_environment(start, request, arena);
    start->workdir = request->workdir;
    start->tty = request->tty;
    start->columns = request->cols != 0 ? request->cols : DEFAULT_COLUMNS;
    start->rows = request->rows != 0 ? request->rows : DEFAULT_ROWS;
    start->no_login_shell = request->no_login_shell;
    start->helper = request->helper;
    start->keep_running = request->keep_running;
    start->timeout = request->execution_timeout;
    char request_id[UUID_SIZE];
    uuid_generate(request_id);
    start->request_id = arena_strdup(arena, request_id);
    start->expiry =
        record_timestamp(arena, clock_realtime_milliseconds() + EXEC_ADMISSION_MILLISECONDS);
    if (request->stdin.len <= EXEC_STDIN_WITH_START) {
        start->stdin = request->stdin;
        start->stdin_complete = !more_input;
    }
    return start;
}

void exec_error_from_status(const Google__Rpc__Status *status, struct error *error)
{
    CLEANUP_FREE uint8_t *packed = memory_allocate(google__rpc__status__get_packed_size(status));
    size_t size = google__rpc__status__pack(status, packed);
    int code = status->code != ERROR_OK ? status->code : ERROR_UNKNOWN;
    status_decode(code, status->message, packed, size, error);
}
