#include "gateway/auth/token_cache.h"

#include <string.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

_Static_assert(sizeof(((struct token_cache *)0)->digest) == SHA256_DIGEST_LENGTH,
               "the digest is a SHA-256");

bool token_cache_verify(struct token_cache *cache, const struct session_token_key *key,
                        const char *gateway_id, const char *token,
                        struct session_token_claims *ret_claims, struct error *error)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)token, strlen(token), digest);
    if (cache != NULL && cache->filled &&
        CRYPTO_memcmp(cache->digest, digest, sizeof(digest)) == 0) {
        *ret_claims = cache->claims;
        return true;
    }
    if (!session_token_verify(key, SESSION_TOKEN_GATEWAY, gateway_id, token, ret_claims, error))
        return false;
    if (cache != NULL && ret_claims->expires_at == 0) {
        memcpy(cache->digest, digest, sizeof(digest));
        cache->claims = *ret_claims;
        cache->filled = true;
    }
    return true;
}
