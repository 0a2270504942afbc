/* What ExecSandbox, ExecSandboxInteractive and AttachMainProcess have in common: a client's call on
 * one side, a relay on the other, and each side is read only as fast as the other takes it
 * (decisions W3, W4). What the messages look like, and what an end means, is its class's. */
#ifndef GATEWAY_API_PUMP_H
#define GATEWAY_API_PUMP_H

#include "base/buffer.h"
#include "gateway/access.h"
#include "gateway/relay.h"

struct pump;

struct pump_class {
    const char *unread; /* "the output of the command is not read" */

    /* A message of the client after the first; then it calls one of the functions below. */
    void (*take)(struct pump *pump, const ProtobufCMessage *message);
    /* The first message: checks it and calls pump_acquire, or fails. */
    void (*start)(struct pump *pump, const ProtobufCMessage *message);
    /* The client sends nothing more: a half-close, a cancellation or a death (decision W4). */
    void (*on_end)(struct pump *pump);
    /* What the relay is opened with, in the arena. */
    Openshell__Ext__V1__SessionStart *(*session_start)(struct pump *pump, struct arena *arena);

    /* Frames of the relay, as messages to the client: whether it was queued. */
    bool (*send_output)(struct pump *pump, bool to_stderr, const void *data, size_t length);
    bool (*send_skipped)(struct pump *pump, uint64_t count); /* or NULL */
    bool (*send_started)(struct pump *pump,
                         const Openshell__Ext__V1__SessionStarted *started); /* or NULL */
    /* The process has ended and so has the session; the relay stays open until pump_leave. */
    void (*ended)(struct pump *pump, const Openshell__Ext__V1__SessionExit *exit);
    /* The last: frees what is the class's own, not the pump. */
    void (*release)(struct pump *pump);
};

/* Embedded first in what belongs to one call. */
struct pump {
    const struct pump_class *class;
    struct gateway *gateway;
    struct rpc_call *call; /* the client; NULL once its call is over */
    bool interactive;      /* the client sends more than one message */
    bool started;          /* the first message was taken */
    bool hold_client;      /* nothing of the client is read for now */
    bool input_ended;      /* no more input for the relay */
    bool end_pending;      /* the relay is to be told so, after what waits */
    bool answered;         /* the client's status was decided */
    bool keep_running;     /* the process stays when the client goes away */
    bool read_client;      /* a read of the client is outstanding */
    bool read_relay;       /* a read of the relay is outstanding */

    struct access_request *access;
    struct relay *relay;
    bool relay_is_open;
    struct buffer waiting; /* input that the relay has not been given */
    size_t waiting_used;
};

/* Accepts the call; `pump` is freed when everything is over. Where the client sends a stream, its
 * first message is asked for. */
void pump_begin(struct pump *pump, const struct pump_class *class, struct rpc_call *call,
                struct gateway *gateway, bool interactive);
/* Asks for access and then opens the relay; both strings live as long as the call. */
void pump_acquire(struct pump *pump, const char *workspace, const char *sandbox,
                  enum access_purpose purpose);

/* Of the client's messages. Input is at most RPC_MESSAGE_LIMIT, and the next is read when this one
 * is gone. */
void pump_take_input(struct pump *pump, const ProtobufCBinaryData *data);
void pump_end_input(struct pump *pump);
void pump_resize(struct pump *pump, uint32_t columns, uint32_t rows);
void pump_signal(struct pump *pump, uint32_t number);
/* Reads on after a message that needed nothing, or after `hold_client` was taken back. */
void pump_go_on(struct pump *pump);

/* The client's status: an error, once, or success after what was sent. */
void pump_fail(struct pump *pump, const struct error *error);
void pump_fail_text(struct pump *pump, enum error_code code, const char *text);
void pump_succeed(struct pump *pump);
/* Through with the relay. `abort` NULL: all is well, else why not. */
void pump_leave(struct pump *pump, const char *abort);
/* The client is gone or broke the rules: the process goes too, unless it was told to stay. */
void pump_abandon(struct pump *pump, const char *why);
/* Frees the pump when nothing of it is left; what is called from outside of its events ends with
 * this. */
void pump_free_when_over(struct pump *pump);

#endif
