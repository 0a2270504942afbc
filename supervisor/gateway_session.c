#include "supervisor/gateway_session.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "method_table.h"

#define SUPERVISOR_MESSAGE(name) OPENSHELL__V1__SUPERVISOR_MESSAGE__PAYLOAD_##name
#define GATEWAY_MESSAGE(name) OPENSHELL__V1__GATEWAY_MESSAGE__PAYLOAD_##name

struct gateway_session {
    struct reactor *reactor;
    struct gateway_link *link;
    const struct launch_supervisor *launch;
    const char *instance_id;
    struct gateway_session_events events;

    struct rpc_call *call; /* NULL between attempts */
    uint64_t epoch;        /* counts connections of this instance (behaviour reference 2.3) */
    bool accepted;
    unsigned failures; /* since the last acceptance */
    int64_t heard_at;  /* monotonic milliseconds */
    uint64_t interval;
    struct reactor_timer *timer; /* the pause, the wait for acceptance, or the heartbeat */
};

static void connect_session(struct gateway_session *session);

static void stop_timer(struct gateway_session *session)
{
    reactor_timer_cancel(session->timer);
    session->timer = NULL;
}

static void on_pause_over(void *argument)
{
    struct gateway_session *session = argument;
    stop_timer(session);
    connect_session(session);
}

static void pause_then_connect(struct gateway_session *session, bool refused)
{
    session->failures++;
    uint64_t pause =
        refused ? SESSION_REFUSED_PAUSE_MILLISECONDS : gateway_backoff(session->failures);
    stop_timer(session);
    session->timer = reactor_timer_start(session->reactor, pause, 0, on_pause_over, session);
}

/* ---- to the gateway ---- */

static void send_message(struct gateway_session *session,
                         const Openshell__V1__SupervisorMessage *message)
{
    if (session->call != NULL && !rpc_call_send(session->call, &message->base))
        log_warn("the gateway's session takes no more messages");
}

static void send_hello(struct gateway_session *session)
{
    Openshell__V1__SupervisorHello hello = OPENSHELL__V1__SUPERVISOR_HELLO__INIT;
    hello.sandbox_id = session->launch->sandbox_id;
    hello.instance_id = (char *)session->instance_id;
    hello.connection_epoch = ++session->epoch;
    Openshell__V1__SupervisorMessage message = OPENSHELL__V1__SUPERVISOR_MESSAGE__INIT;
    message.payload_case = SUPERVISOR_MESSAGE(HELLO);
    message.hello = &hello;
    send_message(session, &message);
}

void gateway_session_refuse_relay(struct gateway_session *session, const char *channel_id,
                                  const char *why)
{
    Openshell__V1__RelayOpenResult result = OPENSHELL__V1__RELAY_OPEN_RESULT__INIT;
    result.channel_id = (char *)channel_id;
    result.success = 0;
    result.error = (char *)why;
    Openshell__V1__SupervisorMessage message = OPENSHELL__V1__SUPERVISOR_MESSAGE__INIT;
    message.payload_case = SUPERVISOR_MESSAGE(RELAY_OPEN_RESULT);
    message.relay_open_result = &result;
    send_message(session, &message);
}

static void on_heartbeat(void *argument)
{
    struct gateway_session *session = argument;
    int64_t silence = clock_monotonic_milliseconds() - session->heard_at;
    if (silence > (int64_t)(SESSION_HEARTBEATS_MISSED * session->interval)) {
        log_warn("the gateway has not been heard of for %lld ms; connecting again",
                 (long long)silence);
        rpc_call_cancel(session->call);
        return;
    }
    Openshell__V1__SupervisorHeartbeat heartbeat = OPENSHELL__V1__SUPERVISOR_HEARTBEAT__INIT;
    Openshell__V1__SupervisorMessage message = OPENSHELL__V1__SUPERVISOR_MESSAGE__INIT;
    message.payload_case = SUPERVISOR_MESSAGE(HEARTBEAT);
    message.heartbeat = &heartbeat;
    send_message(session, &message);
}

static void on_not_accepted(void *argument)
{
    struct gateway_session *session = argument;
    log_warn("the gateway did not accept the session in time; connecting again");
    stop_timer(session);
    rpc_call_cancel(session->call);
}

/* ---- from the gateway ---- */

