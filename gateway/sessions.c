#include "gateway/sessions.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "gateway/access.h"
#include "gateway/auth/authorize.h"
#include "gateway/lifecycle.h"
#include "gateway/logs.h"
#include "gateway/relay.h"
#include "gateway/transition.h"

enum { INSTANCE_ID_MAX = 128, OUTBOUND_LIMIT = 64 };

struct session {
    struct gateway *gateway;
    struct live_sandbox *live; /* NULL before it was accepted and after it was superseded */
    struct rpc_call *call;     /* NULL once the call is over */
    bool deciding;             /* the store works on it */
    char sandbox_id[UUID_SIZE];
    char session_id[UUID_SIZE];
    char *instance_id;
    uint64_t epoch;
    struct reactor_timer *heartbeat;
    int64_t heard; /* when the supervisor spoke last, monotonic milliseconds */
};

static void session_free(struct session *session)
{
    reactor_timer_cancel(session->heartbeat);
    free(session->instance_id);
    free(session);
}

static void refuse(struct session *session, enum error_code code, const char *text)
{
    struct error error = {0};
    error_set(&error, code, "%s", text);
    rpc_call_fail(session->call, &error);
    error_clear(&error);
}

/* ---- loss and return ---- */

static void grace_over(void *argument)
{
    struct live_sandbox *live = argument;
    reactor_timer_cancel(live->grace);
    live->grace = NULL;
    struct lifecycle_facts facts = {.generation = live->generation};
    log_warn("sandbox %s: its supervisor did not come back", live->id);
    transition_apply(live->gateway, live->id, LIFECYCLE_SUPERVISOR_DISCONNECTED, &facts, NULL,
                     NULL);
    access_wake(live);
    live_release(live);
}

static void stop_expecting(struct live_sandbox *live)
{
    reactor_timer_cancel(live->grace);
    live->grace = NULL;
}

void session_expect(struct live_sandbox *live)
{
    stop_expecting(live);
    live->grace = reactor_timer_start(live->gateway->reactor, SESSION_GRACE_MILLISECONDS, 0,
                                      grace_over, live);
}

/* Takes the session from its sandbox. */
static void detach(struct session *session)
{
    struct live_sandbox *live = session->live;
    if (live == NULL)
        return;
    relay_session_lost(live); /* first: the session keeps the entry alive */
    session->live = NULL;
    live->session = NULL;
}

void session_disconnect(struct gateway *gateway, const char *sandbox_id)
{
    struct live_sandbox *live = live_find(gateway, sandbox_id);
    if (live == NULL)
        return;
    stop_expecting(live);
    struct session *session = live->session;
    if (session != NULL) {
        detach(session);
        rpc_call_finish(session->call);
    }
    access_wake(live);
    live_release(live);
}

/* ---- heartbeats ---- */

static void beat(void *argument)
{
    struct session *session = argument;
    if (clock_monotonic_milliseconds() - session->heard > SESSION_SILENCE_MILLISECONDS) {
        log_warn("sandbox %s: its supervisor is silent", session->sandbox_id);
        rpc_call_cancel(session->call);
        return;
    }
    Openshell__V1__GatewayHeartbeat heartbeat = OPENSHELL__V1__GATEWAY_HEARTBEAT__INIT;
    Openshell__V1__GatewayMessage message = OPENSHELL__V1__GATEWAY_MESSAGE__INIT;
    message.payload_case = OPENSHELL__V1__GATEWAY_MESSAGE__PAYLOAD_HEARTBEAT;
    message.heartbeat = &heartbeat;
    if (rpc_call_unsent(session->call) == 0)
        rpc_call_send(session->call, &message.base);
}

/* ---- the handshake ---- */

static void send_accepted(struct session *session)
{
    Google__Protobuf__Duration interval = GOOGLE__PROTOBUF__DURATION__INIT;
    interval.seconds = SESSION_HEARTBEAT_MILLISECONDS / 1000;
    Openshell__V1__SessionAccepted accepted = OPENSHELL__V1__SESSION_ACCEPTED__INIT;
    accepted.session_id = session->session_id;
    accepted.heartbeat_interval = &interval;
    Openshell__V1__GatewayMessage message = OPENSHELL__V1__GATEWAY_MESSAGE__INIT;
    message.payload_case = OPENSHELL__V1__GATEWAY_MESSAGE__PAYLOAD_SESSION_ACCEPTED;
    message.session_accepted = &accepted;
    rpc_call_send(session->call, &message.base);
}

static void supersede(struct live_sandbox *live)
{
    struct session *earlier = live->session;
    if (earlier == NULL)
        return;
    detach(earlier);
    refuse(earlier, ERROR_ABORTED, "superseded by a newer session of the same sandbox");
}

/* The record says READY, or what it said before: the session may be used. */
static void attach(struct session *session)
{
    struct live_sandbox *live = live_obtain(session->gateway, session->sandbox_id);
    supersede(live);
    stop_expecting(live);
    session->live = live;
    live->session = session;
    live->connected_once = true;
    session->heard = clock_monotonic_milliseconds();
    session->heartbeat =
        reactor_timer_start(session->gateway->reactor, SESSION_HEARTBEAT_MILLISECONDS,
                            SESSION_HEARTBEAT_MILLISECONDS, beat, session);
    const struct log_field fields[] = {{"instance", session->instance_id}, {NULL, NULL}};
    logs_note(session->gateway, live->id, LOG_LEVEL_INFO, "session", fields,
              "the supervisor is connected");
    send_accepted(session);
    rpc_call_read(session->call);
    access_wake(live);
}

