#include "rpc/internal.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <grpc/support/log.h>

#include "base/log.h"
#include "base/memory.h"

enum {
    SHUTDOWN_PATIENCE = 5 * 1000,
    COMPLETIONS_A_TURN = 64, /* before timers and descriptors have their turn */
};

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

/* ---- the reactor's wait ---- */

/* True when an owner may have been called. */
static bool advance_scheduled(struct rpc_runtime *runtime)
{
    bool any = false;
    while (runtime->scheduled_first != NULL) {
        struct rpc_call *call = runtime->scheduled_first;
        runtime->scheduled_first = call->next_scheduled;
        if (runtime->scheduled_first == NULL)
            runtime->scheduled_last = NULL;
        call->scheduled = false;
        any |= rpc_call_advance(call);
    }
    return any;
}

/* Takes one completion; false when none came in time. */
static bool take_completion(struct rpc_runtime *runtime, gpr_timespec deadline)
{
    grpc_event event = grpc_completion_queue_next(runtime->queue, deadline, NULL);
    if (event.type != GRPC_OP_COMPLETE)
        return false;
    struct rpc_completion *completion = event.tag;
    completion->active = false;
    completion->function(completion->owner, event.success != 0);
    return true;
}

static bool wait(void *argument, int milliseconds)
{
    struct rpc_runtime *runtime = argument;
    bool any = advance_scheduled(runtime);
    gpr_timespec at_once = gpr_inf_past(GPR_CLOCK_MONOTONIC);
    gpr_timespec deadline = at_once;
    if (!any && milliseconds < 0)
        deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);
    else if (!any && milliseconds > 0)
        deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                gpr_time_from_millis(milliseconds, GPR_TIMESPAN));
    for (int taken = 0; taken < COMPLETIONS_A_TURN; taken++) {
        if (!take_completion(runtime, deadline))
            break;
        any = true;
        deadline = at_once;
        /* On a server what was asked for completes at once more often than not. */
        advance_scheduled(runtime);
    }
    return any;
}

static void on_woken(void *owner, bool success)
{
    (void)success;
    struct rpc_runtime *runtime = owner;
    atomic_store(&runtime->waking, false);
}

/* An empty batch completes at once, and gRPC takes it from any thread. */
static void wake(void *argument)
{
    struct rpc_runtime *runtime = argument;
    if (!atomic_exchange(&runtime->waking, true))
        grpc_call_start_batch(runtime->wake_call, NULL, 0, &runtime->woken, NULL);
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

/* gRPC starts six threads that have next to nothing to do here; no setting of its own prevents it,
 * and they are half of the 0.25 ms that grpc_init takes (the first channel takes 0.25 ms more, the
 * first call 0.2 ms: all lazy set-up of gRPC's own). One heap for all of them saves 40 us and the
 * pages of the others. They leave all signals to the loop's thread. */
static void start_core(void)
{
    sigset_t all, before;
    mallopt(M_ARENA_MAX, 1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    gpr_set_log_function(log_from_core);
    grpc_init();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void make_wake_call(struct rpc_runtime *runtime)
{
    rpc_completion_init(&runtime->woken, on_woken, runtime);
    runtime->wake_channel =
        grpc_lame_client_channel_create("wake", GRPC_STATUS_UNAVAILABLE, "not for calls");
    runtime->wake_call = grpc_channel_create_call(
        runtime->wake_channel, NULL, GRPC_PROPAGATE_DEFAULTS, runtime->queue,
        grpc_slice_from_static_string("/wake"), NULL, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
}

struct rpc_runtime *rpc_runtime_new(struct reactor *reactor, struct error *error)
{
    (void)error;
    struct rpc_runtime *runtime = memory_new_of(struct rpc_runtime);
    runtime->reactor = reactor;
    ignore_broken_pipes();
    start_core();
    runtime->queue = grpc_completion_queue_create_for_next(NULL);
    runtime->channel_credentials = grpc_insecure_credentials_create();
    runtime->server_credentials = grpc_insecure_server_credentials_create();
    make_wake_call(runtime);
    runtime->source = (struct reactor_source){wait, wake, runtime};
    reactor_set_source(reactor, &runtime->source);
    return runtime;
}

struct reactor *rpc_runtime_reactor(struct rpc_runtime *runtime)
{
    return runtime->reactor;
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
    while (runtime->live > 0 && !timed_out)
        reactor_run_once(runtime->reactor);
    reactor_timer_cancel(timer);
    if (runtime->live > 0) {
        log_warn("%zu calls or connections are still open; gRPC goes on", runtime->live);
        return;
    }
    reactor_set_source(runtime->reactor, NULL);
    grpc_call_unref(runtime->wake_call);
    grpc_channel_destroy(runtime->wake_channel);
    grpc_completion_queue_shutdown(runtime->queue);
    while (take_completion(runtime, gpr_inf_future(GPR_CLOCK_MONOTONIC)))
        ;
    grpc_completion_queue_destroy(runtime->queue);
    grpc_channel_credentials_release(runtime->channel_credentials);
    grpc_server_credentials_release(runtime->server_credentials);
    grpc_shutdown_blocking();
    free(runtime);
}
