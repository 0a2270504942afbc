/* The method table: every method of every service we know, with its types and who may call it.
 *
 * Made at build time from the .proto sources (decision W6). "method_table.h" declares one
 * `rpc_<service>_<Method>` for each method, as rpc_openshell_v1_OpenShell_CreateSandbox, and one
 * `rpc_service_<service>` for each service. */
#ifndef RPC_METHOD_H
#define RPC_METHOD_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

/* Who may call: the published authorization option. NONE_DECLARED is a method without the option,
 * which belongs to a service with its own idea of a caller. */
enum rpc_auth_mode {
    RPC_AUTH_NONE_DECLARED = 0,
    RPC_AUTH_UNAUTHENTICATED,
    RPC_AUTH_BEARER,
    RPC_AUTH_SANDBOX,
    RPC_AUTH_DUAL,
    RPC_AUTH_PEER,
    RPC_AUTH_OPERATOR,
};

struct rpc_method {
    const char *path;    /* "/openshell.v1.OpenShell/Health" */
    const char *service; /* "openshell.v1.OpenShell" */
    const char *name;    /* "Health" */
    const ProtobufCMessageDescriptor *request;
    const ProtobufCMessageDescriptor *response;
    bool client_streaming;
    bool server_streaming;
    enum rpc_auth_mode auth_mode;
    const char *workspace_role; /* these three are "" when none is asked for */
    const char *global_role;
    const char *scope;
};

struct rpc_service {
    const char *name;
    const struct rpc_method *const *methods; /* in the order of the .proto source */
    size_t method_count;
};

/* Every method, sorted by path. */
extern const struct rpc_method *const rpc_methods[];
extern const size_t rpc_method_count;

/* Every service, sorted by name. */
extern const struct rpc_service *const rpc_services[];
extern const size_t rpc_service_count;

/* The method with this path, or NULL. */
const struct rpc_method *rpc_method_find(const char *path);

/* "bearer" and so on; "" for RPC_AUTH_NONE_DECLARED. */
const char *rpc_auth_mode_name(enum rpc_auth_mode mode);

#endif
