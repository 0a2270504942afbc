/* What a gateway answers: every method of the contract; lifecycle calls in each other's way;
 * watchers that do not keep up; drivers that fail. */
#include "gateway_harness.h"

#include "gateway/compute.h"
#include "gateway/lifecycle.h"
#include "gateway/listener.h"
#include "gateway/operations.h"

const char *__asan_default_options(void);

/* A gateway frees at its end what outlives no process. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- one call and what came of it ---- */

struct outcome {
    struct rpc_call *call;
    bool hold; /* leaves messages unread until it is told to */
    size_t messages;
    Openshell__V1__SandboxPhase phase; /* of the last sandbox that came */
    uint64_t version;
    Openshell__V1__DeletionOutcome deletion;
    bool done;
    struct error status;
};

static void note_sandbox(struct outcome *outcome, const Openshell__V1__Sandbox *sandbox)
{
    outcome->phase = sandbox->status->phase;
    outcome->version = sandbox->metadata->resource_version;
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct outcome *outcome = user;
    outcome->messages++;
    if (message->descriptor == &openshell__v1__sandbox_response__descriptor)
        note_sandbox(outcome, ((const Openshell__V1__SandboxResponse *)message)->sandbox);
    if (message->descriptor == &openshell__v1__sandbox_stream_event__descriptor)
        note_sandbox(outcome, ((const Openshell__V1__SandboxStreamEvent *)message)->sandbox);
    if (message->descriptor == &openshell__v1__delete_sandbox_response__descriptor)
        outcome->deletion = ((const Openshell__V1__DeleteSandboxResponse *)message)->outcome;
    if (!outcome->hold)
        rpc_call_read(call);
}

static void on_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct outcome *outcome = user;
    error_copy(&outcome->status, status);
    outcome->done = true;
}

static void start(struct rpc_channel *channel, const struct rpc_method *method, const char *bearer,
                  const ProtobufCMessage *request, struct outcome *outcome)
{
    static const struct rpc_call_events events = {.on_message = on_message, .on_done = on_done};
    struct rpc_call_options options = {.bearer = bearer};
    *outcome = (struct outcome){0};
    outcome->call = rpc_call_start(channel, method, &options, &events, outcome);
    rpc_call_send(outcome->call, request);
    rpc_call_half_close(outcome->call);
    rpc_call_read(outcome->call);
}

static void start_stop(struct rpc_channel *channel, struct outcome *outcome)
{
    Openshell__V1__StopSandboxRequest request = OPENSHELL__V1__STOP_SANDBOX_REQUEST__INIT;
    request.workspace_scope = harness_scope();
    request.name = (char *)"job";
    start(channel, METHOD(StopSandbox), NULL, &request.base, outcome);
}

static void start_start(struct rpc_channel *channel, struct outcome *outcome)
{
    Openshell__V1__StartSandboxRequest request = OPENSHELL__V1__START_SANDBOX_REQUEST__INIT;
    request.workspace_scope = harness_scope();
    request.name = (char *)"job";
    start(channel, METHOD(StartSandbox), NULL, &request.base, outcome);
}

static void start_delete(struct rpc_channel *channel, struct outcome *outcome)
{
    Openshell__V1__DeleteSandboxRequest request = OPENSHELL__V1__DELETE_SANDBOX_REQUEST__INIT;
    request.workspace_scope = harness_scope();
    request.name = (char *)"job";
    start(channel, METHOD(DeleteSandbox), NULL, &request.base, outcome);
}

static void start_create(struct rpc_channel *channel, const char *name, struct outcome *outcome)
{
    Openshell__V1__SandboxSpec spec = OPENSHELL__V1__SANDBOX_SPEC__INIT;
    Openshell__V1__CreateSandboxRequest request = OPENSHELL__V1__CREATE_SANDBOX_REQUEST__INIT;
    request.workspace_scope = harness_scope();
    request.name = (char *)name;
    request.spec = &spec;
    start(channel, METHOD(CreateSandbox), NULL, &request.base, outcome);
}

static void start_watch(struct rpc_channel *channel, struct outcome *outcome)
{
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    request.workspace_scope = harness_scope();
    request.sandbox = (char *)"job";
    request.follow_status = true;
    start(channel, METHOD(WatchSandbox), NULL, &request.base, outcome);
}

