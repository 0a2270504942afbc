/* The two ends of a transfer: bytes in, with the last of them kept to look at again, and bytes out
 * in large pieces. Both can be cancelled and report progress. */
#ifndef ARCHIVE_STREAM_H
#define ARCHIVE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/transfer.h"
#include "base/error.h"

enum {
    STREAM_BLOCK_BYTES = 256 * 1024,
    STREAM_KEPT_BYTES = ARCHIVE_HEADER_BYTES_MAX + 4096,
    STREAM_PADDING_BYTES_MAX = 4 << 20 /* zeros after the end of an archive */
};

/* Counts for progress. */
struct stream_meter {
    const struct archive_control *control;
    const struct archive_summary *summary;
    int64_t reported; /* monotonic milliseconds */
};

/* Calls the progress function when a tenth of a second has passed since the last time. */
void stream_meter_tick(struct stream_meter *meter);

struct stream_input {
    int descriptor;
    struct stream_meter meter;
    unsigned char *buffer; /* STREAM_KEPT_BYTES + STREAM_BLOCK_BYTES */
    uint64_t start;        /* place in the stream of buffer[0] */
    size_t length;
    bool ended;
    struct error *error; /* the first failure; owned by the caller */
};

void stream_input_open(struct stream_input *input, int descriptor,
                       const struct archive_control *control, const struct archive_summary *summary,
                       struct error *error);
/* The next piece, 0 at the end of the stream, -1 on failure. It stays where it is until the next
 * call. Of what was read before, at least the last STREAM_KEPT_BYTES can still be looked at. */
ssize_t stream_input_next(struct stream_input *input, const unsigned char **ret_data);
/* The `length` bytes that stood at `position` of the stream, NULL when they are not kept or were
 * not read yet. */
const unsigned char *stream_input_at(const struct stream_input *input, uint64_t position,
                                     size_t length);
/* Reads to the end of the stream: from `position` on there may be zeros, and only so many. */
bool stream_input_drain(struct stream_input *input, uint64_t position);
void stream_input_close(struct stream_input *input);

struct stream_output {
    int descriptor;
    bool socket;
    bool no_wait; /* a pipe, and RWF_NOWAIT works on it */
    struct stream_meter meter;
    unsigned char *buffer; /* STREAM_BLOCK_BYTES */
    size_t used;
    struct error *error; /* the first failure; owned by the caller */
    bool failed;
};

void stream_output_open(struct stream_output *output, int descriptor,
                        const struct archive_control *control,
                        const struct archive_summary *summary, struct error *error);
/* Small pieces are gathered, large ones are written at once. False once anything failed. */
bool stream_output_write(struct stream_output *output, const void *data, size_t length);
bool stream_output_flush(struct stream_output *output);
void stream_output_close(struct stream_output *output);

#endif
