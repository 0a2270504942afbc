/* Exec through a gateway: what a client gets for what its supervisor does, and that nothing stays
 * behind whichever side ends first. */
#include "gateway_harness.h"

#include "gateway/access.h"
#include "gateway/lifecycle.h"
#include "gateway/relay.h"
#include "gateway/sessions.h"

const char *__asan_default_options(void);

/* A gateway frees at its end what outlives no process. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- a client ---- */

struct client {
    struct rpc_channel *channel;
    struct rpc_call *call;
    struct buffer out;
    struct buffer err;
    bool exited;
    int code;
    bool done;
    struct error status;
};

static void client_message(struct rpc_call *call, const ProtobufCMessage *base, void *user)
{
    struct client *client = user;
    const Openshell__V1__ExecSandboxEvent *event = (const Openshell__V1__ExecSandboxEvent *)base;
    if (event->payload_case == OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDOUT)
        buffer_append(&client->out, event->stdout->data.data, event->stdout->data.len);
    if (event->payload_case == OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_STDERR)
        buffer_append(&client->err, event->stderr->data.data, event->stderr->data.len);
    if (event->payload_case == OPENSHELL__V1__EXEC_SANDBOX_EVENT__PAYLOAD_EXIT) {
        client->exited = true;
        client->code = event->exit->exit_code;
    }
    rpc_call_read(call);
}

static void client_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct client *client = user;
    error_copy(&client->status, status);
    client->done = true;
}

static const struct rpc_call_events client_events = {.on_message = client_message,
                                                     .on_done = client_done};

static void fill_request(Openshell__V1__ExecSandboxRequest *request, char **command)
{
    openshell__v1__exec_sandbox_request__init(request);
    request->workspace_scope = harness_scope();
    request->sandbox = (char *)"job";
    request->n_command = 1;
    request->command = command;
}

static void client_exec_on(struct rpc_channel *channel, struct client *client)
{
    char *command[] = {(char *)"true"};
    Openshell__V1__ExecSandboxRequest request;
    fill_request(&request, command);
    *client = (struct client){0};
    client->call = rpc_call_start(channel, METHOD(ExecSandbox), NULL, &client_events, client);
    rpc_call_send(client->call, &request.base);
    rpc_call_half_close(client->call);
    rpc_call_read(client->call);
}

static void client_exec(struct harness *harness, struct client *client)
{
    struct rpc_channel *channel = harness_connect(harness);
    client_exec_on(channel, client);
    client->channel = channel;
}

static void client_interactive(struct harness *harness, struct client *client, bool announce)
{
    char *command[] = {(char *)"cat"};
    Openshell__V1__ExecSandboxRequest request;
    fill_request(&request, command);
    request.explicit_stdin_eof = announce;
    Openshell__V1__ExecSandboxInput input = OPENSHELL__V1__EXEC_SANDBOX_INPUT__INIT;
    input.payload_case = OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_START;
    input.start = &request;
    *client = (struct client){.channel = harness_connect(harness)};
    client->call = rpc_call_start(client->channel, METHOD(ExecSandboxInteractive), NULL,
                                  &client_events, client);
    rpc_call_send(client->call, &input.base);
    rpc_call_read(client->call);
}

static void client_write(struct client *client, const void *data, size_t length)
{
    Openshell__V1__ExecSandboxInput input = OPENSHELL__V1__EXEC_SANDBOX_INPUT__INIT;
    input.payload_case = OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN;
    input.stdin.data = (uint8_t *)data;
    input.stdin.len = length;
    assert_true(rpc_call_send(client->call, &input.base));
}

static void client_end_input(struct client *client)
{
    Openshell__V1__ExecSandboxInput input = OPENSHELL__V1__EXEC_SANDBOX_INPUT__INIT;
    input.payload_case = OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN_EOF;
    input.stdin_eof = true;
    assert_true(rpc_call_send(client->call, &input.base));
}

static void client_free(struct client *client)
{
    rpc_channel_free(client->channel);
    buffer_free(&client->out);
    buffer_free(&client->err);
    error_clear(&client->status);
}

/* ---- nothing stays ---- */

static void expect_nothing_left(struct harness *harness)
{
    struct gateway *gateway = harness->gateway;
    struct live_sandbox *live = live_find(gateway, harness->sandbox_id);
    HARNESS_WAIT(harness, live->relays == NULL && harness->legs == 0);
    assert_int_equal(table_count(gateway->pending_relays), 0);
    assert_int_equal(live->pending_relay_count, 0);
    assert_int_equal(live->announced_relay_count, 0);
    assert_int_equal(live->waiter_count, 0);
    assert_int_equal(gateway->access_waiters, 0);
    assert_null(live->waiters);
}

