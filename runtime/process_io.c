#include "runtime/process_io.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"

struct outlet {
    struct process_io *io;
    struct reactor_watch *watch;
    int descriptor; /* -1 at the end of file */
    bool is_error;
    size_t owed; /* bytes that were in the pipe when the process ended and were not read yet */
};

struct process_io {
    struct reactor *reactor;
    struct process_io_events events;
    int input; /* -1 when closed */
    struct reactor_watch *input_watch;
    struct buffer queue;
    bool input_ending;
    struct outlet output;
    struct outlet error;
    bool terminal;
    bool paused;
    bool exited;
    bool drained;
    int64_t drain_until; /* monotonic milliseconds */
    int64_t last_byte_at;
    struct reactor_timer *quiet_timer;
    bool *freed; /* set while a callback runs, to learn that it freed us */
};

/* One process has one loop: pieces are handed over before the next one is read. */
static unsigned char chunk[PROCESS_IO_CHUNK];

static void close_outlet(struct outlet *outlet)
{
    reactor_watch_cancel(outlet->watch);
    outlet->watch = NULL;
    if (outlet->descriptor >= 0)
        close(outlet->descriptor);
    outlet->descriptor = -1;
    outlet->owed = 0;
}

static void close_input(struct process_io *io)
{
    reactor_watch_cancel(io->input_watch);
    io->input_watch = NULL;
    if (io->input >= 0)
        close(io->input);
    io->input = -1;
    buffer_free(&io->queue);
}

/* ---- output ---- */

static size_t pending_bytes(int descriptor)
{
    int count = 0;
    return descriptor >= 0 && ioctl(descriptor, FIONREAD, &count) == 0 && count > 0 ? (size_t)count
                                                                                    : 0;
}

/* Whether there is something left to read of what the process left. The workload can read from its
 * pipe as well, so what is no longer there is not waited for. */
static bool is_owed(struct outlet *outlet)
{
    if (outlet->owed > 0) {
        size_t pending = pending_bytes(outlet->descriptor);
        if (outlet->owed > pending)
            outlet->owed = pending;
    }
    return outlet->owed > 0;
}

/* Whether reading is over: at the end of both files; or when what the process left was read and it
 * was quiet, or noisy for too long (decision P5). */
static bool drain_over(struct process_io *io, bool *ret_held)
{
    *ret_held = io->output.descriptor >= 0 || io->error.descriptor >= 0;
    if (!*ret_held)
        return true;
    int64_t now = clock_monotonic_milliseconds();
    return !io->paused && !is_owed(&io->output) && !is_owed(&io->error) &&
           (now - io->last_byte_at >= PROCESS_IO_QUIET_MILLISECONDS || now >= io->drain_until);
}

/* May free `io` through the callback. */
static void finish_drain(struct process_io *io)
{
    bool held = false;
    if (!io->exited || io->drained || !drain_over(io, &held))
        return;
    io->drained = true;
    reactor_timer_cancel(io->quiet_timer);
    io->quiet_timer = NULL;
    close_outlet(&io->output);
    close_outlet(&io->error);
    close_input(io);
    io->events.on_drained(held, io->events.user);
}

static void watch_outlets(struct process_io *io)
{
    struct outlet *outlets[] = {&io->output, &io->error};
    for (size_t i = 0; i < 2; i++)
        if (outlets[i]->watch != NULL)
            reactor_watch_update(outlets[i]->watch, io->paused ? 0 : UV_READABLE);
}

enum read_result { READ_MORE, READ_EMPTY, READ_FREED };

/* Reads one piece and hands it over. */
static enum read_result read_piece(struct outlet *outlet)
{
    struct process_io *io = outlet->io;
    ssize_t got;
    do
        got = read(outlet->descriptor, chunk, sizeof(chunk));
    while (got < 0 && errno == EINTR);
    if (got < 0 && errno == EAGAIN)
        return READ_EMPTY;
    if (got <= 0) { /* a terminal whose other side is closed answers EIO */
        close_outlet(outlet);
        return READ_EMPTY;
    }
    outlet->owed = outlet->owed > (size_t)got ? outlet->owed - (size_t)got : 0;
    io->last_byte_at = clock_monotonic_milliseconds();
    bool freed = false, *outer = io->freed;
    io->freed = &freed;
    bool go_on = io->events.on_output(outlet->is_error, chunk, (size_t)got, io->events.user);
    if (freed) {
        if (outer != NULL)
            *outer = true;
        return READ_FREED;
    }
    io->freed = outer;
    if (!go_on) {
        io->paused = true;
        watch_outlets(io);
    }
    return READ_MORE;
}

static void on_readable(int events, void *argument)
{
    (void)events;
    struct outlet *outlet = argument;
    if (outlet->descriptor < 0 || outlet->io->paused)
        return;
    if (read_piece(outlet) != READ_FREED)
        finish_drain(outlet->io);
}

void process_io_resume(struct process_io *io)
{
    if (!io->paused || io->drained)
        return;
    io->paused = false;
    watch_outlets(io);
    if (!io->exited)
        return;
    /* Nobody writes any more but what is left over: no need to wait for the loop. */
    struct outlet *outlets[] = {&io->output, &io->error};
    for (size_t i = 0; i < 2; i++)
        if (!io->paused && outlets[i]->descriptor >= 0 && read_piece(outlets[i]) == READ_FREED)
            return;
    finish_drain(io);
}

static void on_quiet(void *argument)
{
    finish_drain(argument);
}

