#include "runtime/service.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/trim.h"
#include "boundary/failure.h"
#include "boundary/negotiation.h"
#include "boundary/owner_lock.h"
#include "boundary/protocol.h"
#include "method_table.h"
#include "runtime/process.h"

enum {
    DIAL_MILLISECONDS = 3 * 1000, /* how long the supervisor's socket may be missing */
    DIAL_PAUSE_MILLISECONDS = 20,
    FLUSH_MILLISECONDS = 200, /* for last frames, once everything is over */
};

/* ---- the end ---- */

static void stop_loop(void *argument)
{
    struct service *service = argument;
    reactor_stop(service->options.reactor);
}

static void stop_after_flush(struct service *service)
{
    if (service->end_timer == NULL)
        service->end_timer = reactor_timer_start(service->options.reactor, FLUSH_MILLISECONDS, 0,
                                                 stop_loop, service);
}

void service_end(struct service *service, const char *reason, int status)
{
    if (service->ending)
        return;
    service->ending = true;
    service->exit_status = status;
    log_info("ending: %s", reason);
    owner_lock_end(service->options.lock, reason);
    if (!service->maker_gone)
        maker_terminate(service->options.maker, 0);
    else if (service->link.connection == NULL)
        reactor_stop(service->options.reactor);
    else
        stop_after_flush(service);
}

static void service_fail(struct service *service, const struct error *error)
{
    char *reason = memory_printf("failed: %s", error->message);
    service_end(service, reason, EXIT_FAILURE);
    free(reason);
}

static void on_maker_gone(struct maker *maker, void *user)
{
    (void)maker;
    struct service *service = user;
    service->maker_gone = true;
    service_maker_gone(service);
    if (!service->ending)
        service_end(service, OWNER_ENDED_BOUNDARY_LOST, EXIT_FAILURE);
    else if (service->link.connection == NULL)
        reactor_stop(service->options.reactor);
    else
        stop_after_flush(service);
}

static void on_root_ready(struct maker *maker, const struct error *error, void *user)
{
    (void)maker;
    log_debug("root %s", error == NULL ? "stands" : error->message);
    service_root_known(user, error);
}

static void on_terminate_signal(int number, void *argument)
{
    (void)number;
    service_end(argument, OWNER_ENDED_STOPPED, EXIT_SUCCESS);
}

/* ---- who may call ---- */

static bool claims_match(const struct service *service, const struct session_token_claims *claims,
                         struct error *error)
{
    const struct launch_runtime *launch = service->options.launch;
    if (strcmp(claims->sandbox_id, launch->sandbox_id) == 0 &&
        strcmp(claims->generation, launch->generation) == 0 &&
        claims->auth_epoch == launch->auth_epoch)
        return true;
    return error_set(error, ERROR_UNAUTHENTICATED,
                     "the session token is of another sandbox, generation or epoch");
}

/* A token that was verified before costs a comparison, not a signature check. */
static bool bearer_valid(struct service *service, const char *token, struct error *error)
{
    size_t length = strlen(token);
    if (service->verified_token != NULL && strlen(service->verified_token) == length &&
        CRYPTO_memcmp(service->verified_token, token, length) == 0)
        return session_token_times_hold(&service->verified_claims, error);

    struct session_token_claims claims;
    const struct launch_runtime *launch = service->options.launch;
    if (!session_token_verify(service->options.key, SESSION_TOKEN_SANDBOX, launch->gateway_id,
                              token, &claims, error) ||
        !claims_match(service, &claims, error))
        return false;
    memory_wipe_text(&service->verified_token);
    service->verified_token = memory_strdup(token);
    service->verified_claims = claims;
    return true;
}

/* Before any frame of the call is read (isolation IB-09). Capabilities are asked for by someone who
 * is not known yet. */
static bool authorize(struct rpc_call *call, void *user, struct error *error)
{
    struct service *service = user;
    if (rpc_call_method(call) ==
        &rpc_openshell_isolation_backend_v1_IsolationBackend_GetCapabilities)
        return true;
    static const char SCHEME[] = "Bearer ";
    size_t count = 0;
    const char *header = rpc_call_metadata(call, "authorization", &count);
    if (count != 1 || strncmp(header, SCHEME, sizeof(SCHEME) - 1) != 0)
        return error_set(error, ERROR_UNAUTHENTICATED, "the call needs one bearer token");
    return bearer_valid(service, header + sizeof(SCHEME) - 1, error);
}