static void accept_session(struct gateway_session *session,
                           const Openshell__V1__SessionAccepted *accepted)
{
    if (session->accepted)
        return;
    session->accepted = true;
    session->failures = 0;
    session->interval = SESSION_HEARTBEAT_MILLISECONDS;
    const Google__Protobuf__Duration *interval = accepted->heartbeat_interval;
    if (interval != NULL && interval->seconds >= 1 && interval->seconds <= 600)
        session->interval = (uint64_t)interval->seconds * 1000;
    stop_timer(session);
    session->timer = reactor_timer_start(session->reactor, session->interval, session->interval,
                                         on_heartbeat, session);
    log_info("session %s with the gateway", accepted->session_id);
    session->events.on_accepted(session->events.user);
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct gateway_session *session = user;
    const Openshell__V1__GatewayMessage *gateway = (const Openshell__V1__GatewayMessage *)message;
    session->heard_at = clock_monotonic_milliseconds();
    switch (gateway->payload_case) {
    case GATEWAY_MESSAGE(SESSION_ACCEPTED):
        accept_session(session, gateway->session_accepted);
        break;
    case GATEWAY_MESSAGE(SESSION_REJECTED):
        log_warn("the gateway rejected the session: %s", gateway->session_rejected->reason);
        rpc_call_cancel(call);
        return;
    case GATEWAY_MESSAGE(RELAY_OPEN):
        session->events.on_relay_open(gateway->relay_open, session->events.user);
        break;
    case GATEWAY_MESSAGE(RELAY_CLOSE):
        session->events.on_relay_close(gateway->relay_close, session->events.user);
        break;
    default: /* heartbeats, and what this supervisor did not say that it supports */
        break;
    }
    rpc_call_read(call);
}

/* Whether the gateway itself said no, so that hurrying would not help. */
static bool is_refusal(enum error_code code)
{
    return code == ERROR_UNAUTHENTICATED || code == ERROR_PERMISSION_DENIED ||
           code == ERROR_NOT_FOUND || code == ERROR_INVALID_ARGUMENT ||
           code == ERROR_UNIMPLEMENTED || code == ERROR_FAILED_PRECONDITION;
}

static void on_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct gateway_session *session = user;
    if (session->accepted || session->failures == 0)
        log_info("the session with the gateway ended: %s",
                 status->code == ERROR_OK ? "the gateway closed it" : status->message);
    session->call = NULL;
    session->accepted = false;
    stop_timer(session);
    gateway_link_set_watched(session->link, false);
    gateway_link_drop(session->link); /* with it every relay of the session */
    pause_then_connect(session, is_refusal(status->code));
}

static void connect_session(struct gateway_session *session)
{
    static const struct rpc_call_events EVENTS = {.on_message = on_message, .on_done = on_done};
    struct error error = {0};
    struct rpc_channel *channel = gateway_link_channel(session->link, &error);
    if (channel == NULL) {
        log_debug("the gateway cannot be reached: %s", error.message);
        error_clear(&error);
        pause_then_connect(session, false);
        return;
    }
    struct rpc_call_options options = {.bearer = session->launch->gateway_token};
    session->call = rpc_call_start(channel, &rpc_openshell_v1_OpenShell_ConnectSupervisor, &options,
                                   &EVENTS, session);
    gateway_link_set_watched(session->link, true);
    session->heard_at = clock_monotonic_milliseconds();
    session->timer = reactor_timer_start(session->reactor, SESSION_ACCEPT_MILLISECONDS, 0,
                                         on_not_accepted, session);
    send_hello(session);
    rpc_call_read(session->call);
}

struct gateway_session *gateway_session_start(struct reactor *reactor, struct gateway_link *link,
                                              const struct launch_supervisor *launch,
                                              const char *instance_id,
                                              const struct gateway_session_events *events)
{
    struct gateway_session *session = memory_new_of(struct gateway_session);
    session->reactor = reactor;
    session->link = link;
    session->launch = launch;
    session->instance_id = instance_id;
    session->events = *events;
    connect_session(session);
    return session;
}

void gateway_session_hurry(struct gateway_session *session)
{
    if (session->call != NULL)
        return;
    stop_timer(session);
    session->failures = 0;
    connect_session(session);
}

bool gateway_session_accepted(const struct gateway_session *session)
{
    return session->accepted;
}
