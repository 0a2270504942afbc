/* GetSandbox, ListSandboxes: what is known about sandboxes (behaviour reference 4.2). */
#include "gateway/api/api.h"
#include "gateway/api/request.h"
#include "gateway/labels.h"
#include "gateway/pages.h"
#include "gateway/records.h"
#include "gateway/validate.h"

/* ---- get ---- */

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

static void got(void *argument, const struct error *error)
{
    struct request *request = argument;
    const struct lookup *lookup = request->detail;
    if (error != NULL) {
        request_fail(request, error);
        return;
    }
    record_public_view(lookup->sandbox);
    Openshell__V1__SandboxResponse response = OPENSHELL__V1__SANDBOX_RESPONSE__INIT;
    response.sandbox = lookup->sandbox;
    request_respond(request, &response.base);
}

void api_get_sandbox(struct rpc_call *call, void *gateway)
{
    const Openshell__V1__GetSandboxRequest *message =
        (const Openshell__V1__GetSandboxRequest *)rpc_call_request(call);
    const char *workspace;
    struct error error = {0};
    bool good = validate_workspace_scope(message->workspace_scope, false, &workspace, &error);
    good &= validate_sandbox_reference("name", message->name, &error);
    if (!good) {
        request_refuse(call, &error);
        return;
    }
    struct request *request = request_begin(call, gateway);
    struct lookup *lookup = arena_new_of(request->arena, struct lookup);
    lookup->workspace = arena_strdup(request->arena, workspace);
    lookup->name = arena_strdup(request->arena, message->name);
    request->detail = lookup;
    store_read(request->gateway->store, load, got, request);
}

/* ---- list ---- */

struct listing {
    const char *workspace; /* NULL: all */
    struct pages_position after;
    size_t size;
    struct store_label *selector;
    size_t selector_count;
    Openshell__V1__Sandbox **sandboxes;
    size_t count;
    struct pages_position last;
};

static bool load_page(struct store_transaction *store, void *argument, struct error *error)
{
    struct request *request = argument;
    struct listing *listing = request->detail;
    return record_list_sandboxes(store, request->arena, listing->workspace, &listing->after,
                                 listing->size, listing->selector, listing->selector_count,
                                 &listing->sandboxes, &listing->count, &listing->last, error);
}

static void listed(void *argument, const struct error *error)
{
    struct request *request = argument;
    const struct listing *listing = request->detail;
    if (error != NULL) {
        request_fail(request, error);
        return;
    }
    for (size_t i = 0; i < listing->count; i++)
        record_public_view(listing->sandboxes[i]);
    Openshell__V1__ListSandboxesResponse response = OPENSHELL__V1__LIST_SANDBOXES_RESPONSE__INIT;
    response.n_sandboxes = listing->count;
    response.sandboxes = listing->sandboxes;
    if (listing->last.name != NULL)
        response.next_page_token = pages_make(&request->gateway->page_key, request->message,
                                              &listing->last, request->arena);
    request_respond(request, &response.base);
}

static bool describe(struct request *request, struct listing *listing, struct error *error)
{
    const Openshell__V1__ListSandboxesRequest *message =
        (const Openshell__V1__ListSandboxesRequest *)request->message;
    return validate_workspace_scope(message->workspace_scope, true, &listing->workspace, error) &&
           pages_size(message->page_size, &listing->size, error) &&
           pages_parse(&request->gateway->page_key, request->message, request->arena,
                       &listing->after, error) &&
           labels_parse_selector(message->label_selector, request->arena, &listing->selector,
                                 &listing->selector_count, error);
}

void api_list_sandboxes(struct rpc_call *call, void *gateway)
{
    struct request *request = request_begin(call, gateway);
    struct listing *listing = arena_new_of(request->arena, struct listing);
    request->detail = listing;
    struct error error = {0};
    if (describe(request, listing, &error))
        store_read(request->gateway->store, load_page, listed, request);
    else
        request_fail(request, &error);
    error_clear(&error);
}
