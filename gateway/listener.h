/* The gateway's socket: who may connect and how many (decisions B4, P14). */
#ifndef GATEWAY_LISTENER_H
#define GATEWAY_LISTENER_H

#include "base/error.h"
#include "gateway/auth/token_cache.h"
#include "gateway/gateway.h"

enum {
    LISTENER_CONNECTIONS_LIMIT = 1024,
    LISTENER_USER_LIMIT = 64,              /* served at once for one user; supervisors apart */
    LISTENER_QUEUE_MILLISECONDS = 5000,    /* how long a connection over that waits its turn */
    LISTENER_IDLE_MILLISECONDS = 60 * 1000 /* without a call */
};

/* Listens on the gateway's socket_path and serves what connects. */
bool listener_open(struct gateway *gateway, struct error *error);
/* What the connection remembers of the token that it showed last. */
struct token_cache *listener_token_cache(const struct rpc_connection *connection);
/* Accepts no more; ends what is being served. */
void listener_close(struct gateway *gateway);

#endif
