/* Calls of all four kinds: what arrives, what is refused, how they end. */
#include "rpc_fixture.h"

#include "base/memory.h"

/* ---- one request, one response ---- */

static void unary_call_is_answered(void **state)
{
    struct fixture *fixture = *state;
    struct arena *arena = arena_new(0);
    struct error error = {0};
    rpc_server_handle(fixture->server, &HEALTH, respond_health);
    const Openshell__V1__HealthResponse *response =
        (const Openshell__V1__HealthResponse *)ask_health(fixture, arena, &error);
    assert_non_null(response);
    assert_string_equal(response->version, "1.2.3");
    assert_int_equal(error.code, ERROR_OK);
    assert_int_equal(fixture->authorized, 1);
    arena_free(arena);
}

static void expect_health_error(struct fixture *fixture, struct error *error)
{
    struct arena *arena = arena_new(0);
    assert_null(ask_health(fixture, arena, error));
    arena_free(arena);
}

static void fail_richly(struct rpc_call *call, void *user)
{
    (void)user;
    struct error error = {0};
    error_add_violation(&error, "spec.name", "is longer than %d characters", 63);
    error_add_violation(&error, "spec.labels[\"a b\"]", "has a blank: \xC3\xA4");
    error_set_reason(&error, ERROR_DOMAIN_GATEWAY, "INVALID_ARGUMENT");
    error_add_metadata(&error, "phase", "READY");
    error_add_metadata(&error, "name", "job");
    rpc_call_fail(call, &error);
    error_clear(&error);
}

static void errors_cross_without_loss(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    rpc_server_handle(fixture->server, &HEALTH, fail_richly);
    expect_health_error(fixture, &error);
    assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
    assert_string_equal(error.message, "spec.name: is longer than 63 characters; "
                                       "spec.labels[\"a b\"]: has a blank: \xC3\xA4");
    assert_string_equal(error.domain, ERROR_DOMAIN_GATEWAY);
    assert_string_equal(error.reason, "INVALID_ARGUMENT");
    assert_string_equal(error_get_metadata(&error, "phase"), "READY");
    assert_string_equal(error_get_metadata(&error, "name"), "job");
    assert_int_equal(error.violation_count, 2);
    assert_string_equal(error.violations[1].field, "spec.labels[\"a b\"]");
    assert_string_equal(error.violations[1].description, "has a blank: \xC3\xA4");
    error_clear(&error);
}

static void missing_handlers_are_named(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    expect_health_error(fixture, &error);
    assert_int_equal(error.code, ERROR_UNIMPLEMENTED);
    assert_string_equal(error.message, "method /openshell.v1.OpenShell/Health is not implemented");
    assert_int_equal(fixture->authorized, 1);
    error_clear(&error);
}

static void missing_handlers_tell_nothing_to_strangers(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    fixture->refuse = true;
    expect_health_error(fixture, &error);
    assert_int_equal(error.code, ERROR_UNAUTHENTICATED);
    error_clear(&error);
}

static void unknown_methods_are_named(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_method method = HEALTH;
    struct error error = {0};
    struct arena *arena = arena_new(0);
    Openshell__V1__HealthRequest request = OPENSHELL__V1__HEALTH_REQUEST__INIT;
    method.path = "/some.Other/Method";
    assert_null(rpc_unary_wait(fixture->channel, &method, NULL, &request.base, arena, &error));
    assert_int_equal(error.code, ERROR_UNIMPLEMENTED);
    assert_string_equal(error.message, "method /some.Other/Method is not implemented");
    error_clear(&error);
    arena_free(arena);
}

static void never_called(struct rpc_call *call, void *user)
{
    (void)call;
    (void)user;
    fail_msg("the handler must not be called");
}

static void refused_callers_do_not_reach_the_handler(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    fixture->refuse = true;
    rpc_server_handle(fixture->server, &HEALTH, never_called);
    expect_health_error(fixture, &error);
    assert_int_equal(error.code, ERROR_UNAUTHENTICATED);
    assert_string_equal(error.message, "who are you?");
    error_clear(&error);
}

