/* What an exec request becomes on its way to the supervisor, and what comes back instead of an
 * exit. */
#ifndef GATEWAY_API_EXEC_START_H
#define GATEWAY_API_EXEC_START_H

#include "base/arena.h"
#include "base/error.h"
#include "openshell.pb-c.h"

enum {
    EXEC_ADMISSION_MILLISECONDS = 30000, /* behaviour reference 8.5 */
    EXEC_STDIN_WITH_START = 64 * 1024,   /* bytes; more follows in frames */
};

/* In the arena, pointing into the request. The request's stdin is in it unless it is too long. */
Openshell__Ext__V1__SessionStart *
exec_session_start(const Openshell__V1__ExecSandboxRequest *request, bool more_input,
                   struct arena *arena);

/* A supervisor's refusal as the client gets it. */
void exec_error_from_status(const Google__Rpc__Status *status, struct error *error);

#endif
