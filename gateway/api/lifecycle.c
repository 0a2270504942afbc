/* StopSandbox, StartSandbox, DeleteSandbox (behaviour reference 1.6): under the sandbox's lock, the
 * phase is committed, and the rest is done whether or not the caller is still there. Stop and start
 * answer once the phase is committed, delete when the sandbox is gone. */
#include "gateway/api/api.h"
#include "gateway/api/request.h"
#include "gateway/compute.h"
#include "gateway/lifecycle.h"
#include "gateway/live.h"
#include "gateway/message.h"
#include "gateway/operations.h"
#include "gateway/records.h"
#include "gateway/transition.h"
#include "gateway/validate.h"

struct change {
    struct request *request; /* NULL once it was answered */
    struct gateway *gateway;
    enum lifecycle_event event;
    const char *workspace;
    const char *name;
    bool allow_missing;
    Openshell__V1__Sandbox *sandbox; /* as it was found */
    struct operation *operation;
    struct arena *arena; /* holds this */
};

/* ---- answers ---- */

static void answer_error(struct change *change, const struct error *error)
{
    struct request *request = change->request;
    change->request = NULL;
    if (request != NULL)
        request_fail(request, error);
}

static void answer_sandbox(struct change *change, const Openshell__V1__Sandbox *sandbox)
{
    struct request *request = change->request;
    change->request = NULL;
    if (request == NULL)
        return;
    Openshell__V1__SandboxResponse response = OPENSHELL__V1__SANDBOX_RESPONSE__INIT;
    response.sandbox = message_copy(request->arena, &sandbox->base);
    record_public_view(response.sandbox);
    request_respond(request, &response.base);
}

static void answer_deletion(struct change *change, Openshell__V1__DeletionOutcome outcome)
{
    struct request *request = change->request;
    change->request = NULL;
    if (request == NULL)
        return;
    Openshell__V1__DeleteSandboxResponse response = OPENSHELL__V1__DELETE_SANDBOX_RESPONSE__INIT;
    response.outcome = outcome;
    if (change->sandbox != NULL)
        response.sandbox_id = change->sandbox->metadata->id;
    request_respond(request, &response.base);
}

static void end(struct change *change)
{
    if (change->operation != NULL)
        operation_finish(change->operation);
    arena_free(change->arena);
}

/* ---- the steps ---- */

static void performed(const Openshell__V1__Sandbox *sandbox, const struct error *error, void *user)
{
    struct change *change = user;
    if (error != NULL)
        answer_error(change, error);
    else if (change->event == LIFECYCLE_DELETE_REQUESTED)
        answer_deletion(change, sandbox == NULL
                                    ? OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_COMPLETED
                                    : OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_ACCEPTED);
    else if (sandbox != NULL)
        answer_sandbox(change, sandbox);
    end(change);
}

static void committed(struct transition *transition, const struct error *error, void *user)
{
    struct change *change = user;
    bool deleting = change->event == LIFECYCLE_DELETE_REQUESTED;
    if (error != NULL && error->code == ERROR_NOT_FOUND && deleting) {
        /* Another delete came first. */
        answer_deletion(change, OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_COMPLETED);
        end(change);
        return;
    }
    if (error != NULL) {
        answer_error(change, error);
        end(change);
        return;
    }
    if (!deleting)
        answer_sandbox(change, transition->sandbox);
    compute_perform(change->gateway, transition->sandbox_id, transition->sandbox,
                    transition->result.actions, false, performed, change);
}

static void run(struct operation *operation)
{
    struct change *change = operation->user;
    change->operation = operation;
    struct lifecycle_facts facts = {0};
    lifecycle_fresh_facts(change->arena, &facts);
    facts.now = gateway_now(change->gateway);
    transition_apply(change->gateway, operation->live->id, change->event, &facts, committed,
                     change);
}

static bool find(struct store_transaction *store, void *argument, struct error *error)
{
    struct change *change = argument;
    return record_load_sandbox(store, change->arena, change->workspace, change->name,
                               &change->sandbox, error);
}

/* A delete that goes on already. */
static bool being_deleted(const struct change *change)
{
    const struct live_sandbox *live = live_find(change->gateway, change->sandbox->metadata->id);
    return change->event == LIFECYCLE_DELETE_REQUESTED &&
           change->sandbox->status->phase == PHASE(DELETING) && live != NULL &&
           live->operations != NULL;
}

static void found(void *argument, const struct error *error)
{
    struct change *change = argument;
    struct error refusal = {0};
    if (error != NULL && error->code == ERROR_NOT_FOUND && change->allow_missing) {
        answer_deletion(change, OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_ALREADY_ABSENT);
        end(change);
    } else if (error != NULL) {
        answer_error(change, error);
        end(change);
    } else if (being_deleted(change)) {
        answer_deletion(change, OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_ACCEPTED);
        end(change);
    } else if (!operation_submit(change->gateway, change->sandbox->metadata->id, run, change,
                                 &refusal)) {
        answer_error(change, &refusal);
        end(change);
    }
    error_clear(&refusal);
}

static void begin(struct rpc_call *call, struct gateway *gateway, enum lifecycle_event event,
                  const Openshell__Datamodel__V1__WorkspaceSelector *scope, const char *name,
                  const char *request_id, bool allow_missing)
{
    const char *workspace;
    struct error error = {0};
    bool good = validate_workspace_scope(scope, false, &workspace, &error);
    good &= validate_sandbox_reference("name", name, &error);
    good &= validate_request_id(request_id, &error);
    if (!good) {
        request_refuse(call, &error);
        return;
    }
    struct arena *arena = arena_new(0);
    struct change *change = arena_new_of(arena, struct change);
    change->arena = arena;
    change->gateway = gateway;
    change->event = event;
    change->workspace = arena_strdup(arena, workspace);
    change->name = arena_strdup(arena, name);
    change->allow_missing = allow_missing;
    change->request = request_begin(call, gateway);
    store_read(gateway->store, find, found, change);
}

void api_stop_sandbox(struct rpc_call *call, void *gateway)
{
    const Openshell__V1__StopSandboxRequest *message =
        (const Openshell__V1__StopSandboxRequest *)rpc_call_request(call);
    begin(call, gateway, LIFECYCLE_STOP_REQUESTED, message->workspace_scope, message->name,
          message->request_id, false);
}

void api_start_sandbox(struct rpc_call *call, void *gateway)
{
    const Openshell__V1__StartSandboxRequest *message =
        (const Openshell__V1__StartSandboxRequest *)rpc_call_request(call);
    begin(call, gateway, LIFECYCLE_START_REQUESTED, message->workspace_scope, message->name,
          message->request_id, false);
}

void api_delete_sandbox(struct rpc_call *call, void *gateway)
{
    const Openshell__V1__DeleteSandboxRequest *message =
        (const Openshell__V1__DeleteSandboxRequest *)rpc_call_request(call);
    begin(call, gateway, LIFECYCLE_DELETE_REQUESTED, message->workspace_scope, message->name,
          message->request_id, message->allow_missing);
}