static void respond_with_metadata(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    Openshell__V1__HealthResponse response = OPENSHELL__V1__HEALTH_RESPONSE__INIT;
    size_t count = 7;
    assert_ptr_equal(rpc_call_principal(call), fixture);
    assert_ptr_equal(rpc_call_connection(call), fixture->connection);
    assert_ptr_equal(rpc_call_method(call), &HEALTH);
    assert_null(rpc_call_metadata(call, "x-absent", &count));
    assert_int_equal(count, 0);
    assert_true(rpc_call_remaining(call) > 0);
    assert_true(rpc_call_remaining(call) <= FIXTURE_PATIENCE + 1000); /* the wire rounds up */
    response.version = (char *)rpc_call_metadata(call, "authorization", &count);
    assert_int_equal(count, 1);
    rpc_call_respond(call, &response.base);
}

static void bearers_arrive(void **state)
{
    struct fixture *fixture = *state;
    struct arena *arena = arena_new(0);
    struct error error = {0};
    Openshell__V1__HealthRequest request = OPENSHELL__V1__HEALTH_REQUEST__INIT;
    struct rpc_call_options options = {.bearer = "abc.def", .deadline = FIXTURE_PATIENCE};
    rpc_server_handle(fixture->server, &HEALTH, respond_with_metadata);
    const Openshell__V1__HealthResponse *response =
        (const Openshell__V1__HealthResponse *)rpc_unary_wait(fixture->channel, &HEALTH, &options,
                                                              &request.base, arena, &error);
    assert_non_null(response);
    assert_string_equal(response->version, "Bearer abc.def");

    options.bearer = "abc\ndef";
    assert_null(rpc_unary_wait(fixture->channel, &HEALTH, &options, &request.base, arena, &error));
    assert_int_equal(error.code, ERROR_UNAUTHENTICATED);
    error_clear(&error);
    arena_free(arena);
}

static void keep_call(struct rpc_call *call, void *user)
{
    struct fixture *fixture = user;
    fixture->state = call;
}

static void deadlines_end_calls_and_late_answers_are_harmless(void **state)
{
    struct fixture *fixture = *state;
    struct arena *arena = arena_new(0);
    struct error error = {0};
    Openshell__V1__HealthRequest request = OPENSHELL__V1__HEALTH_REQUEST__INIT;
    struct rpc_call_options options = {.deadline = 50};
    rpc_server_handle(fixture->server, &HEALTH, keep_call);
    assert_null(rpc_unary_wait(fixture->channel, &HEALTH, &options, &request.base, arena, &error));
    assert_int_equal(error.code, ERROR_DEADLINE_EXCEEDED);
    /* The handler never accepted the call, so it still owns it. */
    struct rpc_call *call = fixture->state;
    assert_non_null(call);
    FIXTURE_RUN_UNTIL(fixture, rpc_call_cancelled(call));
    assert_int_equal(rpc_call_remaining(call), 0);
    respond_health(call, NULL);
    error_clear(&error);
    arena_free(arena);
}

struct answer {
    unsigned done;
    struct error error;
};

static void note_answer(const ProtobufCMessage *response, const struct error *error, void *user)
{
    struct answer *answer = user;
    answer->done++;
    assert_true((response == NULL) == (error != NULL));
    if (error != NULL)
        error_copy(&answer->error, error);
}

static void unary_calls_can_be_cancelled(void **state)
{
    struct fixture *fixture = *state;
    struct answer answer = {0};
    Openshell__V1__HealthRequest request = OPENSHELL__V1__HEALTH_REQUEST__INIT;
    rpc_server_handle(fixture->server, &HEALTH, keep_call);
    struct rpc_call *call =
        rpc_unary(fixture->channel, &HEALTH, NULL, &request.base, note_answer, &answer);
    FIXTURE_RUN_UNTIL(fixture, fixture->state != NULL);
    rpc_call_cancel(call);
    FIXTURE_RUN_UNTIL(fixture, answer.done);
    assert_int_equal(answer.error.code, ERROR_CANCELLED);
    rpc_call_cancel(fixture->state);
    error_clear(&answer.error);
}

