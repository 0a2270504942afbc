/* Between a process and the Exchange streams that follow it. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "boundary/failure.h"
#include "runtime/process_internal.h"

/* How far main's writer may lag behind before main's output waits for it: as long as it takes, as a
 * stopped terminal stops a program. That the writer goes away ends the wait. */
enum { WRITER_LAG_LIMIT = 256 * 1024 };

static void fail(struct exchange_stream *stream, enum failure_kind kind, const char *text)
{
    struct error error = {0};
    failure_set(&error, kind, "%s", text);
    exchange_stream_fail(stream, &error);
}

static void add(struct exchange_stream **list, struct exchange_stream *stream)
{
    stream->next = *list;
    *list = stream;
}

static void leave(struct exchange_stream **list, struct exchange_stream *stream)
{
    for (; *list != NULL; list = &(*list)->next)
        if (*list == stream) {
            *list = stream->next;
            return;
        }
}

/* ---- to the supervisor ---- */

static bool send_output(struct exchange_stream *stream, bool is_error, const void *data,
                        size_t length)
{
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = is_error ? EXCHANGE_FRAME(STDERR) : EXCHANGE_FRAME(STDOUT);
    ProtobufCBinaryData bytes = {length, (uint8_t *)data};
    if (is_error)
        frame.stderr = bytes;
    else
        frame.stdout = bytes;
    return exchange_stream_send(stream, &frame);
}

static void send_exited(struct exchange_stream *stream, const struct process *process)
{
    exchange_exit_status status = OPENSHELL__SANDBOX__PROTOCOL__V1__EXIT_STATUS__INIT;
    switch (process->status.kind) {
    case MAKER_EXITED:
        status.status_case = EXCHANGE_STATUS(EXITED);
        status.exited = process->status.value;
        break;
    case MAKER_SIGNALED:
        status.status_case = EXCHANGE_STATUS(SIGNALED);
        status.signaled = process->status.value;
        break;
    case MAKER_UNKNOWN:
        status.status_case = EXCHANGE_STATUS(UNKNOWN);
        status.unknown = (char *)process->status.reason;
        break;
    }
    Openshell__Sandbox__Protocol__V1__Exited exited =
        OPENSHELL__SANDBOX__PROTOCOL__V1__EXITED__INIT;
    exited.status = &status;
    exited.timed_out = process->timed_out;
    exited.output_held = process->held;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(EXITED);
    frame.exited = &exited;
    exchange_stream_send(stream, &frame);
}

static void send_skipped(struct exchange_stream *viewer, uint64_t count)
{
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(SKIPPED);
    frame.skipped = count;
    viewer->sequence += count;
    exchange_stream_send(viewer, &frame);
}

/* Sends a viewer of main what it has not seen, as far as it keeps up, and the end. What was dropped
 * before it came so far is named: main waits for its writer alone. */
static void feed(struct exchange_stream *viewer)
{
    struct process *process = viewer->process;
    while (viewer->exchange.to_supervisor == STATE_OUTPUT &&
           rpc_call_unsent(viewer->call) < PROCESS_WINDOW_FRAMES) {
        uint64_t first = output_ring_first(process->ring);
        if (viewer->sequence < first) {
            send_skipped(viewer, first - viewer->sequence);
            continue;
        }
        bool is_error = false;
        const void *data = NULL;
        size_t length = output_ring_read(process->ring, viewer->sequence, EXCHANGE_CHUNK_LIMIT,
                                         &is_error, &data);
        if (length == 0) {
            if (process->drained)
                send_exited(viewer, process);
            return;
        }
        viewer->sequence += length;
        if (!send_output(viewer, is_error, data, length))
            return;
    }
}

static bool writer_lags(const struct process *process)
{
    return process->owner != NULL &&
           output_ring_next(process->ring) - process->owner->sequence > WRITER_LAG_LIMIT;
}

bool process_stream_output(struct process *process, bool is_error, const void *data, size_t length)
{
    if (process->is_main) {
        output_ring_append(process->ring, is_error, data, length);
        for (struct exchange_stream *viewer = process->viewers; viewer != NULL;
             viewer = viewer->next)
            feed(viewer);
        return !writer_lags(process);
    }
    if (process->owner == NULL) /* keeps running for nobody */
        return true;
    return send_output(process->owner, is_error, data, length) &&
           rpc_call_unsent(process->owner->call) < PROCESS_WINDOW_FRAMES;
}

void process_stream_writable(struct exchange_stream *stream)
{
    struct process *process = stream->process;
    if (process->is_main && stream->exchange.operation == OPERATION_ATTACH_PROCESS)
        feed(stream);
    if (process->owner == stream && process->io != NULL &&
        (!process->is_main || !writer_lags(process)))
        process_io_resume(process->io);
}

