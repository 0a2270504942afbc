/* What hostile, dead, slow and numerous peers may cost. */
#include "rpc_fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#include "base/file.h"
#include "base/memory.h"

#if defined(__SANITIZE_ADDRESS__)
size_t __sanitizer_get_current_allocated_bytes(void);
#endif

enum {
    MEBIBYTE = 1024 * 1024,
    /* A stream's window, and what gRPC holds on both sides of it (decision B5). */
    STREAM_ALLOWANCE = 256 * 1024,
};

/* Bytes this process has in memory; what is allocated where the sanitizer keeps freed memory. */
static size_t memory_used(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return __sanitizer_get_current_allocated_bytes();
#else
    unsigned long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &pages, &resident), 2);
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
#endif
}

static size_t grown_since(size_t before)
{
    size_t now = memory_used();
    return now > before ? now - before : 0;
}

/* ---- a client in a process of its own: this program, started again ---- */

static _Noreturn void run_client(int descriptor)
{
    struct reactor *reactor = reactor_new(NULL);
    struct rpc_runtime *runtime = rpc_runtime_new(reactor, NULL);
    struct rpc_channel *channel = rpc_channel_new(runtime, descriptor, NULL);
    struct rpc_call *call =
        rpc_call_start(channel, &INTERACTIVE, NULL, &SEEN_EVENTS, memory_new_of(struct seen));
    for (int i = 0; i < 10; i++)
        send_input(call, "half of an upload", 17);
    rpc_call_read(call);
    for (;;)
        reactor_run_once(reactor);
}

