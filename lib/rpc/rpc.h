/* gRPC over protobuf-c: calls in both roles on connections that we made ourselves.
 *
 * Everything runs on the reactor's thread, which sleeps in gRPC's completion queue instead of in
 * libuv: a unary call between two processes takes 30 us, and 65 us where the cores were asleep;
 * with a thread that drains the queue and posts it is 115 to 260 us. A call has one owner (the code
 * that started it, or the method's handler) which may use it until `on_done` returned; on_done is
 * called exactly once.
 *
 * Messages given to callbacks were scanned (decision W5) and live until the callback returns.
 * Messages to send are packed before the function returns.
 *
 * What it costs (measured): an open call 15 KiB on each side; a stream that nobody reads 128 KiB,
 * its window, at the reader and at most RPC_SEND_QUEUE_BYTES and one message at the writer; 1,000
 * such streams 140 MiB; 10,000 connections that come and go nothing. */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/reactor.h"
#include "rpc/method.h"

struct rpc_runtime;    /* gRPC itself; one a process */
struct rpc_channel;    /* a client's side of one connection */
struct rpc_server;     /* the methods a process serves */
struct rpc_connection; /* a server's side of one connection */
struct rpc_call;

enum {
    RPC_MESSAGE_LIMIT = 4 * 1024 * 1024, /* bytes, both ways */
    RPC_SEND_QUEUE_LIMIT = 64,           /* messages waiting in one call */
    RPC_SEND_QUEUE_BYTES = 1024 * 1024,  /* in those; a queue that holds less takes one more */
    RPC_CALLS_PER_CONNECTION = 256,      /* calls open at once; more wait at the client */
};

/* From here on SIGPIPE is ignored: a process that starts others resets it for them. */
struct rpc_runtime *rpc_runtime_new(struct reactor *reactor, struct error *error);
/* Waits for what is still open, at most five seconds. Commands do not call it: they flush and
 * _exit. */
void rpc_runtime_free(struct rpc_runtime *runtime);
struct reactor *rpc_runtime_reactor(struct rpc_runtime *runtime);

/* ---- both roles ---- */

struct rpc_call_events {
    /* A message arrived after rpc_call_read. */
    void (*on_message)(struct rpc_call *call, const ProtobufCMessage *message, void *user);
    /* rpc_call_read found no further message. On a server this may be a half-close, a cancellation
     * or a dead client: they look alike (decision W4). */
    void (*on_end)(struct rpc_call *call, void *user);
    /* The queue of messages to send became empty. */
    void (*on_sent)(struct rpc_call *call, void *user);
    /* The call is over: on a client with the final status (code ERROR_OK on success), on a server
     * with ERROR_OK when the status was delivered, else CANCELLED. Last, once. May be called while
     * messages were still being read or sent. */
    void (*on_done)(struct rpc_call *call, const struct error *status, void *user);
};

/* Asks for the next message: one outstanding read at a time. Not reading is the back-pressure. */
void rpc_call_read(struct rpc_call *call);
/* Queues a message; false when the queue is full or the call can send no more. */
bool rpc_call_send(struct rpc_call *call, const ProtobufCMessage *message);
/* Messages queued and not yet taken by gRPC. */
size_t rpc_call_unsent(const struct rpc_call *call);
void *rpc_call_user(const struct rpc_call *call);
const struct rpc_method *rpc_call_method(const struct rpc_call *call);
/* Lives as long as the call. */
struct arena *rpc_call_arena(struct rpc_call *call);
/* Ends the call from this side at once: CANCELLED for the peer. on_done follows. */
void rpc_call_cancel(struct rpc_call *call);

/* ---- client ---- */

/* Takes over a connected, non-blocking stream socket, also when it fails. The channel is dead for
 * ever once the connection is lost (decision B3): calls then end with UNAVAILABLE. */
struct rpc_channel *rpc_channel_new(struct rpc_runtime *runtime, int descriptor,
                                    struct error *error);
/* Open calls end with CANCELLED. NULL is allowed. */
void rpc_channel_free(struct rpc_channel *channel);

struct rpc_call_options {
    const char *bearer; /* "authorization: Bearer ..." when not NULL */
    int64_t deadline;   /* milliseconds from now; 0: none */
};

/* Starts a call. For methods with one request, send it with rpc_call_send, then
 * rpc_call_half_close. Reading starts with rpc_call_read. Errors arrive through on_done. */
