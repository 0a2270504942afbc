/* The Exchange stream: handle first, then one operation, both by the table. */
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "base/log.h"
#include "base/memory.h"
#include "boundary/failure.h"
#include "runtime/process.h"
#include "runtime/service.h"

bool exchange_stream_send(struct exchange_stream *stream, const exchange_frame *frame)
{
    struct error error = {0};
    if (!exchange_step(&stream->exchange, TO_SUPERVISOR, frame, &error)) {
        log_error("cannot answer: %s", error.message);
        error_clear(&error);
        return false;
    }
    bool queued = rpc_call_send(stream->call, &frame->base);
    if (stream->exchange.to_supervisor == STATE_CLOSED)
        rpc_call_finish(stream->call);
    return queued;
}

void exchange_stream_fail(struct exchange_stream *stream, const struct error *error)
{
    log_debug("%s failed: %s", exchange_operation_name(stream->exchange.operation), error->message);
    if (stream->exchange.to_supervisor == STATE_CLOSED)
        return;
    if (stream->exchange.to_supervisor == STATE_SILENT) { /* no operation to answer */
        stream->exchange.to_supervisor = STATE_CLOSED;
        rpc_call_fail(stream->call, error);
        return;
    }
    failure_message failure;
    failure_encode(error, &failure);
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(FAILURE);
    frame.failure = &failure;
    exchange_stream_send(stream, &frame);
}

static bool check_binding(struct exchange_stream *stream, const char *boundary_id,
                          struct error *error)
{
    const struct service *service = stream->service;
    if (service->link.opened && strlen(boundary_id) == strlen(service->boundary_id) &&
        CRYPTO_memcmp(boundary_id, service->boundary_id, strlen(boundary_id)) == 0)
        return true;
    return failure_set(error, FAILURE_DENIED, "the handle is not one of this boundary");
}

static void run_operation(struct exchange_stream *stream, const exchange_frame *frame)
{
    switch (stream->exchange.operation) {
    case OPERATION_DISCOVER_POLICY:
        service_discover_policy(stream);
        break;
    case OPERATION_ATTACH:
        service_attach(stream, frame->attach);
        break;
    case OPERATION_CONFIRM:
        service_confirm(stream);
        break;
    case OPERATION_START_AGENT:
        service_start_agent(stream, frame->start_agent);
        break;
    case OPERATION_EXEC:
        process_exec(stream, frame->exec);
        break;
    case OPERATION_ATTACH_PROCESS:
        process_attach(stream, frame->attach_process);
        break;
    case OPERATION_WAIT:
        process_wait(stream, frame->wait);
        break;
    case OPERATION_SIGNAL:
        process_signal(stream, frame->signal);
        break;
    case OPERATION_TERMINATE:
        process_terminate(stream, frame->terminate);
        break;
    case OPERATION_TERMINATE_BOUNDARY:
        service_terminate(stream, frame->terminate_boundary);
        break;
    case OPERATION_NONE:
    case OPERATION_COUNT:
        break;
    }
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct exchange_stream *stream = user;
    const exchange_frame *frame = (const exchange_frame *)message;
    enum exchange_operation before = stream->exchange.operation;
    struct error error = {0};
    bool valid = exchange_step(&stream->exchange, TO_RUNTIME, frame, &error);
    if (valid && frame->frame_case == EXCHANGE_FRAME(BINDING))
        valid = check_binding(stream, frame->binding->boundary_id, &error);
    else if (valid && before == OPERATION_NONE)
        valid = stage_allows(stream->service->stage, stream->exchange.operation, &error);
    if (!valid) {
        if (stream->process != NULL)
            process_stream_broken(stream);
        exchange_stream_fail(stream, &error);
        error_clear(&error);
    } else if (frame->frame_case == EXCHANGE_FRAME(BINDING)) {
        rpc_call_read(call);
    } else if (before == OPERATION_NONE) {
        run_operation(stream, frame);
    } else {
        process_input(stream, frame);
    }
}

/* No further message: a half-close, a cancellation or a dead peer (decision W4). */
static void on_end(struct rpc_call *call, void *user)
{
    (void)call;
    struct exchange_stream *stream = user;
    if (stream->exchange.operation == OPERATION_NONE) {
        struct error error = {0};
        failure_set(&error, FAILURE_PROTOCOL_VIOLATION,
                    "the stream ended before it named an operation");
        exchange_stream_fail(stream, &error);
    } else if (stream->process != NULL) {
        process_stream_ended(stream);
    }
}

static void on_sent(struct rpc_call *call, void *user)
{
    (void)call;
    struct exchange_stream *stream = user;
    if (stream->process != NULL)
        process_stream_writable(stream);
}

static void on_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    struct exchange_stream *stream = user;
    if (stream->process != NULL)
        process_stream_gone(stream);
    service_stream_gone(stream);
    free(stream);
}

void exchange_stream_begin(struct rpc_call *call, void *service)
{
    static const struct rpc_call_events EVENTS = {
        .on_message = on_message, .on_end = on_end, .on_sent = on_sent, .on_done = on_done};
    struct exchange_stream *stream = memory_new_of(struct exchange_stream);
    stream->service = service;
    stream->call = call;
    stream->exchange = EXCHANGE_INIT;
    rpc_call_accept(call, &EVENTS, stream);
    rpc_call_read(call);
}
