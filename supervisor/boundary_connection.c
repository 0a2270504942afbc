/* How the runtime's connection is had: accept, pinned TLS, negotiation, OpenBoundary. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "boundary/failure.h"
#include "boundary/negotiation.h"
#include "method_table.h"
#include "supervisor/boundary_internal.h"

void boundary_report_opened(struct boundary *boundary, const struct error *error)
{
    void (*on_opened)(struct opened_boundary *, const struct error *, void *) =
        boundary->events.on_opened;
    boundary->events.on_opened = NULL;
    if (on_opened == NULL)
        return;
    boundary->opened = error == NULL;
    boundary->opened_handle.boundary = boundary;
    on_opened(error == NULL ? &boundary->opened_handle : NULL, error, boundary->events.user);
}

/* ---- the control service ---- */

static bool outcome_valid(const Openshell__Isolation__Backend__V1__OpenBoundaryResponse *response,
                          struct error *error)
{
    size_t length = strlen(response->boundary_id);
    if (length == 0 || length > BOUNDARY_ID_LIMIT)
        return failure_set(error, FAILURE_PROTOCOL_VIOLATION,
                           "the backend's handle is empty or longer than %d bytes",
                           BOUNDARY_ID_LIMIT);
    if (response->outcome !=
        OPENSHELL__ISOLATION__BACKEND__V1__OPEN_BOUNDARY_RESPONSE__LAUNCH_OUTCOME__LAUNCH_OUTCOME_FRESH)
        return failure_set(error, FAILURE_DENIED,
                           "a fresh launch was answered with another outcome");
    return true;
}

/* The boundary of a call that was answered, or NULL when it was freed meanwhile. */
static struct boundary *take_boundary(struct opening *opening)
{
    struct boundary *boundary = opening->boundary;
    free(opening);
    if (boundary != NULL)
        boundary->opening = NULL;
    return boundary;
}

static struct opening *remember_call(struct boundary *boundary)
{
    boundary->opening = memory_new_of(struct opening);
    boundary->opening->boundary = boundary;
    return boundary->opening;
}

static void on_open_answered(const ProtobufCMessage *message, const struct error *error, void *user)
{
    struct boundary *boundary = take_boundary(user);
    if (boundary == NULL)
        return;
    const Openshell__Isolation__Backend__V1__OpenBoundaryResponse *response = (const void *)message;
    struct error problem = {0};
    if (error != NULL) {
        boundary_report_opened(boundary, error);
    } else if (!outcome_valid(response, &problem)) {
        boundary_report_opened(boundary, &problem);
        error_clear(&problem);
    } else {
        strcpy(boundary->boundary_id, response->boundary_id);
        boundary_report_opened(boundary, NULL);
    }
}

static void open_boundary(struct boundary *boundary)
{
    const struct launch_supervisor *launch = boundary->launch;
    Openshell__Isolation__Backend__V1__OpenBoundaryRequest request =
        OPENSHELL__ISOLATION__BACKEND__V1__OPEN_BOUNDARY_REQUEST__INIT;
    request.session_id = launch->generation;
    request.backend_name = launch->backend_name;
    request.driver_descriptor.data = (uint8_t *)launch->driver_descriptor;
    request.driver_descriptor.len = strlen(launch->driver_descriptor);
    struct rpc_call_options options = {.bearer = launch->sandbox_token,
                                       .deadline = BOUNDARY_STEP_MILLISECONDS};
    rpc_unary(boundary->channel, &rpc_openshell_isolation_backend_v1_IsolationBackend_OpenBoundary,
              &options, &request.base, on_open_answered, remember_call(boundary));
}

static void on_capabilities(const ProtobufCMessage *message, const struct error *error, void *user)
{
    struct boundary *boundary = take_boundary(user);
    if (boundary == NULL)
        return;
    const Openshell__Isolation__Backend__V1__GetIsolationCapabilitiesResponse *response =
        (const void *)message;
    struct error problem = {0};
    if (error != NULL) {
        boundary_report_opened(boundary, error);
    } else if (!negotiation_check(negotiation_supervisor(), response->backend, &problem)) {
        boundary_report_opened(boundary, &problem);
        error_clear(&problem);
    } else {
        log_debug("negotiated with %s %s", response->backend->implementation_name,
                  response->backend->implementation_version);
        open_boundary(boundary);
    }
}

