#include "cli/gateway/describe.h"

#include <string.h>

const char *describe_type(const struct gateway *gateway)
{
    if (gateway->auth_mode != NULL && strcmp(gateway->auth_mode, "cloudflare_jwt") == 0)
        return "cloud";
    return gateway->is_remote ? "remote" : "local";
}

const char *describe_source(const struct gateway *gateway)
{
    return gateway->source == GATEWAY_SOURCE_SYSTEM ? "system" : "user";
}

const char *describe_auth(const struct gateway *gateway)
{
    if (gateway->auth_mode != NULL)
        return gateway->auth_mode;
    return gateway->socket != NULL ? "peer" : "mtls";
}