struct rpc_call *rpc_call_start(struct rpc_channel *channel, const struct rpc_method *method,
                                const struct rpc_call_options *options,
                                const struct rpc_call_events *events, void *user);
void rpc_call_half_close(struct rpc_call *call);
/* Metadata that the server sent first (initial) or NULL. */
const char *rpc_call_initial_metadata(struct rpc_call *call, const char *key);

/* One request, one response: `done` gets the response, or NULL and the error. */
struct rpc_call *rpc_unary(struct rpc_channel *channel, const struct rpc_method *method,
                           const struct rpc_call_options *options, const ProtobufCMessage *request,
                           void (*done)(const ProtobufCMessage *response, const struct error *error,
                                        void *user),
                           void *user);

/* As rpc_unary, running the loop until it is over. The response lives in `arena`. */
const ProtobufCMessage *rpc_unary_wait(struct rpc_channel *channel, const struct rpc_method *method,
                                       const struct rpc_call_options *options,
                                       const ProtobufCMessage *request, struct arena *arena,
                                       struct error *error);

/* ---- server ---- */

/* A method's handler. For methods with one request it is called when that was read; see
 * rpc_call_request. It sets events with rpc_call_accept, answers with rpc_call_respond or
 * rpc_call_fail, or sends and then calls rpc_call_finish; now or later.
 *
 * Without on_done nobody can be told that the caller is gone: the call, and with it its connection,
 * stays until the handler has answered or cancelled it, and must not be used after that. */
typedef void (*rpc_handler)(struct rpc_call *call, void *user);

/* Called for each call before its handler, and before its request is read. False refuses the call
 * with the error. May set the call's principal with rpc_call_set_principal. */
typedef bool (*rpc_authorize)(struct rpc_call *call, void *user, struct error *error);

struct rpc_server *rpc_server_new(struct rpc_runtime *runtime, rpc_authorize authorize, void *user);
/* Methods of a registered service without a handler answer UNIMPLEMENTED with their name. */
void rpc_server_handle(struct rpc_server *server, const struct rpc_method *method,
                       rpc_handler handler);
/* Ends all connections. */
void rpc_server_free(struct rpc_server *server);

struct rpc_connection_events {
    /* The connection ended and its calls are over. Once; the connection is freed afterwards. */
    void (*on_closed)(struct rpc_connection *connection, void *user);
    void *user;
};

/* Serves one connected, non-blocking stream socket, which it takes over, also when it fails, with a
 * grpc_server of its own (decision B4). Ends when the peer closes it, when rpc_connection_close is
 * called, or after `idle_milliseconds` without a call (0: never; decision P14). */
struct rpc_connection *rpc_server_accept(struct rpc_server *server, int descriptor,
                                         unsigned idle_milliseconds,
                                         const struct rpc_connection_events *events,
                                         struct error *error);
/* Ends exactly this connection's calls, then the connection. */
void rpc_connection_close(struct rpc_connection *connection);
void *rpc_connection_user(const struct rpc_connection *connection);
/* From SO_PEERCRED at accept; false when the socket has none (or was given by a TLS stream). */
bool rpc_connection_peer(const struct rpc_connection *connection, uid_t *ret_user, gid_t *ret_group,
                         pid_t *ret_process);

struct rpc_connection *rpc_call_connection(const struct rpc_call *call);
/* The one request of a method that has one; lives as long as the call. */
const ProtobufCMessage *rpc_call_request(const struct rpc_call *call);
/* Request metadata, or NULL. More than one value for a key: the first; see the count. */
const char *rpc_call_metadata(const struct rpc_call *call, const char *key, size_t *ret_count);
/* Milliseconds until the caller's deadline, or -1 for none. */
int64_t rpc_call_remaining(const struct rpc_call *call);
/* Free for the authorization; freed by nobody. */
void rpc_call_set_principal(struct rpc_call *call, void *principal);
void *rpc_call_principal(const struct rpc_call *call);

/* Sets what happens from here on; a handler that answers at once need not. */
void rpc_call_accept(struct rpc_call *call, const struct rpc_call_events *events, void *user);
/* One response and status OK. */
void rpc_call_respond(struct rpc_call *call, const ProtobufCMessage *response);
/* The error as status, with google.rpc.Status details: ErrorInfo and BadRequest. */
void rpc_call_fail(struct rpc_call *call, const struct error *error);
/* After queued messages went out: status OK. */
void rpc_call_finish(struct rpc_call *call);
/* Whether the peer is known to be gone or to have cancelled. */
bool rpc_call_cancelled(const struct rpc_call *call);

#endif
