/* The server's side: one grpc_server for each accepted connection (decision B4). */
#include "rpc/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <grpc/grpc_posix.h>

#include "base/memory.h"
#include "rpc/channel_arguments.h"

struct rpc_server *rpc_server_new(struct rpc_runtime *runtime, rpc_authorize authorize, void *user)
{
    struct rpc_server *server = memory_new_of(struct rpc_server);
    server->runtime = runtime;
    server->authorize = authorize;
    server->user = user;
    return server;
}

/* The first handler whose method is not below this one. */
static size_t handler_place(const struct rpc_server *server, const struct rpc_method *method)
{
    size_t low = 0, high = server->handler_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (server->handlers[middle].method < method)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void rpc_server_handle(struct rpc_server *server, const struct rpc_method *method,
                       rpc_handler handler)
{
    size_t place = handler_place(server, method);
    if (place < server->handler_count && server->handlers[place].method == method) {
        server->handlers[place].handler = handler;
        return;
    }
    server->handlers =
        memory_resize(server->handlers, (server->handler_count + 1) * sizeof(*server->handlers));
    memmove(server->handlers + place + 1, server->handlers + place,
            (server->handler_count - place) * sizeof(*server->handlers));
    server->handlers[place] = (struct rpc_server_handler){method, handler};
    server->handler_count++;
}

rpc_handler rpc_server_find(const struct rpc_server *server, const struct rpc_method *method)
{
    size_t place = handler_place(server, method);
    if (place < server->handler_count && server->handlers[place].method == method)
        return server->handlers[place].handler;
    return NULL;
}

static void free_server_when_unused(struct rpc_server *server)
{
    if (!server->freed || server->connections != NULL)
        return;
    free(server->handlers);
    free(server);
}

void rpc_server_free(struct rpc_server *server)
{
    if (server == NULL)
        return;
    for (struct rpc_connection *connection = server->connections; connection != NULL;
         connection = connection->next)
        rpc_connection_close(connection);
    server->freed = true;
    free_server_when_unused(server);
}

/* ---- one connection ---- */

static void unlink_connection(struct rpc_connection *connection)
{
    struct rpc_server *server = connection->server;
    if (connection->previous != NULL)
        connection->previous->next = connection->next;
    else
        server->connections = connection->next;
    if (connection->next != NULL)
        connection->next->previous = connection->previous;
}

void rpc_connection_end_when_over(struct rpc_connection *connection)
{
    if (!connection->closing || connection->requested.active || connection->shut.active ||
        connection->calls != NULL)
        return;
    struct rpc_server *server = connection->server;
    if (connection->events.on_closed != NULL)
        connection->events.on_closed(connection, connection->events.user);
    unlink_connection(connection);
    grpc_server_destroy(connection->core);
    server->runtime->live--;
    free(connection);
    free_server_when_unused(server);
}

static void on_shut(void *owner, bool success)
{
    (void)success;
    rpc_connection_end_when_over(owner);
}

static void stop_watching(struct rpc_connection *connection)
{
    reactor_timer_cancel(connection->idle_timer);
    connection->idle_timer = NULL;
    reactor_watch_cancel(connection->watch);
    connection->watch = NULL;
    if (connection->watched >= 0)
        close(connection->watched);
    connection->watched = -1;
}

void rpc_connection_close(struct rpc_connection *connection)
{
    if (connection->closing)
        return;
    connection->closing = true;
    stop_watching(connection);
    connection->shut.active = true;
    grpc_server_shutdown_and_notify(connection->core, connection->server->runtime->queue,
                                    &connection->shut);
    grpc_server_cancel_all_calls(connection->core);
}

static void on_idle(void *argument)
{
    rpc_connection_close(argument);
}

void rpc_connection_watch_idle(struct rpc_connection *connection)
{
    reactor_timer_cancel(connection->idle_timer);
    connection->idle_timer = NULL;
    if (connection->calls != NULL || connection->idle_milliseconds == 0 || connection->closing)
        return;
    connection->idle_timer =
        reactor_timer_start(connection->server->runtime->reactor, connection->idle_milliseconds, 0,
                            on_idle, connection);
}

static void on_requested(void *owner, bool success);

static void request_call(struct rpc_connection *connection)
{
    connection->incoming = NULL;
    grpc_call_details_init(&connection->details);
    grpc_metadata_array_init(&connection->metadata);
    grpc_completion_queue *queue = connection->server->runtime->queue;
    connection->requested.active =
        grpc_server_request_call(connection->core, &connection->incoming, &connection->details,
                                 &connection->metadata, queue, queue,
                                 &connection->requested) == GRPC_CALL_OK;
}

static void on_requested(void *owner, bool success)
{
    struct rpc_connection *connection = owner;
    if (!success) {
        grpc_call_details_destroy(&connection->details);
        grpc_metadata_array_destroy(&connection->metadata);
        rpc_connection_end_when_over(connection);
        return;
    }
    grpc_call *core = connection->incoming;
    grpc_call_details details = connection->details;
    grpc_metadata_array metadata = connection->metadata;
    if (!connection->closing)
        request_call(connection);
    rpc_server_call_begin(connection, core, &details, &metadata);
}

/* gRPC does not tell that a connection without calls ended. A duplicate of the descriptor does,
 * also when it was gRPC that ended it: that shuts the socket down for all its descriptors. */
static void on_disconnected(int events, void *argument)
{
    (void)events;
    rpc_connection_close(argument);
}

static bool watch_descriptor(struct rpc_connection *connection, int descriptor, struct error *error)
{
    connection->watched = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (connection->watched < 0)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot watch a connection");
    connection->watch =
        reactor_watch_start(connection->server->runtime->reactor, connection->watched,
                            UV_DISCONNECT, on_disconnected, connection, error);
    return connection->watch != NULL;
}

static bool has_name(const struct sockaddr_un *address, socklen_t length)
{
    return address->sun_family == AF_UNIX && length > sizeof(address->sun_family);
}

/* A socket pair has credentials too: those of the process that made it, which say nothing about
 * who uses it. One of the two ends of a connection through a listening socket has a name. */
static void read_peer(struct rpc_connection *connection, int descriptor)
{
    struct sockaddr_un address = {0};
    socklen_t length = sizeof(address);
    bool named = getsockname(descriptor, (struct sockaddr *)&address, &length) == 0 &&
                 has_name(&address, length);
    length = sizeof(address);
    if (!named)
        named = getpeername(descriptor, (struct sockaddr *)&address, &length) == 0 &&
                has_name(&address, length);
    length = sizeof(connection->peer);
    connection->peer_known =
        named && getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &connection->peer, &length) == 0;
}

