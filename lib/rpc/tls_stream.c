/* The pump: plain bytes on a socket pair whose other end is gRPC's, TLS on the socket. */
#include "rpc/tls_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/err.h>

#include "base/memory.h"

enum {
    HANDSHAKE_MILLISECONDS = 5000,
    LINGER_MILLISECONDS = 5000, /* to flush, once one side has ended */
    CHUNK = 64 * 1024,
    ROUNDS = 16, /* chunks a wake-up moves before other streams have their turn */
};

/* What was read on one side and not yet taken by the other. */
struct pending {
    unsigned char *data; /* NULL when nothing is pending */
    size_t offset;
    size_t length;
};

struct tls_stream {
    struct reactor *reactor;
    struct tls_stream_events events;
    struct tls_peer_check check;
    SSL *session;
    int socket;
    int inner;                     /* our end of the pair; -1 before the handshake is over */
    struct reactor_watch *outside; /* of the socket */
    struct reactor_watch *inside;
    struct reactor_timer *timer; /* handshake, then linger */
    struct pending inward;       /* from the peer to gRPC */
    struct pending outward;
    int wanted; /* UV_READABLE and UV_WRITABLE: what the session waits for on the socket */
    bool socket_readable; /* for all we know; a read that came back short says no */
    bool inner_readable;
    bool peer_ended;
    bool inner_ended;
    bool peer_hung; /* gone, while what it sent is not delivered yet */
    bool inner_hung;
    bool in_callback;
    bool closed; /* within a callback: freed when that returns */
};

/* ---- the socket below OpenSSL: as its own, without SIGPIPE ---- */

static void set_retry(BIO *bio, int flag)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        BIO_set_flags(bio, flag | BIO_FLAGS_SHOULD_RETRY);
}

static int bio_write(BIO *bio, const char *data, int length)
{
    BIO_clear_retry_flags(bio);
    struct tls_stream *stream = BIO_get_data(bio);
    ssize_t count = send(stream->socket, data, (size_t)length, MSG_NOSIGNAL);
    if (count < 0)
        set_retry(bio, BIO_FLAGS_WRITE);
    return (int)count;
}

static int bio_read(BIO *bio, char *data, int length)
{
    BIO_clear_retry_flags(bio);
    struct tls_stream *stream = BIO_get_data(bio);
    ssize_t count = -1;
    errno = EAGAIN;
    if (stream->socket_readable)
        count = recv(stream->socket, data, (size_t)length, 0);
    if (count < 0)
        set_retry(bio, BIO_FLAGS_READ);
    else if (count == 0)
        BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    /* An end is told again, so nothing is lost by waiting for it. */
    if (count < length)
        stream->socket_readable = false;
    return (int)count;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)number;
    (void)pointer;
    switch (command) {
    case BIO_CTRL_EOF:
        return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    case BIO_CTRL_FLUSH:
        return 1;
    default:
        return 0;
    }
}

static BIO *new_bio(struct tls_stream *stream)
{
    static BIO_METHOD *method;
    if (method == NULL) {
        method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
        if (method == NULL)
            memory_exhausted();
        BIO_meth_set_write(method, bio_write);
        BIO_meth_set_read(method, bio_read);
        BIO_meth_set_ctrl(method, bio_control);
    }
    BIO *bio = BIO_new(method);
    if (bio == NULL)
        memory_exhausted();
    BIO_set_data(bio, stream);
    BIO_set_init(bio, 1);
    return bio;
}

/* ---- ending ---- */

static void free_stream(struct tls_stream *stream)
{
    reactor_timer_cancel(stream->timer);
    reactor_watch_cancel(stream->outside);
    reactor_watch_cancel(stream->inside);
    SSL_free(stream->session);
    if (stream->socket >= 0)
        close(stream->socket);
    if (stream->inner >= 0)
        close(stream->inner);
    free(stream->inward.data);
    free(stream->outward.data);
    free(stream);
}

void tls_stream_close(struct tls_stream *stream)
{
    if (stream->in_callback)
        stream->closed = true;
    else
        free_stream(stream);
}

/* The session says good-bye; nobody waits for the answer. */
static void finish(struct tls_stream *stream)
{
    if (!stream->peer_ended && SSL_is_init_finished(stream->session))
        SSL_shutdown(stream->session);
    ERR_clear_error();
    stream->in_callback = true;
    if (stream->events.on_closed != NULL)
        stream->events.on_closed(stream, stream->events.user);
    free_stream(stream);
}

static void fail_handshake(struct tls_stream *stream, const struct error *error)
{
    stream->in_callback = true;
    stream->events.on_ready(stream, -1, error, stream->events.user);
    free_stream(stream);
}

/* ---- the pump ---- */

/* A chunk that passes through within one wake-up needs no memory of its own. */
static unsigned char scratch[CHUNK];

