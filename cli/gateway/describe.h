/* How the commands of the group name what a gateway is. */
#ifndef CLI_GATEWAY_DESCRIBE_H
#define CLI_GATEWAY_DESCRIBE_H

#include "client/gateway.h"

/* "cloud", "remote" or "local". */
const char *describe_type(const struct gateway *gateway);
/* "user" or "system". */
const char *describe_source(const struct gateway *gateway);
/* "plaintext", "mtls", ..., or "peer" for a socket without a word about it. */
const char *describe_auth(const struct gateway *gateway);

#endif
