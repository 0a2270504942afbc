/* A call with one request and one response whose answer needs the store: it may outlive its caller,
 * and what it does is then finished all the same. */
#ifndef GATEWAY_API_REQUEST_H
#define GATEWAY_API_REQUEST_H

#include "base/arena.h"
#include "base/error.h"
#include "gateway/auth/authorize.h"
#include "gateway/gateway.h"
#include "rpc/rpc.h"

struct request {
    struct gateway *gateway;
    struct arena *arena; /* of its own; for what the storage thread reads and makes */
    /* A copy of the request in the arena. */
    const ProtobufCMessage *message;
    const struct principal *principal; /* likewise */
    void *detail;                      /* the handler's own */
    struct rpc_call *call;             /* NULL once the caller is gone; private */
    bool answered;                     /* private */
};

/* Takes the call over. Ends with exactly one of request_respond and request_fail. */
struct request *request_begin(struct rpc_call *call, struct gateway *gateway);
void request_respond(struct request *request, const ProtobufCMessage *response);
void request_fail(struct request *request, const struct error *error);

/* For handlers that answer at once: fails the call and clears the error. */
void request_refuse(struct rpc_call *call, struct error *error);

#endif
