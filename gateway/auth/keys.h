/* The gateway's signing key: S/gateway/jwt/{signing.pem,public.pem,kid}, as the reference's
 * generate-certs lays them (6.3). */
#ifndef GATEWAY_AUTH_KEYS_H
#define GATEWAY_AUTH_KEYS_H

#include "base/error.h"
#include "boundary/session_token.h"

/* Loads the key below `directory` (S/gateway/jwt), or makes it when signing.pem is not there.
 * FAILED_PRECONDITION when the files do not belong together or others may read them. */
struct session_token_key *keys_load(const char *directory, struct error *error);

#endif
