/* Logs through a gateway: pushed by a supervisor, asked for and followed by a client. */
#include "gateway_harness.h"

#include "gateway/journal.h"
#include "gateway/logs.h"

const char *__asan_default_options(void);

/* A gateway frees at its end what outlives no process. */
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

/* ---- the supervisor ---- */

enum { BATCH_MAX = 150 };

struct pushed {
    bool done;
    struct error status;
};

static void on_pushed(const ProtobufCMessage *response, const struct error *error, void *user)
{
    struct pushed *pushed = user;
    pushed->done = true;
    if (response == NULL)
        error_copy(&pushed->status, error);
}

/* One batch of lines "TEXT0", "TEXT1", ... with a second each. */
static enum error_code push(struct harness *harness, const char *sandbox_id, const char *text,
                            size_t count, int64_t first_second)
{
    static Openshell__V1__SandboxLogLine lines[BATCH_MAX], *pointers[BATCH_MAX];
    static Google__Protobuf__Timestamp times[BATCH_MAX];
    static char texts[BATCH_MAX][64];
    Openshell__V1__PushSandboxLogsRequest request = OPENSHELL__V1__PUSH_SANDBOX_LOGS_REQUEST__INIT;
    request.sandbox_id = (char *)sandbox_id;
    request.logs = pointers;
    for (; request.n_logs < count; request.n_logs++) {
        size_t i = request.n_logs;
        openshell__v1__sandbox_log_line__init(&lines[i]);
        google__protobuf__timestamp__init(&times[i]);
        times[i].seconds = first_second + (int64_t)i;
        snprintf(texts[i], sizeof(texts[i]), "%s%zu", text, i);
        lines[i].event_time = &times[i];
        lines[i].level = (char *)(i % 2 == 0 ? "INFO" : "WARN");
        lines[i].source = (char *)"gateway"; /* a lie */
        lines[i].sandbox_id = (char *)"another";
        lines[i].message = texts[i];
        pointers[i] = &lines[i];
    }
    struct pushed pushed = {0};
    struct rpc_call_options options = {.bearer = harness->token};
    rpc_unary(harness->supervisor, METHOD(PushSandboxLogs), &options, &request.base, on_pushed,
              &pushed);
    HARNESS_WAIT(harness, pushed.done);
    enum error_code code = pushed.status.code;
    error_clear(&pushed.status);
    return code;
}

/* ---- asking ---- */

static const Openshell__V1__GetSandboxLogsResponse *get(struct harness *harness,
                                                        struct arena *arena, uint32_t lines,
                                                        const char *source, const char *level,
                                                        int64_t since)
{
    char *sources[] = {(char *)source};
    Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    time.seconds = since;
    Openshell__V1__GetSandboxLogsRequest request = OPENSHELL__V1__GET_SANDBOX_LOGS_REQUEST__INIT;
    request.workspace_scope = harness_scope();
    request.sandbox = (char *)"job";
    request.lines = lines;
    request.n_sources = source != NULL;
    request.sources = sources;
    request.min_level = (char *)level;
    request.since_time = since > 0 ? &time : NULL;
    return (const Openshell__V1__GetSandboxLogsResponse *)harness_unary(
        harness, NULL, METHOD(GetSandboxLogs), &request.base, arena);
}

