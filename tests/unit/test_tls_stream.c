/* TLS streams: what passes through, what is refused, how they end. */
#include "rpc_fixture.h"

#include <errno.h>

#include <openssl/ssl.h>

#include "rpc/tls_stream.h"

struct end {
    struct tls_stream *stream;
    int descriptor;
    unsigned ready;
    unsigned closed;
    struct error error;
};

struct pair {
    struct reactor *reactor;
    struct tls_identity *server_identity;
    struct tls_identity *client_identity;
    char server_pin[65];
    char client_pin[65];
    struct end server;
    struct end client;
    bool timed_out;
};

static int setup(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    pair->reactor = reactor_new(NULL);
    pair->server_identity = tls_identity_generate("server", NULL);
    pair->client_identity = tls_identity_generate("client", NULL);
    assert_non_null(pair->server_identity);
    assert_non_null(pair->client_identity);
    tls_identity_pin(pair->server_identity, pair->server_pin);
    tls_identity_pin(pair->client_identity, pair->client_pin);
    pair->server.descriptor = pair->client.descriptor = -1;
    *state = pair;
    return 0;
}

static void end_free(struct end *end)
{
    if (end->stream != NULL)
        tls_stream_close(end->stream);
    if (end->descriptor >= 0)
        close(end->descriptor);
    error_clear(&end->error);
}

static int teardown(void **state)
{
    struct pair *pair = *state;
    end_free(&pair->server);
    end_free(&pair->client);
    tls_identity_free(pair->server_identity);
    tls_identity_free(pair->client_identity);
    reactor_free(pair->reactor);
    free(pair);
    return 0;
}

static void on_ready(struct tls_stream *stream, int descriptor, const struct error *error,
                     void *user)
{
    struct end *end = user;
    end->ready++;
    end->descriptor = descriptor;
    assert_true(end->stream == stream || end->stream == NULL);
    if (descriptor < 0) {
        end->stream = NULL;
        error_copy(&end->error, error);
    }
}

static void on_closed(struct tls_stream *stream, void *user)
{
    (void)stream;
    struct end *end = user;
    end->closed++;
    end->stream = NULL;
}

static void start(struct pair *pair, struct end *end, int descriptor,
                  const struct tls_stream_options *options)
{
    struct tls_stream_events events = {on_ready, on_closed, end};
    struct error error = {0};
    end->stream = tls_stream_start(pair->reactor, descriptor, options, &events, &error);
    assert_non_null(end->stream);
}

static void start_both(struct pair *pair, const char *server_pin, const char *client_pin)
{
    int ends[2];
    fixture_socket_pair(ends);
    struct tls_stream_options server = {
        .server = true, .identity = pair->server_identity, .peer_pin = client_pin};
    struct tls_stream_options client = {.identity = pair->client_identity, .peer_pin = server_pin};
    start(pair, &pair->server, ends[0], &server);
    start(pair, &pair->client, ends[1], &client);
}

static void pass_time(void *argument)
{
    *(bool *)argument = true;
}