static void lost_connections_are_unavailable(void **state)
{
    struct fixture *fixture = *state;
    struct answer answer = {0};
    struct error error = {0};
    Openshell__V1__HealthRequest request = OPENSHELL__V1__HEALTH_REQUEST__INIT;
    rpc_server_handle(fixture->server, &HEALTH, keep_call);
    rpc_unary(fixture->channel, &HEALTH, NULL, &request.base, note_answer, &answer);
    FIXTURE_RUN_UNTIL(fixture, fixture->state != NULL);
    rpc_connection_close(fixture->connection);
    rpc_call_cancel(fixture->state);
    FIXTURE_RUN_UNTIL(fixture, answer.done && fixture->connections_closed);
    assert_int_not_equal(answer.error.code, ERROR_OK);
    expect_health_error(fixture, &error);
    assert_int_equal(error.code, ERROR_UNAVAILABLE);
    error_clear(&error);
    error_clear(&answer.error);
}

/* ---- streams ---- */

static void stream_command(struct rpc_call *call, void *user)
{
    (void)user;
    const Openshell__V1__ExecSandboxRequest *request =
        (const Openshell__V1__ExecSandboxRequest *)rpc_call_request(call);
    for (size_t i = 0; i < request->n_command; i++)
        assert_true(send_output(call, request->command[i], strlen(request->command[i])));
    rpc_call_finish(call);
}

static struct rpc_call *start_exec_of(struct fixture *fixture, const struct rpc_method *method,
                                      struct seen *seen, const char *sandbox, unsigned requests)
{
    Openshell__V1__ExecSandboxRequest request = OPENSHELL__V1__EXEC_SANDBOX_REQUEST__INIT;
    char *command[] = {(char *)"one", (char *)"three", (char *)"eleven"};
    request.sandbox = (char *)sandbox;
    request.command = command;
    request.n_command = 3;
    struct rpc_call *call = rpc_call_start(fixture->channel, method, NULL, &SEEN_EVENTS, seen);
    for (unsigned i = 0; i < requests; i++)
        assert_true(rpc_call_send(call, &request.base));
    rpc_call_half_close(call);
    rpc_call_read(call);
    return call;
}

static struct rpc_call *start_exec(struct fixture *fixture, struct seen *seen)
{
    return start_exec_of(fixture, &EXEC, seen, "job", 1);
}

static void server_streams_arrive_whole(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {.read_all = true};
    rpc_server_handle(fixture->server, &EXEC, stream_command);
    start_exec(fixture, &seen);
    FIXTURE_RUN_UNTIL(fixture, seen.done);
    assert_int_equal(seen.messages, 3);
    assert_int_equal(seen.bytes, 3 + 5 + 6);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.sent, 1);
    assert_int_equal(seen.status.code, ERROR_OK);
}

static void fail_after_output(struct rpc_call *call, void *user)
{
    (void)user;
    struct error error = {0};
    assert_true(send_output(call, "last words", 10));
    assert_true(send_output(call, "really", 6));
    error_set(&error, ERROR_ABORTED, "no more");
    rpc_call_fail(call, &error);
    assert_false(send_output(call, "too late", 8));
    error_clear(&error);
}

static void a_failure_follows_what_was_queued(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {.read_all = true};
    rpc_server_handle(fixture->server, &EXEC, fail_after_output);
    start_exec(fixture, &seen);
    FIXTURE_RUN_UNTIL(fixture, seen.done);
    assert_int_equal(seen.bytes, 16);
    assert_int_equal(seen.status.code, ERROR_ABORTED);
    assert_string_equal(seen.status.message, "no more");
    error_clear(&seen.status);
}

static void requests_that_the_scan_refuses_end_the_call(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {.read_all = true};
    rpc_server_handle(fixture->server, &EXEC, never_called);
    start_exec_of(fixture, &EXEC, &seen, "not \xFF UTF-8", 1);
    FIXTURE_RUN_UNTIL(fixture, seen.done);
    assert_int_equal(seen.status.code, ERROR_INVALID_ARGUMENT);
    assert_int_equal(seen.status.violation_count, 1);
    assert_string_equal(seen.status.violations[0].field, "sandbox");
    error_clear(&seen.status);
}

static void exactly_one_request_is_taken(void **state)
{
    struct fixture *fixture = *state;
    struct rpc_method method = EXEC;
    method.client_streaming = true;
    rpc_server_handle(fixture->server, &EXEC, never_called);
    for (unsigned requests = 0; requests <= 2; requests += 2) {
        struct seen seen = {.read_all = true};
        start_exec_of(fixture, &method, &seen, "job", requests);
        FIXTURE_RUN_UNTIL(fixture, seen.done);
        assert_int_equal(seen.status.code, ERROR_INVALID_ARGUMENT);
        assert_string_equal(seen.status.message,
                            "method /openshell.v1.OpenShell/ExecSandbox takes exactly one request");
        error_clear(&seen.status);
    }
}