static void expect_status(struct harness *harness, enum behaviour behaviour, enum error_code code,
                          const char *text)
{
    struct client client;
    harness->behaviour = behaviour;
    client_exec(harness, &client);
    HARNESS_WAIT(harness, client.done);
    assert_int_equal(client.status.code, code);
    assert_false(client.exited);
    assert_non_null(strstr(client.status.message, text));
    client_free(&client);
    expect_nothing_left(harness);
}

static void expect_code(struct harness *harness, enum behaviour behaviour, int code)
{
    struct client client;
    harness->behaviour = behaviour;
    client_exec(harness, &client);
    HARNESS_WAIT(harness, client.done);
    assert_int_equal(client.status.code, ERROR_OK);
    assert_true(client.exited);
    assert_int_equal(client.code, code);
    client_free(&client);
    expect_nothing_left(harness);
}

/* ---- tests ---- */

static void test_output_and_code(void **state)
{
    struct harness *harness = *state;
    struct client client;
    harness->behaviour = SERVE;
    client_exec(harness, &client);
    HARNESS_WAIT(harness, client.done);
    assert_int_equal(client.status.code, ERROR_OK);
    assert_string_equal(buffer_text(&client.out), "out");
    assert_string_equal(buffer_text(&client.err), "err");
    assert_int_equal(client.code, 3);
    client_free(&client);
    expect_nothing_left(harness);
}

static void test_ways_to_end(void **state)
{
    expect_code(*state, EXIT_SIGNAL, 128 + 9);
    expect_code(*state, EXIT_TIMED_OUT, 124);
    expect_status(*state, EXIT_UNKNOWN, ERROR_UNAVAILABLE, "the reaper is gone");
    expect_status(*state, REFUSE, ERROR_UNAVAILABLE, "no");
    expect_status(*state, CUT, ERROR_UNAVAILABLE, "ended before the command did");
}

static void test_client_goes_away(void **state)
{
    struct harness *harness = *state;
    struct client client;
    harness->behaviour = SERVE_INPUT;
    client_interactive(harness, &client, true);
    client_write(&client, "hello", 5);
    HARNESS_WAIT(harness, client.out.length == 5);
    rpc_channel_free(client.channel); /* as kill -9 does it: no half-close, no stdin_eof */
    client.channel = NULL;
    HARNESS_WAIT(harness, client.done && harness->aborted == 1);
    assert_int_equal(harness->ended, 0);
    client_free(&client);
    expect_nothing_left(harness);
}

/* Decision W4: who announced stdin_eof and closes without it broke off. */
static void test_half_close_is_an_abort_when_announced(void **state)
{
    struct harness *harness = *state;
    struct client client;
    harness->behaviour = SERVE_INPUT;
    client_interactive(harness, &client, true);
    client_write(&client, "hello", 5);
    rpc_call_half_close(client.call);
    HARNESS_WAIT(harness, client.done && harness->aborted == 1);
    assert_int_equal(harness->ended, 0);
    assert_false(client.exited);
    assert_int_not_equal(client.status.code, ERROR_OK);
    client_free(&client);
    expect_nothing_left(harness);
}

static void test_half_close_ends_input_otherwise(void **state)
{
    struct harness *harness = *state;
    struct client client;
    harness->behaviour = SERVE_INPUT;
    client_interactive(harness, &client, false);
    client_write(&client, "hello", 5);
    rpc_call_half_close(client.call);
    HARNESS_WAIT(harness, client.done);
    assert_int_equal(client.status.code, ERROR_OK);
    assert_true(client.exited);
    assert_int_equal(harness->ended, 1);
    assert_int_equal(harness->aborted, 0);
    assert_string_equal(buffer_text(&client.out), "hello");
    client_free(&client);
    expect_nothing_left(harness);
}

