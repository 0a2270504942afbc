/* The client's side: channels over a descriptor, and their calls. */
#include "rpc/internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <grpc/byte_buffer.h>
#include <grpc/grpc_posix.h>
#include <grpc/slice.h>

#include "base/memory.h"
#include "rpc/channel_arguments.h"
#include "rpc/status.h"

struct rpc_channel *rpc_channel_new(struct rpc_runtime *runtime, int descriptor,
                                    struct error *error)
{
    grpc_channel *core = grpc_channel_create_from_fd(
        "openshell", descriptor, runtime->channel_credentials, channel_arguments_client());
    if (core == NULL) {
        close(descriptor);
        error_set(error, ERROR_INTERNAL, "cannot make a gRPC channel");
        return NULL;
    }
    struct rpc_channel *channel = memory_new_of(struct rpc_channel);
    channel->runtime = runtime;
    channel->core = core;
    runtime->live++;
    return channel;
}

static void free_when_unused(struct rpc_channel *channel)
{
    if (!channel->freed || channel->calls != NULL)
        return;
    channel->runtime->live--;
    free(channel);
}

void rpc_channel_free(struct rpc_channel *channel)
{
    if (channel == NULL)
        return;
    for (struct rpc_call *call = channel->calls; call != NULL; call = call->next)
        rpc_call_cancel(call);
    grpc_channel_destroy(channel->core);
    channel->freed = true;
    free_when_unused(channel);
}

void rpc_client_release(struct rpc_call *call)
{
    struct rpc_channel *channel = call->channel;
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        channel->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    free_when_unused(channel);
}

static void on_headers(void *owner, bool success)
{
    struct rpc_call *call = owner;
    call->batches--;
    call->initial_arrived = success;
    rpc_call_schedule(call);
}

static void on_closed(void *owner, bool success)
{
    (void)success; /* this operation always succeeds; the status tells */
    struct rpc_call *call = owner;
    call->batches--;
    call->over = true;
    rpc_call_schedule(call);
}

static void set_bearer(struct rpc_call *call, const char *bearer)
{
    const char *value = arena_printf(call->arena, "Bearer %s", bearer);
    grpc_slice slice = grpc_slice_from_copied_string(value);
    if (!grpc_header_nonbin_value_is_legal(slice)) {
        grpc_slice_unref(slice);
        struct error error = {0};
        error_set(&error, ERROR_UNAUTHENTICATED,
                  "the bearer token has characters that cannot be sent");
        rpc_call_break(call, &error);
        error_clear(&error);
        return;
    }
    call->bearer = arena_new_of(call->arena, grpc_metadata);
    call->bearer->key = grpc_slice_from_static_string("authorization");
    call->bearer->value = slice;
}

static struct rpc_call *new_call(struct rpc_channel *channel, const struct rpc_method *method,
                                 const struct rpc_call_options *options)
{
    struct rpc_call *call = rpc_call_new(channel->runtime, method, false);
    gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    if (options != NULL && options->deadline > 0)
        deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                gpr_time_from_millis(options->deadline, GPR_TIMESPAN));
    call->core = grpc_channel_create_call(
        channel->core, NULL, GRPC_PROPAGATE_DEFAULTS, channel->runtime->queue,
        grpc_slice_from_static_string(method->path), NULL, deadline, NULL);
    rpc_completion_init(&call->headers, on_headers, call);
    rpc_completion_init(&call->closed, on_closed, call);
    call->channel = channel;
    call->next = channel->calls;
    if (call->next != NULL)
        call->next->previous = call;
    channel->calls = call;
    if (options != NULL && options->bearer != NULL)
        set_bearer(call, options->bearer);
    return call;
}

static void set_close_op(struct rpc_call *call, grpc_op *op)
{
    op->op = GRPC_OP_RECV_STATUS_ON_CLIENT;
    op->data.recv_status_on_client.trailing_metadata = &call->trailing_metadata;
    op->data.recv_status_on_client.status = &call->received_code;
    op->data.recv_status_on_client.status_details = &call->received_text;
}

static void set_headers_op(struct rpc_call *call, grpc_op *op)
{
    op->op = GRPC_OP_RECV_INITIAL_METADATA;
    op->data.recv_initial_metadata.recv_initial_metadata = &call->initial_metadata;
}

struct rpc_call *rpc_call_start(struct rpc_channel *channel, const struct rpc_method *method,
                                const struct rpc_call_options *options,
                                const struct rpc_call_events *events, void *user)
{
    struct rpc_call *call = new_call(channel, method, options);
    if (events != NULL)
        call->events = *events;
    call->user = user;
    grpc_op op = {0};
    set_close_op(call, &op);
    if (!rpc_batch_start(call, &call->closed, &op, 1))
        call->over = true;
    rpc_call_schedule(call);
    return call;
}

void rpc_call_half_close(struct rpc_call *call)
{
    if (call->server)
        return;
    call->finishing = true;
    rpc_call_schedule(call);
}

const char *rpc_call_initial_metadata(struct rpc_call *call, const char *key)
{
    if (!call->initial_arrived)
        return NULL;
    return rpc_metadata_find(call, &call->initial_metadata, key, NULL);
}

