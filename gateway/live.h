/* What the gateway remembers in memory about a sandbox, while there is something to remember: its
 * launch, its supervisor's session, who waits for it, what is being done to it. The record in the
 * store is the truth about everything else. */
#ifndef GATEWAY_LIVE_H
#define GATEWAY_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"
#include "gateway/gateway.h"
#include "openshell.pb-c.h"

struct access_request;
struct operation;
struct relay;
struct session;

struct live_sandbox {
    struct gateway *gateway;
    char id[UUID_SIZE];

    /* The launch that may speak for the sandbox: processes run, or are being started. */
    bool launched;
    bool connected_once; /* this launch had a session on this gateway */
    char generation[UUID_SIZE];
    uint64_t auth_epoch;

    struct session *session;
    /* The session is gone and its supervisor runs: until this fires it is expected back (P12). */
    struct reactor_timer *grace;

    struct access_request *waiters;
    size_t waiter_count;
    struct relay *relays;
    size_t pending_relay_count;   /* unclaimed */
    size_t announced_relay_count; /* of those, the ones the supervisor was told of */

    struct operation *operations; /* the first one runs */
    size_t operation_count;

    int64_t deadline; /* milliseconds since the epoch; 0: none (behaviour reference 1.7) */
    size_t watcher_count;
};

/* NULL when there is nothing to remember. */
struct live_sandbox *live_find(const struct gateway *gateway, const char *id);
/* Makes the entry where it is missing. */
struct live_sandbox *live_obtain(struct gateway *gateway, const char *id);
/* Forgets the entry when nothing keeps it. */
void live_release(struct live_sandbox *live);

/* Remembers, or forgets, the launch whose tokens are good. */
void live_launch(struct live_sandbox *live, const char *generation, uint64_t auth_epoch);
void live_unlaunch(struct live_sandbox *live);

/* Whether the supervisor has no session and is expected to open one any moment (P12). */
bool live_session_expected(const struct live_sandbox *live);

#endif
