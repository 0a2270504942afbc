/* ReportMainProcessExit, FinalizeMainProcessExit (behaviour reference 1.4). */
#include <string.h>

#include "gateway/api/api.h"
#include "gateway/api/request.h"
#include "gateway/live.h"
#include "gateway/transition.h"

static bool check(const struct rpc_call *call, const char *sandbox_id, const char *instance_id,
                  struct error *error)
{
    const struct principal *principal = rpc_call_principal(call);
    if (sandbox_id[0] == '\0')
        error_add_violation(error, "sandbox_id", "is required");
    if (instance_id[0] == '\0')
        error_add_violation(error, "instance_id", "is required");
    if (error->code == ERROR_OK && strcmp(sandbox_id, principal->sandbox_id) != 0)
        error_set(error, ERROR_PERMISSION_DENIED, "the sandbox is not the caller's");
    return error->code == ERROR_OK;
}

static void apply(struct rpc_call *call, struct gateway *gateway, enum lifecycle_event event,
                  struct lifecycle_facts *facts, transition_done done)
{
    struct request *request = request_begin(call, gateway);
    const struct live_sandbox *live = live_find(gateway, request->principal->sandbox_id);
    facts->session_connected = live != NULL && live->session != NULL;
    transition_apply(gateway, request->principal->sandbox_id, event, facts, done, request);
}

/* A sandbox that is gone has nothing to report: success (1.4). */
static void answer(struct transition *transition, const struct error *error, void *user,
                   const ProtobufCMessage *response)
{
    transition_queue_compute(transition);
    if (error != NULL && error->code != ERROR_NOT_FOUND)
        request_fail(user, error);
    else
        request_respond(user, response);
}

static void reported(struct transition *transition, const struct error *error, void *user)
{
    Openshell__V1__ReportMainProcessExitResponse response =
        OPENSHELL__V1__REPORT_MAIN_PROCESS_EXIT_RESPONSE__INIT;
    answer(transition, error, user, &response.base);
}

static void finalized(struct transition *transition, const struct error *error, void *user)
{
    Openshell__V1__FinalizeMainProcessExitResponse response =
        OPENSHELL__V1__FINALIZE_MAIN_PROCESS_EXIT_RESPONSE__INIT;
    answer(transition, error, user, &response.base);
}

void api_report_main_process_exit(struct rpc_call *call, void *gateway)
{
    const Openshell__V1__ReportMainProcessExitRequest *message =
        (const Openshell__V1__ReportMainProcessExitRequest *)rpc_call_request(call);
    struct error error = {0};
    if (!check(call, message->sandbox_id, message->instance_id, &error)) {
        request_refuse(call, &error);
        return;
    }
    struct lifecycle_facts facts = {.instance_id = message->instance_id,
                                    .exit_code = message->exit_code};
    apply(call, gateway, LIFECYCLE_MAIN_EXITED, &facts, reported);
}

void api_finalize_main_process_exit(struct rpc_call *call, void *gateway)
{
    const Openshell__V1__FinalizeMainProcessExitRequest *message =
        (const Openshell__V1__FinalizeMainProcessExitRequest *)rpc_call_request(call);
    struct error error = {0};
    if (!check(call, message->sandbox_id, message->instance_id, &error)) {
        request_refuse(call, &error);
        return;
    }
    struct lifecycle_facts facts = {.instance_id = message->instance_id};
    apply(call, gateway, LIFECYCLE_FINALIZED, &facts, finalized);
}
