/* Standard input and output of a command that carries a remote program's.
 *
 * The descriptors are shared with other processes (the shell, the rest of a pipeline), so their
 * flags stay as they are: nothing here makes them non-blocking for the others. */
#ifndef CLIENT_STREAMS_H
#define CLIENT_STREAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/reactor.h"

enum { STREAM_PIECE = 64 * 1024 }; /* bytes read at once */

struct input_stream;
struct output_stream;

struct input_events {
    /* A piece; the next comes after input_stream_next. */
    void (*on_data)(const void *data, size_t length, void *user);
    /* The end, once: also of input that cannot be read (nobody's terminal, a closed descriptor). */
    void (*on_end)(void *user);
    void *user;
};

/* Reads nothing before input_stream_next. NULL when the loop has no room. */
struct input_stream *input_stream_new(struct reactor *reactor, int descriptor,
                                      const struct input_events *events, struct error *error);
/* Asks for the next piece. Events come from the loop, never from within this call. */
void input_stream_next(struct input_stream *stream);
/* No more events. NULL is allowed. */
void input_stream_stop(struct input_stream *stream);

struct output_events {
    /* What was given to output_stream_write is written. */
    void (*on_written)(void *user);
    /* Nothing more can be written: errno. May come from within output_stream_write. */
    void (*on_failed)(int reason, void *user);
    void *user;
};

struct output_stream *output_stream_new(struct reactor *reactor, int descriptor,
                                        const struct output_events *events, struct error *error);
/* Takes a copy of what cannot be written at once. True when everything is written: no event
 * follows then. False: on_written or on_failed follows; writing again before is not allowed. */
bool output_stream_write(struct output_stream *stream, const void *data, size_t length);

#endif
