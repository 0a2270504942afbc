#include "rpc/internal.h"

#include <signal.h>
#include <stdlib.h>

#include <grpc/support/log.h>

#include "base/log.h"
#include "base/memory.h"

enum { SHUTDOWN_PATIENCE = 5 * 1000 };

void rpc_completion_init(struct rpc_completion *completion,
                         void (*function)(void *owner, bool success), void *owner)
{
    *completion = (struct rpc_completion){.function = function, .owner = owner};
}

bool rpc_batch_start(struct rpc_call *call, struct rpc_completion *completion, const grpc_op *ops,
                     size_t count)
{
    completion->active = true;
    grpc_call_error result = grpc_call_start_batch(call->core, ops, count, completion, NULL);
    if (result != GRPC_CALL_OK) {
        completion->active = false;
        log_error("cannot start a batch of %s: %s",
                  call->method != NULL ? call->method->path : "a call",
                  grpc_call_error_to_string(result));
        return false;
    }
    call->batches++;
    return true;
}

static void *drain(void *argument)
{
    struct rpc_runtime *runtime = argument;
    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(runtime->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return NULL;
        if (event.type != GRPC_OP_COMPLETE)
            continue;
        struct rpc_completion *completion = event.tag;
        completion->success = event.success != 0;
        struct rpc_completion *first = atomic_load(&runtime->completed);
        do
            completion->next = first;
        while (!atomic_compare_exchange_weak(&runtime->completed, &first, completion));
        if (first == NULL)
            uv_async_send(&runtime->wake);
    }
}

static void advance_scheduled(struct rpc_runtime *runtime)
{
    while (runtime->scheduled_first != NULL) {
        struct rpc_call *call = runtime->scheduled_first;
        runtime->scheduled_first = call->next_scheduled;
        if (runtime->scheduled_first == NULL)
            runtime->scheduled_last = NULL;
        call->scheduled = false;
        rpc_call_advance(call);
    }
}

static void handle_completions(struct rpc_runtime *runtime)
{
    struct rpc_completion *newest = atomic_exchange(&runtime->completed, NULL);
    struct rpc_completion *oldest = NULL;
    for (struct rpc_completion *next; newest != NULL; newest = next) {
        next = newest->next;
        newest->next = oldest;
        oldest = newest;
    }
    for (struct rpc_completion *next; oldest != NULL; oldest = next) {
        next = oldest->next;
        oldest->active = false;
        oldest->function(oldest->owner, oldest->success);
    }
    advance_scheduled(runtime);
}

static void on_wake(uv_async_t *handle)
{
    handle_completions(handle->data);
}

/* Before the loop waits: what other callbacks asked for in this round. */
static void on_prepare(uv_prepare_t *handle)
{
    advance_scheduled(handle->data);
}

void rpc_call_schedule(struct rpc_call *call)
{
    if (call->scheduled || call->done)
        return;
    struct rpc_runtime *runtime = call->runtime;
    call->scheduled = true;
    call->next_scheduled = NULL;
    if (runtime->scheduled_last == NULL)
        runtime->scheduled_first = call;
    else
        runtime->scheduled_last->next_scheduled = call;
    runtime->scheduled_last = call;
}

static void log_from_core(gpr_log_func_args *arguments)
{
    log_debug("grpc: %s", arguments->message);
}

static void ignore_broken_pipes(void)
{
    struct sigaction action;
    if (sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

static bool start_loop_handles(struct rpc_runtime *runtime, struct error *error)
{
    uv_loop_t *loop = reactor_loop(runtime->reactor);
    int result = uv_async_init(loop, &runtime->wake, on_wake);
    if (result != 0)
        return error_set(error, ERROR_INTERNAL, "cannot start gRPC: %s", uv_strerror(result));
    uv_prepare_init(loop, &runtime->prepare);
    runtime->wake.data = runtime->prepare.data = runtime;
    uv_prepare_start(&runtime->prepare, on_prepare);
    uv_unref((uv_handle_t *)&runtime->wake);
    uv_unref((uv_handle_t *)&runtime->prepare);
    return true;
}

/* gRPC's threads and ours leave all signals to the loop's thread. */
static int start_threads(struct rpc_runtime *runtime)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    gpr_set_log_function(log_from_core);
    grpc_init();
    runtime->queue = grpc_completion_queue_create_for_next(NULL);
    int result = pthread_create(&runtime->drain, NULL, drain, runtime);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

struct rpc_runtime *rpc_runtime_new(struct reactor *reactor, struct error *error)
{
    struct rpc_runtime *runtime = memory_new_of(struct rpc_runtime);
    runtime->reactor = reactor;
    ignore_broken_pipes();
    if (!start_loop_handles(runtime, error)) {
        free(runtime);
        return NULL;
    }
    int result = start_threads(runtime);
    if (result != 0) {
        error_set_errno(error, ERROR_INTERNAL, result, "cannot start a thread for gRPC");
        return NULL; /* the loop has handles in it: a process without this thread ends anyway */
    }
    runtime->channel_credentials = grpc_insecure_credentials_create();
    runtime->server_credentials = grpc_insecure_server_credentials_create();
    return runtime;
}

struct reactor *rpc_runtime_reactor(struct rpc_runtime *runtime)
{
    return runtime->reactor;
}

static void runtime_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void note_timeout(void *argument)
{
    *(bool *)argument = true;
}

void rpc_runtime_free(struct rpc_runtime *runtime)
{
    if (runtime == NULL)
        return;
    bool timed_out = false;
    struct reactor_timer *timer =
        reactor_timer_start(runtime->reactor, SHUTDOWN_PATIENCE, 0, note_timeout, &timed_out);
    advance_scheduled(runtime);
    while (runtime->live > 0 && !timed_out)
        reactor_run_once(runtime->reactor);
    reactor_timer_cancel(timer);
    if (runtime->live > 0) {
        log_warn("%zu calls or connections are still open; gRPC goes on", runtime->live);
        return;
    }
    grpc_completion_queue_shutdown(runtime->queue);
    pthread_join(runtime->drain, NULL);
    handle_completions(runtime);
    grpc_completion_queue_destroy(runtime->queue);
    grpc_channel_credentials_release(runtime->channel_credentials);
    grpc_server_credentials_release(runtime->server_credentials);
    grpc_shutdown_blocking();
    uv_close((uv_handle_t *)&runtime->prepare, NULL);
    uv_close((uv_handle_t *)&runtime->wake, runtime_closed);
}
