/* ConnectSupervisor (behaviour reference 2.1, 2.2): hello, heartbeats both ways, and what the
 * gateway asks for; connected again, for ever, when it is lost (decision P12). */
#ifndef SUPERVISOR_GATEWAY_SESSION_H
#define SUPERVISOR_GATEWAY_SESSION_H

#include <stdbool.h>

#include "openshell.pb-c.h"
#include "supervisor/gateway_link.h"

enum {
    SESSION_HEARTBEAT_MILLISECONDS = 15 * 1000, /* unless the gateway says otherwise */
    SESSION_HEARTBEATS_MISSED = 3,              /* then the connection counts as lost */
    SESSION_ACCEPT_MILLISECONDS = 10 * 1000,
    /* Between attempts while the gateway refuses this sandbox, rather than being away. */
    SESSION_REFUSED_PAUSE_MILLISECONDS = 5 * 1000,
};

struct gateway_session;

struct gateway_session_events {
    /* At each acceptance. */
    void (*on_accepted)(void *user);
    void (*on_relay_open)(const Openshell__V1__RelayOpen *open, void *user);
    void (*on_relay_close)(const Openshell__V1__RelayClose *close, void *user);
    void *user;
};

/* Connects at once. Everything given outlives the session. */
struct gateway_session *gateway_session_start(struct reactor *reactor, struct gateway_link *link,
                                              const struct launch_supervisor *launch,
                                              const char *instance_id,
                                              const struct gateway_session_events *events);
/* Tries now when it waits for the next attempt (SIGUSR1). */
void gateway_session_hurry(struct gateway_session *session);
bool gateway_session_accepted(const struct gateway_session *session);
/* Tells the gateway that a relay's target cannot be opened. */
void gateway_session_refuse_relay(struct gateway_session *session, const char *channel_id,
                                  const char *why);

#endif