static void callers_that_leave_early_reach_no_handler(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {0};
    Openshell__V1__ExecSandboxRequest request = OPENSHELL__V1__EXEC_SANDBOX_REQUEST__INIT;
    rpc_server_handle(fixture->server, &EXEC, never_called);
    struct rpc_call *call = rpc_call_start(fixture->channel, &EXEC, NULL, &SEEN_EVENTS, &seen);
    assert_true(rpc_call_send(call, &request.base));
    FIXTURE_RUN_UNTIL(fixture, fixture->authorized == 1 && seen.sent == 1);
    rpc_call_cancel(call);
    FIXTURE_RUN_UNTIL(fixture, seen.done);
    error_clear(&seen.status);
    /* The connection serves on. */
    struct seen again = {.read_all = true};
    rpc_server_handle(fixture->server, &EXEC, stream_command);
    start_exec(fixture, &again);
    FIXTURE_RUN_UNTIL(fixture, again.done);
    assert_int_equal(again.status.code, ERROR_OK);
}

static void send_bad_version(struct rpc_call *call, void *user)
{
    (void)user;
    Openshell__V1__HealthResponse response = OPENSHELL__V1__HEALTH_RESPONSE__INIT;
    response.version = (char *)"\xC0\x80";
    rpc_call_respond(call, &response.base);
}

static void responses_that_the_scan_refuses_are_errors(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    rpc_server_handle(fixture->server, &HEALTH, send_bad_version);
    expect_health_error(fixture, &error);
    assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
    error_clear(&error);
}

/* ---- streams of requests ---- */

struct counted {
    unsigned messages;
    unsigned done;
    struct error status;
};

static void count_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)message;
    ((struct counted *)user)->messages++;
    rpc_call_read(call);
}

static void count_end(struct rpc_call *call, void *user)
{
    (void)user;
    Openshell__V1__PushSandboxLogsResponse response =
        OPENSHELL__V1__PUSH_SANDBOX_LOGS_RESPONSE__INIT;
    rpc_call_respond(call, &response.base);
}

static void count_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct counted *counted = user;
    counted->done++;
    error_copy(&counted->status, status);
}

static void count_requests(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events EVENTS = {count_message, count_end, NULL, count_done};
    struct fixture *fixture = user;
    rpc_call_accept(call, &EVENTS, fixture->state);
    rpc_call_read(call);
}

static bool push_log(struct rpc_call *call, const char *sandbox)
{
    Openshell__V1__PushSandboxLogsRequest request = OPENSHELL__V1__PUSH_SANDBOX_LOGS_REQUEST__INIT;
    request.sandbox_id = (char *)sandbox;
    return rpc_call_send(call, &request.base);
}

static void client_streams_are_answered_once(void **state)
{
    struct fixture *fixture = *state;
    struct counted counted = {0};
    struct seen seen = {.read_all = true};
    fixture->state = &counted;
    rpc_server_handle(fixture->server, &PUSH_LOGS, count_requests);
    struct rpc_call *call = rpc_call_start(fixture->channel, &PUSH_LOGS, NULL, &SEEN_EVENTS, &seen);
    for (int i = 0; i < RPC_SEND_QUEUE_LIMIT; i++)
        assert_true(push_log(call, "id"));
    assert_int_equal(rpc_call_unsent(call), RPC_SEND_QUEUE_LIMIT);
    assert_false(push_log(call, "one too many"));
    FIXTURE_RUN_UNTIL(fixture, seen.sent);
    assert_int_equal(rpc_call_unsent(call), 0);
    rpc_call_half_close(call);
    assert_false(push_log(call, "too late"));
    rpc_call_read(call);
    FIXTURE_RUN_UNTIL(fixture, seen.done && counted.done);
    assert_int_equal(counted.messages, RPC_SEND_QUEUE_LIMIT);
    assert_int_equal(counted.status.code, ERROR_OK);
    assert_int_equal(seen.messages, 1);
    assert_int_equal(seen.status.code, ERROR_OK);
}