/* ---- the control service ---- */

static void get_capabilities(struct rpc_call *call, void *user)
{
    struct service *service = user;
    const Openshell__Isolation__Backend__V1__GetIsolationCapabilitiesRequest *request =
        (const void *)rpc_call_request(call);
    struct error error = {0};
    if (!negotiation_check(negotiation_runtime(), request->supervisor, &error)) {
        log_warn("negotiation failed: %s", error.message);
        rpc_call_fail(call, &error);
        error_clear(&error);
        return;
    }
    service->link.negotiated = true;
    Openshell__Isolation__Backend__V1__GetIsolationCapabilitiesResponse response =
        OPENSHELL__ISOLATION__BACKEND__V1__GET_ISOLATION_CAPABILITIES_RESPONSE__INIT;
    response.backend = (peer_metadata *)negotiation_runtime();
    rpc_call_respond(call, &response.base);
}

/* Validates and reserves; attaches nobody and runs nothing (isolation IB-03 to IB-05). */
static bool
open_boundary_allowed(struct service *service,
                      const Openshell__Isolation__Backend__V1__OpenBoundaryRequest *open,
                      struct error *error)
{
    const struct launch_runtime *launch = service->options.launch;
    if (!service->link.negotiated)
        return failure_set(error, FAILURE_PROTOCOL_VIOLATION,
                           "OpenBoundary is out of order: this connection has not negotiated");
    if (service->ending || service->stage == STAGE_TERMINATED)
        return failure_set(error, FAILURE_TERMINATED, "the boundary is being terminated");
    if (strcmp(open->backend_name, BACKEND_NAME) != 0)
        return failure_set(error, FAILURE_DENIED, "this backend is '%s', not '%s'", BACKEND_NAME,
                           open->backend_name);
    if (strcmp(open->session_id, launch->generation) != 0)
        return failure_set(error, FAILURE_DENIED, "the session is not the one of this launch");
    size_t length = strlen(launch->driver_descriptor);
    if (open->driver_descriptor.len != length ||
        CRYPTO_memcmp(open->driver_descriptor.data, launch->driver_descriptor, length) != 0)
        return failure_set(error, FAILURE_DESCRIPTOR,
                           "the driver descriptor names another resource");
    return true;
}

static void open_boundary(struct rpc_call *call, void *user)
{
    struct service *service = user;
    struct error error = {0};
    if (!open_boundary_allowed(service, (const void *)rpc_call_request(call), &error)) {
        log_warn("OpenBoundary refused: %s", error.message);
        rpc_call_fail(call, &error);
        error_clear(&error);
        return;
    }
    service->link.opened = true;
    if (service->stage == STAGE_CLOSED)
        service->stage = STAGE_OPENED;
    Openshell__Isolation__Backend__V1__OpenBoundaryResponse response =
        OPENSHELL__ISOLATION__BACKEND__V1__OPEN_BOUNDARY_RESPONSE__INIT;
    response.boundary_id = service->boundary_id;
    response.outcome =
        OPENSHELL__ISOLATION__BACKEND__V1__OPEN_BOUNDARY_RESPONSE__LAUNCH_OUTCOME__LAUNCH_OUTCOME_FRESH;
    rpc_call_respond(call, &response.base);
    log_debug("boundary opened");
}

/* SuspendBoundary, ResumeBoundary and Mediate have no handler: they answer UNIMPLEMENTED, as what
 * was not advertised must (isolation IB-07). */
static struct rpc_server *make_server(struct service *service)
{
    struct rpc_server *server = rpc_server_new(service->options.rpc, authorize, service);
    rpc_server_handle(server, &rpc_openshell_isolation_backend_v1_IsolationBackend_GetCapabilities,
                      get_capabilities);
    rpc_server_handle(server, &rpc_openshell_isolation_backend_v1_IsolationBackend_OpenBoundary,
                      open_boundary);
    rpc_server_handle(server, &rpc_openshell_sandbox_protocol_v1_SandboxProtocol_Exchange,
                      exchange_stream_begin);
    return server;
}

