/* GetSandboxConfig, ReportSandboxConfiguration (behaviour reference 3.2, 4.5). */
#include "gateway/configuration.h"

#include "gateway/admission.h"
#include "gateway/api/api.h"
#include "gateway/api/request.h"
#include "gateway/live.h"
#include "gateway/message.h"
#include "gateway/records.h"
#include "gateway/transition.h"
#include "gateway/validate.h"

/* ---- get ---- */

struct lookup {
    const char *workspace; /* of a user; a sandbox asks for itself */
    const char *name;
    Openshell__V1__Sandbox *sandbox;
};

static bool load(struct store_transaction *store, void *argument, struct error *error)
{
    struct request *request = argument;
    struct lookup *lookup = request->detail;
    if (request->principal->kind == PRINCIPAL_SANDBOX)
        return record_load_sandbox_by_id(store, request->arena, request->principal->sandbox_id,
                                         &lookup->sandbox, error);
    return record_load_sandbox(store, request->arena, lookup->workspace, lookup->name,
                               &lookup->sandbox, error);
}

static void got(void *argument, const struct error *error)
{
    struct request *request = argument;
    const struct lookup *lookup = request->detail;
    Openshell__Sandbox__V1__GetSandboxConfigResponse response =
        OPENSHELL__SANDBOX__V1__GET_SANDBOX_CONFIG_RESPONSE__INIT;
    struct error own = {0};
    if (error != NULL)
        request_fail(request, error);
    else if (!configuration_fill(lookup->sandbox, request->arena, &response, &own))
        request_fail(request, &own);
    else
        request_respond(request, &response.base);
    error_clear(&own);
}

void api_get_sandbox_config(struct rpc_call *call, void *gateway)
{
    const Openshell__Sandbox__V1__GetSandboxConfigRequest *message =
        (const Openshell__Sandbox__V1__GetSandboxConfigRequest *)rpc_call_request(call);
    const struct principal *principal = rpc_call_principal(call);
    const char *workspace = NULL;
    struct error error = {0};
    if (principal->kind != PRINCIPAL_SANDBOX) {
        bool good = validate_workspace_scope(message->workspace_scope, false, &workspace, &error);
        good &= validate_sandbox_reference("name", message->name, &error);
        if (!good) {
            request_refuse(call, &error);
            return;
        }
    }
    struct request *request = request_begin(call, gateway);
    struct lookup *lookup = arena_new_of(request->arena, struct lookup);
    lookup->workspace = workspace != NULL ? arena_strdup(request->arena, workspace) : NULL;
    lookup->name = arena_strdup(request->arena, message->name);
    request->detail = lookup;
    store_read(request->gateway->store, load, got, request);
}

/* ---- report ---- */

struct report {
    const Openshell__V1__ReportSandboxConfigurationRequest *message;
    const char *caller_sandbox_id;
};

static bool decide(struct transition *transition, Openshell__V1__Sandbox *sandbox,
                   struct error *refusal, struct error *error)
{
    const struct report *report = transition->detail;
    struct configuration current;
    if (!configuration_load(sandbox, transition->arena, &current, error))
        return false;
    struct admission_result result = {0};
    struct error answer = {0};
    bool accepted =
        admission_apply(sandbox, transition->arena, report->caller_sandbox_id, report->message,
                        &current.generation, &transition->facts, &result, &answer);
    transition->result = result.lifecycle;
    transition->result.changed |= result.changed;
    if (!accepted)
        error_copy(result.expired ? refusal : error, &answer);
    error_clear(&answer);
    return accepted || result.expired;
}

static void reported(struct transition *transition, const struct error *error, void *user)
{
    struct request *request = user;
    Openshell__V1__ReportSandboxConfigurationResponse response =
        OPENSHELL__V1__REPORT_SANDBOX_CONFIGURATION_RESPONSE__INIT;
    transition_queue_compute(transition);
    if (error != NULL)
        request_fail(request, error);
    else
        request_respond(request, &response.base);
}

/* For the log: admission.c decides which event it is. */
static enum lifecycle_event
event_reported(const Openshell__V1__SandboxConfigurationAdmission *admission)
{
    if (admission == NULL || admission->state == ADMISSION_STATE(PENDING))
        return LIFECYCLE_ADMISSION_PENDING;
    return admission->state == ADMISSION_STATE(ACCEPTED) ? LIFECYCLE_ADMISSION_ACCEPTED
                                                         : LIFECYCLE_ADMISSION_REJECTED;
}

void api_report_sandbox_configuration(struct rpc_call *call, void *user)
{
    struct gateway *gateway = user;
    struct request *request = request_begin(call, gateway);
    struct transition *transition =
        transition_new(gateway, request->principal->sandbox_id, reported, request);
    struct report *report = arena_new_of(transition->arena, struct report);
    report->message = message_copy(transition->arena, request->message);
    report->caller_sandbox_id = transition->sandbox_id;
    const struct live_sandbox *live = live_find(gateway, transition->sandbox_id);
    transition->facts.session_connected = live != NULL && live->session != NULL;
    transition->event = event_reported(report->message->admission);
    transition->decide = decide;
    transition->detail = report;
    transition_run(transition);
}