/* The server's metadata is asked for once: with the first message where one is wanted at once. */
void rpc_client_flush_receive(struct rpc_call *call)
{
    if (call->unary_done != NULL)
        return;
    grpc_op ops[2] = {0};
    size_t count = 0;
    bool message = call->read_wanted && !call->received.active;
    if (!call->initial_requested)
        set_headers_op(call, &ops[count++]);
    if (message) {
        ops[count].op = GRPC_OP_RECV_MESSAGE;
        ops[count++].data.recv_message.recv_message = &call->incoming;
        call->read_wanted = false;
    }
    call->initial_requested = true;
    if (count > 0 && !rpc_batch_start(call, message ? &call->received : &call->headers, ops, count))
        grpc_call_cancel(call->core, NULL);
}

static void read_status(struct rpc_call *call)
{
    if (call->status != NULL)
        return; /* this side ended it */
    const uint8_t *details = NULL;
    size_t size = 0;
    for (size_t i = 0; i < call->trailing_metadata.count; i++) {
        const grpc_metadata *entry = &call->trailing_metadata.metadata[i];
        if (grpc_slice_str_cmp(entry->key, "grpc-status-details-bin") != 0)
            continue;
        details = GRPC_SLICE_START_PTR(entry->value);
        size = GRPC_SLICE_LENGTH(entry->value);
        break;
    }
    size_t length = GRPC_SLICE_LENGTH(call->received_text);
    char *text = arena_alloc(call->arena, length + 1);
    memcpy(text, GRPC_SLICE_START_PTR(call->received_text), length);
    status_decode((int)call->received_code, text, details, size, rpc_call_own_error(call, NULL));
}

static void end_unary(struct rpc_call *call)
{
    struct error *status = call->status;
    const ProtobufCMessage *response = NULL;
    if (status->code == ERROR_OK && call->incoming == NULL)
        error_set(status, ERROR_INTERNAL, "%s ended without a response", call->method->path);
    if (status->code == ERROR_OK) {
        response = rpc_message_unpack(
            call->method->response, call->incoming,
            call->response_arena != NULL ? call->response_arena : call->arena, status);
        call->incoming = NULL;
    }
    call->unary_done(response, response != NULL ? NULL : status, call->user);
}

void rpc_client_end(struct rpc_call *call)
{
    read_status(call);
    if (call->unary_done != NULL)
        end_unary(call);
    else if (call->events.on_done != NULL)
        call->events.on_done(call, call->status, call->user);
}

/* All six operations in one batch: one write, one completion. */
static void start_unary(struct rpc_call *call, const ProtobufCMessage *request)
{
    call->sending = rpc_message_pack(request);
    call->initial_sent = call->finishing = call->finished = true;
    grpc_op ops[6] = {0};
    ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
    ops[0].data.send_initial_metadata.count = call->bearer != NULL ? 1 : 0;
    ops[0].data.send_initial_metadata.metadata = call->bearer;
    ops[1].op = GRPC_OP_SEND_MESSAGE;
    ops[1].data.send_message.send_message = call->sending;
    ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
    set_headers_op(call, &ops[3]);
    ops[4].op = GRPC_OP_RECV_MESSAGE;
    ops[4].data.recv_message.recv_message = &call->incoming;
    set_close_op(call, &ops[5]);
    if (!rpc_batch_start(call, &call->closed, ops, 6)) {
        call->over = true;
        rpc_call_schedule(call);
    }
}

static struct rpc_call *
unary(struct rpc_channel *channel, const struct rpc_method *method,
      const struct rpc_call_options *options, const ProtobufCMessage *request, struct arena *arena,
      void (*done)(const ProtobufCMessage *response, const struct error *error, void *user),
      void *user)
{
    struct rpc_call *call = new_call(channel, method, options);
    call->unary_done = done;
    call->user = user;
    call->response_arena = arena;
    start_unary(call, request);
    return call;
}

struct rpc_call *rpc_unary(struct rpc_channel *channel, const struct rpc_method *method,
                           const struct rpc_call_options *options, const ProtobufCMessage *request,
                           void (*done)(const ProtobufCMessage *response, const struct error *error,
                                        void *user),
                           void *user)
{
    return unary(channel, method, options, request, NULL, done, user);
}

struct waiting {
    bool done;
    const ProtobufCMessage *response;
    struct error *error;
};

static void wait_done(const ProtobufCMessage *response, const struct error *error, void *user)
{
    struct waiting *waiting = user;
    waiting->done = true;
    waiting->response = response;
    if (error != NULL)
        error_copy(waiting->error, error);
}

const ProtobufCMessage *rpc_unary_wait(struct rpc_channel *channel, const struct rpc_method *method,
                                       const struct rpc_call_options *options,
                                       const ProtobufCMessage *request, struct arena *arena,
                                       struct error *error)
{
    struct waiting waiting = {.error = error};
    unary(channel, method, options, request, arena, wait_done, &waiting);
    while (!waiting.done)
        reactor_run_once(channel->runtime->reactor);
    return waiting.response;
}