static void connected(struct transition *transition, const struct error *error, void *user)
{
    struct session *session = user;
    struct live_sandbox *live = live_find(session->gateway, session->sandbox_id);
    session->deciding = false;
    bool gone = session->call == NULL || rpc_call_cancelled(session->call);
    if (error != NULL && !gone) {
        log_debug("sandbox %s: session refused: %s", session->sandbox_id, error->message);
        rpc_call_fail(session->call, error);
    } else if (error == NULL && !gone) {
        attach(session);
    } else if (error == NULL && live != NULL && live->session == NULL) {
        session_expect(live); /* the record counts on a session that ended meanwhile */
    }
    if (error == NULL)
        transition_queue_compute(transition);
    if (session->call == NULL)
        session_free(session);
}

static bool check_hello(struct session *session, const Openshell__V1__SupervisorHello *hello)
{
    const struct principal *principal = rpc_call_principal(session->call);
    if (hello->sandbox_id[0] == '\0')
        refuse(session, ERROR_INVALID_ARGUMENT, "sandbox_id is required");
    else if (strcmp(hello->sandbox_id, principal->sandbox_id) != 0)
        refuse(session, ERROR_PERMISSION_DENIED, "the sandbox is not the caller's");
    else if (hello->supports_provider_readiness && !uuid_valid(hello->instance_id))
        refuse(session, ERROR_INVALID_ARGUMENT, "instance_id must be a UUID");
    else if (hello->instance_id[0] == '\0' || strlen(hello->instance_id) > INSTANCE_ID_MAX)
        refuse(session, ERROR_INVALID_ARGUMENT, "instance_id is required");
    else
        return true;
    return false;
}

/* A living session of another instance keeps its place; so does one of the same instance that was
 * opened later (behaviour reference 2.4). */
static bool check_owner(struct session *session)
{
    const struct live_sandbox *live = live_find(session->gateway, session->sandbox_id);
    const struct session *owner = live != NULL ? live->session : NULL;
    if (owner == NULL || rpc_call_cancelled(owner->call))
        return true;
    if (strcmp(owner->instance_id, session->instance_id) != 0)
        refuse(session, ERROR_UNAVAILABLE, "another supervisor holds the session of this sandbox");
    else if (owner->epoch >= session->epoch)
        refuse(session, ERROR_ABORTED, "a session with this or a higher epoch is open");
    else
        return true;
    return false;
}

static void greet(struct session *session, const Openshell__V1__SupervisorMessage *message)
{
    const Openshell__V1__SupervisorHello *hello = message->hello;
    if (message->payload_case != OPENSHELL__V1__SUPERVISOR_MESSAGE__PAYLOAD_HELLO) {
        refuse(session, ERROR_INVALID_ARGUMENT, "expected SupervisorHello");
        return;
    }
    if (!check_hello(session, hello))
        return;
    memcpy(session->sandbox_id, hello->sandbox_id,
           strnlen(hello->sandbox_id, sizeof(session->sandbox_id) - 1));
    session->instance_id = memory_strdup(hello->instance_id);
    session->epoch = hello->connection_epoch;
    if (!check_owner(session))
        return;
    uuid_generate(session->session_id);
    session->deciding = true;
    struct lifecycle_facts facts = {.instance_id = session->instance_id, .session_connected = true};
    transition_apply(session->gateway, session->sandbox_id, LIFECYCLE_SUPERVISOR_CONNECTED, &facts,
                     connected, session);
}

/* ---- messages ---- */

static void on_message(struct rpc_call *call, const ProtobufCMessage *base, void *user)
{
    struct session *session = user;
    const Openshell__V1__SupervisorMessage *message =
        (const Openshell__V1__SupervisorMessage *)base;
    if (session->instance_id == NULL) {
        greet(session, message);
        return;
    }
    if (session->live == NULL)
        return; /* superseded */
    session->heard = clock_monotonic_milliseconds();
    if (message->payload_case == OPENSHELL__V1__SUPERVISOR_MESSAGE__PAYLOAD_RELAY_OPEN_RESULT &&
        !message->relay_open_result->success)
        relay_refused(session->live, message->relay_open_result->channel_id,
                      message->relay_open_result->error);
    else if (message->payload_case == OPENSHELL__V1__SUPERVISOR_MESSAGE__PAYLOAD_RELAY_CLOSE)
        relay_refused(session->live, message->relay_close->channel_id,
                      message->relay_close->reason);
    rpc_call_read(call);
}

static void on_end(struct rpc_call *call, void *user)
{
    struct session *session = user;
    if (session->instance_id == NULL)
        refuse(session, ERROR_INVALID_ARGUMENT, "stream closed before hello");
    else
        rpc_call_finish(call);
}

static void on_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    struct session *session = user;
    struct live_sandbox *live = session->live;
    session->call = NULL;
    if (live != NULL) {
        detach(session);
        log_debug("sandbox %s: session lost", live->id);
        if (live->launched) {
            logs_note(session->gateway, live->id, LOG_LEVEL_WARN, "session", NULL,
                      "the supervisor's connection is lost; it is expected back");
            session_expect(live);
        }
        live_release(live);
    }
    if (!session->deciding)
        session_free(session);
}

void session_connect(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events events = {
        .on_message = on_message, .on_end = on_end, .on_done = on_done};
    struct session *session = memory_new_of(struct session);
    session->gateway = user;
    session->call = call;
    rpc_call_accept(call, &events, session);
    rpc_call_read(call);
}

bool session_send(struct live_sandbox *live, Openshell__V1__GatewayMessage *message)
{
    struct session *session = live->session;
    return session != NULL && rpc_call_unsent(session->call) < OUTBOUND_LIMIT &&
           rpc_call_send(session->call, &message->base);
}