void process_io_exited(struct process_io *io, unsigned drain_milliseconds)
{
    if (io->exited)
        return;
    io->exited = true;
    io->last_byte_at = clock_monotonic_milliseconds();
    io->drain_until = io->last_byte_at + drain_milliseconds;
    io->output.owed = pending_bytes(io->output.descriptor);
    io->error.owed = pending_bytes(io->error.descriptor);
    struct outlet *outlets[] = {&io->output, &io->error};
    for (size_t i = 0; i < 2; i++) {
        /* The last piece and the end of file are two reads. */
        enum read_result result = READ_MORE;
        for (int reads = 0;
             reads < 3 && result == READ_MORE && !io->paused && outlets[i]->descriptor >= 0;
             reads++)
            result = read_piece(outlets[i]);
        if (result == READ_FREED)
            return;
    }
    bool held = false;
    if (drain_over(io, &held))
        finish_drain(io);
    else
        io->quiet_timer = reactor_timer_start(io->reactor, PROCESS_IO_QUIET_MILLISECONDS + 1,
                                              PROCESS_IO_QUIET_MILLISECONDS / 4, on_quiet, io);
}

/* ---- input ---- */

/* Writes what the pipe takes and returns how much that was. */
static size_t write_some(struct process_io *io, const unsigned char *data, size_t length)
{
    size_t done = 0;
    while (done < length && io->input >= 0) {
        ssize_t written = write(io->input, data + done, length - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN)
            break;
        if (written < 0) /* the process closed its input: what follows goes nowhere */
            close_input(io);
        else
            done += (size_t)written;
    }
    return done;
}

static void end_input_now(struct process_io *io)
{
    if (io->terminal && io->input >= 0) {
        struct termios settings;
        char end = tcgetattr(io->input, &settings) == 0 ? (char)settings.c_cc[VEOF] : 4;
        ssize_t ignored = write(io->input, &end, 1);
        (void)ignored;
        return; /* a terminal goes on: its output leads to the same open file */
    }
    close_input(io);
}

static void on_writable(int events, void *argument)
{
    (void)events;
    struct process_io *io = argument;
    size_t done = write_some(io, io->queue.data, io->queue.length);
    buffer_consume(&io->queue, done);
    if (io->queue.length > 0)
        return;
    buffer_free(&io->queue);
    if (io->input_watch != NULL)
        reactor_watch_update(io->input_watch, 0);
    if (io->input_ending)
        end_input_now(io);
    io->events.on_input_taken(io->events.user);
}

bool process_io_write(struct process_io *io, const void *data, size_t length)
{
    if (io->input < 0 || io->input_ending)
        return true;
    size_t done = io->queue.length == 0 ? write_some(io, data, length) : 0;
    if (io->input < 0 || done == length)
        return true;
    buffer_append(&io->queue, (const unsigned char *)data + done, length - done);
    if (io->input_watch == NULL)
        io->input_watch =
            reactor_watch_start(io->reactor, io->input, UV_WRITABLE, on_writable, io, NULL);
    else
        reactor_watch_update(io->input_watch, UV_WRITABLE);
    if (io->input_watch == NULL)
        close_input(io);
    return io->input < 0;
}

bool process_io_input_waits(const struct process_io *io)
{
    return io->input >= 0 && io->queue.length > 0;
}

void process_io_end_input(struct process_io *io)
{
    if (io->input_ending)
        return;
    io->input_ending = true;
    if (io->queue.length == 0)
        end_input_now(io);
}

void process_io_hang_up(struct process_io *io)
{
    if (!io->terminal || io->drained)
        return;
    close_outlet(&io->output);
    close_input(io);
    finish_drain(io);
}

static void set_size(const struct process_io *io, unsigned columns, unsigned rows, bool redraw)
{
    struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};
    struct winsize now;
    int descriptor = io->output.descriptor >= 0 ? io->output.descriptor : io->input;
    if (!io->terminal || descriptor < 0 || columns > 0xffff || rows > 0xffff)
        return;
    /* The kernel sends SIGWINCH for a change alone. */
    if (redraw && ioctl(descriptor, TIOCGWINSZ, &now) == 0 && now.ws_col == size.ws_col &&
        now.ws_row == size.ws_row) {
        now.ws_row = (unsigned short)(now.ws_row > 1 ? now.ws_row - 1 : now.ws_row + 1);
        ioctl(descriptor, TIOCSWINSZ, &now);
    }
    ioctl(descriptor, TIOCSWINSZ, &size);
}

void process_io_resize(struct process_io *io, unsigned columns, unsigned rows)
{
    set_size(io, columns, rows, false);
}

void process_io_redraw(struct process_io *io, unsigned columns, unsigned rows)
{
    set_size(io, columns, rows, true);
}

/* ---- life ---- */

static void open_outlet(struct process_io *io, struct outlet *outlet, int descriptor, bool is_error)
{
    *outlet = (struct outlet){.io = io, .descriptor = descriptor, .is_error = is_error};
    if (descriptor < 0)
        return;
    outlet->watch = reactor_watch_start(io->reactor, descriptor, 0, on_readable, outlet, NULL);
    if (outlet->watch == NULL)
        close_outlet(outlet);
}

struct process_io *process_io_new(struct reactor *reactor, int input, int output, int error,
                                  bool terminal, const struct process_io_events *events)
{
    struct process_io *io = memory_new_of(struct process_io);
    io->reactor = reactor;
    io->events = *events;
    io->input = input;
    io->terminal = terminal;
    io->paused = true;
    io->queue = BUFFER_INIT(0); /* one frame: the next is given when it was written */
    open_outlet(io, &io->output, output, false);
    open_outlet(io, &io->error, error, true);
    return io;
}

void process_io_free(struct process_io *io)
{
    if (io == NULL)
        return;
    if (io->freed != NULL)
        *io->freed = true;
    reactor_timer_cancel(io->quiet_timer);
    close_outlet(&io->output);
    close_outlet(&io->error);
    close_input(io);
    free(io);
}
