#include "gateway/relay.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "gateway/auth/authorize.h"
#include "gateway/live.h"
#include "gateway/message.h"
#include "gateway/sessions.h"

struct relay {
    struct gateway *gateway;
    struct live_sandbox *live;
    struct relay *next; /* of the sandbox */
    struct relay *previous;
    char channel_id[UUID_SIZE];
    struct reactor_timer *claim; /* runs while it is unclaimed */
    bool announced;              /* the supervisor was told of it; else: */
    struct arena *arena;         /* holds `start`, which waits for its turn */
    Openshell__Ext__V1__SessionStart *start;
    struct rpc_call *call; /* NULL before the claim and after the call is over */
    struct relay_events events;
    void *user;
    bool closed; /* the owner is through with it */
};

/* ---- ending ---- */

static void announce_next(struct live_sandbox *live);

static void forget_start(struct relay *relay)
{
    if (relay->arena != NULL)
        arena_free(relay->arena);
    relay->arena = NULL;
    relay->start = NULL;
}

/* Ends the wait for a claim; the channel's name means nothing any more. */
static void stop_pending(struct relay *relay)
{
    struct live_sandbox *live = relay->live;
    if (relay->claim == NULL)
        return;
    reactor_timer_cancel(relay->claim);
    relay->claim = NULL;
    forget_start(relay);
    table_remove(relay->gateway->pending_relays, relay->channel_id);
    live->pending_relay_count--;
    if (!relay->announced)
        return;
    live->announced_relay_count--;
    announce_next(live);
}

static void relay_free(struct relay *relay)
{
    struct live_sandbox *live = relay->live;
    stop_pending(relay);
    if (relay->previous != NULL)
        relay->previous->next = relay->next;
    else
        live->relays = relay->next;
    if (relay->next != NULL)
        relay->next->previous = relay->previous;
    free(relay);
    live_release(live);
}

/* Tells the owner that it is over. */
static void fail(struct relay *relay, enum error_code code, const char *text)
{
    stop_pending(relay);
    if (relay->closed)
        return;
    relay->closed = true;
    struct error error = {0};
    error_set(&error, code, "%s", text);
    relay->events.on_closed(relay, &error, relay->user);
    error_clear(&error);
}

static void claim_expired(void *argument)
{
    struct relay *relay = argument;
    fail(relay, ERROR_DEADLINE_EXCEEDED, "supervisor relay setup timed out");
    relay_free(relay);
}

static void send_relay_close(struct relay *relay, const char *reason)
{
    Openshell__V1__RelayClose close = OPENSHELL__V1__RELAY_CLOSE__INIT;
    close.channel_id = relay->channel_id;
    close.reason = (char *)reason;
    Openshell__V1__GatewayMessage message = OPENSHELL__V1__GATEWAY_MESSAGE__INIT;
    message.payload_case = OPENSHELL__V1__GATEWAY_MESSAGE__PAYLOAD_RELAY_CLOSE;
    message.relay_close = &close;
    session_send(relay->live, &message);
}

void relay_close(struct relay *relay, const char *abort)
{
    if (relay->closed)
        return;
    relay->closed = true;
    if (relay->claim != NULL) {
        if (relay->announced)
            send_relay_close(relay, abort != NULL ? abort : "not needed any more");
        relay_free(relay);
        return;
    }
    if (abort != NULL) {
        Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
        frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_ABORT;
        frame.abort = (char *)abort;
        Openshell__V1__RelayFrame message = OPENSHELL__V1__RELAY_FRAME__INIT;
        message.payload_case = OPENSHELL__V1__RELAY_FRAME__PAYLOAD_SESSION;
        message.session = &frame;
        if (relay->call != NULL)
            rpc_call_send(relay->call, &message.base);
        /* It may lie behind input that nobody reads: this goes past it. */
        send_relay_close(relay, abort);
    }
    if (relay->call != NULL)
        rpc_call_finish(relay->call); /* on_done frees the relay */
}

void relay_refused(struct live_sandbox *live, const char *channel_id, const char *text)
{
    struct relay *relay = table_get(live->gateway->pending_relays, channel_id);
    if (relay == NULL || relay->live != live)
        return;
    char harmless[512];
    text_escape(text[0] != '\0' ? text : "the supervisor cannot open it", harmless,
                sizeof(harmless));
    fail(relay, ERROR_UNAVAILABLE, harmless);
    relay_free(relay);
}

