/* What server.c and server_call.c share. */
#ifndef RPC_SERVER_H
#define RPC_SERVER_H

#include <sys/socket.h>

#include "rpc/internal.h"

struct rpc_server_handler {
    const struct rpc_method *method;
    rpc_handler handler;
};

struct rpc_server {
    struct rpc_runtime *runtime;
    rpc_authorize authorize;
    void *user;
    struct rpc_server_handler *handlers; /* sorted by the method's address */
    size_t handler_count;
    struct rpc_connection *connections;
    bool freed; /* by its owner; the last connection takes it along */
};

struct rpc_connection {
    struct rpc_server *server;
    grpc_server *core;
    struct rpc_connection *next;
    struct rpc_connection *previous;
    struct rpc_connection_events events;
    struct rpc_call *calls;

    /* The next call, which gRPC fills in. */
    struct rpc_completion requested;
    grpc_call *incoming;
    grpc_call_details details;
    grpc_metadata_array metadata;

    struct rpc_completion shut;
    bool closing;

    int watched; /* a duplicate of the descriptor */
    struct reactor_watch *watch;
    struct reactor_timer *idle_timer;
    unsigned idle_milliseconds;

    bool peer_known;
    struct ucred peer;
};

/* NULL when the method has no handler. */
rpc_handler rpc_server_find(const struct rpc_server *server, const struct rpc_method *method);
/* Starts or stops the idle timer, as there are calls or not. */
void rpc_connection_watch_idle(struct rpc_connection *connection);
void rpc_connection_end_when_over(struct rpc_connection *connection);

#endif
