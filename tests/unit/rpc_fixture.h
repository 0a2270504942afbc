/* A client and a server in one process, joined by a socket pair, for the tests of lib/rpc. */
#ifndef TESTS_UNIT_RPC_FIXTURE_H
#define TESTS_UNIT_RPC_FIXTURE_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "openshell.pb-c.h"
#include "proto/method_table.h"
#include "rpc/rpc.h"

#define HEALTH rpc_openshell_v1_OpenShell_Health
#define EXEC rpc_openshell_v1_OpenShell_ExecSandbox
#define INTERACTIVE rpc_openshell_v1_OpenShell_ExecSandboxInteractive
#define PUSH_LOGS rpc_openshell_v1_OpenShell_PushSandboxLogs

enum { FIXTURE_PATIENCE = 20 * 1000 };

struct fixture {
    struct reactor *reactor;
    struct rpc_runtime *runtime;
    struct rpc_server *server;
    struct rpc_channel *channel;
    struct rpc_connection *connection; /* the server's side; NULL once it was closed */
    unsigned connections_closed;
    unsigned authorized;
    bool refuse; /* the authorization says no */
    bool timed_out;
    void *state; /* the test's own */
};

static inline bool fixture_authorize(struct rpc_call *call, void *user, struct error *error)
{
    struct fixture *fixture = user;
    fixture->authorized++;
    rpc_call_set_principal(call, fixture);
    if (fixture->refuse)
        return error_set(error, ERROR_UNAUTHENTICATED, "who are you?");
    return true;
}

static inline void fixture_closed(struct rpc_connection *connection, void *user)
{
    struct fixture *fixture = user;
    if (fixture->connection == connection)
        fixture->connection = NULL;
    fixture->connections_closed++;
}

static inline void fixture_socket_pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
}

static inline struct rpc_connection *fixture_accept(struct fixture *fixture, int descriptor,
                                                    unsigned idle_milliseconds)
{
    struct error error = {0};
    struct rpc_connection_events events = {fixture_closed, fixture};
    struct rpc_connection *connection =
        rpc_server_accept(fixture->server, descriptor, idle_milliseconds, &events, &error);
    assert_non_null(connection);
    return connection;
}

static inline struct rpc_channel *fixture_connect(struct fixture *fixture)
{
    int ends[2];
    struct error error = {0};
    fixture_socket_pair(ends);
    fixture->connection = fixture_accept(fixture, ends[1], 0);
    struct rpc_channel *channel = rpc_channel_new(fixture->runtime, ends[0], &error);
    assert_non_null(channel);
    return channel;
}

static inline int fixture_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    fixture->reactor = reactor_new(NULL);
    fixture->runtime = rpc_runtime_new(fixture->reactor, NULL);
    fixture->server = rpc_server_new(fixture->runtime, fixture_authorize, fixture);
    fixture->channel = fixture_connect(fixture);
    *state = fixture;
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *fixture = *state;
    rpc_channel_free(fixture->channel);
    rpc_server_free(fixture->server);
    rpc_runtime_free(fixture->runtime);
    reactor_free(fixture->reactor);
    free(fixture);
    return 0;
}

static inline void fixture_timeout(void *argument)
{
    ((struct fixture *)argument)->timed_out = true;
}

#define FIXTURE_TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* Runs the loop until the condition holds; fails the test when that takes too long. */
#define FIXTURE_RUN_UNTIL(fixture, condition)                                                      \
    do {                                                                                           \
        (fixture)->timed_out = false;                                                              \
        struct reactor_timer *patience = reactor_timer_start((fixture)->reactor, FIXTURE_PATIENCE, \
                                                             0, fixture_timeout, (fixture));       \
        while (!(condition) && !(fixture)->timed_out)                                              \
            reactor_run_once((fixture)->reactor);                                                  \
        reactor_timer_cancel(patience);                                                            \
        if (!(condition))                                                                          \
            fail_msg("waited in vain for: %s", #condition);                                        \
    } while (0)

/* What a client saw of a streaming call. */
struct seen {
    unsigned messages;
    size_t bytes;
    unsigned ends;
    unsigned sent;
    unsigned done;
    bool read_all; /* ask for the next message after each */
    struct error status;
};

static inline void seen_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct seen *seen = user;
    seen->messages++;
    if (message->descriptor == &openshell__v1__exec_sandbox_event__descriptor) {
        const Openshell__V1__ExecSandboxEvent *event =
            (const Openshell__V1__ExecSandboxEvent *)message;
        if (event->payload_case == OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDOUT)
            seen->bytes += event->stdout->data.len;
    }
    if (seen->read_all)
        rpc_call_read(call);
}

static inline void seen_end(struct rpc_call *call, void *user)
{
    (void)call;
    ((struct seen *)user)->ends++;
}

static inline void seen_sent(struct rpc_call *call, void *user)
{
    (void)call;
    ((struct seen *)user)->sent++;
}

static inline void seen_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct seen *seen = user;
    seen->done++;
    error_copy(&seen->status, status);
}

static const struct rpc_call_events SEEN_EVENTS = {seen_message, seen_end, seen_sent, seen_done};

static inline bool send_output(struct rpc_call *call, const void *data, size_t length)
{
    Openshell__V1__ExecSandboxStdout output = OPENSHELL__V1__EXEC_SANDBOX_STDOUT__INIT;
    Openshell__V1__ExecSandboxEvent event = OPENSHELL__V1__EXEC_SANDBOX_EVENT__INIT;
    output.data.data = (uint8_t *)data;
    output.data.len = length;
    event.payload_case = OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDOUT;
    event.stdout = &output;
    return rpc_call_send(call, &event.base);
}

static inline bool send_input(struct rpc_call *call, const void *data, size_t length)
{
    Openshell__V1__ExecSandboxInput input = OPENSHELL__V1__EXEC_SANDBOX_INPUT__INIT;
    input.payload_case = OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN;
    input.stdin.data = (uint8_t *)data;
    input.stdin.len = length;
    return rpc_call_send(call, &input.base);
}

static inline void respond_health(struct rpc_call *call, void *user)
{
    (void)user;
    Openshell__V1__HealthResponse response = OPENSHELL__V1__HEALTH_RESPONSE__INIT;
    response.status = OPENSHELL__V1__SERVICE_STATUS__SERVICE_STATUS_HEALTHY;
    response.version = (char *)"1.2.3";
    rpc_call_respond(call, &response.base);
}

static inline const ProtobufCMessage *ask_health(struct fixture *fixture, struct arena *arena,
                                                 struct error *error)
{
    Openshell__V1__HealthRequest request = OPENSHELL__V1__HEALTH_REQUEST__INIT;
    struct rpc_call_options options = {.deadline = FIXTURE_PATIENCE};
    return rpc_unary_wait(fixture->channel, &HEALTH, &options, &request.base, arena, error);
}

#endif