static void start_serving(struct rpc_connection *connection, int descriptor)
{
    struct rpc_runtime *runtime = connection->server->runtime;
    connection->core = grpc_server_create(channel_arguments_server(), NULL);
    grpc_server_register_completion_queue(connection->core, runtime->queue, NULL);
    grpc_server_start(connection->core);
    grpc_server_add_channel_from_fd(connection->core, descriptor, runtime->server_credentials);
    rpc_completion_init(&connection->requested, on_requested, connection);
    rpc_completion_init(&connection->shut, on_shut, connection);
    request_call(connection);
}

struct rpc_connection *rpc_server_accept(struct rpc_server *server, int descriptor,
                                         unsigned idle_milliseconds,
                                         const struct rpc_connection_events *events,
                                         struct error *error)
{
    struct rpc_connection *connection = memory_new_of(struct rpc_connection);
    connection->server = server;
    connection->idle_milliseconds = idle_milliseconds;
    connection->watched = -1;
    if (events != NULL)
        connection->events = *events;
    if (!watch_descriptor(connection, descriptor, error)) {
        stop_watching(connection);
        close(descriptor);
        free(connection);
        return NULL;
    }
    read_peer(connection, descriptor);
    start_serving(connection, descriptor);
    connection->next = server->connections;
    if (connection->next != NULL)
        connection->next->previous = connection;
    server->connections = connection;
    server->runtime->live++;
    rpc_connection_watch_idle(connection);
    return connection;
}

void *rpc_connection_user(const struct rpc_connection *connection)
{
    return connection->events.user;
}

bool rpc_connection_peer(const struct rpc_connection *connection, uid_t *ret_user, gid_t *ret_group,
                         pid_t *ret_process)
{
    if (!connection->peer_known)
        return false;
    if (ret_user != NULL)
        *ret_user = connection->peer.uid;
    if (ret_group != NULL)
        *ret_group = connection->peer.gid;
    if (ret_process != NULL)
        *ret_process = connection->peer.pid;
    return true;
}
