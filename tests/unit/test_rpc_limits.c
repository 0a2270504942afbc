/* What hostile, dead, slow and numerous peers may cost. */
#include "rpc_fixture.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>

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

/* ---- slow readers ---- */

struct flood {
    struct fixture *fixture;
    unsigned accepted;
    size_t sent;
    unsigned done;
};

static uint8_t CHUNK[16 * 1024];

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
    run_for(fixture, 100);
    size_t stalled = flood.sent;
    print_message("a reader that does not read lets %zu KiB in\n", stalled / 1024);
    assert_true(stalled <= RPC_SEND_QUEUE_BYTES + STREAM_ALLOWANCE);
    run_for(fixture, 50);
    assert_int_equal(flood.sent, stalled);
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
    run_for(fixture, 500);
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
        FIXTURE_TEST(slow_readers_stall_the_writer),
        FIXTURE_TEST(bare_connections_leave_nothing_behind),
        FIXTURE_TEST(a_thousand_open_calls_are_cheap),
        FIXTURE_TEST(a_thousand_unread_streams_stay_in_their_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