static struct outcome get(struct harness *harness, struct rpc_channel *channel, const char *name)
{
    Openshell__V1__GetSandboxRequest request = OPENSHELL__V1__GET_SANDBOX_REQUEST__INIT;
    request.workspace_scope = harness_scope();
    request.name = (char *)name;
    struct outcome outcome;
    start(channel, METHOD(GetSandbox), NULL, &request.base, &outcome);
    HARNESS_WAIT(harness, outcome.done);
    return outcome;
}

static void wait_for_phase(struct harness *harness, struct rpc_channel *channel,
                           Openshell__V1__SandboxPhase phase)
{
    struct outcome outcome;
    do
        outcome = get(harness, channel, "job");
    while (outcome.phase != phase);
}

/* ---- every method ---- */

static const struct rpc_method *const built[] = {
    METHOD(Health),
    METHOD(GetCurrentUser),
    METHOD(GetGatewayInfo),
    METHOD(CreateSandbox),
    METHOD(GetSandbox),
    METHOD(ListSandboxes),
    METHOD(DeleteSandbox),
    METHOD(StopSandbox),
    METHOD(StartSandbox),
    METHOD(WatchSandbox),
    METHOD(ExecSandbox),
    METHOD(ExecSandboxInteractive),
    METHOD(ConnectSupervisor),
    METHOD(RelayStream),
    METHOD(ReportMainProcessExit),
    METHOD(FinalizeMainProcessExit),
    METHOD(GetSandboxConfig),
    METHOD(ReportSandboxConfiguration),
    METHOD(ListWorkspaces),
    METHOD(GetWorkspace),
    METHOD(GetSandboxLogs),
    METHOD(PushSandboxLogs),
};

static bool is_built(const struct rpc_method *method)
{
    for (size_t i = 0; i < sizeof(built) / sizeof(built[0]); i++)
        if (built[i] == method)
            return true;
    return false;
}

static void check_method(struct harness *harness, struct rpc_channel *channel,
                         const struct rpc_method *method)
{
    ProtobufCMessage *request = memory_new(method->request->sizeof_message);
    protobuf_c_message_init(method->request, request);
    struct outcome outcome;
    const char *bearer = method->auth_mode == RPC_AUTH_SANDBOX ? harness->token : NULL;
    start(channel, method, bearer, request, &outcome);
    HARNESS_WAIT(harness, outcome.done);
    if (method->auth_mode == RPC_AUTH_PEER) {
        assert_int_equal(outcome.status.code, ERROR_PERMISSION_DENIED);
    } else if (is_built(method)) {
        assert_int_not_equal(outcome.status.code, ERROR_UNIMPLEMENTED);
    } else {
        assert_int_equal(outcome.status.code, ERROR_UNIMPLEMENTED);
        assert_non_null(strstr(outcome.status.message, method->path));
    }
    error_clear(&outcome.status);
    free(request);
}

static void test_every_method_answers(void **state)
{
    struct harness *harness = *state;
    struct rpc_channel *channel = harness_connect(harness);
    size_t asked = 0;
    for (size_t i = 0; i < rpc_method_count; i++) {
        if (strcmp(rpc_methods[i]->service, "openshell.v1.OpenShell") != 0)
            continue;
        check_method(harness, channel, rpc_methods[i]);
        asked++;
    }
    assert_int_equal(asked, 84);
    rpc_channel_free(channel);
}

/* ---- connections ---- */

static void start_health(struct rpc_channel *channel, struct outcome *outcome)
{
    Openshell__V1__HealthRequest request = OPENSHELL__V1__HEALTH_REQUEST__INIT;
    start(channel, METHOD(Health), NULL, &request.base, outcome);
}

/* Decision P14: one user is served so many connections at once, and the next waits its turn. The
 * supervisor that the harness plays is one of them: its process is no supervisor of the driver's.
 */
static void test_one_connection_too_many_waits(void **state)
{
    struct harness *harness = *state;
    enum { MANY = LISTENER_USER_LIMIT - 1 };
    static struct rpc_channel *channels[MANY];
    struct outcome outcome, waiting;
    for (size_t i = 0; i < MANY; i++) {
        channels[i] = harness_connect(harness);
        start_health(channels[i], &outcome);
        HARNESS_WAIT(harness, outcome.done);
        assert_int_equal(outcome.status.code, ERROR_OK);
    }
    struct rpc_channel *late = harness_connect(harness);
    start_health(late, &waiting);
    for (size_t i = 0; i < MANY; i++) {
        start_health(channels[i], &outcome);
        HARNESS_WAIT(harness, outcome.done);
    }
    assert_false(waiting.done);
    rpc_channel_free(channels[0]);
    HARNESS_WAIT(harness, waiting.done);
    assert_int_equal(waiting.status.code, ERROR_OK);
    for (size_t i = 1; i < MANY; i++)
        rpc_channel_free(channels[i]);
    rpc_channel_free(late);
}

