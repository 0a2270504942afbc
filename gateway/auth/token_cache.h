/* The session token that a connection showed last, so that its signature is checked once and not
 * for each of a thousand calls. */
#ifndef GATEWAY_AUTH_TOKEN_CACHE_H
#define GATEWAY_AUTH_TOKEN_CACHE_H

#include <stdbool.h>

#include "boundary/session_token.h"

/* Zero-initialise. Holds no secret: a digest, and what the token says. */
struct token_cache {
    bool filled;
    unsigned char digest[32];
    struct session_token_claims claims;
};

/* As session_token_verify for gateway tokens. `cache` may be NULL. Tokens that expire are checked
 * each time. */
bool token_cache_verify(struct token_cache *cache, const struct session_token_key *key,
                        const char *gateway_id, const char *token,
                        struct session_token_claims *ret_claims, struct error *error);

#endif
