/* One call on the server's side, from its arrival to its status. */
#include "rpc/server.h"

#include <string.h>

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>

#include "rpc/status.h"

static void on_closed(void *owner, bool success)
{
    (void)success; /* this operation always succeeds; received_cancel tells */
    struct rpc_call *call = owner;
    call->batches--;
    call->over = true;
    rpc_call_schedule(call);
}

static void watch_close(struct rpc_call *call)
{
    rpc_completion_init(&call->closed, on_closed, call);
    grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
    op.data.recv_close_on_server.cancelled = &call->received_cancel;
    if (!rpc_batch_start(call, &call->closed, &op, 1))
        call->over = true;
}

static void fail_unimplemented(struct rpc_call *call, const char *path)
{
    struct error error = {0};
    error_set(&error, ERROR_UNIMPLEMENTED, "method %s is not implemented", path);
    rpc_call_fail(call, &error);
    error_clear(&error);
}

static void fail_request_count(struct rpc_call *call)
{
    struct error error = {0};
    error_set(&error, ERROR_INVALID_ARGUMENT, "method %s takes exactly one request",
              call->method->path);
    rpc_call_fail(call, &error);
    error_clear(&error);
}

static void run_handler(struct rpc_call *call)
{
    struct rpc_server *server = call->connection->server;
    rpc_handler handler = rpc_server_find(server, call->method);
    if (handler == NULL)
        fail_unimplemented(call, call->method->path);
    else
        handler(call, server->user);
}

static void dispatch(struct rpc_call *call, const char *path)
{
    struct rpc_server *server = call->connection->server;
    if (call->connection->closing) {
        rpc_call_cancel(call);
        return;
    }
    if (call->method == NULL) {
        fail_unimplemented(call, path);
        return;
    }
    struct error error = {0};
    if (server->authorize != NULL && !server->authorize(call, server->user, &error)) {
        if (error.code == ERROR_OK)
            error_set(&error, ERROR_PERMISSION_DENIED, "permission denied");
        rpc_call_fail(call, &error);
        error_clear(&error);
        return;
    }
    if (call->method->client_streaming || rpc_server_find(server, call->method) == NULL) {
        run_handler(call);
        return;
    }
    call->phase = RPC_REQUEST_FIRST;
    rpc_call_read(call);
}

void rpc_server_call_begin(struct rpc_connection *connection, grpc_call *core,
                           const grpc_call_details *details, const grpc_metadata_array *metadata)
{
    struct rpc_call *call = rpc_call_new(connection->server->runtime, NULL, true);
    call->core = core;
    call->details = *details;
    call->initial_metadata = *metadata;
    size_t length = GRPC_SLICE_LENGTH(details->method);
    char *path = arena_alloc(call->arena, length + 1);
    memcpy(path, GRPC_SLICE_START_PTR(details->method), length);
    call->method = rpc_method_find(path);
    call->connection = connection;
    call->next = connection->calls;
    if (call->next != NULL)
        call->next->previous = call;
    connection->calls = call;
    rpc_connection_watch_idle(connection);
    watch_close(call);
    dispatch(call, path);
    rpc_call_schedule(call);
}

/* A caller that ended before its request was whole gets no answer: nobody owns the call yet. */
static void abandon(struct rpc_call *call)
{
    call->phase = RPC_REQUEST_NONE;
    rpc_call_cancel(call);
}

void rpc_server_request_received(struct rpc_call *call, grpc_byte_buffer *buffer)
{
    if (call->cancelled || call->connection->closing ||
        (buffer == NULL && grpc_call_failed_before_recv_message(call->core))) {
        if (buffer != NULL)
            grpc_byte_buffer_destroy(buffer);
        abandon(call);
        return;
    }
    if (call->phase == RPC_REQUEST_FIRST && buffer != NULL) {
        struct error error = {0};
        call->request = rpc_message_unpack(call->method->request, buffer, call->arena, &error);
        call->phase = call->request != NULL ? RPC_REQUEST_END : RPC_REQUEST_NONE;
        if (call->request != NULL)
            rpc_call_read(call);
        else
            rpc_call_fail(call, &error);
        error_clear(&error);
        return;
    }
    bool complete = call->phase == RPC_REQUEST_END && buffer == NULL;
    call->phase = RPC_REQUEST_NONE;
    call->read_ended = true;
    if (buffer != NULL)
        grpc_byte_buffer_destroy(buffer);
    if (complete)
        run_handler(call);
    else
        fail_request_count(call);
}