/* ---- lifecycle calls ---- */

/* One at a time, in order, and what came first is finished although its caller went away. */
static void test_calls_wait_for_each_other(void **state)
{
    struct harness *harness = *state;
    struct rpc_channel *channel = harness_connect(harness), *leaver = harness_connect(harness);
    struct outcome stop, again, begin;
    harness->hold_stop = true;
    start_stop(leaver, &stop);
    HARNESS_WAIT(harness, stop.done);
    assert_int_equal(stop.phase, PHASE(STOPPING));
    rpc_channel_free(leaver);
    start_start(channel, &begin);
    start_stop(channel, &again);
    HARNESS_WAIT(harness, get(harness, channel, "job").phase == PHASE(STOPPING));
    assert_false(begin.done);
    assert_false(again.done);
    HARNESS_WAIT(harness, harness->held_done != NULL);
    harness_release_stop(harness);
    HARNESS_WAIT(harness, begin.done && again.done);
    assert_int_equal(begin.status.code, ERROR_OK);
    assert_int_equal(begin.phase, PHASE(STARTING));
    /* A start that is not ready yet cannot be stopped; the sandbox says so itself. */
    assert_int_equal(again.status.code, ERROR_FAILED_PRECONDITION);
    assert_int_equal(harness->starts, 2);
    error_clear(&again.status);
    rpc_channel_free(channel);
}

static void test_only_so_many_wait(void **state)
{
    struct harness *harness = *state;
    enum { MANY = OPERATIONS_LIMIT + 8 };
    static struct outcome outcomes[MANY];
    struct rpc_channel *channel = harness_connect(harness);
    harness->hold_stop = true;
    for (size_t i = 0; i < MANY; i++)
        start_stop(channel, &outcomes[i]);
    for (size_t i = OPERATIONS_LIMIT; i < MANY; i++) {
        HARNESS_WAIT(harness, outcomes[i].done);
        assert_int_equal(outcomes[i].status.code, ERROR_RESOURCE_EXHAUSTED);
        error_clear(&outcomes[i].status);
    }
    HARNESS_WAIT(harness, harness->held_done != NULL);
    harness_release_stop(harness);
    for (size_t i = 0; i < OPERATIONS_LIMIT; i++) {
        HARNESS_WAIT(harness, outcomes[i].done);
        assert_int_equal(outcomes[i].status.code, ERROR_OK);
    }
    assert_int_equal(harness->stops, 1);
    rpc_channel_free(channel);
}

static void test_delete_answers_when_it_is_gone(void **state)
{
    struct harness *harness = *state;
    struct rpc_channel *channel = harness_connect(harness);
    struct outcome first, second, third;
    harness->hold_stop = true;
    start_delete(channel, &first);
    wait_for_phase(harness, channel, PHASE(DELETING));
    start_delete(channel, &second);
    HARNESS_WAIT(harness, second.done);
    assert_int_equal(second.deletion, OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_ACCEPTED);
    assert_false(first.done);
    HARNESS_WAIT(harness, harness->held_done != NULL);
    harness_release_stop(harness);
    HARNESS_WAIT(harness, first.done);
    assert_int_equal(first.deletion, OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_COMPLETED);
    start_delete(channel, &third);
    HARNESS_WAIT(harness, third.done);
    assert_int_equal(third.status.code, ERROR_NOT_FOUND);
    assert_null(live_find(harness->gateway, harness->sandbox_id));
    error_clear(&third.status);
    rpc_channel_free(channel);
}

