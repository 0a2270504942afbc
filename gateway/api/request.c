#include "gateway/api/request.h"

#include "gateway/message.h"

static void on_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    struct request *request = user;
    request->call = NULL;
    if (request->answered)
        arena_free(request->arena);
}

struct request *request_begin(struct rpc_call *call, struct gateway *gateway)
{
    static const struct rpc_call_events events = {.on_done = on_done};
    struct arena *arena = arena_new(0);
    struct request *request = arena_new_of(arena, struct request);
    request->gateway = gateway;
    request->arena = arena;
    request->message = message_copy(arena, rpc_call_request(call));
    request->principal = arena_memdup(arena, rpc_call_principal(call), sizeof(struct principal));
    request->call = call;
    rpc_call_accept(call, &events, request);
    return request;
}

static void finish(struct request *request)
{
    request->answered = true;
    if (request->call == NULL)
        arena_free(request->arena);
}

void request_respond(struct request *request, const ProtobufCMessage *response)
{
    if (request->call != NULL)
        rpc_call_respond(request->call, response);
    finish(request);
}

void request_fail(struct request *request, const struct error *error)
{
    if (request->call != NULL)
        rpc_call_fail(request->call, error);
    finish(request);
}

void request_refuse(struct rpc_call *call, struct error *error)
{
    rpc_call_fail(call, error);
    error_clear(error);
}