static void large_messages_pass_and_larger_ones_do_not(void **state)
{
    struct fixture *fixture = *state;
    rpc_server_handle(fixture->server, &PUSH_LOGS, count_requests);
    for (int over = 0; over <= 1; over++) {
        struct counted counted = {0};
        struct seen seen = {.read_all = true};
        fixture->state = &counted;
        size_t length = RPC_MESSAGE_LIMIT - 16 + (over ? 64 : 0);
        char *text = memory_new(length + 1);
        memset(text, 'x', length);
        struct rpc_call *call =
            rpc_call_start(fixture->channel, &PUSH_LOGS, NULL, &SEEN_EVENTS, &seen);
        assert_true(push_log(call, text));
        free(text);
        rpc_call_half_close(call);
        rpc_call_read(call);
        /* What is too large is refused before anything is sent. */
        FIXTURE_RUN_UNTIL(fixture, seen.done && (over || counted.done));
        assert_int_equal(seen.status.code, over ? ERROR_RESOURCE_EXHAUSTED : ERROR_OK);
        assert_int_equal(counted.messages, over ? 0 : 1);
        error_clear(&seen.status);
        error_clear(&counted.status);
    }
}

/* ---- both ways ---- */

struct echo {
    struct rpc_call *call;
    unsigned messages;
    unsigned ends;
    unsigned done;
    bool finish_at_end;
    struct error status;
};

static void echo_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct echo *echo = user;
    const Openshell__V1__ExecSandboxInput *input = (const Openshell__V1__ExecSandboxInput *)message;
    echo->messages++;
    if (input->payload_case == OPENSHELL__V1__EXEC_SANDBOX_INPUT__PAYLOAD_STDIN)
        send_output(call, input->stdin.data, input->stdin.len);
    rpc_call_read(call);
}

static void echo_end(struct rpc_call *call, void *user)
{
    struct echo *echo = user;
    echo->ends++;
    if (echo->finish_at_end)
        rpc_call_finish(call);
}

static void echo_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct echo *echo = user;
    echo->done++;
    error_copy(&echo->status, status);
}

static void handle_echo(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events EVENTS = {echo_message, echo_end, NULL, echo_done};
    struct echo *echo = ((struct fixture *)user)->state;
    echo->call = call;
    rpc_call_accept(call, &EVENTS, echo);
    rpc_call_read(call);
}

static struct rpc_call *start_echo(struct fixture *fixture, struct echo *echo, struct seen *seen)
{
    fixture->state = echo;
    rpc_server_handle(fixture->server, &INTERACTIVE, handle_echo);
    struct rpc_call *call =
        rpc_call_start(fixture->channel, &INTERACTIVE, NULL, &SEEN_EVENTS, seen);
    rpc_call_read(call);
    FIXTURE_RUN_UNTIL(fixture, echo->call != NULL);
    return call;
}

static void both_ways_stream_and_half_close_is_an_end(void **state)
{
    struct fixture *fixture = *state;
    struct echo echo = {.finish_at_end = true};
    struct seen seen = {.read_all = true};
    struct rpc_call *call = start_echo(fixture, &echo, &seen);
    for (unsigned i = 1; i <= 50; i++) {
        assert_true(send_input(call, "0123456789", 10));
        FIXTURE_RUN_UNTIL(fixture, seen.messages == i);
    }
    assert_int_equal(echo.ends, 0);
    rpc_call_half_close(call);
    FIXTURE_RUN_UNTIL(fixture, seen.done && echo.done);
    assert_int_equal(echo.ends, 1);
    assert_int_equal(echo.status.code, ERROR_OK);
    assert_int_equal(seen.bytes, 500);
    assert_int_equal(seen.status.code, ERROR_OK);
}

static void cancelling_clients_are_noticed(void **state)
{
    struct fixture *fixture = *state;
    struct echo echo = {0};
    struct seen seen = {0};
    struct rpc_call *call = start_echo(fixture, &echo, &seen);
    assert_true(send_input(call, "x", 1));
    rpc_call_cancel(call);
    rpc_call_cancel(call);
    assert_false(send_input(call, "x", 1));
    FIXTURE_RUN_UNTIL(fixture, seen.done && echo.done);
    assert_int_equal(seen.status.code, ERROR_CANCELLED);
    assert_int_equal(seen.messages, 0);
    assert_int_equal(echo.status.code, ERROR_CANCELLED);
    error_clear(&seen.status);
    error_clear(&echo.status);
}

