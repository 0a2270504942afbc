/* What calls have in common on both sides. */
#include "rpc/internal.h"

#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "base/log.h"

enum {
    /* What unpacked messages of one call may take. */
    UNPACK_LIMIT = 40 * 1024 * 1024,
};

static void on_sent(void *owner, bool success);
static void on_received(void *owner, bool success);

struct rpc_call *rpc_call_new(struct rpc_runtime *runtime, const struct rpc_method *method,
                              bool server)
{
    struct arena *arena = arena_new(UNPACK_LIMIT);
    struct rpc_call *call = arena_new_of(arena, struct rpc_call);
    call->runtime = runtime;
    call->method = method;
    call->server = server;
    call->arena = arena;
    call->received_text = grpc_empty_slice();
    grpc_metadata_array_init(&call->initial_metadata);
    grpc_metadata_array_init(&call->trailing_metadata);
    rpc_completion_init(&call->sent, on_sent, call);
    rpc_completion_init(&call->received, on_received, call);
    runtime->live++;
    return call;
}

static grpc_byte_buffer *take_from_queue(struct rpc_call *call)
{
    grpc_byte_buffer *buffer = call->queue[call->queue_first];
    call->queue_first = (call->queue_first + 1) % RPC_SEND_QUEUE_LIMIT;
    call->queue_count--;
    call->queue_bytes -= grpc_byte_buffer_length(buffer);
    return buffer;
}

static void drop_queue(struct rpc_call *call)
{
    while (call->queue_count > 0)
        grpc_byte_buffer_destroy(take_from_queue(call));
}

static void free_call(struct rpc_call *call)
{
    struct rpc_runtime *runtime = call->runtime;
    drop_queue(call);
    if (call->sending != NULL)
        grpc_byte_buffer_destroy(call->sending);
    if (call->incoming != NULL)
        grpc_byte_buffer_destroy(call->incoming);
    if (call->core != NULL)
        grpc_call_unref(call->core);
    grpc_metadata_array_destroy(&call->initial_metadata);
    grpc_metadata_array_destroy(&call->trailing_metadata);
    grpc_slice_unref(call->received_text);
    if (call->bearer != NULL)
        grpc_slice_unref(call->bearer->value);
    if (call->server)
        grpc_call_details_destroy(&call->details);
    error_clear(call->status);
    arena_free(call->message_arena);
    arena_free(call->arena);
    runtime->live--;
}

struct error *rpc_call_own_error(struct rpc_call *call, const struct error *error)
{
    if (call->status == NULL)
        call->status = arena_new_of(call->arena, struct error);
    if (error != NULL)
        error_copy(call->status, error);
    return call->status;
}

/* ---- sending ---- */

static void set_initial_op(struct rpc_call *call, grpc_op *op)
{
    op->op = GRPC_OP_SEND_INITIAL_METADATA;
    op->data.send_initial_metadata.count = call->bearer != NULL ? 1 : 0;
    op->data.send_initial_metadata.metadata = call->bearer;
}

/* With more waiting, gRPC may gather it before it writes. Not with the initial metadata, whose
 * completion would then wait for a write that nothing starts. */
static void set_message_op(struct rpc_call *call, grpc_op *op, bool initial)
{
    call->sending = take_from_queue(call);
    op->op = GRPC_OP_SEND_MESSAGE;
    op->data.send_message.send_message = call->sending;
    op->flags = call->queue_count > 0 && !initial ? GRPC_WRITE_BUFFER_HINT : 0;
}

static void flush_send(struct rpc_call *call)
{
    if (call->sent.active || call->finished || call->send_failed)
        return;
    bool message = call->queue_count > 0;
    bool last = call->finishing && call->queue_count <= 1;
    bool initial = !call->initial_sent && (message || last || !call->server);
    if (!message && !last && !initial)
        return;
    grpc_op ops[3] = {0};
    size_t count = 0, details = 0;
    grpc_metadata detail;
    grpc_slice text = grpc_empty_slice();
    if (initial)
        set_initial_op(call, &ops[count++]);
    if (message)
        set_message_op(call, &ops[count++], initial);
    if (last && !call->server)
        ops[count++].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    if (last && call->server)
        details = rpc_server_status_op(call, &ops[count++], &detail, &text);
    call->initial_sent = true;
    call->finished = last;
    if (!rpc_batch_start(call, &call->sent, ops, count)) {
        call->send_failed = true;
        grpc_call_cancel(call->core, NULL);
    }
    if (details > 0)
        grpc_slice_unref(detail.value);
    grpc_slice_unref(text);
}

static void on_sent(void *owner, bool success)
{
    struct rpc_call *call = owner;
    call->batches--;
    bool message = call->sending != NULL;
    if (message)
        grpc_byte_buffer_destroy(call->sending);
    call->sending = NULL;
    if (!success) {
        call->send_failed = true;
        drop_queue(call);
    } else if (message && call->queue_count == 0 && !call->cancelled && !call->done &&
               call->events.on_sent != NULL) {
        call->events.on_sent(call, call->user);
    }
    rpc_call_schedule(call);
}

