/* The two EdDSA tokens of a sandbox's session (behaviour reference 6.1, decision P19): one for the
 * gateway, one for the Sandbox Protocol. Signed by the gateway, verified by the gateway and by the
 * runtime. */
#ifndef BOUNDARY_SESSION_TOKEN_H
#define BOUNDARY_SESSION_TOKEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum session_token_kind {
    SESSION_TOKEN_GATEWAY, /* typ openshell-gateway-session+jwt, aud openshell-gateway:ID */
    SESSION_TOKEN_SANDBOX, /* typ openshell-sandbox-session+jwt, aud openshell-sandbox */
};

/* An Ed25519 key with its identifier; public alone where only that was given. */
struct session_token_key;

struct session_token_key *session_token_key_generate(struct error *error);
struct session_token_key *session_token_key_parse_private(const char *pem, const char *key_id,
                                                          struct error *error);
struct session_token_key *session_token_key_parse_public(const char *pem, const char *key_id,
                                                         struct error *error);
/* Newly allocated; the private one is a secret to wipe. */
char *session_token_key_private_pem(const struct session_token_key *key);
char *session_token_key_public_pem(const struct session_token_key *key);
const char *session_token_key_id(const struct session_token_key *key);
void session_token_key_free(struct session_token_key *key);

struct session_token_claims {
    char sandbox_id[64];
    char generation[64];
    uint64_t auth_epoch;
    char token_id[64];  /* jti */
    int64_t issued_at;  /* seconds since the epoch */
    int64_t expires_at; /* 0: never */
};

/* A newly allocated compact JWT, a secret. Fills in token_id and issued_at when they are empty. */
char *session_token_sign(const struct session_token_key *key, enum session_token_kind kind,
                         const char *gateway_id, struct session_token_claims *claims,
                         struct error *error);

/* UNAUTHENTICATED for anything but a token of this kind, key and gateway with exactly the known
 * claims, an EdDSA signature that holds, and times within 30 s of leeway (decision P17). The error
 * never contains the token. */
bool session_token_verify(const struct session_token_key *key, enum session_token_kind kind,
                          const char *gateway_id, const char *token,
                          struct session_token_claims *ret_claims, struct error *error);

/* The check of times alone, for a caller that remembers a token that it has verified. */
bool session_token_times_hold(const struct session_token_claims *claims, struct error *error);

#endif