void relay_session_lost(struct live_sandbox *live)
{
    for (struct relay *relay = live->relays, *next; relay != NULL; relay = next) {
        next = relay->next;
        if (relay->claim == NULL)
            continue;
        fail(relay, ERROR_UNAVAILABLE, "the session of the sandbox's supervisor ended");
        bool last = next == NULL;
        relay_free(relay);
        if (last)
            break;
    }
}

/* ---- opening ---- */

static struct relay *relay_new(struct live_sandbox *live, const struct relay_events *events,
                               void *user)
{
    struct relay *relay = memory_new_of(struct relay);
    relay->gateway = live->gateway;
    relay->live = live;
    relay->events = *events;
    relay->user = user;
    uuid_generate(relay->channel_id);
    relay->next = live->relays;
    if (relay->next != NULL)
        relay->next->previous = relay;
    live->relays = relay;
    live->pending_relay_count++;
    table_put(live->gateway->pending_relays, relay->channel_id, relay);
    relay->claim = reactor_timer_start(live->gateway->reactor, RELAY_CLAIM_MILLISECONDS, 0,
                                       claim_expired, relay);
    return relay;
}

static bool send_relay_open(struct relay *relay, Openshell__Ext__V1__SessionStart *start)
{
    Openshell__Ext__V1__SessionTarget target = OPENSHELL__EXT__V1__SESSION_TARGET__INIT;
    target.start = start;
    Openshell__V1__RelayOpen open = OPENSHELL__V1__RELAY_OPEN__INIT;
    open.channel_id = relay->channel_id;
    open.target_case = OPENSHELL__V1__RELAY_OPEN__TARGET_SESSION;
    open.session = &target;
    Openshell__V1__GatewayMessage message = OPENSHELL__V1__GATEWAY_MESSAGE__INIT;
    message.payload_case = OPENSHELL__V1__GATEWAY_MESSAGE__PAYLOAD_RELAY_OPEN;
    message.relay_open = &open;
    relay->announced = session_send(relay->live, &message);
    if (relay->announced)
        relay->live->announced_relay_count++;
    return relay->announced;
}

/* The one that waits longest. */
static void announce_next(struct live_sandbox *live)
{
    struct relay *oldest = NULL;
    for (struct relay *relay = live->relays; relay != NULL; relay = relay->next)
        if (relay->start != NULL)
            oldest = relay;
    if (oldest != NULL && live->session != NULL && send_relay_open(oldest, oldest->start))
        forget_start(oldest);
}

/* Tells the supervisor, or keeps it until one of the others was claimed. */
static bool announce(struct relay *relay, Openshell__Ext__V1__SessionStart *start)
{
    if (relay->live->announced_relay_count < RELAY_SANDBOX_ANNOUNCED_LIMIT)
        return send_relay_open(relay, start);
    relay->arena = arena_new(0);
    relay->start = message_copy(relay->arena, &start->base);
    return true;
}

struct relay *relay_open(struct access_handle *handle, Openshell__Ext__V1__SessionStart *start,
                         const struct relay_events *events, void *user, struct error *error)
{
    struct gateway *gateway = access_gateway(handle);
    struct live_sandbox *live = live_find(gateway, access_sandbox_id(handle));
    access_release(handle);
    if (live == NULL || live->session == NULL) {
        error_set(error, ERROR_UNAVAILABLE, "supervisor session not connected");
        return NULL;
    }
    if (table_count(gateway->pending_relays) >= RELAY_PENDING_LIMIT ||
        live->pending_relay_count >= RELAY_SANDBOX_PENDING_LIMIT) {
        error_set(error, ERROR_RESOURCE_EXHAUSTED,
                  "too many relays to this sandbox wait to be opened");
        return NULL;
    }
    struct relay *relay = relay_new(live, events, user);
    if (announce(relay, start))
        return relay;
    relay->closed = true;
    relay_free(relay);
    error_set(error, ERROR_RESOURCE_EXHAUSTED, "the supervisor of the sandbox does not keep up");
    return NULL;
}

/* ---- frames ---- */