static void test_push_and_get(void **state)
{
    struct harness *harness = *state;
    struct arena *arena = arena_new(0);
    const Openshell__V1__GetSandboxLogsResponse *response = get(harness, arena, 0, NULL, "", 0);
    size_t own = response->n_logs; /* the gateway's */
    assert_true(own > 0);
    for (size_t i = 0; i < own; i++) {
        assert_string_equal(response->logs[i]->source, "gateway");
        assert_string_equal(response->logs[i]->sandbox_id, harness->sandbox_id);
    }

    assert_int_equal(push(harness, harness->sandbox_id, "a", 3, 1000), ERROR_OK);
    assert_int_equal(push(harness, "", "skipped", 3, 1100), ERROR_OK);
    assert_int_equal(push(harness, "another", "stolen", 3, 1200), ERROR_PERMISSION_DENIED);
    assert_int_equal(push(harness, harness->sandbox_id, "a", 3, 1000), ERROR_OK); /* again */
    response = get(harness, arena, 0, "sandbox", "", 0);
    assert_int_equal(response->n_logs, 3);
    assert_int_equal(response->buffer_total, own + 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(response->logs[i]->source, "sandbox");
        assert_string_equal(response->logs[i]->sandbox_id, harness->sandbox_id);
        assert_int_equal(response->logs[i]->event_time->seconds, 1000 + (int64_t)i);
    }
    assert_string_equal(response->logs[2]->message, "a2");
    assert_int_equal(get(harness, arena, 2, "sandbox", "", 0)->n_logs, 2);
    assert_int_equal(get(harness, arena, 0, "sandbox", "WARN", 0)->n_logs, 1);
    assert_int_equal(get(harness, arena, 0, "sandbox", "", 1002)->n_logs, 1);
    assert_int_equal(get(harness, arena, 0, "sandbox", "", 5000)->n_logs, 0);
    arena_free(arena);
}

/* Lines that come late stand where they belong. */
static void test_get_in_order_of_time(void **state)
{
    struct harness *harness = *state;
    struct arena *arena = arena_new(0);
    push(harness, harness->sandbox_id, "late", 1, 2000);
    push(harness, harness->sandbox_id, "early", 1, 1000);
    const Openshell__V1__GetSandboxLogsResponse *response = get(harness, arena, 0, NULL, "", 0);
    for (size_t i = 1; i < response->n_logs; i++)
        assert_true(response->logs[i - 1]->event_time->seconds <=
                    response->logs[i]->event_time->seconds);
    assert_string_equal(response->logs[0]->message, "early0");
    arena_free(arena);
}

static void test_batch_is_bounded(void **state)
{
    struct harness *harness = *state;
    struct arena *arena = arena_new(0);
    assert_int_equal(push(harness, harness->sandbox_id, "a", BATCH_MAX, 1000), ERROR_OK);
    assert_int_equal(get(harness, arena, 0, "sandbox", "", 0)->n_logs, LOGS_BATCH_LIMIT);
    arena_free(arena);
}

/* ---- following ---- */

struct follower {
    struct rpc_channel *channel;
    struct rpc_call *call;
    bool hold; /* reads nothing until it is told to */
    size_t snapshots;
    size_t lines;
    size_t events;
    size_t warnings;
    uint64_t warned;   /* lines that the warnings speak of */
    size_t disordered; /* cursors that did not grow */
    char cursor[64];   /* of the last line or event */
    char cursors[8][64];
    char last[64];
    bool done;
    struct error status;
};

static void on_event(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct follower *follower = user;
    const Openshell__V1__SandboxStreamEvent *event =
        (const Openshell__V1__SandboxStreamEvent *)message;
    switch (event->payload_case) {
    case OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_SANDBOX:
        follower->snapshots++;
        assert_string_equal(event->cursor, "");
        break;
    case OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_LOG:
        if (follower->lines < 8)
            snprintf(follower->cursors[follower->lines], 64, "%s", event->cursor);
        follower->lines++;
        snprintf(follower->last, sizeof(follower->last), "%s", event->log->message);
        break;
    case OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_EVENT:
        follower->events++;
        break;
    case OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_WARNING:
        follower->warnings++;
        follower->warned += strtoull(event->warning->message, NULL, 10);
        break;
    default:
        break;
    }
    if (event->cursor[0] != '\0') {
        follower->disordered += strcmp(event->cursor, follower->cursor) <= 0;
        snprintf(follower->cursor, sizeof(follower->cursor), "%s", event->cursor);
    }
    if (!follower->hold)
        rpc_call_read(call);
}

static void on_follower_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct follower *follower = user;
    error_copy(&follower->status, status);
    follower->done = true;
}

