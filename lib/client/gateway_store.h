/* Changing which gateways are known here: the user's layer of the files of command-line reference
 * 1.4. The system's is read only. */
#ifndef CLIENT_GATEWAY_STORE_H
#define CLIENT_GATEWAY_STORE_H

#include "client/gateway.h"

/* Whether the name can be one: a path component that is harmless on a terminal. */
bool gateway_name_valid(const char *name);

/* Whether the user, or the system, has a gateway of that name. */
enum gateway_source gateway_find(const char *name);

/* What `gateway add` knows about a new one. Everything is the caller's; NULL is left out. */
struct gateway_entry {
    const char *name;
    const char *endpoint;
    const char *auth_mode;
    const char *remote_host;
    const char *resolved_host;
    const char *oidc_issuer;
    const char *oidc_client_id;
    const char *oidc_audience;
    const char *oidc_scopes;
    bool is_remote;
    int port;
};

/* ALREADY_EXISTS where the user has one of that name. */
bool gateway_store_add(const struct gateway_entry *entry, struct error *error);
/* Makes it the one that is used by default. */
bool gateway_store_activate(const char *name, struct error *error);
/* Removes all that is kept about it, and its being active. */
bool gateway_store_remove(const char *name, struct error *error);
/* The name in the user's active_gateway file, else the system's; NULL: none. Owned by the caller.
 */
char *gateway_store_active(void);

/* The client bundle that mutual TLS needs (ca.crt, tls.crt, tls.key). A bundle of this machine's
 * installation is copied where `import` says so and the gateway has none. False names the file that
 * is missing. */
bool gateway_store_check_bundle(const char *name, bool import, struct error *error);

#endif
