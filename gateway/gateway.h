/* What the parts of the gateway share. Everything belongs to the loop's thread; only work handed to
 * the store runs elsewhere, on copies of its own. */
#ifndef GATEWAY_GATEWAY_H
#define GATEWAY_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reactor.h"
#include "base/table.h"
#include "boundary/session_token.h"
#include "gateway/drivers/driver.h"
#include "gateway/pages.h"
#include "gateway/store/store.h"
#include "rpc/rpc.h"

struct host_ids;
struct journals;
struct listener;
struct watcher;

/* The name by which tokens and commands know a gateway of this machine. */
#define GATEWAY_NAME "openshell"

struct gateway {
    struct reactor *reactor;
    struct rpc_runtime *rpc;
    struct rpc_server *server;
    struct store *store;
    struct driver *driver;
    struct session_token_key *key;
    struct pages_key page_key;
    struct host_ids *host_ids;
    struct listener *listener;
    char *run_directory;
    char *state_directory;
    char *socket_path;

    struct table *live; /* sandbox id -> struct live_sandbox */
    struct journals *journals;
    struct reactor_timer *deadlines;
    int64_t deadlines_at; /* when that fires; milliseconds since the epoch */
    /* The time that records are dated with; NULL: the machine's clock. For tests. */
    int64_t (*clock)(void);
    struct watcher *watchers;
    struct table *pending_relays; /* channel id -> struct relay that waits to be claimed */
    size_t access_waiters;
};

/* Milliseconds since the epoch, by the gateway's clock. */
int64_t gateway_now(const struct gateway *gateway);

#endif
