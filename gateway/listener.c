#include "gateway/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/trim.h"
#include "gateway/auth/peer.h"

enum {
    BACKLOG = 1024,
    ACCEPTS_AT_ONCE = 64,
    PAUSE_MILLISECONDS = 100,
    QUIET_MILLISECONDS = 2000, /* without a user's connection memory is given back */
};

/* An accepted connection: served, or waiting because its user has enough of them. */
struct peer {
    struct listener *listener;
    uid_t user;
    bool supervisor;
    int descriptor; /* while it waits */
    int64_t since;  /* monotonic milliseconds */
    struct token_cache token;
    struct peer *next;
};

/* The users that may connect are the gateway's own and root. */
enum { USERS = 2 };

struct listener {
    struct gateway *gateway;
    int descriptor;
    struct reactor_watch *watch;
    struct reactor_timer *timer; /* accepting pauses, or peers wait */
    bool paused;
    size_t total;
    size_t served[USERS];
    struct reactor_timer *quiet; /* runs while no user is connected */
    struct peer *waiting;        /* in the order of arrival */
};

static size_t user_number(uid_t user)
{
    return user == 0 ? 0 : 1;
}

static void serve_waiting(struct listener *listener);

static void on_quiet(void *argument)
{
    struct listener *listener = argument;
    reactor_timer_cancel(listener->quiet);
    listener->quiet = NULL;
    trim_memory();
}

static void watch_quiet(struct listener *listener)
{
    reactor_timer_cancel(listener->quiet);
    listener->quiet = NULL;
    if (listener->served[0] + listener->served[1] == 0)
        listener->quiet = reactor_timer_start(listener->gateway->reactor, QUIET_MILLISECONDS, 0,
                                              on_quiet, listener);
}

static void on_closed(struct rpc_connection *connection, void *user)
{
    (void)connection;
    struct peer *peer = user;
    struct listener *listener = peer->listener;
    listener->total--;
    if (!peer->supervisor)
        listener->served[user_number(peer->user)]--;
    free(peer);
    serve_waiting(listener);
    watch_quiet(listener);
}

/* Consumes the peer and its descriptor. */
static void serve(struct peer *peer)
{
    struct listener *listener = peer->listener;
    struct rpc_connection_events events = {.on_closed = on_closed, .user = peer};
    struct error error = {0};
    if (rpc_server_accept(listener->gateway->server, peer->descriptor, LISTENER_IDLE_MILLISECONDS,
                          &events, &error) != NULL) {
        if (!peer->supervisor)
            listener->served[user_number(peer->user)]++;
        watch_quiet(listener);
        return;
    }
    log_warn("cannot serve a connection: %s", error.message);
    error_clear(&error);
    listener->total--;
    free(peer);
}

static bool has_room(const struct listener *listener, const struct peer *peer)
{
    return peer->supervisor || listener->served[user_number(peer->user)] < LISTENER_USER_LIMIT;
}

struct token_cache *listener_token_cache(const struct rpc_connection *connection)
{
    struct peer *peer = rpc_connection_user(connection);
    return &peer->token;
}

/* ---- waiting ---- */

static void on_timer(void *argument);

static void set_timer(struct listener *listener)
{
    bool wanted = listener->paused || listener->waiting != NULL;
    if (wanted && listener->timer == NULL) {
        listener->timer = reactor_timer_start(listener->gateway->reactor, PAUSE_MILLISECONDS,
                                              PAUSE_MILLISECONDS, on_timer, listener);
    } else if (!wanted) {
        reactor_timer_cancel(listener->timer);
        listener->timer = NULL;
    }
}

static void serve_waiting(struct listener *listener)
{
    struct peer **place = &listener->waiting;
    while (*place != NULL) {
        struct peer *peer = *place;
        if (has_room(listener, peer)) {
            *place = peer->next;
            serve(peer);
        } else {
            place = &peer->next;
        }
    }
    set_timer(listener);
}

static void drop_expired(struct listener *listener)
{
    int64_t now = clock_monotonic_milliseconds();
    while (listener->waiting != NULL &&
           now - listener->waiting->since > LISTENER_QUEUE_MILLISECONDS) {
        struct peer *peer = listener->waiting;
        listener->waiting = peer->next;
        log_warn("closed a connection of user %u, who has %d open already", peer->user,
                 LISTENER_USER_LIMIT);
        close(peer->descriptor);
        listener->total--;
        free(peer);
    }
}

static void wait_turn(struct peer *peer)
{
    struct peer **last = &peer->listener->waiting;
    while (*last != NULL)
        last = &(*last)->next;
    *last = peer;
    set_timer(peer->listener);
}

/* ---- accepting ---- */

static void take(struct listener *listener, int descriptor)
{
    struct ucred credentials;
    socklen_t length = sizeof(credentials);
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 ||
        !peer_allowed(credentials.uid)) {
        log_warn("closed a connection of user %u, who is neither this gateway's user nor root",
                 credentials.uid);
        close(descriptor);
        return;
    }
    if (listener->total >= LISTENER_CONNECTIONS_LIMIT) {
        log_warn("closed a connection: %d are open already", LISTENER_CONNECTIONS_LIMIT);
        close(descriptor);
        return;
    }
    struct driver *driver = listener->gateway->driver;
    struct peer *peer = memory_new_of(struct peer);
    peer->listener = listener;
    peer->user = credentials.uid;
    peer->supervisor = driver->class->owns(driver, credentials.pid);
    peer->descriptor = descriptor;
    peer->since = clock_monotonic_milliseconds();
    listener->total++;
    if (has_room(listener, peer))
        serve(peer);
    else
        wait_turn(peer);
}

static void on_connectable(int events, void *argument)
{
    (void)events;
    struct listener *listener = argument;
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        int descriptor = accept4(listener->descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor >= 0) {
            take(listener, descriptor);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            log_error("cannot accept connections for now: %s", strerror(errno));
            listener->paused = true;
            reactor_watch_update(listener->watch, 0);
            set_timer(listener);
        }
        return;
    }
}

static void on_timer(void *argument)
{
    struct listener *listener = argument;
    if (listener->paused) {
        listener->paused = false;
        reactor_watch_update(listener->watch, UV_READABLE);
    }
    drop_expired(listener);
    set_timer(listener);
}

bool listener_open(struct gateway *gateway, struct error *error)
{
    int descriptor = file_unix_listen(gateway->socket_path, 0600, BACKLOG, error);
    if (descriptor < 0)
        return false;
    struct listener *listener = memory_new_of(struct listener);
    listener->gateway = gateway;
    listener->descriptor = descriptor;
    listener->watch = reactor_watch_start(gateway->reactor, descriptor, UV_READABLE, on_connectable,
                                          listener, error);
    if (listener->watch == NULL) {
        close(descriptor);
        free(listener);
        return false;
    }
    gateway->listener = listener;
    watch_quiet(listener);
    return true;
}

void listener_close(struct gateway *gateway)
{
    struct listener *listener = gateway->listener;
    if (listener == NULL)
        return;
    gateway->listener = NULL;
    reactor_watch_cancel(listener->watch);
    reactor_timer_cancel(listener->timer);
    listener->timer = NULL;
    reactor_timer_cancel(listener->quiet);
    listener->quiet = NULL;
    unlink(gateway->socket_path);
    close(listener->descriptor);
    while (listener->waiting != NULL) {
        struct peer *peer = listener->waiting;
        listener->waiting = peer->next;
        close(peer->descriptor);
        free(peer);
    }
    /* The listener stays for the connections that are being served; they end with the process. */
}
