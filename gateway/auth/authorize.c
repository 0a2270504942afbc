#include "gateway/auth/authorize.h"

#include <string.h>
#include <strings.h>

#include "gateway/auth/peer.h"
#include "gateway/auth/token_cache.h"
#include "gateway/gateway.h"
#include "gateway/listener.h"
#include "gateway/live.h"

/* ---- the rule ---- */

static bool need(bool met, const struct principal *principal, const char *what, struct error *error)
{
    if (met)
        return true;
    if (principal->kind == PRINCIPAL_NONE)
        return error_set(error, ERROR_UNAUTHENTICATED, "this method needs %s", what);
    return error_set(error, ERROR_PERMISSION_DENIED, "this method needs %s", what);
}

bool authorize_method(const struct rpc_method *method, const struct principal *principal,
                      struct error *error)
{
    bool user = principal->kind == PRINCIPAL_USER;
    bool sandbox = principal->kind == PRINCIPAL_SANDBOX;
    switch (method->auth_mode) {
    case RPC_AUTH_UNAUTHENTICATED:
        return true;
    case RPC_AUTH_BEARER:
    case RPC_AUTH_OPERATOR:
        return need(user, principal, "a user", error);
    case RPC_AUTH_SANDBOX:
        return need(sandbox, principal, "a sandbox's session token", error);
    case RPC_AUTH_DUAL:
        return need(user || sandbox, principal, "a user or a sandbox's session token", error);
    case RPC_AUTH_PEER: /* another replica: there is none */
        return need(false, principal, "a gateway", error);
    case RPC_AUTH_NONE_DECLARED:
        break;
    }
    return error_set(error, ERROR_PERMISSION_DENIED, "nobody may call this method");
}

/* ---- the caller ---- */

/* The token of an authorization header, or NULL. */
static const char *bearer(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
        return NULL;
    return authorization + sizeof(scheme) - 1;
}

/* A token is good for the launch that it was signed for, and as long as that runs. */
static bool check_launch(const struct gateway *gateway, const struct session_token_claims *claims,
                         struct error *error)
{
    const struct live_sandbox *live = live_find(gateway, claims->sandbox_id);
    if (live != NULL && live->launched && live->auth_epoch == claims->auth_epoch &&
        strcmp(live->generation, claims->generation) == 0)
        return true;
    return error_set(error, ERROR_UNAUTHENTICATED, "the session token is not valid any more");
}

static bool identify_sandbox(const struct gateway *gateway, const struct rpc_call *call,
                             const char *authorization, size_t count, struct principal *principal,
                             struct error *error)
{
    const char *token = count == 1 ? bearer(authorization) : NULL;
    struct token_cache *cache = listener_token_cache(rpc_call_connection(call));
    struct session_token_claims claims;
    if (token == NULL)
        return error_set(error, ERROR_UNAUTHENTICATED, "the authorization is not a bearer token");
    if (!token_cache_verify(cache, gateway->key, GATEWAY_NAME, token, &claims, error) ||
        !check_launch(gateway, &claims, error))
        return false;
    principal->kind = PRINCIPAL_SANDBOX;
    memcpy(principal->sandbox_id, claims.sandbox_id, sizeof(principal->sandbox_id));
    return true;
}

bool authorize_call(struct rpc_call *call, void *user, struct error *error)
{
    const struct gateway *gateway = user;
    struct principal *principal = arena_new_of(rpc_call_arena(call), struct principal);
    size_t count = 0;
    const char *authorization = rpc_call_metadata(call, "authorization", &count);
    rpc_call_set_principal(call, principal);
    if (authorization != NULL) {
        if (!identify_sandbox(gateway, call, authorization, count, principal, error) &&
            rpc_call_method(call)->auth_mode != RPC_AUTH_UNAUTHENTICATED)
            return false;
        error_clear(error);
    } else {
        peer_identify(rpc_call_connection(call), principal);
    }
    return authorize_method(rpc_call_method(call), principal, error);
}
