/* What process.c and process_stream.c share. */
#ifndef RUNTIME_PROCESS_INTERNAL_H
#define RUNTIME_PROCESS_INTERNAL_H

#include "base/table.h"
#include "runtime/output_ring.h"
#include "runtime/process.h"
#include "runtime/process_io.h"

struct process {
    struct process_table *table;
    char id[UUID_SIZE]; /* MAIN_PROCESS_ID, or the request's */
    bool is_main;
    bool terminal;
    bool keep_running; /* goes on when the exec's stream ends */

    struct maker_session *session; /* NULL once every process of the tree is gone */
    struct process_io *io;         /* NULL once drained */
    struct output_ring *ring;      /* of main */
    struct reactor_timer *timeout;
    struct reactor_timer *hang_up; /* runs until its terminal is closed */
    char *program;                 /* for a message when it cannot be executed */

    struct exchange_stream *starting; /* start_agent: answered when execve has spoken */
    struct exchange_stream *owner;    /* of an exec: its stream; of main: who may write */
    struct exchange_stream *viewers;  /* of main: everybody who attached, the owner too */
    struct exchange_stream *waiters;
    struct exchange_stream *terminators;

    bool started;
    bool exited;
    bool drained;
    bool held; /* something else held the output when reading stopped */
    bool timed_out;
    bool input_waits; /* the owner's next frame is read when the last was written */
    struct maker_exit status;

    struct process *next_kept;
    int64_t kept_since; /* monotonic milliseconds */
};

struct process_table {
    struct service *service;
    struct table *by_id;
    struct process *kept_first; /* ended ones, oldest first */
    struct process *kept_last;
    size_t kept_count;
};

/* NULL when there is none, or it ended too long ago. */
struct process *process_find(struct process_table *table, const char *id);
void process_kill(struct process *process, unsigned grace_milliseconds);

/* process_stream.c: a process speaks to its streams. */
bool process_stream_output(struct process *process, bool is_error, const void *data, size_t length);
void process_stream_started(struct process *process);
void process_stream_exited(struct process *process);  /* the status is known */
void process_stream_drained(struct process *process); /* and all output was read */
void process_stream_empty(struct process *process);   /* nothing of the tree is left */
void process_stream_input_taken(struct process *process);

#endif
