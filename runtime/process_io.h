/* Pumps the three descriptors of one session: output in pieces to whoever takes them, input from a
 * bounded queue. Back-pressure works both ways: the next piece of output is read when the previous
 * one was taken, and the next piece of input is asked for when the previous one was written. */
#ifndef RUNTIME_PROCESS_IO_H
#define RUNTIME_PROCESS_IO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/reactor.h"

enum {
    PROCESS_IO_CHUNK = 64 * 1024, /* bytes of output handed over at once */
    /* Decision P5: after the process has ended. */
    PROCESS_IO_QUIET_MILLISECONDS = 500,
    PROCESS_IO_DRAIN_MILLISECONDS = 30 * 1000,
};

struct process_io;

struct process_io_events {
    /* A piece of output, which lives until this returns. False pauses both outputs until
     * process_io_resume. */
    bool (*on_output)(bool is_error, const void *data, size_t length, void *user);
    /* All input given so far was written, or cannot be any more. */
    void (*on_input_taken)(void *user);
    /* After process_io_exited: nothing more is read. `held` when another process still held an
     * output open. Once; process_io_free may be called here. */
    void (*on_drained)(bool held, void *user);
    void *user;
};

/* Takes over the descriptors, non-blocking or -1. On a terminal, `error` is -1 and input and output
 * lead to the same terminal. Output is paused until process_io_resume. */
struct process_io *process_io_new(struct reactor *reactor, int input, int output, int error,
                                  bool terminal, const struct process_io_events *events);
/* Closes the descriptors. NULL is allowed. */
void process_io_free(struct process_io *io);

/* Writes input, keeping what does not fit into the pipe. Whether all of it was written: otherwise
 * no more may be given before on_input_taken. After the process closed its input everything counts
 * as written. */
bool process_io_write(struct process_io *io, const void *data, size_t length);
/* Whether input that was given is not written yet. */
bool process_io_input_waits(const struct process_io *io);
/* End of input, after what is queued. */
void process_io_end_input(struct process_io *io);
void process_io_resume(struct process_io *io);
/* The process has ended: reads what is left (decision P5), for `drain_milliseconds` at most, then
 * calls on_drained, maybe from within. What it had written before is read however long the taker
 * needs. */
void process_io_exited(struct process_io *io, unsigned drain_milliseconds);
/* Closes the terminal: whoever has it gets SIGHUP from the kernel and reads its end. Output that
 * was not read is lost. */
void process_io_hang_up(struct process_io *io);
/* Sets the size of the terminal. */
void process_io_resize(struct process_io *io, unsigned columns, unsigned rows);
/* The same, and tells a program on the terminal to draw anew also where the size stays. */
void process_io_redraw(struct process_io *io, unsigned columns, unsigned rows);

#endif
