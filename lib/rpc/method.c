#include "rpc/method.h"

#include <stdlib.h>
#include <string.h>

static int compare_path(const void *path, const void *entry)
{
    const struct rpc_method *const *method = entry;

    return strcmp(path, (*method)->path);
}

const struct rpc_method *rpc_method_find(const char *path)
{
    const struct rpc_method *const *found =
        bsearch(path, rpc_methods, rpc_method_count, sizeof(*rpc_methods), compare_path);

    return found == NULL ? NULL : *found;
}

const char *rpc_auth_mode_name(enum rpc_auth_mode mode)
{
    switch (mode) {
    case RPC_AUTH_NONE_DECLARED:
        break;
    case RPC_AUTH_UNAUTHENTICATED:
        return "unauthenticated";
    case RPC_AUTH_BEARER:
        return "bearer";
    case RPC_AUTH_SANDBOX:
        return "sandbox";
    case RPC_AUTH_DUAL:
        return "dual";
    case RPC_AUTH_PEER:
        return "peer";
    case RPC_AUTH_OPERATOR:
        return "operator";
    }
    return "";
}
