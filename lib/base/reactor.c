#include "base/reactor.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

struct posted {
    struct posted *next;
    void (*function)(void *argument);
    void *argument;
};

struct reactor {
    uv_loop_t loop;
    uv_async_t wake;
    pthread_mutex_t mutex; /* guards first and last */
    struct posted *first;
    struct posted *last;
};

struct reactor_timer {
    uv_timer_t handle;
    void (*function)(void *argument);
    void *argument;
};

struct reactor_watch {
    uv_poll_t handle;
    void (*function)(int events, void *argument);
    void *argument;
};

struct reactor_signal {
    uv_signal_t handle;
    void (*function)(int number, void *argument);
    void *argument;
};

struct offloaded {
    uv_work_t request;
    void (*work)(void *argument);
    void (*done)(void *argument);
    void *argument;
};

static void on_wake(uv_async_t *handle)
{
    struct reactor *reactor = handle->data;
    pthread_mutex_lock(&reactor->mutex);
    struct posted *batch = reactor->first;
    reactor->first = reactor->last = NULL;
    pthread_mutex_unlock(&reactor->mutex);
    for (struct posted *next; batch != NULL; batch = next) {
        next = batch->next;
        batch->function(batch->argument);
        free(batch);
    }
}

struct reactor *reactor_new(struct error *error)
{
    struct reactor *reactor = memory_new_of(struct reactor);
    int result = uv_loop_init(&reactor->loop);
    if (result != 0) {
        error_set(error, ERROR_INTERNAL, "cannot make an event loop: %s", uv_strerror(result));
        free(reactor);
        return NULL;
    }
    result = uv_async_init(&reactor->loop, &reactor->wake, on_wake);
    if (result != 0) {
        error_set(error, ERROR_INTERNAL, "cannot make an event loop: %s", uv_strerror(result));
        uv_loop_close(&reactor->loop);
        free(reactor);
        return NULL;
    }
    reactor->wake.data = reactor;
    pthread_mutex_init(&reactor->mutex, NULL);
    return reactor;
}

static void close_handle(uv_handle_t *handle, void *argument)
{
    (void)argument;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void reactor_free(struct reactor *reactor)
{
    if (reactor == NULL)
        return;
    on_wake(&reactor->wake);
    uv_walk(&reactor->loop, close_handle, NULL);
    while (uv_run(&reactor->loop, UV_RUN_NOWAIT) != 0)
        ;
    uv_loop_close(&reactor->loop);
    pthread_mutex_destroy(&reactor->mutex);
    free(reactor);
}

uv_loop_t *reactor_loop(struct reactor *reactor)
{
    return &reactor->loop;
}

void reactor_run(struct reactor *reactor)
{
    uv_run(&reactor->loop, UV_RUN_DEFAULT);
}

void reactor_run_once(struct reactor *reactor)
{
    uv_run(&reactor->loop, UV_RUN_ONCE);
}

void reactor_stop(struct reactor *reactor)
{
    uv_stop(&reactor->loop);
}

void reactor_post(struct reactor *reactor, void (*function)(void *argument), void *argument)
{
    struct posted *posted = memory_new_of(struct posted);
    posted->function = function;
    posted->argument = argument;
    pthread_mutex_lock(&reactor->mutex);
    bool first = reactor->first == NULL;
    if (first)
        reactor->first = posted;
    else
        reactor->last->next = posted;
    reactor->last = posted;
    pthread_mutex_unlock(&reactor->mutex);
    if (first)
        uv_async_send(&reactor->wake);
}

static void offload_run(uv_work_t *request)
{
    struct offloaded *offloaded = request->data;
    offloaded->work(offloaded->argument);
}

static void offload_done(uv_work_t *request, int status)
{
    (void)status;
    struct offloaded *offloaded = request->data;
    offloaded->done(offloaded->argument);
    free(offloaded);
}

void reactor_offload(struct reactor *reactor, void (*work)(void *argument),
                     void (*done)(void *argument), void *argument)
{
    struct offloaded *offloaded = memory_new_of(struct offloaded);
    offloaded->request.data = offloaded;
    offloaded->work = work;
    offloaded->done = done;
    offloaded->argument = argument;
    uv_queue_work(&reactor->loop, &offloaded->request, offload_run, offload_done);
}

static void on_timer(uv_timer_t *handle)
{
    struct reactor_timer *timer = handle->data;
    timer->function(timer->argument);
}

struct reactor_timer *reactor_timer_start(struct reactor *reactor, uint64_t milliseconds,
                                          uint64_t repeat, void (*function)(void *argument),
                                          void *argument)
{
    struct reactor_timer *timer = memory_new_of(struct reactor_timer);
    uv_timer_init(&reactor->loop, &timer->handle);
    timer->handle.data = timer;
    timer->function = function;
    timer->argument = argument;
    /* The loop's own time stands still while a callback runs. */
    uv_update_time(&reactor->loop);
    uv_timer_start(&timer->handle, on_timer, milliseconds, repeat);
    return timer;
}

static void free_handle_data(uv_handle_t *handle)
{
    free(handle->data);
}

void reactor_timer_cancel(struct reactor_timer *timer)
{
    if (timer == NULL)
        return;
    uv_timer_stop(&timer->handle);
    uv_close((uv_handle_t *)&timer->handle, free_handle_data);
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct reactor_watch *watch = handle->data;
    watch->function(status < 0 ? UV_DISCONNECT | UV_READABLE : events, watch->argument);
}

struct reactor_watch *reactor_watch_start(struct reactor *reactor, int descriptor, int events,
                                          void (*function)(int events, void *argument),
                                          void *argument, struct error *error)
{
    struct reactor_watch *watch = memory_new_of(struct reactor_watch);
    int result = uv_poll_init(&reactor->loop, &watch->handle, descriptor);
    if (result != 0) {
        error_set(error, ERROR_INTERNAL, "cannot watch descriptor %d: %s", descriptor,
                  uv_strerror(result));
        free(watch);
        return NULL;
    }
    watch->handle.data = watch;
    watch->function = function;
    watch->argument = argument;
    if (events != 0)
        uv_poll_start(&watch->handle, events, on_poll);
    return watch;
}

void reactor_watch_update(struct reactor_watch *watch, int events)
{
    if (events == 0)
        uv_poll_stop(&watch->handle);
    else
        uv_poll_start(&watch->handle, events, on_poll);
}

void reactor_watch_cancel(struct reactor_watch *watch)
{
    if (watch == NULL)
        return;
    uv_poll_stop(&watch->handle);
    uv_close((uv_handle_t *)&watch->handle, free_handle_data);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct reactor_signal *watched = handle->data;
    watched->function(number, watched->argument);
}

struct reactor_signal *reactor_signal_start(struct reactor *reactor, int number,
                                            void (*function)(int number, void *argument),
                                            void *argument, struct error *error)
{
    struct reactor_signal *watched = memory_new_of(struct reactor_signal);
    uv_signal_init(&reactor->loop, &watched->handle);
    watched->handle.data = watched;
    watched->function = function;
    watched->argument = argument;
    int result = uv_signal_start(&watched->handle, on_signal, number);
    if (result != 0) {
        error_set(error, ERROR_INTERNAL, "cannot handle signal %d: %s", number,
                  uv_strerror(result));
        uv_close((uv_handle_t *)&watched->handle, free_handle_data);
        return NULL;
    }
    return watched;
}

void reactor_signal_cancel(struct reactor_signal *watched)
{
    if (watched == NULL)
        return;
    uv_signal_stop(&watched->handle);
    uv_close((uv_handle_t *)&watched->handle, free_handle_data);
}
