/* ListWorkspaces, GetWorkspace: there is `default` and no other yet (behaviour reference 1.10). */
#include <string.h>

#include "gateway/api/api.h"
#include "gateway/api/request.h"
#include "gateway/labels.h"
#include "gateway/pages.h"
#include "gateway/records.h"
#include "gateway/validate.h"

struct lookup {
    const char *name;
    Openshell__Datamodel__V1__Workspace *workspace;
};

static bool load(struct store_transaction *store, void *argument, struct error *error)
{
    struct request *request = argument;
    struct lookup *lookup = request->detail;
    return record_load_workspace(store, request->arena, lookup->name, &lookup->workspace, error);
}

static void got(void *argument, const struct error *error)
{
    struct request *request = argument;
    const struct lookup *lookup = request->detail;
    if (error != NULL) {
        request_fail(request, error);
        return;
    }
    Openshell__V1__GetWorkspaceResponse response = OPENSHELL__V1__GET_WORKSPACE_RESPONSE__INIT;
    response.workspace = lookup->workspace;
    request_respond(request, &response.base);
}

static struct request *look_up(struct rpc_call *call, struct gateway *gateway)
{
    struct request *request = request_begin(call, gateway);
    request->detail = arena_new_of(request->arena, struct lookup);
    return request;
}

void api_get_workspace(struct rpc_call *call, void *gateway)
{
    const Openshell__V1__GetWorkspaceRequest *message =
        (const Openshell__V1__GetWorkspaceRequest *)rpc_call_request(call);
    struct error error = {0};
    if (!validate_name("name", message->name, VALIDATE_ROUTABLE_NAME_MAX, &error)) {
        request_refuse(call, &error);
        return;
    }
    struct request *request = look_up(call, gateway);
    struct lookup *lookup = request->detail;
    lookup->name = ((const Openshell__V1__GetWorkspaceRequest *)request->message)->name;
    store_read(request->gateway->store, load, got, request);
}

static bool selected(const Openshell__Datamodel__V1__Workspace *workspace,
                     const struct store_label *pairs, size_t count)
{
    const Openshell__Datamodel__V1__ObjectMeta *metadata = workspace->metadata;
    for (size_t i = 0; i < count; i++) {
        bool found = false;
        for (size_t j = 0; j < metadata->n_labels && !found; j++)
            found = strcmp(metadata->labels[j]->key, pairs[i].key) == 0 &&
                    strcmp(metadata->labels[j]->value, pairs[i].value) == 0;
        if (!found)
            return false;
    }
    return true;
}

static void listed(void *argument, const struct error *error)
{
    struct request *request = argument;
    struct lookup *lookup = request->detail;
    const Openshell__V1__ListWorkspacesRequest *message =
        (const Openshell__V1__ListWorkspacesRequest *)request->message;
    struct store_label *pairs = NULL;
    size_t count = 0;
    struct error refusal = {0};
    if (error == NULL &&
        !labels_parse_selector(message->label_selector, request->arena, &pairs, &count, &refusal))
        error = &refusal;
    if (error != NULL) {
        request_fail(request, error);
        error_clear(&refusal);
        return;
    }
    Openshell__V1__ListWorkspacesResponse response = OPENSHELL__V1__LIST_WORKSPACES_RESPONSE__INIT;
    response.n_workspaces = selected(lookup->workspace, pairs, count) ? 1 : 0;
    response.workspaces = &lookup->workspace;
    request_respond(request, &response.base);
}

void api_list_workspaces(struct rpc_call *call, void *user)
{
    struct gateway *gateway = user;
    const Openshell__V1__ListWorkspacesRequest *message =
        (const Openshell__V1__ListWorkspacesRequest *)rpc_call_request(call);
    struct error error = {0};
    struct pages_position after;
    size_t size;
    if (!pages_size(message->page_size, &size, &error) ||
        !pages_parse(&gateway->page_key, &message->base, rpc_call_arena(call), &after, &error)) {
        request_refuse(call, &error);
        return;
    }
    struct request *request = look_up(call, gateway);
    struct lookup *lookup = request->detail;
    lookup->name = RECORD_DEFAULT_WORKSPACE;
    store_read(gateway->store, load, listed, request);
}
