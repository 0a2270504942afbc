/* Calls of all four kinds: what arrives, how they end. */
#include "rpc_fixture.h"

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

static void stream_three(struct rpc_call *call, void *user)
{
    (void)user;
    const Openshell__V1__ExecSandboxRequest *request =
        (const Openshell__V1__ExecSandboxRequest *)rpc_call_request(call);
    for (size_t i = 0; i < request->n_command; i++)
        assert_true(send_output(call, request->command[i], strlen(request->command[i])));
    rpc_call_finish(call);
}

static struct rpc_call *start_exec(struct fixture *fixture, struct seen *seen)
{
    Openshell__V1__ExecSandboxRequest request = OPENSHELL__V1__EXEC_SANDBOX_REQUEST__INIT;
    char *command[] = {(char *)"one", (char *)"three", (char *)"eleven"};
    request.command = command;
    request.n_command = 3;
    struct rpc_call *call = rpc_call_start(fixture->channel, &EXEC, NULL, &SEEN_EVENTS, seen);
    assert_true(rpc_call_send(call, &request.base));
    rpc_call_half_close(call);
    rpc_call_read(call);
    return call;
}

static void server_stream_arrives_whole(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen = {.read_all = true};
    rpc_server_handle(fixture->server, &EXEC, stream_three);
    start_exec(fixture, &seen);
    FIXTURE_RUN_UNTIL(fixture, seen.done);
    assert_int_equal(seen.messages, 3);
    assert_int_equal(seen.bytes, 3 + 5 + 6);
    assert_int_equal(seen.ends, 1);
    assert_int_equal(seen.status.code, ERROR_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unary_call_is_answered, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(server_stream_arrives_whole, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
