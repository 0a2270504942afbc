#include "client/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* Readiness of a descriptor that the loop must not touch: the loop watches an epoll set that holds
 * it. libuv would make the descriptor itself non-blocking, for everybody who shares it. */
struct readiness {
    struct reactor_watch *watch;
    int set; /* -1: always ready, as a file is */
};

static bool readiness_start(struct readiness *readiness, struct reactor *reactor, int descriptor,
                            uint32_t events, void (*function)(int events, void *argument),
                            void *argument, struct error *error)
{
    *readiness = (struct readiness){.set = epoll_create1(EPOLL_CLOEXEC)};
    if (readiness->set < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make an epoll set");
    struct epoll_event event = {.events = events};
    if (epoll_ctl(readiness->set, EPOLL_CTL_ADD, descriptor, &event) != 0) {
        close(readiness->set);
        readiness->set = -1;
        return true;
    }
    readiness->watch = reactor_watch_start(reactor, readiness->set, 0, function, argument, error);
    return readiness->watch != NULL;
}

static void readiness_want(struct readiness *readiness, bool wanted)
{
    if (readiness->watch != NULL)
        reactor_watch_update(readiness->watch, wanted ? UV_READABLE : 0);
}

/* ---- input ---- */

struct input_stream {
    struct reactor *reactor;
    int descriptor;
    struct readiness readiness;
    struct input_events events;
    bool wanted;
    bool stopped;
    unsigned char piece[STREAM_PIECE];
};

static void read_piece(struct input_stream *stream)
{
    if (!stream->wanted || stream->stopped)
        return;
    ssize_t got = read(stream->descriptor, stream->piece, sizeof(stream->piece));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return; /* somebody else took it; readiness will be told again */
    stream->wanted = false;
    readiness_want(&stream->readiness, false);
    if (got > 0)
        stream->events.on_data(stream->piece, (size_t)got, stream->events.user);
    else
        stream->events.on_end(stream->events.user);
}

static void on_readable(int events, void *argument)
{
    (void)events;
    read_piece(argument);
}

static void read_posted(void *argument)
{
    read_piece(argument);
}

struct input_stream *input_stream_new(struct reactor *reactor, int descriptor,
                                      const struct input_events *events, struct error *error)
{
    struct input_stream *stream = memory_new_of(struct input_stream);
    stream->reactor = reactor;
    stream->descriptor = descriptor;
    stream->events = *events;
    if (readiness_start(&stream->readiness, reactor, descriptor, EPOLLIN, on_readable, stream,
                        error))
        return stream;
    free(stream);
    return NULL;
}

void input_stream_next(struct input_stream *stream)
{
    if (stream->wanted || stream->stopped)
        return;
    stream->wanted = true;
    if (stream->readiness.watch != NULL)
        readiness_want(&stream->readiness, true);
    else
        reactor_post(stream->reactor, read_posted, stream);
}

void input_stream_stop(struct input_stream *stream)
{
    if (stream == NULL || stream->stopped)
        return;
    stream->stopped = true;
    readiness_want(&stream->readiness, false);
}

/* ---- output ---- */

enum write_way {
    WRITE_BLOCKING, /* a file or a device: never waits long */
    WRITE_OWN,      /* a description of our own that is non-blocking */
    WRITE_SOCKET,   /* a flag for each call */
    WRITE_POLLED,   /* asks first, and writes what fits into a pipe that has room */
};

struct output_stream {
    int descriptor; /* the one written to: the given one, or our own description of it */
    enum write_way way;
    struct readiness readiness;
    struct output_events events;
    unsigned char *rest; /* what is still to be written; owned */
    size_t rest_length;
    size_t rest_written;
};

static void choose_way(struct output_stream *stream, int descriptor)
{
    struct stat status;
    stream->descriptor = descriptor;
    stream->way = WRITE_POLLED;
    bool terminal = isatty(descriptor);
    if (fstat(descriptor, &status) != 0 || S_ISREG(status.st_mode) || S_ISBLK(status.st_mode) ||
        (S_ISCHR(status.st_mode) && !terminal)) {
        stream->way = WRITE_BLOCKING;
    } else if (S_ISSOCK(status.st_mode)) {
        stream->way = WRITE_SOCKET;
    } else if (S_ISFIFO(status.st_mode) || terminal) {
        /* Opening it again gives a description whose flags are ours alone. */
        CLEANUP_FREE char *path = memory_printf("/proc/self/fd/%d", descriptor);
        int own = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (own >= 0) {
            stream->descriptor = own;
            stream->way = WRITE_OWN;
        }
    }
}

/* As write(2), and EAGAIN where it would wait. */
static ssize_t write_some(const struct output_stream *stream, const void *data, size_t length)
{
    if (stream->way == WRITE_SOCKET)
        return send(stream->descriptor, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (stream->way == WRITE_POLLED) {
        struct pollfd room = {.fd = stream->descriptor, .events = POLLOUT};
        if (poll(&room, 1, 0) == 0) {
            errno = EAGAIN;
            return -1;
        }
        length = length < PIPE_BUF ? length : PIPE_BUF;
    }
    return write(stream->descriptor, data, length);
}

/* Writes until nothing is left or it would wait. Returns what was written; -1 with errno. */
static ssize_t write_on(const struct output_stream *stream, const unsigned char *data,
                        size_t length)
{
    size_t done = 0;
    while (done < length) {
        ssize_t written = write_some(stream, data + done, length - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            break;
        if (written < 0)
            return -1;
        done += (size_t)written;
    }
    return (ssize_t)done;
}

static void drop_rest(struct output_stream *stream)
{
    free(stream->rest);
    stream->rest = NULL;
    stream->rest_length = stream->rest_written = 0;
    readiness_want(&stream->readiness, false);
}

static void on_writable(int events, void *argument)
{
    (void)events;
    struct output_stream *stream = argument;
    if (stream->rest == NULL)
        return;
    ssize_t written = write_on(stream, stream->rest + stream->rest_written,
                               stream->rest_length - stream->rest_written);
    if (written < 0) {
        int reason = errno;
        drop_rest(stream);
        stream->events.on_failed(reason, stream->events.user);
        return;
    }
    stream->rest_written += (size_t)written;
    if (stream->rest_written < stream->rest_length)
        return;
    drop_rest(stream);
    stream->events.on_written(stream->events.user);
}

struct output_stream *output_stream_new(struct reactor *reactor, int descriptor,
                                        const struct output_events *events, struct error *error)
{
    struct output_stream *stream = memory_new_of(struct output_stream);
    stream->events = *events;
    choose_way(stream, descriptor);
    if (readiness_start(&stream->readiness, reactor, stream->descriptor, EPOLLOUT, on_writable,
                        stream, error))
        return stream;
    free(stream);
    return NULL;
}

bool output_stream_write(struct output_stream *stream, const void *data, size_t length)
{
    ssize_t written = write_on(stream, data, length);
    if (written < 0) {
        stream->events.on_failed(errno, stream->events.user);
        return false;
    }
    if ((size_t)written == length)
        return true;
    stream->rest_length = length - (size_t)written;
    stream->rest = memory_allocate(stream->rest_length);
    memcpy(stream->rest, (const unsigned char *)data + written, stream->rest_length);
    stream->rest_written = 0;
    readiness_want(&stream->readiness, true);
    return false;
}
