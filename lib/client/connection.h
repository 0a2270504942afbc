/* A command's connection to its gateway. */
#ifndef CLIENT_CONNECTION_H
#define CLIENT_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/reactor.h"
#include "client/gateway.h"
#include "proto/datamodel.pb-c.h"
#include "rpc/rpc.h"

enum {
    CALL_DEADLINE = 60 * 1000, /* milliseconds; for calls that have one answer */
};

enum connection_start {
    CONNECTION_START,   /* start the local gateway where it is needed (decision P18) */
    CONNECTION_NO_START /* say that it does not run */
};

struct connection {
    struct gateway gateway;
    struct reactor *reactor;
    struct rpc_runtime *runtime;
    struct rpc_channel *channel;
    enum connection_start start;
    int socket; /* a duplicate of the channel's, to see whether the gateway is still there */
    struct arena *arena; /* answers and requests live in it until the command ends */
    bool ours;           /* the gateway knows what we added to the contract (decision W2) */
    Openshell__Datamodel__V1__WorkspaceSelector workspace; /* for every request that takes one */
};

/* Chooses the gateway and connects. Nothing is freed on success: a command ends with _exit. */
bool connection_open(struct connection *connection, enum connection_start start,
                     struct error *error);

/* The same for a gateway that was chosen already; it is taken over. */
bool connection_open_to(struct connection *connection, const struct gateway *gateway,
                        enum connection_start start, struct error *error);

/* One request, one answer, which lives in the connection's arena; NULL with the error. Only for
 * calls that may be made twice: where the connection is lost, as to a gateway that was just ending,
 * it is made again on a new one, once. */
const void *connection_call(struct connection *connection, const struct rpc_method *method,
                            const ProtobufCMessage *request, struct error *error);

/* Says in `error` that the connection was lost, where that is what lies behind it: what gRPC has to
 * say then speaks of sockets. For calls that are made without connection_call. */
void connection_check(const struct connection *connection, struct error *error);

#endif
