/* Who a caller is, and which method it may call: decided from the authorization column of the
 * generated method table (decision W6) and nothing else. */
#ifndef GATEWAY_AUTH_AUTHORIZE_H
#define GATEWAY_AUTH_AUTHORIZE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "rpc/method.h"
#include "rpc/rpc.h"

struct gateway;

enum principal_kind {
    PRINCIPAL_NONE,    /* not authenticated */
    PRINCIPAL_USER,    /* a person of this machine: the gateway's own user, or root */
    PRINCIPAL_SANDBOX, /* a sandbox's supervisor, by its session token */
};

struct principal {
    enum principal_kind kind;
    uid_t user;          /* PRINCIPAL_USER */
    char sandbox_id[64]; /* PRINCIPAL_SANDBOX */
};

/* The table's rule. Pure. Whoever may use the local socket is a platform admin and has every role
 * (behaviour reference 6.2: without OIDC every local user is). UNAUTHENTICATED or
 * PERMISSION_DENIED. */
bool authorize_method(const struct rpc_method *method, const struct principal *principal,
                      struct error *error);

/* For rpc_server_new; `user` is the gateway. Sets the call's principal, which lives in its arena.
 */
bool authorize_call(struct rpc_call *call, void *user, struct error *error);

#endif