static void follow(struct harness *harness, struct follower *follower,
                   Openshell__V1__WatchSandboxRequest *request)
{
    static const struct rpc_call_events events = {.on_message = on_event,
                                                  .on_done = on_follower_done};
    *follower = (struct follower){.channel = harness_connect(harness), .hold = follower->hold};
    request->workspace_scope = harness_scope();
    request->sandbox = (char *)"job";
    follower->call =
        rpc_call_start(follower->channel, METHOD(WatchSandbox), NULL, &events, follower);
    rpc_call_send(follower->call, &request->base);
    rpc_call_half_close(follower->call);
    rpc_call_read(follower->call);
}

static void leave(struct harness *harness, struct follower *follower)
{
    if (!follower->done)
        rpc_call_cancel(follower->call);
    HARNESS_WAIT(harness, follower->done);
    error_clear(&follower->status);
    rpc_channel_free(follower->channel);
}

/* One snapshot, what was said, then what is said. */
static void test_follow_logs(void **state)
{
    struct harness *harness = *state;
    struct follower follower = {0};
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    char *sources[] = {(char *)"sandbox"};
    push(harness, harness->sandbox_id, "a", 5, 1000);
    request.follow_logs = true;
    request.log_tail_lines = 3;
    request.n_log_sources = 1;
    request.log_sources = sources;
    follow(harness, &follower, &request);
    HARNESS_WAIT(harness, follower.lines == 3);
    assert_string_equal(follower.last, "a4");
    push(harness, harness->sandbox_id, "b", 2, 1100);
    HARNESS_WAIT(harness, follower.lines == 5);
    assert_string_equal(follower.last, "b1");
    logs_note(harness->gateway, harness->sandbox_id, LOG_LEVEL_INFO, "t", NULL, "not asked for");
    push(harness, harness->sandbox_id, "c", 1, 1200);
    HARNESS_WAIT(harness, follower.lines == 6);
    assert_int_equal(follower.snapshots, 1);
    assert_int_equal(follower.events, 0);
    assert_int_equal(follower.disordered, 0);
    leave(harness, &follower);
}

static void test_follow_events(void **state)
{
    struct harness *harness = *state;
    struct follower follower = {0};
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    request.follow_events = true;
    request.follow_logs = true;
    request.follow_status = true;
    request.event_tail = 1;
    request.log_tail_lines = 1;
    follow(harness, &follower, &request);
    HARNESS_WAIT(harness, follower.events == 1 && follower.lines == 1);
    harness_cut_session(harness);
    harness_open_session(harness);
    HARNESS_WAIT(harness, follower.lines >= 3);
    assert_int_equal(follower.disordered, 0);
    leave(harness, &follower);
}

/* ---- cursors ---- */

static enum error_code resume(struct harness *harness, struct follower *follower,
                              const char *cursor, size_t lines)
{
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    request.follow_logs = true;
    request.log_tail_lines = 1;
    request.resume_after_cursor = (char *)cursor;
    follow(harness, follower, &request);
    HARNESS_WAIT(harness, follower->done || follower->lines == lines);
    enum error_code code = follower->status.code;
    leave(harness, follower);
    return code;
}

static void test_resume(void **state)
{
    struct harness *harness = *state;
    struct follower follower = {0}, again = {0};
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    char *sources[] = {(char *)"sandbox"};
    push(harness, harness->sandbox_id, "a", 5, 1000);
    request.follow_logs = true;
    request.n_log_sources = 1;
    request.log_sources = sources;
    follow(harness, &follower, &request);
    HARNESS_WAIT(harness, follower.lines == 5);
    leave(harness, &follower);

    assert_int_equal(resume(harness, &again, follower.cursors[1], 3), ERROR_OK);
    assert_string_equal(again.last, "a4");
    assert_int_equal(resume(harness, &again, "nonsense", 99), ERROR_INVALID_ARGUMENT);
    char cursor[64];
    memcpy(cursor, follower.cursors[0], sizeof(cursor));
    memset(cursor + 17, 'f', 16); /* nothing is as late */
    assert_int_equal(resume(harness, &again, cursor, 99), ERROR_INVALID_ARGUMENT);
    memcpy(cursor, follower.cursors[0], sizeof(cursor));
    memset(cursor, '0', 16); /* another journal */
    assert_int_equal(resume(harness, &again, cursor, 99), ERROR_OUT_OF_RANGE);
    for (int64_t i = 0; i < JOURNAL_LINES_LIMIT / 100 + 1; i++)
        push(harness, harness->sandbox_id, "flood", 100, 10000 + i * 100);
    assert_int_equal(resume(harness, &again, follower.cursors[1], 99), ERROR_OUT_OF_RANGE);
}

