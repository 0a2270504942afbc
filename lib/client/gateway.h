/* Which gateway a command talks to (command-line reference 1.3, 1.4; decisions W8, P18). */
#ifndef CLIENT_GATEWAY_H
#define CLIENT_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* The gateway that runs for one user on this machine, and is started on demand. */
#define GATEWAY_LOCAL_NAME "openshell"

enum gateway_source { GATEWAY_SOURCE_NONE, GATEWAY_SOURCE_USER, GATEWAY_SOURCE_SYSTEM };

struct gateway {
    char *name;
    char *endpoint;      /* "unix:PATH", "https://HOST:PORT", ... */
    char *socket;        /* path of its Unix socket; NULL: it has none on this machine */
    char *auth_mode;     /* NULL: not stated */
    char *remote_host;   /* NULL: not stated */
    char *resolved_host; /* NULL: not stated */
    bool is_remote;
    enum gateway_source source; /* where its metadata stands; NONE: it has none */
    bool local;                 /* the local gateway: may be started on demand */
    bool configured;            /* something names it: a choice, or metadata */
    bool active;                /* only from gateway_list: the one that is used by default */
};

/* Chooses by the global options, their variables and the active gateway; the local gateway where
 * nothing says otherwise. False with a reason of the client's own. Free with gateway_free. */
bool gateway_select(struct gateway *ret_gateway, struct error *error);
/* The local gateway, whatever is chosen. */
bool gateway_local(struct gateway *ret_gateway, struct error *error);
void gateway_free(struct gateway *gateway);

/* Every gateway that has metadata, by name; a user's entry hides the system's of that name. */
bool gateway_list(struct gateway **ret_gateways, size_t *ret_count, struct error *error);
void gateway_list_free(struct gateway *gateways, size_t count);

/* The path in "unix:PATH" or "unix://PATH", or NULL. */
const char *gateway_unix_path(const char *endpoint);

#endif