/* ---- the answer ---- */

void rpc_call_accept(struct rpc_call *call, const struct rpc_call_events *events, void *user)
{
    call->events = *events;
    call->user = user;
    rpc_call_schedule(call);
}

void rpc_call_finish(struct rpc_call *call)
{
    call->finishing = true;
    rpc_call_schedule(call);
}

void rpc_call_respond(struct rpc_call *call, const ProtobufCMessage *response)
{
    rpc_call_send(call, response);
    rpc_call_finish(call);
}

void rpc_call_fail(struct rpc_call *call, const struct error *error)
{
    if (call->finishing)
        return;
    struct error *status = rpc_call_own_error(call, error);
    if (status->code == ERROR_OK)
        error_set(status, ERROR_INTERNAL, "%s failed without a reason",
                  call->method != NULL ? call->method->path : "the call");
    rpc_call_finish(call);
}

/* Fills in the operation; both slices are to be unreferenced once the batch was started, the
 * detail's when the result is 1. */
size_t rpc_server_status_op(struct rpc_call *call, grpc_op *op, grpc_metadata *ret_detail,
                            grpc_slice *ret_text)
{
    op->op = GRPC_OP_SEND_STATUS_FROM_SERVER;
    if (call->status == NULL)
        return 0;
    *ret_text = grpc_slice_from_copied_string(call->status->message);
    op->data.send_status_from_server.status = (grpc_status_code)call->status->code;
    op->data.send_status_from_server.status_details = ret_text;
    size_t size = 0;
    const uint8_t *details = status_encode(call->status, call->arena, &size);
    if (details == NULL)
        return 0;
    memset(ret_detail, 0, sizeof(*ret_detail));
    ret_detail->key = grpc_slice_from_static_string("grpc-status-details-bin");
    ret_detail->value = grpc_slice_from_copied_buffer((const char *)details, size);
    op->data.send_status_from_server.trailing_metadata_count = 1;
    op->data.send_status_from_server.trailing_metadata = ret_detail;
    return 1;
}

void rpc_server_end(struct rpc_call *call)
{
    struct rpc_connection *connection = call->connection;
    bool delivered = call->finished && !call->send_failed && !call->received_cancel;
    struct error status = {0};
    if (call->broken)
        error_copy(&status, call->status);
    else if (!delivered)
        error_set(&status, ERROR_CANCELLED, "the caller is gone");
    if (call->events.on_done != NULL)
        call->events.on_done(call, &status, call->user);
    error_clear(&status);
    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        connection->calls = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    if (connection->closing)
        rpc_connection_end_when_over(connection);
    else
        rpc_connection_watch_idle(connection);
}

/* ---- what a server's call knows ---- */

struct rpc_connection *rpc_call_connection(const struct rpc_call *call)
{
    return call->connection;
}

const ProtobufCMessage *rpc_call_request(const struct rpc_call *call)
{
    return call->request;
}

const char *rpc_call_metadata(const struct rpc_call *call, const char *key, size_t *ret_count)
{
    return rpc_metadata_find((struct rpc_call *)call, &call->initial_metadata, key, ret_count);
}

int64_t rpc_call_remaining(const struct rpc_call *call)
{
    gpr_timespec deadline = call->details.deadline;
    if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) == 0)
        return -1;
    int64_t left = gpr_time_to_millis(gpr_time_sub(deadline, gpr_now(deadline.clock_type)));
    return left > 0 ? left : 0;
}

void rpc_call_set_principal(struct rpc_call *call, void *principal)
{
    call->principal = principal;
}

void *rpc_call_principal(const struct rpc_call *call)
{
    return call->principal;
}

bool rpc_call_cancelled(const struct rpc_call *call)
{
    return call->cancelled || (call->over && call->received_cancel) || call->send_failed ||
           call->connection->closing;
}