/* More than one frame, and more than is in flight at once. */
static void test_long_input_comes_back_whole(void **state)
{
    struct harness *harness = *state;
    enum { LENGTH = 3 * 1024 * 1024 + 17 };
    CLEANUP_FREE unsigned char *data = memory_allocate(LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    struct client client;
    harness->behaviour = SERVE_INPUT;
    client_interactive(harness, &client, true);
    client_write(&client, data, LENGTH);
    HARNESS_WAIT(harness, rpc_call_unsent(client.call) == 0);
    client_end_input(&client);
    rpc_call_half_close(client.call);
    HARNESS_WAIT(harness, client.done);
    assert_int_equal(client.code, 0);
    assert_int_equal(client.out.length, LENGTH);
    assert_memory_equal(client.out.data, data, LENGTH);
    client_free(&client);
    expect_nothing_left(harness);
}

/* More at once than the supervisor is told of: the others wait their turn. */
static void test_many_at_once(void **state)
{
    struct harness *harness = *state;
    enum { MANY = RELAY_SANDBOX_ANNOUNCED_LIMIT * 3 };
    static struct client clients[MANY];
    struct rpc_channel *channel = harness_connect(harness);
    struct live_sandbox *live = live_find(harness->gateway, harness->sandbox_id);
    harness->behaviour = IGNORE;
    for (size_t i = 0; i < MANY; i++)
        client_exec_on(channel, &clients[i]);
    HARNESS_WAIT(harness, live->pending_relay_count == MANY);
    HARNESS_WAIT(harness, harness->asked == RELAY_SANDBOX_ANNOUNCED_LIMIT);
    assert_int_equal(live->announced_relay_count, RELAY_SANDBOX_ANNOUNCED_LIMIT);
    /* The ones that the supervisor ignores make room for those behind them. */
    harness->behaviour = SERVE;
    for (size_t i = 0; i < RELAY_SANDBOX_ANNOUNCED_LIMIT; i++)
        rpc_call_cancel(clients[i].call);
    for (size_t i = RELAY_SANDBOX_ANNOUNCED_LIMIT; i < MANY; i++) {
        HARNESS_WAIT(harness, clients[i].done);
        assert_true(clients[i].exited);
        assert_int_equal(clients[i].code, 3);
    }
    for (size_t i = 0; i < MANY; i++)
        client_free(&clients[i]);
    expect_nothing_left(harness);
    rpc_channel_free(channel);
}

static size_t count_done(const struct client *clients, size_t count)
{
    size_t done = 0;
    for (size_t i = 0; i < count; i++)
        done += clients[i].done;
    return done;
}

/* Over the bound the answer is a refusal, not a queue without end. */
static void test_too_many_at_once(void **state)
{
    struct harness *harness = *state;
    enum { MANY = RELAY_SANDBOX_PENDING_LIMIT + 1 };
    static struct client clients[MANY];
    struct rpc_channel *channel = harness_connect(harness);
    harness->behaviour = IGNORE;
    for (size_t i = 0; i < MANY; i++)
        client_exec_on(channel, &clients[i]);
    HARNESS_WAIT(harness, count_done(clients, MANY) == 1);
    for (size_t i = 0; i < MANY; i++) {
        if (clients[i].done)
            assert_int_equal(clients[i].status.code, ERROR_RESOURCE_EXHAUSTED);
        else
            rpc_call_cancel(clients[i].call);
    }
    HARNESS_WAIT(harness, count_done(clients, MANY) == MANY);
    for (size_t i = 0; i < MANY; i++)
        client_free(&clients[i]);
    expect_nothing_left(harness);
    rpc_channel_free(channel);
}

static void test_session_lost_before_the_claim(void **state)
{
    struct harness *harness = *state;
    struct client client;
    harness->behaviour = IGNORE;
    client_exec(harness, &client);
    HARNESS_WAIT(harness, harness->asked == 1);
    harness_cut_session(harness);
    HARNESS_WAIT(harness, client.done);
    assert_int_equal(client.status.code, ERROR_UNAVAILABLE);
    client_free(&client);
    expect_nothing_left(harness);
}

/* Decision P12: calls wait for a supervisor that runs and is about to come back; only so many. */
static void test_calls_wait_for_the_session(void **state)
{
    struct harness *harness = *state;
    enum { MANY = ACCESS_SANDBOX_WAITERS_LIMIT + 1 };
    static struct client clients[MANY];
    harness_cut_session(harness);
    struct live_sandbox *live = live_find(harness->gateway, harness->sandbox_id);
    for (size_t i = 0; i < MANY; i++) {
        client_exec(harness, &clients[i]);
        HARNESS_WAIT(harness, live->waiter_count == i + 1 || clients[i].done);
    }
    assert_int_equal(clients[MANY - 1].status.code, ERROR_RESOURCE_EXHAUSTED);
    rpc_call_cancel(clients[0].call);
    HARNESS_WAIT(harness, live->waiter_count == MANY - 2);
    harness->behaviour = SERVE;
    harness_open_session(harness);
    for (size_t i = 1; i < MANY - 1; i++) {
        HARNESS_WAIT(harness, clients[i].done);
        assert_int_equal(clients[i].code, 3);
    }
    for (size_t i = 0; i < MANY; i++)
        client_free(&clients[i]);
    expect_nothing_left(harness);
}

/* One whose supervisor does not run is not waited for. */
static void test_a_dead_supervisor_is_not_waited_for(void **state)
{
    struct harness *harness = *state;
    harness->running = false;
    harness_cut_session(harness);
    struct client client;
    client_exec(harness, &client);
    HARNESS_WAIT(harness, client.done);
    assert_int_equal(client.status.code, ERROR_FAILED_PRECONDITION);
    assert_string_equal(client.status.message, "sandbox is not ready");
    assert_string_equal(client.status.domain, ERROR_DOMAIN_GATEWAY);
    assert_string_equal(client.status.reason, "PhaseNotServing");
    assert_string_equal(error_get_metadata(&client.status, "phase"), "SANDBOX_PHASE_READY");
    assert_string_equal(error_get_metadata(&client.status, "sandbox"), "job");
    client_free(&client);
    expect_nothing_left(harness);
}

static enum error_code claim(struct harness *harness, const char *bearer, const char *channel_id)
{
    struct client client = {.channel = harness_connect(harness)};
    struct rpc_call_options options = {.bearer = bearer};
    client.call =
        rpc_call_start(client.channel, METHOD(RelayStream), &options, &client_events, &client);
    Openshell__V1__RelayInit init = OPENSHELL__V1__RELAY_INIT__INIT;
    init.channel_id = (char *)channel_id;
    Openshell__V1__RelayFrame message = OPENSHELL__V1__RELAY_FRAME__INIT;
    message.payload_case = OPENSHELL__V1__RELAY_FRAME__PAYLOAD_INIT;
    message.init = &init;
    rpc_call_send(client.call, &message.base);
    rpc_call_read(client.call);
    HARNESS_WAIT(harness, client.done);
    enum error_code code = client.status.code;
    client_free(&client);
    return code;
}

static void test_claims_that_are_refused(void **state)
{
    struct harness *harness = *state;
    assert_int_equal(claim(harness, harness->token, ""), ERROR_INVALID_ARGUMENT);
    assert_int_equal(claim(harness, harness->token, "no-such-channel"), ERROR_NOT_FOUND);
    assert_int_equal(claim(harness, "not.a.token", "any"), ERROR_UNAUTHENTICATED);
    assert_int_equal(claim(harness, NULL, "any"), ERROR_PERMISSION_DENIED);
    struct client client;
    harness->behaviour = SERVE_INPUT;
    client_interactive(harness, &client, true);
    HARNESS_WAIT(harness, harness->legs == 1);
    client_write(&client, "x", 1);
    HARNESS_WAIT(harness, client.out.length == 1);
    /* A claim uses the channel up. */
    assert_int_equal(claim(harness, harness->token, harness->last_channel), ERROR_NOT_FOUND);
    client_end_input(&client);
    HARNESS_WAIT(harness, client.done);
    assert_int_equal(client.code, 0);
    client_free(&client);
    expect_nothing_left(harness);
}

/* Its token is good for the launch that runs, and for nothing after it. */
static void test_a_token_ends_with_its_launch(void **state)
{
    struct harness *harness = *state;
    struct arena *arena = arena_new(0);
    CLEANUP_FREE char *token = memory_strdup(harness->token);
    Openshell__V1__StopSandboxRequest stop = OPENSHELL__V1__STOP_SANDBOX_REQUEST__INIT;
    stop.workspace_scope = harness_scope();
    stop.name = (char *)"job";
    harness_unary(harness, NULL, METHOD(StopSandbox), &stop.base, arena);
    HARNESS_WAIT(harness, harness->session == NULL);
    const struct live_sandbox *live;
    HARNESS_WAIT(harness, (live = live_find(harness->gateway, harness->sandbox_id)) == NULL ||
                              live->operations == NULL);
    assert_int_equal(claim(harness, token, "any"), ERROR_UNAUTHENTICATED);
    Openshell__V1__StartSandboxRequest start = OPENSHELL__V1__START_SANDBOX_REQUEST__INIT;
    start.workspace_scope = harness_scope();
    start.name = (char *)"job";
    harness_unary(harness, NULL, METHOD(StartSandbox), &start.base, arena);
    HARNESS_WAIT(harness, strcmp(token, harness->token) != 0);
    assert_int_equal(claim(harness, token, "any"), ERROR_UNAUTHENTICATED);
    assert_int_equal(claim(harness, harness->token, "any"), ERROR_NOT_FOUND);
    arena_free(arena);
}

#define GATEWAY_TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATEWAY_TEST(test_output_and_code),
        GATEWAY_TEST(test_ways_to_end),
        GATEWAY_TEST(test_client_goes_away),
        GATEWAY_TEST(test_half_close_is_an_abort_when_announced),
        GATEWAY_TEST(test_half_close_ends_input_otherwise),
        GATEWAY_TEST(test_long_input_comes_back_whole),
        GATEWAY_TEST(test_many_at_once),
        GATEWAY_TEST(test_too_many_at_once),
        GATEWAY_TEST(test_session_lost_before_the_claim),
        GATEWAY_TEST(test_calls_wait_for_the_session),
        GATEWAY_TEST(test_a_dead_supervisor_is_not_waited_for),
        GATEWAY_TEST(test_claims_that_are_refused),
        GATEWAY_TEST(test_a_token_ends_with_its_launch),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fflush(NULL);
    _exit(failed);
}
