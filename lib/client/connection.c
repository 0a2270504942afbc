#include "client/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "client/failure.h"
#include "client/local_gateway.h"
#include "client/settings.h"

static bool is_down(const struct error *error)
{
    return error->code == ERROR_NOT_FOUND || error->code == ERROR_UNAVAILABLE;
}

static int connect_socket(struct gateway *gateway, enum connection_start start, struct error *error)
{
    if (gateway->socket == NULL) {
        failure_set(error, CLIENT_REASON_TRANSPORT_UNSUPPORTED,
                    "gateway '%s' is at '%s', and only Unix sockets can be reached so far",
                    gateway->name, gateway->endpoint);
        return -1;
    }
    struct error down = {0};
    int descriptor = file_unix_connect(gateway->socket, &down);
    if (descriptor < 0 && is_down(&down) && gateway->local && start == CONNECTION_START)
        descriptor = local_gateway_start(NULL, error);
    else if (descriptor < 0 && is_down(&down) && gateway->local)
        failure_set(error, CLIENT_REASON_GATEWAY_NOT_RUNNING, "the local gateway does not run");
    else if (descriptor < 0)
        error_copy(error, &down);
    error_clear(&down);
    return descriptor;
}

/* Connects and makes the channel. */
static bool open_channel(struct connection *connection, int descriptor, struct error *error)
{
    connection->socket = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    connection->channel = rpc_channel_new(connection->runtime, descriptor, error);
    return connection->channel != NULL;
}

static bool reopen(struct connection *connection, struct error *error)
{
    if (connection->socket >= 0)
        close(connection->socket);
    /* NULL where reopening failed before. */
    rpc_channel_free(connection->channel);
    connection->channel = NULL;
    connection->socket = -1;
    int descriptor = connect_socket(&connection->gateway, connection->start, error);
    return descriptor >= 0 && open_channel(connection, descriptor, error);
}

bool connection_open_to(struct connection *connection, const struct gateway *gateway,
                        enum connection_start start, struct error *error)
{
    *connection = (struct connection){.gateway = *gateway, .start = start};
    int descriptor = connect_socket(&connection->gateway, start, error);
    if (descriptor < 0)
        return false;
    connection->reactor = reactor_new(error);
    if (connection->reactor == NULL) {
        close(descriptor);
        return false;
    }
    connection->runtime = rpc_runtime_new(connection->reactor, error);
    if (connection->runtime == NULL) {
        close(descriptor);
        return false;
    }
    if (!open_channel(connection, descriptor, error))
        return false;
    connection->arena = arena_new(0);
    connection->ours = true; /* whoever listens on a Unix socket of this machine */
    openshell__datamodel__v1__workspace_selector__init(&connection->workspace);
    connection->workspace.selection_case =
        OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__SELECTION_WORKSPACE;
    connection->workspace.workspace = (char *)settings.workspace;
    return true;
}

bool connection_open(struct connection *connection, enum connection_start start,
                     struct error *error)
{
    struct gateway gateway = {0};
    return gateway_select(&gateway, error) &&
           connection_open_to(connection, &gateway, start, error);
}

void connection_check(const struct connection *connection, struct error *error)
{
    struct pollfd peer = {.fd = connection->socket};
    if (error == NULL || error->code != ERROR_UNAVAILABLE || error->reason[0] != '\0' ||
        poll(&peer, 1, 0) <= 0 || (peer.revents & (POLLHUP | POLLERR)) == 0)
        return;
    failure_set(error, CLIENT_REASON_CONNECTION_LOST,
                "the connection to gateway '%s' was lost: it ended, or closed the connection",
                connection->gateway.name);
    error->code = ERROR_UNAVAILABLE;
}

static const void *call_once(struct connection *connection, const struct rpc_method *method,
                             const ProtobufCMessage *request, struct error *error)
{
    const struct rpc_call_options options = {.deadline = CALL_DEADLINE};
    const void *response =
        rpc_unary_wait(connection->channel, method, &options, request, connection->arena, error);
    if (response == NULL)
        connection_check(connection, error);
    return response;
}

const void *connection_call(struct connection *connection, const struct rpc_method *method,
                            const ProtobufCMessage *request, struct error *error)
{
    struct error own = {0};
    const void *response = call_once(connection, method, request, &own);
    if (response == NULL && failure_is(&own, CLIENT_REASON_CONNECTION_LOST)) {
        error_clear(&own);
        if (reopen(connection, &own))
            response = call_once(connection, method, request, &own);
    }
    if (response == NULL)
        error_copy(error, &own);
    error_clear(&own);
    return response;
}