void process_stream_started(struct process *process)
{
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    if (process->starting != NULL) {
        Openshell__Sandbox__Protocol__V1__Started started =
            OPENSHELL__SANDBOX__PROTOCOL__V1__STARTED__INIT;
        started.process_id = process->id;
        started.terminal = process->terminal;
        frame.frame_case = EXCHANGE_FRAME(STARTED);
        frame.started = &started;
        struct exchange_stream *stream = process->starting;
        process->starting = NULL;
        stream->process = NULL;
        exchange_stream_send(stream, &frame);
    } else if (!process->is_main && process->owner != NULL) {
        Openshell__Sandbox__Protocol__V1__ExecStarted started =
            OPENSHELL__SANDBOX__PROTOCOL__V1__EXEC_STARTED__INIT;
        started.process_id = process->id;
        started.terminal = process->terminal;
        frame.frame_case = EXCHANGE_FRAME(EXEC_STARTED);
        frame.exec_started = &started;
        exchange_stream_send(process->owner, &frame);
    }
    /* A terminal is there only now. */
    if (process->terminal)
        process_stream_input_taken(process);
}

void process_stream_exited(struct process *process)
{
    while (process->waiters != NULL) {
        struct exchange_stream *waiter = process->waiters;
        process->waiters = waiter->next;
        waiter->process = NULL;
        send_exited(waiter, process);
    }
}

void process_stream_drained(struct process *process)
{
    if (!process->is_main && process->owner != NULL)
        send_exited(process->owner, process);
    for (struct exchange_stream *viewer = process->viewers; viewer != NULL; viewer = viewer->next)
        feed(viewer);
}

static void send_terminated(struct exchange_stream *stream)
{
    Openshell__Sandbox__Protocol__V1__Terminated terminated =
        OPENSHELL__SANDBOX__PROTOCOL__V1__TERMINATED__INIT;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(TERMINATED);
    frame.terminated = &terminated;
    exchange_stream_send(stream, &frame);
}

void process_stream_empty(struct process *process)
{
    while (process->terminators != NULL) {
        struct exchange_stream *stream = process->terminators;
        process->terminators = stream->next;
        stream->process = NULL;
        send_terminated(stream);
    }
}

void process_stream_input_taken(struct process *process)
{
    if (!process->input_waits || process->owner == NULL)
        return;
    process->input_waits = false;
    rpc_call_read(process->owner->call);
}

/* ---- from the supervisor ---- */

static bool signal_valid(uint32_t number)
{
    return number >= 1 && number <= (uint32_t)SIGRTMAX;
}

static bool apply(struct exchange_stream *stream, const exchange_frame *frame)
{
    struct process *process = stream->process;
    switch ((int)frame->frame_case) {
    case EXCHANGE_FRAME(STDIN):
        process->input_waits = process->io != NULL &&
                               !process_io_write(process->io, frame->stdin.data, frame->stdin.len);
        return true;
    case EXCHANGE_FRAME(STDIN_EOF):
        if (process->io != NULL)
            process_io_end_input(process->io);
        return true;
    case EXCHANGE_FRAME(RESIZE):
        if (process->io != NULL)
            process_io_resize(process->io, frame->resize->columns, frame->resize->rows);
        return true;
    case EXCHANGE_FRAME(PROCESS_SIGNAL):
        if (signal_valid(frame->process_signal) && process->session != NULL && !process->exited)
            maker_session_signal(process->session, (int)frame->process_signal);
        return signal_valid(frame->process_signal);
    case EXCHANGE_FRAME(CANCEL):
        process_kill(process, PROCESS_KILL_GRACE_MILLISECONDS);
        return true;
    default:
        return true;
    }
}

void process_input(struct exchange_stream *stream, const exchange_frame *frame)
{
    if (stream->process == NULL) { /* it ended while the frame was on its way */
        rpc_call_read(stream->call);
        return;
    }
    if (!stream->writer) {
        process_stream_broken(stream);
        fail(stream, FAILURE_PROTOCOL_VIOLATION, "this stream is for reading only");
        return;
    }
    if (!apply(stream, frame)) {
        process_stream_broken(stream);
        fail(stream, FAILURE_INVALID, "there is no such signal");
        return;
    }
    if (!stream->process->input_waits)
        rpc_call_read(stream->call);
}

static void send_attached(struct exchange_stream *stream)
{
    const struct process *process = stream->process;
    Openshell__Sandbox__Protocol__V1__ProcessAttached attached =
        OPENSHELL__SANDBOX__PROTOCOL__V1__PROCESS_ATTACHED__INIT;
    attached.terminal = process->terminal;
    attached.writer = stream->writer;
    attached.first_sequence = stream->sequence;
    attached.next_sequence = output_ring_next(process->ring);
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(PROCESS_ATTACHED);
    frame.process_attached = &attached;
    exchange_stream_send(stream, &frame); /* the replay follows when it went out */
}