static void cancelling_servers_are_noticed(void **state)
{
    struct fixture *fixture = *state;
    struct echo echo = {0};
    struct seen seen = {0};
    start_echo(fixture, &echo, &seen);
    rpc_call_cancel(echo.call);
    FIXTURE_RUN_UNTIL(fixture, seen.done && echo.done);
    assert_int_equal(seen.status.code, ERROR_CANCELLED);
    assert_int_equal(echo.status.code, ERROR_CANCELLED);
    assert_int_equal(seen.done, 1);
    error_clear(&seen.status);
    error_clear(&echo.status);
}

/* A client is gone: its process would be, here its descriptor is. */
static void lost_clients_are_noticed(void **state)
{
    struct fixture *fixture = *state;
    struct echo echo = {0};
    struct seen seen = {0};
    start_echo(fixture, &echo, &seen);
    rpc_channel_free(fixture->channel);
    fixture->channel = NULL;
    FIXTURE_RUN_UNTIL(fixture, seen.done && echo.done && fixture->connections_closed);
    assert_int_equal(seen.status.code, ERROR_CANCELLED);
    assert_int_equal(echo.status.code, ERROR_CANCELLED);
    error_clear(&seen.status);
    error_clear(&echo.status);
}

static void closing_a_connection_ends_exactly_its_calls(void **state)
{
    struct fixture *fixture = *state;
    struct echo echo = {0}, other_echo = {0};
    struct seen seen = {0}, other_seen = {.read_all = true};
    start_echo(fixture, &echo, &seen);
    struct rpc_channel *first = fixture->channel;
    struct rpc_connection *connection = fixture->connection;
    fixture->channel = fixture_connect(fixture);
    struct rpc_call *other = start_echo(fixture, &other_echo, &other_seen);
    rpc_connection_close(connection);
    FIXTURE_RUN_UNTIL(fixture, seen.done && echo.done && fixture->connections_closed == 1);
    assert_int_equal(echo.status.code, ERROR_CANCELLED);
    assert_int_not_equal(seen.status.code, ERROR_OK);
    assert_true(send_input(other, "still here", 10));
    FIXTURE_RUN_UNTIL(fixture, other_seen.bytes == 10);
    assert_int_equal(other_echo.done, 0);
    rpc_channel_free(first);
    rpc_channel_free(fixture->channel);
    fixture->channel = NULL;
    FIXTURE_RUN_UNTIL(fixture, other_echo.done && other_seen.done);
    error_clear(&seen.status);
    error_clear(&echo.status);
    error_clear(&other_seen.status);
    error_clear(&other_echo.status);
}

static void idle_connections_close(void **state)
{
    struct fixture *fixture = *state;
    int ends[2];
    fixture_socket_pair(ends);
    fixture_accept(fixture, ends[1], 20);
    FIXTURE_RUN_UNTIL(fixture, fixture->connections_closed == 1);
    assert_non_null(fixture->connection);
    /* gRPC's greeting, then the end. */
    char text[512];
    ssize_t count = 1;
    while (count > 0)
        count = read(ends[0], text, sizeof(text));
    assert_int_equal(count, 0);
    close(ends[0]);
}

/* ---- calls that are ended from within their own callbacks ---- */

enum act { ACT_CANCEL, ACT_FREE_CHANNEL, ACT_CLOSE_CONNECTION, ACT_FREE_SERVER, ACT_COUNT };

struct actor {
    struct fixture *fixture;
    enum act act;
    unsigned done;
};

static void act(struct actor *actor, struct rpc_call *call)
{
    struct fixture *fixture = actor->fixture;
    switch (actor->act) {
    case ACT_CANCEL:
        rpc_call_cancel(call);
        break;
    case ACT_FREE_CHANNEL:
        rpc_channel_free(fixture->channel);
        fixture->channel = NULL;
        break;
    case ACT_CLOSE_CONNECTION:
        rpc_connection_close(fixture->connection);
        break;
    case ACT_FREE_SERVER:
        rpc_server_free(fixture->server);
        fixture->server = NULL;
        break;
    case ACT_COUNT:
        break;
    }
}

