/* The processes that the supervisor asked for: main and execs, their input and output, how they
 * ended, and the Exchange streams that follow them. */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

#include <stdbool.h>

#include "base/error.h"
#include "runtime/service.h"

enum {
    /* Decision P14: ended processes that are remembered, and for how long. */
    PROCESS_KEPT_LIMIT = 64,
    PROCESS_KEPT_MILLISECONDS = 10 * 60 * 1000,
    /* Decision P6: between TERM and KILL of a tree that timed out or was cancelled. */
    PROCESS_KILL_GRACE_MILLISECONDS = 2000,
    PROCESS_GRACE_LIMIT_MILLISECONDS = 600 * 1000,
    /* Between SIGHUP and the closing of a terminal that somebody still reads. */
    PROCESS_HANG_UP_MILLISECONDS = 500,
    /* Pieces of up to 64 KiB that wait in one stream: 192 KiB of the 256 that a direction may hold
     * (decision P14); the rest is gRPC's. */
    PROCESS_WINDOW_FRAMES = 3,
};

struct process_table *process_table_new(struct service *service);

/* Before every process is asked to end: an interactive shell ignores TERM, but not that its
 * terminal is gone. */
void process_hang_up_all(struct process_table *table);

/* Operations; each answers or fails the stream, now or later. */
void process_exec(struct exchange_stream *stream,
                  const Openshell__Sandbox__Protocol__V1__Exec *exec);
void process_attach(struct exchange_stream *stream,
                    const Openshell__Sandbox__Protocol__V1__AttachProcess *attach);
void process_wait(struct exchange_stream *stream,
                  const Openshell__Sandbox__Protocol__V1__Wait *wait);
void process_signal(struct exchange_stream *stream,
                    const Openshell__Sandbox__Protocol__V1__Signal *signal);
void process_terminate(struct exchange_stream *stream,
                       const Openshell__Sandbox__Protocol__V1__Terminate *terminate);
/* Answers the stream when execve has spoken; false when nothing was started. */
bool process_start_main(struct exchange_stream *stream,
                        const Openshell__Sandbox__Protocol__V1__StartAgent *start,
                        struct error *error);

/* What happens on a stream that has a process. */
void process_input(struct exchange_stream *stream, const exchange_frame *frame);
void process_stream_writable(struct exchange_stream *stream);
void process_stream_ended(struct exchange_stream *stream);  /* no more from the supervisor */
void process_stream_broken(struct exchange_stream *stream); /* it broke the protocol */
void process_stream_gone(struct exchange_stream *stream);   /* forget the stream */

#endif