static pid_t start_client(int descriptor)
{
    pid_t child = fork();
    if (child == 0) {
        char number[16];
        snprintf(number, sizeof(number), "%d", dup(descriptor));
        execl("/proc/self/exe", "client", number, (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    close(descriptor);
    return child;
}

struct upload {
    struct rpc_call *call;
    unsigned messages;
    unsigned ends;
    unsigned done;
    struct error status;
};

static void upload_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    (void)message;
    ((struct upload *)user)->messages++;
    rpc_call_read(call);
}

static void upload_end(struct rpc_call *call, void *user)
{
    (void)call;
    ((struct upload *)user)->ends++;
}

static void upload_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct upload *upload = user;
    upload->done++;
    error_copy(&upload->status, status);
}

static void handle_upload(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events EVENTS = {upload_message, upload_end, NULL, upload_done};
    struct upload *upload = ((struct fixture *)user)->state;
    upload->call = call;
    rpc_call_accept(call, &EVENTS, upload);
    rpc_call_read(call);
}

static void killed_clients_are_cancelled_calls(void **state)
{
    struct fixture *fixture = *state;
    struct upload upload = {0};
    int ends[2];
    fixture->state = &upload;
    rpc_server_handle(fixture->server, &INTERACTIVE, handle_upload);
    fixture_socket_pair(ends);
    fixture_accept(fixture, ends[1], 0);
    pid_t child = start_client(ends[0]);
    FIXTURE_RUN_UNTIL(fixture, upload.messages == 10);
    assert_int_equal(upload.done, 0);
    kill(child, SIGKILL);
    FIXTURE_RUN_UNTIL(fixture, upload.done && fixture->connections_closed == 1);
    assert_int_equal(upload.done, 1);
    assert_int_equal(upload.status.code, ERROR_CANCELLED);
    waitpid(child, NULL, 0);
    error_clear(&upload.status);
}

/* ---- who is there ---- */

static void peers_of_listening_sockets_are_known(void **state)
{
    struct fixture *fixture = *state;
    char directory[] = "/tmp/test_rpc.XXXXXX";
    char path[64];
    uid_t user = 12345;
    pid_t process = 0;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/socket", directory);
    int listener = file_unix_listen(path, 0600, 8, NULL);
    int client = file_unix_connect(path, NULL);
    int accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    assert_true(accepted >= 0);
    struct rpc_connection *connection = fixture_accept(fixture, accepted, 0);
    assert_true(rpc_connection_peer(connection, &user, NULL, &process));
    assert_int_equal(user, getuid());
    assert_int_equal(process, getpid());
    /* A socket pair says only who made it. */
    assert_false(rpc_connection_peer(fixture->connection, &user, NULL, NULL));
    close(client);
    FIXTURE_RUN_UNTIL(fixture, fixture->connections_closed == 1);
    close(listener);
    unlink(path);
    rmdir(directory);
}

/* ---- connections that come and go ---- */

static void connect_and_leave(struct fixture *fixture, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        int ends[2];
        unsigned closed = fixture->connections_closed;
        fixture_socket_pair(ends);
        fixture_accept(fixture, ends[1], 60 * 1000);
        close(ends[0]);
        FIXTURE_RUN_UNTIL(fixture, fixture->connections_closed > closed);
    }
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    for (int i = 0; i < 1024; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

static void bare_connections_leave_nothing_behind(void **state)
{
    struct fixture *fixture = *state;
    enum { CONNECTIONS = 10000 };
    connect_and_leave(fixture, CONNECTIONS / 10);
    size_t before = memory_used();
    unsigned descriptors = open_descriptors();
    connect_and_leave(fixture, CONNECTIONS);
    size_t grown = grown_since(before);
    print_message("%d bare connections left %zu KiB\n", CONNECTIONS, grown / 1024);
    assert_true(grown < MEBIBYTE);
    assert_int_equal(open_descriptors(), descriptors);
}

static void rubbish_ends_a_connection(void **state)
{
    struct fixture *fixture = *state;
    int ends[2];
    char text[512];
    fixture_socket_pair(ends);
    fixture_accept(fixture, ends[1], 0);
    assert_int_equal(write(ends[0], "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35), 35);
    FIXTURE_RUN_UNTIL(fixture, fixture->connections_closed == 1);
    ssize_t count = 1;
    while (count > 0)
        count = read(ends[0], text, sizeof(text));
    assert_int_equal(count, 0);
    close(ends[0]);
}

/* ---- a client that keeps no rule of ours: gRPC without our channel arguments ---- */

struct foreign {
    grpc_completion_queue *queue;
    grpc_channel *channel;
    grpc_channel_credentials *credentials;
};

static struct foreign foreign_connect(struct fixture *fixture)
{
    int ends[2];
    struct foreign foreign;
    fixture_socket_pair(ends);
    fixture_accept(fixture, ends[1], 0);
    foreign.queue = grpc_completion_queue_create_for_next(NULL);
    foreign.credentials = grpc_insecure_credentials_create();
    foreign.channel = grpc_channel_create_from_fd("foreign", ends[0], foreign.credentials, NULL);
    return foreign;
}

static void foreign_free(struct fixture *fixture, struct foreign *foreign)
{
    grpc_channel_destroy(foreign->channel);
    grpc_channel_credentials_release(foreign->credentials);
    grpc_completion_queue_shutdown(foreign->queue);
    grpc_event event;
    do
        event =
            grpc_completion_queue_next(foreign->queue, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    while (event.type != GRPC_QUEUE_SHUTDOWN);
    grpc_completion_queue_destroy(foreign->queue);
    FIXTURE_RUN_UNTIL(fixture, fixture->connections_closed > 0);
}

static void do_nothing(void *argument)
{
    (void)argument;
}

static grpc_event poll_queue(grpc_completion_queue *queue)
{
    return grpc_completion_queue_next(queue, gpr_inf_past(GPR_CLOCK_MONOTONIC), NULL);
}

/* Sends the bytes as the one request, and gives the call's status and text (64 bytes). */
static grpc_status_code foreign_call(struct fixture *fixture, struct foreign *foreign,
                                     const char *path, const void *data, size_t length,
                                     grpc_metadata *metadata, size_t metadata_count, char *ret_text)
{
    grpc_call *call = grpc_channel_create_call(foreign->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
                                               foreign->queue, grpc_slice_from_static_string(path),
                                               NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_slice slice = grpc_slice_from_copied_buffer(data, length);
    grpc_byte_buffer *request = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_metadata_array initial, trailing;
    grpc_metadata_array_init(&initial);
    grpc_metadata_array_init(&trailing);
    grpc_status_code status = GRPC_STATUS_UNKNOWN;
    grpc_slice text;
    grpc_op ops[5] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
                      {.op = GRPC_OP_SEND_MESSAGE},
                      {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
                      {.op = GRPC_OP_RECV_STATUS_ON_CLIENT},
                      {.op = GRPC_OP_RECV_INITIAL_METADATA}};
    ops[0].data.send_initial_metadata.count = metadata_count;
    ops[0].data.send_initial_metadata.metadata = metadata;
    ops[1].data.send_message.send_message = request;
    ops[3].data.recv_status_on_client.trailing_metadata = &trailing;
    ops[3].data.recv_status_on_client.status = &status;
    ops[3].data.recv_status_on_client.status_details = &text;
    ops[4].data.recv_initial_metadata.recv_initial_metadata = &initial;
    assert_int_equal(grpc_call_start_batch(call, ops, 5, call, NULL), GRPC_CALL_OK);
    /* The loop does not know of the other queue: it looks there between its turns. */
    struct reactor_timer *tick = reactor_timer_start(fixture->reactor, 1, 1, do_nothing, NULL);
    grpc_event event = {0};
    FIXTURE_RUN_UNTIL(fixture, event.type == GRPC_OP_COMPLETE ||
                                   (event = poll_queue(foreign->queue)).type == GRPC_OP_COMPLETE);
    reactor_timer_cancel(tick);
    char *copy = grpc_slice_to_c_string(text);
    snprintf(ret_text, 64, "%s", copy);
    gpr_free(copy);
    grpc_slice_unref(text);
    grpc_slice_unref(slice);
    grpc_byte_buffer_destroy(request);
    grpc_metadata_array_destroy(&initial);
    grpc_metadata_array_destroy(&trailing);
    grpc_call_unref(call);
    return status;
}

static void refuse_handler(struct rpc_call *call, void *user)
{
    (void)call;
    (void)user;
    fail_msg("the handler must not be called");
}

static void messages_over_the_limit_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct foreign foreign = foreign_connect(fixture);
    char text[64];
    size_t length = RPC_MESSAGE_LIMIT + 1;
    void *data = memory_new(length);
    rpc_server_handle(fixture->server, &EXEC, refuse_handler);
    assert_int_equal(foreign_call(fixture, &foreign, EXEC.path, data, length, NULL, 0, text),
                     GRPC_STATUS_RESOURCE_EXHAUSTED);
    free(data);
    foreign_free(fixture, &foreign);
}

static void rubbish_requests_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct foreign foreign = foreign_connect(fixture);
    char text[64];
    rpc_server_handle(fixture->server, &EXEC, refuse_handler);
    assert_int_equal(
        foreign_call(fixture, &foreign, EXEC.path, "\x0a\xff\xff\xff\xff\x0f", 6, NULL, 0, text),
        GRPC_STATUS_INVALID_ARGUMENT);
    foreign_free(fixture, &foreign);
}

static void compressed_requests_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct foreign foreign = foreign_connect(fixture);
    char text[64];
    char zeros[4096] = {0};
    grpc_metadata gzip = {
        .key = grpc_slice_from_static_string("grpc-internal-encoding-request"),
        .value = grpc_slice_from_static_string("gzip"),
    };
    rpc_server_handle(fixture->server, &EXEC, refuse_handler);
    assert_int_equal(
        foreign_call(fixture, &foreign, EXEC.path, zeros, sizeof(zeros), &gzip, 1, text),
        GRPC_STATUS_UNIMPLEMENTED);
    foreign_free(fixture, &foreign);
}

static void count_values(struct rpc_call *call, void *user)
{
    size_t count = 0;
    const char *first = rpc_call_metadata(call, "authorization", &count);
    struct error error = {0};
    (void)user;
    error_set(&error, ERROR_ABORTED, "%zu: %s", count, first);
    rpc_call_fail(call, &error);
    error_clear(&error);
}

static void repeated_metadata_is_counted(void **state)
{
    struct fixture *fixture = *state;
    struct foreign foreign = foreign_connect(fixture);
    char text[64];
    grpc_metadata twice[2] = {
        {.key = grpc_slice_from_static_string("authorization"),
         .value = grpc_slice_from_static_string("Bearer one")},
        {.key = grpc_slice_from_static_string("authorization"),
         .value = grpc_slice_from_static_string("Bearer two")},
    };
    rpc_server_handle(fixture->server, &HEALTH, count_values);
    assert_int_equal(foreign_call(fixture, &foreign, HEALTH.path, "", 0, twice, 2, text),
                     GRPC_STATUS_ABORTED);
    assert_string_equal(text, "2: Bearer one");
    foreign_free(fixture, &foreign);
}

/* ---- slow readers ---- */

struct flood {
    struct fixture *fixture;
    unsigned accepted;
    size_t sent;
    unsigned done;
};

static uint8_t CHUNK[32 * 1024];

static void pour(struct rpc_call *call, struct flood *flood)
{
    while (send_output(call, CHUNK, sizeof(CHUNK)))
        flood->sent += sizeof(CHUNK);
}

static void flood_sent(struct rpc_call *call, void *user)
{
    pour(call, user);
}

static void flood_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    ((struct flood *)user)->done++;
}

static void handle_flood(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events EVENTS = {NULL, NULL, flood_sent, flood_done};
    struct flood *flood = ((struct fixture *)user)->state;
    flood->accepted++;
    rpc_call_accept(call, &EVENTS, flood);
    pour(call, flood);
}

static struct rpc_call *start_exec_on(struct rpc_channel *channel, struct seen *seen)
{
    Openshell__V1__ExecSandboxRequest request = OPENSHELL__V1__EXEC_SANDBOX_REQUEST__INIT;
    struct rpc_call *call = rpc_call_start(channel, &EXEC, NULL, &SEEN_EVENTS, seen);
    rpc_call_send(call, &request.base);
    rpc_call_half_close(call);
    return call;
}

static void note_time(void *argument)
{
    *(bool *)argument = true;
}

static void run_for(struct fixture *fixture, unsigned milliseconds)
{
    bool over = false;
    struct reactor_timer *timer =
        reactor_timer_start(fixture->reactor, milliseconds, 0, note_time, &over);
    while (!over)
        reactor_run_once(fixture->reactor);
    reactor_timer_cancel(timer);
}

/* Or until it is clear that it does not stall. */
static void run_until_stalled(struct fixture *fixture, const struct flood *flood, size_t limit)
{
    size_t before;
    do {
        before = flood->sent;
        run_for(fixture, 200);
    } while (flood->sent != before && flood->sent <= limit);
}

/* The writer gets no further than the stream's window, what gRPC gathers before it writes, and our
 * own queue. Nothing happens is what is to be seen, so there is no event to wait for. */
static void slow_readers_stall_the_writer(void **state)
{
    struct fixture *fixture = *state;
    struct flood flood = {.fixture = fixture};
    struct seen seen = {0};
    fixture->state = &flood;
    rpc_server_handle(fixture->server, &EXEC, handle_flood);
    struct rpc_call *call = start_exec_on(fixture->channel, &seen);
    FIXTURE_RUN_UNTIL(fixture, flood.sent > 0);
    run_until_stalled(fixture, &flood, RPC_SEND_QUEUE_BYTES + STREAM_ALLOWANCE);
    size_t stalled = flood.sent;
    print_message("a reader that does not read lets %zu KiB in\n", stalled / 1024);
    assert_true(stalled <= RPC_SEND_QUEUE_BYTES + STREAM_ALLOWANCE);
    seen.read_all = true;
    rpc_call_read(call);
    FIXTURE_RUN_UNTIL(fixture, seen.bytes > 16 * stalled);
    rpc_call_cancel(call);
    FIXTURE_RUN_UNTIL(fixture, flood.done && seen.done);
    error_clear(&seen.status);
}

/* ---- many calls ---- */

enum { CALLS = 1000, CHANNELS = 4 };

struct crowd {
    struct rpc_channel *channels[CHANNELS];
    struct seen seen[CALLS];
};

static unsigned count_done(const struct crowd *crowd)
{
    unsigned count = 0;
    for (unsigned i = 0; i < CALLS; i++)
        count += crowd->seen[i].done;
    return count;
}

static void open_crowd(struct fixture *fixture, struct crowd *crowd)
{
    for (unsigned i = 0; i < CHANNELS; i++)
        crowd->channels[i] = fixture_connect(fixture);
    for (unsigned i = 0; i < CALLS; i++)
        start_exec_on(crowd->channels[i % CHANNELS], &crowd->seen[i]);
}

static void close_crowd(struct fixture *fixture, struct crowd *crowd)
{
    for (unsigned i = 0; i < CHANNELS; i++)
        rpc_channel_free(crowd->channels[i]);
    FIXTURE_RUN_UNTIL(fixture,
                      count_done(crowd) == CALLS && fixture->connections_closed == CHANNELS);
    for (unsigned i = 0; i < CALLS; i++) {
        assert_int_equal(crowd->seen[i].done, 1);
        error_clear(&crowd->seen[i].status);
    }
}

static void accept_silently(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events EVENTS = {NULL, NULL, NULL, flood_done};
    struct flood *flood = ((struct fixture *)user)->state;
    flood->accepted++;
    rpc_call_accept(call, &EVENTS, flood);
}

/* Both ends of each call are in this process. */
static void a_thousand_open_calls_are_cheap(void **state)
{
    struct fixture *fixture = *state;
    struct flood flood = {.fixture = fixture};
    struct crowd *crowd = memory_new_of(struct crowd);
    fixture->state = &flood;
    rpc_server_handle(fixture->server, &EXEC, accept_silently);
    size_t before = memory_used();
    open_crowd(fixture, crowd);
    FIXTURE_RUN_UNTIL(fixture, flood.accepted == CALLS);
    size_t grown = grown_since(before);
    print_message("%d open calls, both ends: %zu KiB, %zu for each\n", CALLS, grown / 1024,
                  grown / 1024 / CALLS);
    assert_true(grown < CALLS * 64ul * 1024);
    close_crowd(fixture, crowd);
    assert_int_equal(flood.done, CALLS);
    free(crowd);
}

static void drip(struct rpc_call *call, void *user)
{
    if (send_output(call, CHUNK, sizeof(CHUNK)))
        ((struct flood *)user)->sent += sizeof(CHUNK);
}

/* One message at a time, as long as gRPC takes them. */
static void drip_forever(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events EVENTS = {NULL, NULL, drip, flood_done};
    struct flood *flood = ((struct fixture *)user)->state;
    flood->accepted++;
    rpc_call_accept(call, &EVENTS, flood);
    drip(call, flood);
}

static void a_thousand_unread_streams_stay_in_their_windows(void **state)
{
    struct fixture *fixture = *state;
    struct flood flood = {.fixture = fixture};
    struct crowd *crowd = memory_new_of(struct crowd);
    fixture->state = &flood;
    rpc_server_handle(fixture->server, &EXEC, drip_forever);
    size_t before = memory_used();
    open_crowd(fixture, crowd);
    FIXTURE_RUN_UNTIL(fixture, flood.accepted == CALLS);
    run_until_stalled(fixture, &flood, CALLS * (size_t)STREAM_ALLOWANCE);
    size_t sent = flood.sent;
    size_t grown = grown_since(before);
    print_message("%d unread streams: %zu MiB sent, %zu MiB in memory\n", CALLS, sent / MEBIBYTE,
                  grown / MEBIBYTE);
    assert_true(sent > CALLS * sizeof(CHUNK));
    assert_true(sent <= CALLS * (size_t)STREAM_ALLOWANCE);
    assert_true(grown <= CALLS * (size_t)(STREAM_ALLOWANCE + 64 * 1024));
    close_crowd(fixture, crowd);
    free(crowd);
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[0], "client") == 0)
        run_client(atoi(arguments[1]));
    const struct CMUnitTest tests[] = {
        FIXTURE_TEST(killed_clients_are_cancelled_calls),
        FIXTURE_TEST(peers_of_listening_sockets_are_known),
        FIXTURE_TEST(rubbish_ends_a_connection),
        FIXTURE_TEST(messages_over_the_limit_are_refused),
        FIXTURE_TEST(rubbish_requests_are_refused),
        FIXTURE_TEST(compressed_requests_are_refused),
        FIXTURE_TEST(repeated_metadata_is_counted),
        FIXTURE_TEST(slow_readers_stall_the_writer),
        FIXTURE_TEST(bare_connections_leave_nothing_behind),
        FIXTURE_TEST(a_thousand_open_calls_are_cheap),
        FIXTURE_TEST(a_thousand_unread_streams_stay_in_their_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