static void negotiate(struct boundary *boundary)
{
    Openshell__Isolation__Backend__V1__GetIsolationCapabilitiesRequest request =
        OPENSHELL__ISOLATION__BACKEND__V1__GET_ISOLATION_CAPABILITIES_REQUEST__INIT;
    request.supervisor = (peer_metadata *)negotiation_supervisor();
    struct rpc_call_options options = {.deadline = BOUNDARY_STEP_MILLISECONDS};
    rpc_unary(boundary->channel,
              &rpc_openshell_isolation_backend_v1_IsolationBackend_GetCapabilities, &options,
              &request.base, on_capabilities, remember_call(boundary));
}

/* ---- the connection ---- */

static void drop_other_handshakes(struct boundary *boundary)
{
    for (size_t i = 0; i < BOUNDARY_HANDSHAKES_LIMIT; i++) {
        if (boundary->handshakes[i].stream != NULL)
            tls_stream_close(boundary->handshakes[i].stream);
        boundary->handshakes[i].stream = NULL;
    }
    /* Spares are not kept: until a connection can be replaced, its loss is the end. */
    reactor_watch_cancel(boundary->listener_watch);
    boundary->listener_watch = NULL;
}

static void on_stream_closed(struct tls_stream *stream, void *user)
{
    struct handshake *handshake = user;
    struct boundary *boundary = handshake->boundary;
    if (stream != boundary->stream)
        return;
    boundary->stream = NULL;
    bool was_open = boundary->opened;
    boundary->opened = false;
    if (was_open) {
        boundary->events.on_lost(boundary->events.user);
        return;
    }
    struct error error = {0};
    failure_set(&error, FAILURE_UNAVAILABLE, "the runtime closed its connection");
    boundary_report_opened(boundary, &error);
}

static void on_stream_ready(struct tls_stream *stream, int descriptor, const struct error *error,
                            void *user)
{
    struct handshake *handshake = user;
    struct boundary *boundary = handshake->boundary;
    handshake->stream = NULL;
    if (descriptor < 0) { /* another may still come: the start's own time limit decides */
        log_warn("a connection to the boundary's socket was refused: %s", error->message);
        return;
    }
    log_debug("TLS handshake done");
    boundary->stream = stream;
    drop_other_handshakes(boundary);
    struct error problem = {0};
    boundary->channel = rpc_channel_new(boundary->rpc, descriptor, &problem);
    if (boundary->channel == NULL) {
        boundary_report_opened(boundary, &problem);
        error_clear(&problem);
        return;
    }
    negotiate(boundary);
}

/* The socket's directory is ours alone; the peer's user is checked all the same. */
static bool peer_allowed(int descriptor)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.uid == geteuid();
}

static struct handshake *free_place(struct boundary *boundary)
{
    for (size_t i = 0; i < BOUNDARY_HANDSHAKES_LIMIT; i++)
        if (boundary->handshakes[i].stream == NULL)
            return &boundary->handshakes[i];
    return NULL;
}

static void begin_handshake(struct boundary *boundary, int descriptor)
{
    struct handshake *handshake = free_place(boundary);
    if (handshake == NULL || !peer_allowed(descriptor)) {
        log_warn("a connection to the boundary's socket was refused");
        close(descriptor);
        return;
    }
    handshake->boundary = boundary;
    struct tls_stream_options options = {.peer_pin = boundary->launch->runtime_pin};
    struct tls_stream_events events = {
        .on_ready = on_stream_ready, .on_closed = on_stream_closed, .user = handshake};
    struct error error = {0};
    handshake->stream = tls_stream_start(boundary->reactor, descriptor, &options, &events, &error);
    if (handshake->stream == NULL)
        log_warn("a connection to the boundary's socket failed: %s", error.message);
    error_clear(&error);
}

static void on_connection(int events, void *argument)
{
    (void)events;
    struct boundary *boundary = argument;
    int descriptor = accept4(boundary->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0)
        begin_handshake(boundary, descriptor);
    else if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
        log_warn("cannot accept a connection: %s", strerror(errno));
}

bool boundary_listen(struct boundary *boundary, struct error *error)
{
    fcntl(boundary->listener, F_SETFL, fcntl(boundary->listener, F_GETFL) | O_NONBLOCK);
    boundary->listener_watch = reactor_watch_start(boundary->reactor, boundary->listener,
                                                   UV_READABLE, on_connection, boundary, error);
    return boundary->listener_watch != NULL;
}

void boundary_disconnect(struct boundary *boundary)
{
    drop_other_handshakes(boundary);
    boundary->opened = false;
    if (boundary->opening != NULL)
        boundary->opening->boundary = NULL;
    rpc_channel_free(boundary->channel);
    boundary->channel = NULL;
    if (boundary->stream != NULL)
        tls_stream_close(boundary->stream);
    boundary->stream = NULL;
}
