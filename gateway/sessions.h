/* The sessions of supervisors: ConnectSupervisor (behaviour reference 2.1 to 2.5, decisions P12,
 * P20). */
#ifndef GATEWAY_SESSIONS_H
#define GATEWAY_SESSIONS_H

#include "gateway/gateway.h"
#include "gateway/live.h"

enum {
    SESSION_HEARTBEAT_MILLISECONDS = 15000,
    SESSION_SILENCE_MILLISECONDS = 45000, /* without a message the session is over */
    SESSION_GRACE_MILLISECONDS = 15000,   /* decision P12 */
};

/* Handles ConnectSupervisor. */
void session_connect(struct rpc_call *call, void *gateway);

/* Whether a message could be queued for the sandbox's supervisor. */
bool session_send(struct live_sandbox *live, Openshell__V1__GatewayMessage *message);

/* Ends the sandbox's session, and the wait for its return, from this side. Nothing without one. */
void session_disconnect(struct gateway *gateway, const char *sandbox_id);

/* Starts waiting for the session of a supervisor that runs, as after adopting it. */
void session_expect(struct live_sandbox *live);

#endif