bool rpc_call_send(struct rpc_call *call, const ProtobufCMessage *message)
{
    if (call->finishing || call->send_failed || call->cancelled || call->over ||
        call->queue_count == RPC_SEND_QUEUE_LIMIT || call->queue_bytes >= RPC_SEND_QUEUE_BYTES)
        return false;
    if (call->queue == NULL)
        call->queue = arena_array_of(call->arena, grpc_byte_buffer *, RPC_SEND_QUEUE_LIMIT);
    unsigned place = (call->queue_first + call->queue_count) % RPC_SEND_QUEUE_LIMIT;
    call->queue[place] = rpc_message_pack(message);
    call->queue_count++;
    call->queue_bytes += grpc_byte_buffer_length(call->queue[place]);
    rpc_call_schedule(call);
    return true;
}

size_t rpc_call_unsent(const struct rpc_call *call)
{
    return call->queue_count + (call->sending != NULL ? 1 : 0);
}

/* ---- receiving ---- */

void rpc_call_read(struct rpc_call *call)
{
    if (call->read_ended)
        return;
    call->read_wanted = true;
    rpc_call_schedule(call);
}

static void flush_receive(struct rpc_call *call)
{
    if (!call->server) {
        rpc_client_flush_receive(call);
        return;
    }
    if (!call->read_wanted || call->received.active)
        return;
    call->read_wanted = false;
    grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
    op.data.recv_message.recv_message = &call->incoming;
    if (!rpc_batch_start(call, &call->received, &op, 1))
        grpc_call_cancel(call->core, NULL);
}

static void deliver(struct rpc_call *call, grpc_byte_buffer *buffer)
{
    if (buffer == NULL) {
        call->read_ended = true;
        if (call->events.on_end != NULL)
            call->events.on_end(call, call->user);
        return;
    }
    if (call->message_arena == NULL)
        call->message_arena = arena_new(UNPACK_LIMIT);
    struct error error = {0};
    ProtobufCMessage *message =
        rpc_message_unpack(call->server ? call->method->request : call->method->response, buffer,
                           call->message_arena, &error);
    if (message == NULL)
        rpc_call_break(call, &error);
    else if (call->events.on_message != NULL)
        call->events.on_message(call, message, call->user);
    arena_reset(call->message_arena);
    error_clear(&error);
}

static void on_received(void *owner, bool success)
{
    struct rpc_call *call = owner;
    call->batches--;
    if (!call->server && success)
        call->initial_arrived = true;
    grpc_byte_buffer *buffer = call->incoming;
    call->incoming = NULL;
    if (!success && buffer != NULL) {
        grpc_byte_buffer_destroy(buffer);
        buffer = NULL;
    }
    rpc_call_schedule(call);
    if (call->phase != RPC_REQUEST_NONE)
        rpc_server_request_received(call, buffer);
    else if (!call->cancelled)
        deliver(call, buffer);
    else if (buffer != NULL)
        grpc_byte_buffer_destroy(buffer);
}

/* ---- ending ---- */

bool rpc_call_advance(struct rpc_call *call)
{
    if (call->core == NULL)
        return false;
    flush_send(call);
    flush_receive(call);
    if (!call->over || call->batches > 0 || call->done)
        return false;
    /* Without on_done the owner of a server's call cannot know: it still holds the call. */
    if (call->server && call->events.on_done == NULL && !call->finishing && !call->cancelled)
        return false;
    call->done = true;
    if (call->server) {
        rpc_server_end(call);
    } else {
        rpc_client_end(call);
        rpc_client_release(call);
    }
    free_call(call);
    return true;
}

void rpc_call_cancel(struct rpc_call *call)
{
    if (call->cancelled)
        return;
    call->cancelled = true;
    drop_queue(call);
    grpc_call_cancel_with_status(call->core, GRPC_STATUS_CANCELLED, "cancelled", NULL);
    rpc_call_schedule(call);
}

void rpc_call_break(struct rpc_call *call, const struct error *error)
{
    if (call->server && !call->finishing) {
        rpc_call_fail(call, error);
    } else {
        rpc_call_own_error(call, error);
        grpc_call_cancel_with_status(call->core, (grpc_status_code)error->code, error->message,
                                     NULL);
    }
    call->cancelled = call->broken = true;
    drop_queue(call);
    rpc_call_schedule(call);
}

/* ---- what a call knows ---- */

void *rpc_call_user(const struct rpc_call *call)
{
    return call->user;
}

const struct rpc_method *rpc_call_method(const struct rpc_call *call)
{
    return call->method;
}

struct arena *rpc_call_arena(struct rpc_call *call)
{
    return call->arena;
}

const char *rpc_metadata_find(struct rpc_call *call, const grpc_metadata_array *metadata,
                              const char *key, size_t *ret_count)
{
    const char *value = NULL;
    size_t found = 0;
    for (size_t i = 0; i < metadata->count; i++) {
        if (grpc_slice_str_cmp(metadata->metadata[i].key, key) != 0)
            continue;
        if (found++ > 0)
            continue;
        grpc_slice slice = metadata->metadata[i].value;
        size_t length = GRPC_SLICE_LENGTH(slice);
        char *copy = arena_alloc(call->arena, length + 1);
        memcpy(copy, GRPC_SLICE_START_PTR(slice), length);
        value = copy;
    }
    if (ret_count != NULL)
        *ret_count = found;
    return value;
}