static void keep(struct pending *pending, size_t done, size_t length)
{
    pending->data = NULL;
    if (done == length)
        return;
    pending->data = memory_allocate(length - done);
    memcpy(pending->data, scratch + done, length - done);
    pending->offset = 0;
    pending->length = length - done;
}

/* What the session's last operation waits for; false when it is over. */
static bool session_waits(struct tls_stream *stream, int result)
{
    int reason = SSL_get_error(stream->session, result);
    ERR_clear_error();
    if (reason == SSL_ERROR_WANT_READ)
        stream->wanted |= UV_READABLE;
    else if (reason == SSL_ERROR_WANT_WRITE)
        stream->wanted |= UV_WRITABLE;
    else
        return false;
    return true;
}

static size_t read_session(struct tls_stream *stream)
{
    size_t total = 0;
    while (total < CHUNK) {
        int count = SSL_read(stream->session, scratch + total, (int)(CHUNK - total));
        if (count <= 0) {
            if (!session_waits(stream, count))
                stream->peer_ended = true;
            break;
        }
        total += (size_t)count;
    }
    return total;
}

/* How much the session took; the rest waits. */
static size_t write_session(struct tls_stream *stream, const unsigned char *data, size_t length)
{
    size_t total = 0;
    while (total < length) {
        int count = SSL_write(stream->session, data + total, (int)(length - total));
        if (count <= 0) {
            if (!session_waits(stream, count)) {
                stream->peer_ended = true;
                return length; /* nobody will read it */
            }
            break;
        }
        total += (size_t)count;
    }
    return total;
}

static size_t read_inner(struct tls_stream *stream)
{
    if (!stream->inner_readable)
        return 0;
    ssize_t count = recv(stream->inner, scratch, CHUNK, 0);
    if (count < CHUNK)
        stream->inner_readable = false;
    if (count > 0)
        return (size_t)count;
    if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        stream->inner_ended = true;
    return 0;
}

static size_t write_inner(struct tls_stream *stream, const unsigned char *data, size_t length)
{
    ssize_t count = send(stream->inner, data, length, MSG_NOSIGNAL);
    if (count >= 0)
        return (size_t)count;
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
        return 0;
    stream->inner_ended = true;
    return length;
}

/* Moves one chunk in one direction; false when nothing moved. */
static bool move(struct tls_stream *stream, struct pending *pending, bool ended,
                 size_t (*read)(struct tls_stream *),
                 size_t (*write)(struct tls_stream *, const unsigned char *, size_t))
{
    if (pending->data != NULL) {
        size_t done = write(stream, pending->data + pending->offset, pending->length);
        pending->offset += done;
        pending->length -= done;
        if (pending->length == 0) {
            free(pending->data);
            pending->data = NULL;
        }
        return done > 0;
    }
    if (ended)
        return false;
    size_t length = read(stream);
    if (length == 0)
        return false;
    keep(pending, write(stream, scratch, length), length);
    return true;
}

static void on_linger(void *argument)
{
    finish(argument);
}

/* A side that is gone or ended leaves the other so long to take something. */
static void linger(struct tls_stream *stream, bool moved)
{
    bool ending =
        stream->peer_ended || stream->inner_ended || stream->peer_hung || stream->inner_hung;
    if (!ending || (stream->timer != NULL && !moved))
        return;
    reactor_timer_cancel(stream->timer);
    stream->timer = reactor_timer_start(stream->reactor, LINGER_MILLISECONDS, 0, on_linger, stream);
}

/* One side ended: what it sent is still delivered, then everything closes. */
static bool over(const struct tls_stream *stream)
{
    return (stream->peer_ended || stream->inner_ended) &&
           (stream->inner_ended || stream->inward.data == NULL) &&
           (stream->peer_ended || stream->outward.data == NULL);
}

static void watch(struct tls_stream *stream, bool more)
{
    bool ended = stream->peer_ended || stream->inner_ended;
    int inside = stream->inner_hung || stream->inner_ended ? 0 : UV_DISCONNECT;
    int outside = stream->peer_hung || stream->peer_ended ? 0 : UV_DISCONNECT;
    if (stream->outward.data == NULL && !ended)
        inside |= UV_READABLE;
    /* With more to move, the pair is writable and calls again at once. */
    if (stream->inward.data != NULL || more)
        inside |= UV_WRITABLE;
    reactor_watch_update(stream->inside, inside);
    reactor_watch_update(stream->outside, outside | stream->wanted);
}

static void pump(struct tls_stream *stream)
{
    bool moved = true, ever = false;
    for (int round = 0; moved && round < ROUNDS; round++) {
        bool ended = stream->peer_ended || stream->inner_ended;
        stream->wanted = 0;
        moved = false;
        if (!stream->inner_ended)
            moved |= move(stream, &stream->inward, ended, read_session, write_inner);
        ended = stream->peer_ended || stream->inner_ended;
        if (!stream->peer_ended)
            moved |= move(stream, &stream->outward, ended, read_inner, write_session);
        ever |= moved;
    }
    if (over(stream)) {
        finish(stream);
        return;
    }
    linger(stream, ever);
    watch(stream, moved);
}

