#include "gateway/auth/peer.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

bool peer_allowed(uid_t user)
{
    return user == 0 || user == geteuid();
}

void peer_identify(const struct rpc_connection *connection, struct principal *principal)
{
    uid_t user;
    if (!rpc_connection_peer(connection, &user, NULL, NULL) || !peer_allowed(user))
        return;
    principal->kind = PRINCIPAL_USER;
    principal->user = user;
}

char *peer_name(uid_t user)
{
    char buffer[4096];
    struct passwd entry, *found = NULL;
    if (getpwuid_r(user, &entry, buffer, sizeof(buffer), &found) == 0 && found != NULL)
        return memory_strdup(found->pw_name);
    return memory_printf("uid:%u", user);
}
