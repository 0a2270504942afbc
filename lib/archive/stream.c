#include "archive/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "archive/blocks.h"
#include "base/clock.h"
#include "base/memory.h"

void stream_meter_tick(struct stream_meter *meter)
{
    const struct archive_control *control = meter->control;
    if (control->progress == NULL)
        return;
    int64_t now = clock_monotonic_milliseconds();
    if (now - meter->reported < 100)
        return;
    meter->reported = now;
    control->progress(control->progress_data, meter->summary->bytes, meter->summary->entries);
}

/* A larger pipe saves switches between the two ends; not every pipe may be made larger. */
static void widen_pipe(int descriptor)
{
    struct stat status;
    if (fstat(descriptor, &status) == 0 && S_ISFIFO(status.st_mode))
        (void)fcntl(descriptor, F_SETPIPE_SZ, 1 << 20);
}

/* Waits until the descriptor is ready. Without a descriptor for cancelling only `block` waits: the
 * call that follows does. */
static bool wait_ready(int descriptor, short events, int cancel, bool block, struct error *error)
{
    if (cancel < 0 && !block)
        return true;
    struct pollfd wait[2] = {{.fd = descriptor, .events = events},
                             {.fd = cancel, .events = POLLIN}};
    while (poll(wait, cancel < 0 ? 1 : 2, -1) < 0)
        if (errno != EINTR)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot wait for the transfer");
    if (cancel >= 0 && wait[1].revents != 0)
        return error_set(error, ERROR_CANCELLED, "the transfer was cancelled");
    return true;
}

void stream_input_open(struct stream_input *input, int descriptor,
                       const struct archive_control *control, const struct archive_summary *summary,
                       struct error *error)
{
    *input = (struct stream_input){
        .descriptor = descriptor,
        .meter = {.control = control, .summary = summary},
        .buffer = memory_allocate(STREAM_KEPT_BYTES + STREAM_BLOCK_BYTES),
        .error = error,
    };
    widen_pipe(descriptor);
}

ssize_t stream_input_next(struct stream_input *input, const unsigned char **ret_data)
{
    stream_meter_tick(&input->meter);
    if (input->ended)
        return 0;
    const size_t size = STREAM_KEPT_BYTES + STREAM_BLOCK_BYTES;
    if (size - input->length < STREAM_BLOCK_BYTES / 4) {
        size_t drop = input->length - STREAM_KEPT_BYTES;
        memmove(input->buffer, input->buffer + drop, STREAM_KEPT_BYTES);
        input->start += drop;
        input->length = STREAM_KEPT_BYTES;
    }
    bool block = false;
    for (;;) {
        if (!wait_ready(input->descriptor, POLLIN, input->meter.control->cancel, block,
                        input->error))
            return -1;
        ssize_t got = read(input->descriptor, input->buffer + input->length, size - input->length);
        if (got >= 0) {
            *ret_data = input->buffer + input->length;
            input->length += (size_t)got;
            input->ended = got == 0;
            return got;
        }
        block = errno == EAGAIN;
        if (errno != EINTR && errno != EAGAIN) {
            error_set_errno(input->error, ERROR_UNAVAILABLE, errno, "cannot read the archive");
            return -1;
        }
    }
}

const unsigned char *stream_input_at(const struct stream_input *input, uint64_t position,
                                     size_t length)
{
    if (position < input->start || position - input->start > input->length ||
        length > input->length - (size_t)(position - input->start))
        return NULL;
    return input->buffer + (size_t)(position - input->start);
}

bool stream_input_drain(struct stream_input *input, uint64_t position)
{
    uint64_t end = input->start + input->length;
    const unsigned char *data = stream_input_at(input, position, (size_t)(end - position));
    ssize_t length = (ssize_t)(end - position);
    for (uint64_t padding = 0;;) {
        if (data == NULL || !blocks_are_zero(data, (size_t)length))
            return error_set(input->error, ERROR_DATA_LOSS,
                             "the archive is damaged: data follows its end");
        padding += (uint64_t)length;
        if (padding > STREAM_PADDING_BYTES_MAX)
            return error_set(input->error, ERROR_DATA_LOSS,
                             "the archive is damaged: more than 4 MiB of padding");
        length = stream_input_next(input, &data);
        if (length <= 0)
            return length == 0;
    }
}

void stream_input_close(struct stream_input *input)
{
    free(input->buffer);
    input->buffer = NULL;
}

void stream_output_open(struct stream_output *output, int descriptor,
                        const struct archive_control *control,
                        const struct archive_summary *summary, struct error *error)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        status.st_mode = 0;
    *output = (struct stream_output){
        .descriptor = descriptor,
        .socket = S_ISSOCK(status.st_mode),
        .no_wait = S_ISFIFO(status.st_mode),
        .meter = {.control = control, .summary = summary},
        .buffer = memory_allocate(STREAM_BLOCK_BYTES),
        .error = error,
    };
    widen_pipe(descriptor);
}

/* Writes some bytes; with a descriptor for cancelling without blocking, where that is possible. */
static ssize_t write_some(struct stream_output *output, const void *data, size_t length)
{
    bool cancellable = output->meter.control->cancel >= 0;
    if (output->socket)
        return send(output->descriptor, data, length,
                    MSG_NOSIGNAL | (cancellable ? MSG_DONTWAIT : 0));
    if (cancellable && output->no_wait) {
        struct iovec piece = {.iov_base = (void *)data, .iov_len = length};
        ssize_t written = pwritev2(output->descriptor, &piece, 1, -1, RWF_NOWAIT);
        if (written >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL))
            return written;
        output->no_wait = false;
    }
    return write(output->descriptor, data, length);
}

static bool write_whole(struct stream_output *output, const unsigned char *data, size_t length)
{
    if (output->failed)
        return false;
    bool block = false;
    while (length > 0) {
        stream_meter_tick(&output->meter);
        if (!wait_ready(output->descriptor, POLLOUT, output->meter.control->cancel, block,
                        output->error))
            break;
        ssize_t written = write_some(output, data, length);
        block = written < 0 && errno == EAGAIN;
        if (written >= 0) {
            data += written;
            length -= (size_t)written;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            error_set(output->error, ERROR_UNAVAILABLE, "the other side ended the transfer");
            break;
        } else if (errno != EINTR && errno != EAGAIN) {
            error_set_errno(output->error, ERROR_INTERNAL, errno, "cannot write");
            break;
        }
    }
    output->failed = length > 0;
    return !output->failed;
}

bool stream_output_flush(struct stream_output *output)
{
    size_t used = output->used;
    output->used = 0;
    return write_whole(output, output->buffer, used);
}

bool stream_output_write(struct stream_output *output, const void *data, size_t length)
{
    if (output->failed)
        return false;
    if (output->used + length > STREAM_BLOCK_BYTES && !stream_output_flush(output))
        return false;
    if (length >= STREAM_BLOCK_BYTES / 4)
        return (output->used == 0 || stream_output_flush(output)) &&
               write_whole(output, data, length);
    memcpy(output->buffer + output->used, data, length);
    output->used += length;
    return true;
}

void stream_output_close(struct stream_output *output)
{
    free(output->buffer);
    output->buffer = NULL;
}