void relay_read(struct relay *relay)
{
    if (relay->call != NULL && !relay->closed)
        rpc_call_read(relay->call);
}

bool relay_send(struct relay *relay, Openshell__Ext__V1__SessionFrame *frame)
{
    if (relay->call == NULL || relay->closed)
        return false;
    Openshell__V1__RelayFrame message = OPENSHELL__V1__RELAY_FRAME__INIT;
    message.payload_case = OPENSHELL__V1__RELAY_FRAME__PAYLOAD_SESSION;
    message.session = frame;
    return rpc_call_send(relay->call, &message.base);
}

size_t relay_unsent(const struct relay *relay)
{
    return relay->call != NULL ? rpc_call_unsent(relay->call) : 0;
}

/* ---- the supervisor's side: RelayStream ---- */

static void refuse(struct rpc_call *call, enum error_code code, const char *text)
{
    struct error error = {0};
    error_set(&error, code, "%s", text);
    rpc_call_fail(call, &error);
    error_clear(&error);
}

static void on_frame(struct rpc_call *call, const ProtobufCMessage *base, void *user)
{
    struct relay *relay = user;
    const Openshell__V1__RelayFrame *message = (const Openshell__V1__RelayFrame *)base;
    if (relay->closed)
        return;
    if (message->payload_case != OPENSHELL__V1__RELAY_FRAME__PAYLOAD_SESSION) {
        refuse(call, ERROR_INVALID_ARGUMENT, "expected a session frame");
        fail(relay, ERROR_UNAVAILABLE, "the supervisor broke the relay's protocol");
        return;
    }
    relay->events.on_frame(relay, message->session, relay->user);
}

static void on_frame_end(struct rpc_call *call, void *user)
{
    struct relay *relay = user;
    rpc_call_finish(call);
    fail(relay, ERROR_UNAVAILABLE, "the relay to the sandbox ended before the command did");
}

static void on_frame_sent(struct rpc_call *call, void *user)
{
    (void)call;
    struct relay *relay = user;
    if (!relay->closed)
        relay->events.on_sent(relay, relay->user);
}

static void on_relay_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    struct relay *relay = user;
    relay->call = NULL;
    fail(relay, ERROR_UNAVAILABLE, "the relay to the sandbox was lost");
    relay_free(relay);
}

static void claim(struct rpc_call *call, struct gateway *gateway, const char *channel_id)
{
    static const struct rpc_call_events events = {.on_message = on_frame,
                                                  .on_end = on_frame_end,
                                                  .on_sent = on_frame_sent,
                                                  .on_done = on_relay_done};
    const struct principal *principal = rpc_call_principal(call);
    struct relay *relay = table_get(gateway->pending_relays, channel_id);
    if (relay == NULL) {
        refuse(call, ERROR_NOT_FOUND, "no such relay channel, or it expired");
        return;
    }
    if (strcmp(relay->live->id, principal->sandbox_id) != 0) {
        refuse(call, ERROR_PERMISSION_DENIED, "the relay channel belongs to another sandbox");
        return;
    }
    stop_pending(relay);
    relay->call = call;
    rpc_call_accept(call, &events, relay);
    relay->events.on_open(relay, relay->user);
}

static void on_first(struct rpc_call *call, const ProtobufCMessage *base, void *user)
{
    const Openshell__V1__RelayFrame *message = (const Openshell__V1__RelayFrame *)base;
    if (message->payload_case != OPENSHELL__V1__RELAY_FRAME__PAYLOAD_INIT ||
        message->init->channel_id[0] == '\0')
        refuse(call, ERROR_INVALID_ARGUMENT, "the first frame must be init with a channel_id");
    else
        claim(call, user, message->init->channel_id);
}

static void on_first_end(struct rpc_call *call, void *user)
{
    (void)user;
    refuse(call, ERROR_INVALID_ARGUMENT, "the first frame must be init with a channel_id");
}

static void on_unclaimed_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    (void)user;
}

void relay_stream(struct rpc_call *call, void *gateway)
{
    static const struct rpc_call_events events = {
        .on_message = on_first, .on_end = on_first_end, .on_done = on_unclaimed_done};
    rpc_call_accept(call, &events, gateway);
    rpc_call_read(call);
}