static void act_on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)message;
    act(user, call);
    rpc_call_read(call);
}

static void act_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    ((struct actor *)user)->done++;
}

static void act_in_handler(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events EVENTS = {act_on_message, NULL, NULL, act_done};
    struct actor *actor = ((struct fixture *)user)->state;
    rpc_call_accept(call, &EVENTS, actor);
    send_output(call, "some output", 11);
    rpc_call_read(call);
}

static void calls_may_end_within_callbacks(void **state)
{
    struct fixture *fixture = *state;
    static const struct rpc_call_events CLIENT_EVENTS = {NULL, NULL, NULL, act_done};
    for (enum act kind = 0; kind < ACT_COUNT; kind++) {
        struct actor server = {fixture, kind, 0}, client = {fixture, kind, 0};
        fixture->state = &server;
        rpc_server_handle(fixture->server, &INTERACTIVE, act_in_handler);
        struct rpc_call *call =
            rpc_call_start(fixture->channel, &INTERACTIVE, NULL, &CLIENT_EVENTS, &client);
        send_input(call, "go", 2);
        rpc_call_read(call);
        FIXTURE_RUN_UNTIL(fixture, server.done && client.done);
        assert_int_equal(server.done, 1);
        assert_int_equal(client.done, 1);
        rpc_channel_free(fixture->channel);
        fixture->channel = NULL;
        if (fixture->server == NULL)
            fixture->server = rpc_server_new(fixture->runtime, fixture_authorize, fixture);
        fixture->channel = fixture_connect(fixture);
    }
}

static void client_acts_on_message(void **state)
{
    struct fixture *fixture = *state;
    static const struct rpc_call_events CLIENT_EVENTS = {act_on_message, NULL, NULL, act_done};
    for (enum act kind = 0; kind < ACT_FREE_SERVER; kind++) {
        struct actor server = {fixture, ACT_COUNT, 0}, client = {fixture, kind, 0};
        fixture->state = &server;
        rpc_server_handle(fixture->server, &INTERACTIVE, act_in_handler);
        struct rpc_call *call =
            rpc_call_start(fixture->channel, &INTERACTIVE, NULL, &CLIENT_EVENTS, &client);
        rpc_call_read(call);
        FIXTURE_RUN_UNTIL(fixture, server.done && client.done);
        rpc_channel_free(fixture->channel);
        fixture->channel = fixture_connect(fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(unary_call_is_answered),
        FIXTURE_TEST(errors_cross_without_loss),
        FIXTURE_TEST(missing_handlers_are_named),
        FIXTURE_TEST(missing_handlers_tell_nothing_to_strangers),
        FIXTURE_TEST(unknown_methods_are_named),
        FIXTURE_TEST(refused_callers_do_not_reach_the_handler),
        FIXTURE_TEST(bearers_arrive),
        FIXTURE_TEST(deadlines_end_calls_and_late_answers_are_harmless),
        FIXTURE_TEST(unary_calls_can_be_cancelled),
        FIXTURE_TEST(lost_connections_are_unavailable),
        FIXTURE_TEST(server_streams_arrive_whole),
        FIXTURE_TEST(a_failure_follows_what_was_queued),
        FIXTURE_TEST(requests_that_the_scan_refuses_end_the_call),
        FIXTURE_TEST(exactly_one_request_is_taken),
        FIXTURE_TEST(callers_that_leave_early_reach_no_handler),
        FIXTURE_TEST(responses_that_the_scan_refuses_are_errors),
        FIXTURE_TEST(client_streams_are_answered_once),
        FIXTURE_TEST(large_messages_pass_and_larger_ones_do_not),
        FIXTURE_TEST(both_ways_stream_and_half_close_is_an_end),
        FIXTURE_TEST(cancelling_clients_are_noticed),
        FIXTURE_TEST(cancelling_servers_are_noticed),
        FIXTURE_TEST(lost_clients_are_noticed),
        FIXTURE_TEST(closing_a_connection_ends_exactly_its_calls),
        FIXTURE_TEST(idle_connections_close),
        FIXTURE_TEST(calls_may_end_within_callbacks),
        FIXTURE_TEST(client_acts_on_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
