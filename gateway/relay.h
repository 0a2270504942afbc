/* The way to a sandbox: a channel that its supervisor is asked to open (RelayOpen) and claims with
 * a RelayStream call (behaviour reference 2.6, decisions W3, W4). */
#ifndef GATEWAY_RELAY_H
#define GATEWAY_RELAY_H

#include "base/error.h"
#include "gateway/access.h"
#include "gateway/gateway.h"
#include "openshell.pb-c.h"

struct relay;

enum {
    RELAY_PENDING_LIMIT = 256,          /* unclaimed ones of the gateway */
    RELAY_SANDBOX_PENDING_LIMIT = 128,  /* and of one sandbox, */
    RELAY_SANDBOX_ANNOUNCED_LIMIT = 32, /* of which its supervisor knows so many */
    RELAY_CLAIM_MILLISECONDS = 10000,
    RELAY_CHUNK = 64 * 1024,    /* bytes of one frame */
    RELAY_FRAMES_IN_FLIGHT = 4, /* a direction and hop: 256 KiB (decision P14) */
};

struct relay_events {
    /* The supervisor claimed the channel: frames may be sent. */
    void (*on_open)(struct relay *relay, void *user);
    /* A frame after relay_read; lives until the callback returns. */
    void (*on_frame)(struct relay *relay, const Openshell__Ext__V1__SessionFrame *frame,
                     void *user);
    /* Everything that was sent has been taken. */
    void (*on_sent)(struct relay *relay, void *user);
    /* The other side ended it, or it never opened. Last, once, and never after relay_close. */
    void (*on_closed)(struct relay *relay, const struct error *error, void *user);
};

/* The only way to open one. Consumes the handle. NULL and RESOURCE_EXHAUSTED when too many wait to
 * be claimed, UNAVAILABLE when the session went away. */
struct relay *relay_open(struct access_handle *handle, Openshell__Ext__V1__SessionStart *start,
                         const struct relay_events *events, void *user, struct error *error);
/* Asks for the next frame: one outstanding at a time, once it is open. */
void relay_read(struct relay *relay);
/* False when it is not open or too much waits. */
bool relay_send(struct relay *relay, Openshell__Ext__V1__SessionFrame *frame);
size_t relay_unsent(const struct relay *relay);
/* Ends it from this side, without events; `abort` NULL: all is well, else why not. */
void relay_close(struct relay *relay, const char *abort);

/* Handles RelayStream. */
void relay_stream(struct rpc_call *call, void *gateway);

/* What the supervisor says about a channel that it will not serve. */
void relay_refused(struct live_sandbox *live, const char *channel_id, const char *text);
/* Unclaimed channels of a session that ended fail: whether their commands ran is not known, so they
 * are never asked for twice. */
void relay_session_lost(struct live_sandbox *live);

#endif