#define RUN_UNTIL(pair, condition)                                                                 \
    do {                                                                                           \
        (pair)->timed_out = false;                                                                 \
        struct reactor_timer *patience = reactor_timer_start((pair)->reactor, FIXTURE_PATIENCE, 0, \
                                                             pass_time, &(pair)->timed_out);       \
        while (!(condition) && !(pair)->timed_out)                                                 \
            reactor_run_once((pair)->reactor);                                                     \
        reactor_timer_cancel(patience);                                                            \
        if (!(condition))                                                                          \
            fail_msg("waited in vain for: %s", #condition);                                        \
    } while (0)

static void connect_both(struct pair *pair)
{
    start_both(pair, pair->server_pin, pair->client_pin);
    RUN_UNTIL(pair, pair->server.ready && pair->client.ready);
    assert_true(pair->server.descriptor >= 0);
    assert_true(pair->client.descriptor >= 0);
}

static void pins_are_of_the_certificate(void **state)
{
    struct pair *pair = *state;
    char *certificate = tls_identity_certificate_pem(pair->server_identity);
    char *key = tls_identity_key_pem(pair->server_identity);
    struct tls_identity *same = tls_identity_parse(certificate, key, NULL);
    assert_non_null(same);
    char pin[65];
    tls_identity_pin(same, pin);
    assert_string_equal(pin, pair->server_pin);
    assert_int_equal(strlen(pin), 64);
    assert_string_not_equal(pin, pair->client_pin);
    tls_identity_free(same);

    char *other = tls_identity_key_pem(pair->client_identity);
    struct error error = {0};
    assert_null(tls_identity_parse(certificate, other, &error));
    assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
    assert_null(tls_identity_parse("rubbish", key, &error));
    error_clear(&error);
    free(certificate);
    free(key);
    free(other);
}

static void expect_text(struct pair *pair, int descriptor, const char *expected)
{
    char text[16] = {0};
    ssize_t count = -1;
    RUN_UNTIL(pair, count > 0 || (count = read(descriptor, text, sizeof(text) - 1)) > 0);
    assert_string_equal(text, expected);
}

static void bytes_pass_both_ways(void **state)
{
    struct pair *pair = *state;
    connect_both(pair);
    assert_int_equal(write(pair->client.descriptor, "ping", 4), 4);
    expect_text(pair, pair->server.descriptor, "ping");
    assert_int_equal(write(pair->server.descriptor, "pong", 4), 4);
    expect_text(pair, pair->client.descriptor, "pong");
}

static uint32_t mix(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state;
}

struct transfer {
    int from;
    int to;
    size_t written;
    size_t read;
    uint32_t write_seed;
    uint32_t read_seed;
    size_t wrong;
};

enum { TRANSFER_BYTES = 64 * 1024 * 1024 };

static void step(struct transfer *transfer)
{
    static uint32_t words[8192];
    static uint32_t held[8192];
    static size_t held_bytes;
    if (held_bytes == 0 && transfer->written < TRANSFER_BYTES) {
        for (size_t i = 0; i < 8192; i++)
            held[i] = mix(&transfer->write_seed);
        held_bytes = sizeof(held);
    }
    if (held_bytes > 0) {
        ssize_t count = write(transfer->from, (char *)held + sizeof(held) - held_bytes, held_bytes);
        if (count > 0) {
            held_bytes -= (size_t)count;
            transfer->written += (size_t)count;
        }
    }
    for (;;) {
        size_t part = transfer->read % 4;
        ssize_t count = read(transfer->to, (char *)words + part, sizeof(words) - part);
        if (count <= 0)
            return;
        size_t whole = (part + (size_t)count) / 4;
        for (size_t i = 0; i < whole; i++)
            transfer->wrong += words[i] != mix(&transfer->read_seed);
        uint32_t rest = words[whole < 8192 ? whole : 0];
        words[0] = rest;
        transfer->read += (size_t)count;
    }
}

static void large_transfers_arrive_unchanged(void **state)
{
    struct pair *pair = *state;
    connect_both(pair);
    struct transfer transfer = {.from = pair->client.descriptor,
                                .to = pair->server.descriptor,
                                .write_seed = 7,
                                .read_seed = 7};
    RUN_UNTIL(pair, (step(&transfer), transfer.read == TRANSFER_BYTES));
    assert_int_equal(transfer.wrong, 0);
}

static void wrong_server_is_refused(void **state)
{
    struct pair *pair = *state;
    start_both(pair, pair->client_pin, NULL);
    RUN_UNTIL(pair, pair->client.ready && pair->server.ready);
    assert_int_equal(pair->client.descriptor, -1);
    assert_int_equal(pair->client.error.code, ERROR_UNAUTHENTICATED);
    assert_int_equal(pair->server.descriptor, -1);
}

static void wrong_client_is_refused(void **state)
{
    struct pair *pair = *state;
    start_both(pair, pair->server_pin, pair->server_pin);
    RUN_UNTIL(pair, pair->server.ready && (pair->client.closed || pair->client.error.code));
    assert_int_equal(pair->server.descriptor, -1);
    assert_int_equal(pair->server.error.code, ERROR_UNAUTHENTICATED);
}

static void client_without_certificate_is_refused(void **state)
{
    struct pair *pair = *state;
    int ends[2];
    fixture_socket_pair(ends);
    struct tls_stream_options server = {
        .server = true, .identity = pair->server_identity, .peer_pin = pair->client_pin};
    struct tls_stream_options client = {.peer_pin = pair->server_pin};
    start(pair, &pair->server, ends[0], &server);
    start(pair, &pair->client, ends[1], &client);
    RUN_UNTIL(pair, pair->server.ready);
    assert_int_equal(pair->server.descriptor, -1);
    assert_int_not_equal(pair->server.error.code, ERROR_OK);
}

/* A client that is not ours: any protocol, any version. */
static SSL *foreign_client(int descriptor, const char *alpn, int version)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(context, version);
    SSL_CTX_set_alpn_protos(context, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    SSL *session = SSL_new(context);
    SSL_CTX_free(context);
    SSL_set_fd(session, descriptor);
    SSL_set_connect_state(session);
    return session;
}

static void refuse_foreign_client(struct pair *pair, const char *alpn, int version)
{
    int ends[2];
    fixture_socket_pair(ends);
    struct tls_stream_options server = {.server = true, .identity = pair->server_identity};
    start(pair, &pair->server, ends[0], &server);
    SSL *session = foreign_client(ends[1], alpn, version);
    RUN_UNTIL(pair, (SSL_do_handshake(session), pair->server.ready));
    assert_int_equal(pair->server.descriptor, -1);
    assert_int_equal(pair->server.error.code, ERROR_UNAVAILABLE);
    SSL_free(session);
    close(ends[1]);
}

static void other_protocols_are_refused(void **state)
{
    refuse_foreign_client(*state, "\x08http/1.1", TLS1_3_VERSION);
}

static void no_protocol_is_refused(void **state)
{
    refuse_foreign_client(*state, "", TLS1_3_VERSION);
}

static void older_versions_are_refused(void **state)
{
    refuse_foreign_client(*state, "\x02h2", TLS1_2_VERSION);
}

static void plain_text_is_refused(void **state)
{
    struct pair *pair = *state;
    int ends[2];
    fixture_socket_pair(ends);
    struct tls_stream_options server = {.server = true, .identity = pair->server_identity};
    start(pair, &pair->server, ends[0], &server);
    assert_int_equal(write(ends[1], "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24), 24);
    RUN_UNTIL(pair, pair->server.ready);
    assert_int_equal(pair->server.error.code, ERROR_UNAVAILABLE);
    close(ends[1]);
}

static void silence_times_out(void **state)
{
    struct pair *pair = *state;
    int ends[2];
    fixture_socket_pair(ends);
    struct tls_stream_options server = {
        .server = true, .identity = pair->server_identity, .handshake_milliseconds = 50};
    start(pair, &pair->server, ends[0], &server);
    RUN_UNTIL(pair, pair->server.ready);
    assert_int_equal(pair->server.error.code, ERROR_DEADLINE_EXCEEDED);
    close(ends[1]);
}

static void closing_one_end_closes_the_other_after_the_data(void **state)
{
    struct pair *pair = *state;
    connect_both(pair);
    assert_int_equal(write(pair->client.descriptor, "last words", 10), 10);
    close(pair->client.descriptor);
    pair->client.descriptor = -1;
    RUN_UNTIL(pair, pair->server.closed && pair->client.closed);
    char text[32] = {0};
    assert_int_equal(read(pair->server.descriptor, text, sizeof(text)), 10);
    assert_string_equal(text, "last words");
    assert_int_equal(read(pair->server.descriptor, text, sizeof(text)), 0);
}

/* gRPC on top, and the streams below go away with its connection. */
static void calls_pass_through(void **state)
{
    struct pair *pair = *state;
    connect_both(pair);
    struct fixture fixture = {.reactor = pair->reactor};
    struct rpc_connection_events events = {fixture_closed, &fixture};
    struct arena *arena = arena_new(0);
    struct error error = {0};
    fixture.runtime = rpc_runtime_new(pair->reactor, NULL);
    fixture.server = rpc_server_new(fixture.runtime, fixture_authorize, &fixture);
    rpc_server_handle(fixture.server, &HEALTH, respond_health);
    struct rpc_connection *connection =
        rpc_server_accept(fixture.server, pair->server.descriptor, 0, &events, &error);
    assert_non_null(connection);
    assert_false(rpc_connection_peer(connection, NULL, NULL, NULL));
    fixture.channel = rpc_channel_new(fixture.runtime, pair->client.descriptor, &error);
    pair->server.descriptor = pair->client.descriptor = -1;
    for (int i = 0; i < 100; i++)
        assert_non_null(ask_health(&fixture, arena, &error));
    rpc_channel_free(fixture.channel);
    RUN_UNTIL(pair, pair->client.closed && pair->server.closed && fixture.connections_closed);
    rpc_server_free(fixture.server);
    rpc_runtime_free(fixture.runtime);
    arena_free(arena);
}

static void peers_that_vanish_close_the_stream(void **state)
{
    struct pair *pair = *state;
    connect_both(pair);
    tls_stream_close(pair->client.stream);
    pair->client.stream = NULL;
    RUN_UNTIL(pair, pair->server.closed);
    assert_int_equal(pair->client.closed, 0);
}

static size_t read_all(int descriptor)
{
    char text[4096];
    size_t total = 0;
    for (ssize_t count; (count = read(descriptor, text, sizeof(text))) > 0;)
        total += (size_t)count;
    return total;
}

/* What nobody reads stays within the buffers of the sockets and the pump. */
static void slow_readers_stall_the_pump(void **state)
{
    struct pair *pair = *state;
    static char chunk[64 * 1024];
    connect_both(pair);
    size_t written = 0, before;
    bool over = false;
    do {
        before = written;
        struct reactor_timer *pause = reactor_timer_start(pair->reactor, 50, 0, pass_time, &over);
        for (over = false; !over;) {
            ssize_t count = write(pair->client.descriptor, chunk, sizeof(chunk));
            written += count > 0 ? (size_t)count : 0;
            reactor_run_once(pair->reactor);
        }
        reactor_timer_cancel(pause);
    } while (written != before && written < 64u * 1024 * 1024);
    print_message("nobody reads: %zu KiB under way\n", written / 1024);
    assert_true(written < 2 * 1024 * 1024);
    /* And all of it arrives. */
    size_t arrived = 0;
    RUN_UNTIL(pair, (arrived += read_all(pair->server.descriptor)) == written);
}

static void nobody_waits_for_a_reader_that_is_stuck(void **state)
{
    struct pair *pair = *state;
    static char chunk[64 * 1024];
    connect_both(pair);
    for (int i = 0; i < 100; i++) {
        while (write(pair->client.descriptor, chunk, sizeof(chunk)) > 0)
            ;
        struct reactor_timer *tick =
            reactor_timer_start(pair->reactor, 1, 0, pass_time, &pair->timed_out);
        reactor_run_once(pair->reactor);
        reactor_timer_cancel(tick);
    }
    close(pair->client.descriptor);
    pair->client.descriptor = -1;
    RUN_UNTIL(pair, pair->client.closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pins_are_of_the_certificate, setup, teardown),
        cmocka_unit_test_setup_teardown(bytes_pass_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(large_transfers_arrive_unchanged, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_server_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_client_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(client_without_certificate_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(other_protocols_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(no_protocol_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(older_versions_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(plain_text_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(silence_times_out, setup, teardown),
        cmocka_unit_test_setup_teardown(closing_one_end_closes_the_other_after_the_data, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(calls_pass_through, setup, teardown),
        cmocka_unit_test_setup_teardown(peers_that_vanish_close_the_stream, setup, teardown),
        cmocka_unit_test_setup_teardown(slow_readers_stall_the_pump, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_waits_for_a_reader_that_is_stuck, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
