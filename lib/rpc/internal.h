/* What the files of lib/rpc share and nobody else sees.
 *
 * A call hands batches of operations to gRPC and gets one completion for each. Functions of rpc.h
 * never call back: they note what is wanted and put the call on the runtime's list. Once the
 * callbacks of the moment have returned, call_advance() starts everything that was wanted at once,
 * so that a message and the status after it travel together. It is also the only place that ends
 * and frees a call: when its closing batch and every other batch came back. */
#ifndef RPC_INTERNAL_H
#define RPC_INTERNAL_H

#include <stdatomic.h>

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "rpc/rpc.h"

/* A batch in gRPC's hands; its address is the tag. */
struct rpc_completion {
    void (*function)(void *owner, bool success);
    void *owner;
    bool active;
};

struct rpc_runtime {
    struct reactor *reactor;
    struct reactor_source source;
    grpc_completion_queue *queue;
    grpc_channel_credentials *channel_credentials;
    grpc_server_credentials *server_credentials;
    grpc_channel *wake_channel; /* leads nowhere; for wake_call */
    grpc_call *wake_call;
    struct rpc_completion woken;
    atomic_bool waking;
    struct rpc_call *scheduled_first;
    struct rpc_call *scheduled_last;
    size_t live; /* calls, channels and connections */
};

enum rpc_request_phase {
    RPC_REQUEST_NONE,  /* messages go to the owner */
    RPC_REQUEST_FIRST, /* the one request is being read */
    RPC_REQUEST_END,   /* and now the half-close after it */
};

struct rpc_call {
    struct rpc_runtime *runtime;
    const struct rpc_method *method; /* NULL: not known */
    bool server;
    grpc_call *core;
    struct arena *arena; /* holds this structure as well */
    struct arena *message_arena;
    struct rpc_call_events events;
    void *user;

    struct rpc_call *next; /* of the channel or the connection */
    struct rpc_call *previous;
    struct rpc_call *next_scheduled;
    bool scheduled;

    unsigned batches;
    struct rpc_completion sent;
    struct rpc_completion received;
    struct rpc_completion headers;
    struct rpc_completion closed;

    grpc_byte_buffer **queue; /* a ring of RPC_SEND_QUEUE_LIMIT; NULL until something is sent */
    unsigned queue_first;
    unsigned queue_count;
    size_t queue_bytes;
    grpc_byte_buffer *sending;
    bool initial_sent;
    bool finishing; /* half-close, or the status, is wanted after the queue */
    bool finished;  /* and was given to gRPC */
    bool send_failed;

    grpc_byte_buffer *incoming;
    bool read_wanted;
    bool read_ended;
    bool initial_requested; /* client */
    bool initial_arrived;
    grpc_metadata_array initial_metadata; /* what arrived; on a server the request's */
    grpc_metadata_array trailing_metadata;

    bool cancelled; /* from this side: no more messages for the owner */
    bool broken;    /* by a message that was refused; `status` says why */
    bool over;      /* the closing batch came back */
    bool done;
    struct error *status; /* server: to be sent; NULL is OK. Client: how it ended */

    /* client */
    struct rpc_channel *channel;
    grpc_metadata *bearer; /* NULL: none */
    grpc_status_code received_code;
    grpc_slice received_text;
    void (*unary_done)(const ProtobufCMessage *response, const struct error *error, void *user);
    struct arena *response_arena; /* where a unary response goes; NULL: the call's */

    /* server */
    struct rpc_connection *connection;
    grpc_call_details details;
    int received_cancel;
    enum rpc_request_phase phase;
    const ProtobufCMessage *request;
    void *principal;
};

struct rpc_channel {
    struct rpc_runtime *runtime;
    grpc_channel *core;
    struct rpc_call *calls;
    bool freed; /* by its owner; the last call takes it along */
};

/* runtime.c */
/* Starts a batch whose completion calls `function(owner, success)` on the loop. False when gRPC
 * refused it, which only a broken rule of its interface can cause. */
bool rpc_batch_start(struct rpc_call *call, struct rpc_completion *completion, const grpc_op *ops,
                     size_t count);
void rpc_completion_init(struct rpc_completion *completion,
                         void (*function)(void *owner, bool success), void *owner);

/* message.c */
grpc_byte_buffer *rpc_message_pack(const ProtobufCMessage *message);
/* Scans, then unpacks into the arena; consumes the buffer. */
ProtobufCMessage *rpc_message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                     grpc_byte_buffer *buffer, struct arena *arena,
                                     struct error *error);

/* call.c */
struct rpc_call *rpc_call_new(struct rpc_runtime *runtime, const struct rpc_method *method,
                              bool server);
void rpc_call_schedule(struct rpc_call *call);
/* True when the owner may have been called. */
bool rpc_call_advance(struct rpc_call *call);
/* Ends the call at once, with this error for both sides. */
void rpc_call_break(struct rpc_call *call, const struct error *error);
struct error *rpc_call_own_error(struct rpc_call *call, const struct error *error);
const char *rpc_metadata_find(struct rpc_call *call, const grpc_metadata_array *metadata,
                              const char *key, size_t *ret_count);

/* client.c */
void rpc_client_flush_receive(struct rpc_call *call);
void rpc_client_end(struct rpc_call *call);
void rpc_client_release(struct rpc_call *call);

/* server_call.c */
/* Makes a call of what grpc_server_request_call gave; takes everything over. */
void rpc_server_call_begin(struct rpc_connection *connection, grpc_call *core,
                           const grpc_call_details *details, const grpc_metadata_array *metadata);
void rpc_server_request_received(struct rpc_call *call, grpc_byte_buffer *buffer);
void rpc_server_end(struct rpc_call *call);
size_t rpc_server_status_op(struct rpc_call *call, grpc_op *op, grpc_metadata *ret_detail,
                            grpc_slice *ret_text);

#endif
