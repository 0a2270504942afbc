/* Users by the credentials of their connection: the gateway's own user and root. */
#ifndef GATEWAY_AUTH_PEER_H
#define GATEWAY_AUTH_PEER_H

#include <stdbool.h>
#include <sys/types.h>

#include "gateway/auth/authorize.h"

/* Whether a connection of this user is served at all. */
bool peer_allowed(uid_t user);
/* Makes the principal a user where the connection says who it is. */
void peer_identify(const struct rpc_connection *connection, struct principal *principal);
/* The user's name, else "uid:N". Newly allocated. */
char *peer_name(uid_t user);

#endif