static void on_inside(int events, void *argument)
{
    struct tls_stream *stream = argument;
    stream->inner_hung |= (events & UV_DISCONNECT) != 0;
    stream->inner_readable |= (events & (UV_READABLE | UV_DISCONNECT)) != 0;
    pump(stream);
}

/* ---- the handshake ---- */

static void on_handshake_timeout(void *argument)
{
    struct tls_stream *stream = argument;
    struct error error = {0};
    error_set(&error, ERROR_DEADLINE_EXCEEDED, "the peer did not finish the TLS handshake");
    fail_handshake(stream, &error);
    error_clear(&error);
}

static bool open_inside(struct tls_stream *stream, int *ret_descriptor, struct error *error)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot make a socket pair");
    stream->inner = ends[0];
    stream->inside =
        reactor_watch_start(stream->reactor, ends[0], UV_READABLE, on_inside, stream, error);
    if (stream->inside == NULL) {
        close(ends[1]);
        return false;
    }
    *ret_descriptor = ends[1];
    return true;
}

static void complete_handshake(struct tls_stream *stream)
{
    reactor_timer_cancel(stream->timer);
    stream->timer = NULL;
    struct error error = {0};
    int descriptor = -1;
    bool ready = tls_session_is_h2(stream->session)
                     ? open_inside(stream, &descriptor, &error)
                     : error_set(&error, ERROR_UNAVAILABLE, "the peer does not speak HTTP/2");
    if (!ready) {
        fail_handshake(stream, &error);
        error_clear(&error);
        return;
    }
    stream->in_callback = true;
    stream->events.on_ready(stream, descriptor, NULL, stream->events.user);
    stream->in_callback = false;
    if (stream->closed)
        free_stream(stream);
    else
        pump(stream); /* data may have come with the end of the handshake */
}

static void handshake_failed(struct tls_stream *stream)
{
    struct error error = {0};
    if (stream->check.refused) {
        ERR_clear_error();
        error_set(&error, ERROR_UNAUTHENTICATED,
                  "the peer's TLS certificate is not the one that was expected");
    } else {
        tls_error(&error, ERROR_UNAVAILABLE, "the TLS handshake failed");
    }
    fail_handshake(stream, &error);
    error_clear(&error);
}

static void handshake(struct tls_stream *stream)
{
    ERR_clear_error();
    int result = SSL_do_handshake(stream->session);
    if (result == 1) {
        complete_handshake(stream);
        return;
    }
    int reason = SSL_get_error(stream->session, result);
    if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE)
        reactor_watch_update(stream->outside,
                             reason == SSL_ERROR_WANT_READ ? UV_READABLE : UV_WRITABLE);
    else
        handshake_failed(stream);
}

static void on_outside(int events, void *argument)
{
    struct tls_stream *stream = argument;
    stream->peer_hung |= (events & UV_DISCONNECT) != 0;
    stream->socket_readable |= (events & (UV_READABLE | UV_DISCONNECT)) != 0;
    if (stream->inner < 0)
        handshake(stream);
    else
        pump(stream);
}

static bool check_options(const struct tls_stream_options *options, struct error *error)
{
    if (options->peer_pin != NULL && strlen(options->peer_pin) != 64)
        return error_set(error, ERROR_INVALID_ARGUMENT, "a TLS pin has 64 hexadecimal digits");
    if (!options->server && options->peer_pin == NULL)
        return error_set(error, ERROR_INVALID_ARGUMENT, "a TLS client needs the server's pin");
    if (options->server && options->identity == NULL)
        return error_set(error, ERROR_INVALID_ARGUMENT, "a TLS server needs a certificate");
    return true;
}

struct tls_stream *tls_stream_start(struct reactor *reactor, int descriptor,
                                    const struct tls_stream_options *options,
                                    const struct tls_stream_events *events, struct error *error)
{
    struct tls_stream *stream = memory_new_of(struct tls_stream);
    stream->reactor = reactor;
    stream->events = *events;
    stream->socket = descriptor;
    stream->inner = -1;
    if (check_options(options, error))
        stream->session = tls_session_new(options, &stream->check, new_bio(stream), error);
    /* A client speaks first: a new socket is writable. */
    if (stream->session != NULL)
        stream->outside =
            reactor_watch_start(reactor, descriptor, options->server ? UV_READABLE : UV_WRITABLE,
                                on_outside, stream, error);
    if (stream->outside == NULL) {
        free_stream(stream);
        return NULL;
    }
    unsigned milliseconds = options->handshake_milliseconds != 0 ? options->handshake_milliseconds
                                                                 : HANDSHAKE_MILLISECONDS;
    stream->timer = reactor_timer_start(reactor, milliseconds, 0, on_handshake_timeout, stream);
    return stream;
}