static void test_a_create_that_fails_leaves_nothing(void **state)
{
    struct harness *harness = *state;
    struct rpc_channel *channel = harness_connect(harness);
    struct outcome outcome;
    harness->refuse_start = true;
    start_create(channel, "other", &outcome);
    HARNESS_WAIT(harness, outcome.done);
    assert_int_equal(outcome.status.code, ERROR_INTERNAL);
    assert_non_null(strstr(outcome.status.message, "no machine"));
    assert_int_equal(harness->removals, 1);
    error_clear(&outcome.status);
    outcome = get(harness, channel, "other");
    assert_int_equal(outcome.status.code, ERROR_NOT_FOUND);
    error_clear(&outcome.status);
    assert_int_equal(table_count(harness->gateway->live), 1);
    harness->refuse_start = false;
    start_create(channel, "other", &outcome);
    HARNESS_WAIT(harness, outcome.done);
    assert_int_equal(outcome.status.code, ERROR_OK);
    rpc_channel_free(channel);
}

/* ---- what the driver sees ---- */

static void test_processes_that_end(void **state)
{
    struct harness *harness = *state;
    struct rpc_channel *channel = harness_connect(harness);
    struct outcome outcome;
    struct driver_end end = {.cause = DRIVER_END_SUPERVISOR_LOST};
    harness->running = false;
    compute_ended(harness->gateway, harness->sandbox_id, &end);
    wait_for_phase(harness, channel, PHASE(ERROR));
    /* Infrastructure may be started again (decision P11). */
    start_start(channel, &outcome);
    HARNESS_WAIT(harness, outcome.done);
    assert_int_equal(outcome.phase, PHASE(STARTING));
    rpc_channel_free(channel);
}

/* ---- watching ---- */

static void test_a_watch_follows_to_the_end(void **state)
{
    struct harness *harness = *state;
    struct rpc_channel *channel = harness_connect(harness);
    struct outcome watch, outcome;
    start_watch(channel, &watch);
    HARNESS_WAIT(harness, watch.messages == 1);
    assert_int_equal(watch.phase, PHASE(READY));
    start_stop(channel, &outcome);
    HARNESS_WAIT(harness, watch.phase == PHASE(STOPPED));
    start_delete(channel, &outcome);
    HARNESS_WAIT(harness, watch.done);
    assert_int_equal(watch.status.code, ERROR_OK);
    rpc_channel_free(channel);
}

/* Whoever does not read gets the newest state, not all of them. */
static void test_a_slow_watch_gets_the_newest(void **state)
{
    struct harness *harness = *state;
    enum { CHANGES = 200 };
    struct rpc_channel *channel = harness_connect(harness), *slow = harness_connect(harness);
    struct outcome watch, outcome;
    start_watch(slow, &watch);
    HARNESS_WAIT(harness, watch.messages == 1);
    watch.hold = true;
    start_stop(channel, &outcome);
    HARNESS_WAIT(harness, watch.messages == 2);
    uint64_t first = watch.version;
    wait_for_phase(harness, channel, PHASE(STOPPED));
    for (size_t i = 0; i < CHANGES; i++) {
        size_t starts = harness->starts;
        start_start(channel, &outcome);
        HARNESS_WAIT(harness, outcome.done && harness->starts > starts);
        struct driver_end end = {.cause = DRIVER_END_RUNTIME_LOST};
        compute_ended(harness->gateway, harness->sandbox_id, &end);
        wait_for_phase(harness, channel, PHASE(ERROR));
    }
    uint64_t newest = get(harness, channel, "job").version;
    assert_true(newest > first + CHANGES);
    watch.hold = false;
    rpc_call_read(watch.call);
    HARNESS_WAIT(harness, watch.version == newest);
    /* What fits into the stream's window was on its way; the rest was never queued. */
    print_message("%zu messages for %llu changes\n", watch.messages,
                  (unsigned long long)(newest - first));
    assert_true(watch.messages < (newest - first) * 3 / 4);
    rpc_channel_free(slow);
    rpc_channel_free(channel);
}

#define GATEWAY_TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        GATEWAY_TEST(test_every_method_answers),
        GATEWAY_TEST(test_one_connection_too_many_waits),
        GATEWAY_TEST(test_calls_wait_for_each_other),
        GATEWAY_TEST(test_only_so_many_wait),
        GATEWAY_TEST(test_delete_answers_when_it_is_gone),
        GATEWAY_TEST(test_a_create_that_fails_leaves_nothing),
        GATEWAY_TEST(test_processes_that_end),
        GATEWAY_TEST(test_a_watch_follows_to_the_end),
        GATEWAY_TEST(test_a_slow_watch_gets_the_newest),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fflush(NULL);
    _exit(failed);
}