/* ---- the connection ---- */

/* Until takeover exists, losing the supervisor ends the workload at once (decision P9). */
static void link_lost(struct service *service)
{
    log_debug("the connection to the supervisor is lost");
    if (!service->ending)
        service_end(service, OWNER_ENDED_SUPERVISOR_LOST, EXIT_FAILURE);
    else if (service->maker_gone)
        reactor_stop(service->options.reactor);
}

static void on_connection_closed(struct rpc_connection *connection, void *user)
{
    (void)connection;
    struct service *service = user;
    service->link.connection = NULL;
    link_lost(service);
}

static void on_stream_closed(struct tls_stream *stream, void *user)
{
    (void)stream;
    struct service *service = user;
    service->link.stream = NULL;
    link_lost(service);
}

static void on_stream_ready(struct tls_stream *stream, int descriptor, const struct error *error,
                            void *user)
{
    struct service *service = user;
    if (descriptor < 0) {
        service->link.stream = NULL;
        service_fail(service, error);
        return;
    }
    log_debug("TLS handshake done");
    service->link.stream = stream;
    struct rpc_connection_events events = {.on_closed = on_connection_closed, .user = service};
    struct error problem = {0};
    service->link.connection = rpc_server_accept(service->server, descriptor, 0, &events, &problem);
    if (service->link.connection == NULL) {
        service_fail(service, &problem);
        error_clear(&problem);
    }
}

/* The driver listens before it starts anyone, so the first try is the rule. */
static int dial(const char *path, struct error *error)
{
    int64_t deadline = clock_monotonic_milliseconds() + DIAL_MILLISECONDS;
    for (;;) {
        error_clear(error);
        int descriptor = file_unix_connect(path, error);
        if (descriptor >= 0 || clock_monotonic_milliseconds() >= deadline)
            return descriptor;
        nanosleep(&(struct timespec){.tv_nsec = DIAL_PAUSE_MILLISECONDS * 1000000L}, NULL);
    }
}

static bool connect_supervisor(struct service *service, struct error *error)
{
    int descriptor = dial(service->options.launch->supervisor_socket, error);
    if (descriptor < 0)
        return false;
    struct tls_stream_options options = {.server = true, .identity = service->options.identity};
    struct tls_stream_events events = {
        .on_ready = on_stream_ready, .on_closed = on_stream_closed, .user = service};
    service->link.stream =
        tls_stream_start(service->options.reactor, descriptor, &options, &events, error);
    return service->link.stream != NULL;
}

/* ---- life ---- */

static bool start(struct service *service, struct error *error)
{
    const struct service_options *options = &service->options;
    struct maker_events events = {
        .on_ready = on_root_ready, .on_gone = on_maker_gone, .user = service};
    if (!maker_watch(options->maker, options->reactor, &events, error))
        return false;
    service->terminate_signal =
        reactor_signal_start(options->reactor, SIGTERM, on_terminate_signal, service, error);
    return service->terminate_signal != NULL && connect_supervisor(service, error);
}

static void free_service(struct service *service)
{
    reactor_timer_cancel(service->end_timer);
    reactor_signal_cancel(service->terminate_signal);
    if (service->link.stream != NULL)
        tls_stream_close(service->link.stream);
    error_clear(&service->root_error);
    memory_wipe_text(&service->verified_token);
}

int service_run(const struct service_options *options)
{
    struct service service = {.options = *options};
    uuid_generate(service.boundary_id);
    service.processes = process_table_new(&service);
    service.admission = exec_admission_new();
    service.server = make_server(&service);
    struct error error = {0};
    if (!start(&service, &error)) {
        service_fail(&service, &error);
        error_clear(&error);
    }
    reactor_when_quiet(options->reactor, TRIM_QUIET_MILLISECONDS, trim_memory);
    reactor_run(options->reactor);
    free_service(&service);
    return service.exit_status;
}