/* ---- falling behind ---- */

/* Whoever does not read is told how much was dropped; nothing else is missing or comes twice. */
static void test_lag(void **state)
{
    struct harness *harness = *state;
    struct follower follower = {.hold = true};
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    char *sources[] = {(char *)"sandbox"};
    request.follow_logs = true;
    request.n_log_sources = 1;
    request.log_sources = sources;
    follow(harness, &follower, &request);
    HARNESS_WAIT(harness, follower.snapshots == 1);
    enum { BATCHES = 300, ALL = BATCHES * 100 };
    for (int64_t i = 0; i < BATCHES; i++)
        push(harness, harness->sandbox_id, "flood", 100, 10000 + i * 100);
    follower.hold = false;
    rpc_call_read(follower.call);
    HARNESS_WAIT(harness, follower.lines + follower.warned >= ALL);
    assert_true(follower.warnings >= 1);
    assert_true(follower.lines >= JOURNAL_LINES_LIMIT);
    assert_int_equal(follower.disordered, 0);
    assert_string_equal(follower.last, "flood99");
    push(harness, harness->sandbox_id, "after", 1, 900000);
    HARNESS_WAIT(harness, strcmp(follower.last, "after0") == 0);
    leave(harness, &follower);
}

/* ---- the end ---- */

/* A stream that ends with readiness has brought what was said before. */
static void test_stop_on_terminal(void **state)
{
    struct harness *harness = *state;
    struct follower follower = {0};
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    char *sources[] = {(char *)"sandbox"};
    for (int64_t i = 0; i < 5; i++)
        push(harness, harness->sandbox_id, "a", 100, 1000 + i * 100);
    request.follow_logs = true;
    request.log_tail_lines = 400;
    request.stop_on_terminal = true;
    request.n_log_sources = 1;
    request.log_sources = sources;
    follow(harness, &follower, &request);
    HARNESS_WAIT(harness, follower.done);
    assert_int_equal(follower.status.code, ERROR_OK);
    assert_int_equal(follower.lines, 400);
    assert_int_equal(follower.snapshots, 1);
    leave(harness, &follower);
}

static void test_delete_ends_it(void **state)
{
    struct harness *harness = *state;
    struct arena *arena = arena_new(0);
    struct follower follower = {0};
    Openshell__V1__WatchSandboxRequest request = OPENSHELL__V1__WATCH_SANDBOX_REQUEST__INIT;
    request.follow_logs = true;
    follow(harness, &follower, &request);
    HARNESS_WAIT(harness, follower.lines > 0);
    Openshell__V1__DeleteSandboxRequest removal = OPENSHELL__V1__DELETE_SANDBOX_REQUEST__INIT;
    removal.workspace_scope = harness_scope();
    removal.name = (char *)"job";
    harness_unary(harness, NULL, METHOD(DeleteSandbox), &removal.base, arena);
    HARNESS_WAIT(harness, follower.done);
    assert_int_equal(follower.status.code, ERROR_OK);
    assert_null(journals_find(harness->gateway->journals, harness->sandbox_id));
    assert_int_equal(journals_bytes(harness->gateway->journals), 0);
    leave(harness, &follower);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_push_and_get, harness_setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_get_in_order_of_time, harness_setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_batch_is_bounded, harness_setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_follow_logs, harness_setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_follow_events, harness_setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_resume, harness_setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_lag, harness_setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_stop_on_terminal, harness_setup, harness_teardown),
        cmocka_unit_test_setup_teardown(test_delete_ends_it, harness_setup, harness_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
