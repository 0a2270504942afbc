#include "client/sandbox_calls.h"

#include "client/failure.h"
#include "client/watch.h"
#include "proto/method_table.h"

enum { LIFECYCLE_SECONDS = 300 };

bool sandbox_delete(struct connection *connection, const char *name,
                    Openshell__V1__DeletionOutcome *ret_outcome, struct error *error)
{
    Openshell__V1__DeleteSandboxRequest request = OPENSHELL__V1__DELETE_SANDBOX_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.name = (char *)name;
    request.allow_missing = true;
    const Openshell__V1__DeleteSandboxResponse *response = connection_call(
        connection, &rpc_openshell_v1_OpenShell_DeleteSandbox, &request.base, error);
    if (response == NULL) {
        failure_about(error, name);
        return false;
    }
    if (ret_outcome != NULL)
        *ret_outcome = response->outcome;
    return true;
}

static bool call(struct connection *connection, const struct rpc_method *method,
                 const ProtobufCMessage *request, const char *name, struct error *error)
{
    if (connection_call(connection, method, request, error) != NULL)
        return true;
    failure_about(error, name);
    return false;
}

bool sandbox_begin_stop(struct connection *connection, const char *name, struct error *error)
{
    Openshell__V1__StopSandboxRequest request = OPENSHELL__V1__STOP_SANDBOX_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.name = (char *)name;
    return call(connection, &rpc_openshell_v1_OpenShell_StopSandbox, &request.base, name, error);
}

bool sandbox_begin_start(struct connection *connection, const char *name, struct error *error)
{
    Openshell__V1__StartSandboxRequest request = OPENSHELL__V1__START_SANDBOX_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.name = (char *)name;
    return call(connection, &rpc_openshell_v1_OpenShell_StartSandbox, &request.base, name, error);
}

const Openshell__V1__Sandbox *sandbox_await(struct connection *connection, const char *name,
                                            struct error *error)
{
    int64_t patience = watch_patience("OPENSHELL_LIFECYCLE_TIMEOUT", LIFECYCLE_SECONDS, error);
    if (patience < 0)
        return NULL;
    const struct watch watch = {.sandbox = name, .patience = patience};
    return watch_wait(connection, &watch, error);
}