/* Input of an earlier writer that main has not read yet goes first. */
static void become_writer(struct exchange_stream *stream,
                          const Openshell__Sandbox__Protocol__V1__AttachProcess *attach)
{
    struct process *process = stream->process;
    stream->writer = true;
    process->owner = stream;
    process->input_waits = process->io != NULL && process_io_input_waits(process->io);
    if (process->io != NULL && attach->columns > 0 && attach->rows > 0)
        process_io_redraw(process->io, attach->columns, attach->rows);
}

void process_attach(struct exchange_stream *stream,
                    const Openshell__Sandbox__Protocol__V1__AttachProcess *attach)
{
    struct process *process = process_find(stream->service->processes, attach->process_id);
    if (process == NULL || !process->is_main) {
        fail(stream, FAILURE_PROCESS, "there is no such process to attach to");
        return;
    }
    stream->process = process;
    add(&process->viewers, stream);
    stream->sequence = attach->from_sequence;
    if (stream->sequence > output_ring_next(process->ring))
        stream->sequence = output_ring_next(process->ring);
    if (stream->sequence == 0)
        stream->sequence = output_ring_first(process->ring);
    if (!attach->read_only && process->owner == NULL)
        become_writer(stream, attach);
    send_attached(stream);
    if (!stream->writer || !process->input_waits)
        rpc_call_read(stream->call);
}

void process_wait(struct exchange_stream *stream,
                  const Openshell__Sandbox__Protocol__V1__Wait *wait)
{
    struct process *process = process_find(stream->service->processes, wait->process_id);
    if (process == NULL) {
        fail(stream, FAILURE_PROCESS, "there is no such process");
    } else if (process->exited) {
        send_exited(stream, process);
    } else {
        stream->process = process;
        add(&process->waiters, stream);
    }
}

void process_signal(struct exchange_stream *stream,
                    const Openshell__Sandbox__Protocol__V1__Signal *request)
{
    struct process *process = process_find(stream->service->processes, request->process_id);
    if (!signal_valid(request->number)) {
        fail(stream, FAILURE_INVALID, "there is no such signal");
        return;
    }
    if (process == NULL || process->exited || process->session == NULL) {
        fail(stream, FAILURE_PROCESS, "there is no such running process");
        return;
    }
    maker_session_signal(process->session, (int)request->number);
    Openshell__Sandbox__Protocol__V1__Signaled signaled =
        OPENSHELL__SANDBOX__PROTOCOL__V1__SIGNALED__INIT;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(SIGNALED);
    frame.signaled = &signaled;
    exchange_stream_send(stream, &frame);
}

void process_terminate(struct exchange_stream *stream,
                       const Openshell__Sandbox__Protocol__V1__Terminate *request)
{
    struct process *process = process_find(stream->service->processes, request->process_id);
    int64_t grace = 0;
    if (request->grace != NULL)
        grace = request->grace->seconds * 1000 + request->grace->nanos / 1000000;
    if (process == NULL) {
        fail(stream, FAILURE_PROCESS, "there is no such process");
    } else if (grace < 0 || grace > PROCESS_GRACE_LIMIT_MILLISECONDS) {
        fail(stream, FAILURE_INVALID, "the grace is not 0 to 600 s");
    } else if (process->session == NULL) {
        send_terminated(stream);
    } else {
        stream->process = process;
        add(&process->terminators, stream);
        process_kill(process, (unsigned)grace);
    }
}

/* ---- the end of a stream ---- */

/* An exec whose client went away goes with it, unless it was asked to stay (decision P6). */
static void abandon(struct process *process)
{
    if (!process->is_main && !process->keep_running && !process->exited)
        process_kill(process, PROCESS_KILL_GRACE_MILLISECONDS);
}

void process_stream_ended(struct exchange_stream *stream)
{
    if (stream->exchange.operation == OPERATION_EXEC)
        abandon(stream->process);
    else if (stream->exchange.operation == OPERATION_ATTACH_PROCESS &&
             stream->exchange.to_supervisor != STATE_CLOSED) {
        stream->exchange.to_supervisor = STATE_CLOSED;
        rpc_call_finish(stream->call);
    }
}

void process_stream_gone(struct exchange_stream *stream)
{
    struct process *process = stream->process;
    stream->process = NULL;
    leave(&process->viewers, stream);
    leave(&process->waiters, stream);
    leave(&process->terminators, stream);
    if (process->starting == stream)
        process->starting = NULL;
    if (process->owner != stream)
        return;
    process->owner = NULL;
    process->input_waits = false;
    abandon(process);
    if (process->io != NULL && process->started)
        process_io_resume(process->io); /* nobody to wait for any more */
}

void process_stream_broken(struct exchange_stream *stream)
{
    if (stream->exchange.operation == OPERATION_EXEC && !stream->process->exited)
        process_kill(stream->process, PROCESS_KILL_GRACE_MILLISECONDS);
    if (stream->exchange.operation == OPERATION_EXEC ||
        stream->exchange.operation == OPERATION_ATTACH_PROCESS)
        process_stream_gone(stream);
}
