#include "base/reactor.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"

struct posted {
    struct posted *next;
    void (*function)(void *argument);
    void *argument;
};

/* Sleeps on libuv's descriptor while the loop's thread sleeps in the source. One-shot: it is armed
 * for each sleep, and silent while the loop's thread works. */
struct sentry {
    pthread_t thread;
    bool running;
    int epoll;
    int quit; /* eventfd */
    bool armed;
    atomic_bool fired;
};

struct reactor {
    uv_loop_t loop;
    uv_async_t wake;
    const struct reactor_source *source;
    struct sentry sentry;
    unsigned handled; /* callbacks of the loop so far; wraps */
    bool stopped;
    struct {
        void (*function)(void);
        int milliseconds;
        bool told;
    } quiet;
    pthread_mutex_t mutex; /* guards first and last */
    struct posted *first;
    struct posted *last;
};

struct reactor_timer {
    struct reactor *reactor;
    uv_timer_t handle;
    void (*function)(void *argument);
    void *argument;
};

struct reactor_watch {
    struct reactor *reactor;
    uv_poll_t handle;
    int events; /* waited for */
    void (*function)(int events, void *argument);
    void *argument;
};

struct reactor_signal {
    struct reactor *reactor;
    uv_signal_t handle;
    void (*function)(int number, void *argument);
    void *argument;
};

struct offloaded {
    uv_work_t request;
    struct reactor *reactor;
    void (*work)(void *argument);
    void (*done)(void *argument);
    void *argument;
};

static void run_posted(struct reactor *reactor)
{
    pthread_mutex_lock(&reactor->mutex);
    struct posted *batch = reactor->first;
    reactor->first = reactor->last = NULL;
    pthread_mutex_unlock(&reactor->mutex);
    for (struct posted *next; batch != NULL; batch = next) {
        next = batch->next;
        reactor->handled++;
        batch->function(batch->argument);
        free(batch);
    }
}

static void on_wake(uv_async_t *handle)
{
    run_posted(handle->data);
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
    reactor_set_source(reactor, NULL);
    run_posted(reactor);
    uv_walk(&reactor->loop, close_handle, NULL);
    while (uv_run(&reactor->loop, UV_RUN_NOWAIT) != 0)
        ;
    uv_loop_close(&reactor->loop);
    pthread_mutex_destroy(&reactor->mutex);
    free(reactor);
}

/* ---- waiting in the source ---- */

enum { SENTRY_LOOP, SENTRY_QUIT };

static void *stand_sentry(void *argument)
{
    struct reactor *reactor = argument;
    for (;;) {
        struct epoll_event event;
        int count = epoll_wait(reactor->sentry.epoll, &event, 1, -1);
        if (count < 0 && errno != EINTR)
            return NULL;
        if (count <= 0)
            continue;
        if (event.data.u32 == SENTRY_QUIT)
            return NULL;
        atomic_store(&reactor->sentry.fired, true);
        reactor->source->wake(reactor->source->argument);
    }
}

static bool open_sentry(struct reactor *reactor)
{
    struct sentry *sentry = &reactor->sentry;
    sentry->epoll = epoll_create1(EPOLL_CLOEXEC);
    sentry->quit = eventfd(0, EFD_CLOEXEC);
    struct epoll_event loop = {.events = 0, .data.u32 = SENTRY_LOOP};
    struct epoll_event quit = {.events = EPOLLIN, .data.u32 = SENTRY_QUIT};
    return sentry->epoll >= 0 && sentry->quit >= 0 &&
           epoll_ctl(sentry->epoll, EPOLL_CTL_ADD, uv_backend_fd(&reactor->loop), &loop) == 0 &&
           epoll_ctl(sentry->epoll, EPOLL_CTL_ADD, sentry->quit, &quit) == 0;
}

static void start_sentry(struct reactor *reactor)
{
    struct sentry *sentry = &reactor->sentry;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!open_sentry(reactor) ||
        pthread_create(&sentry->thread, NULL, stand_sentry, reactor) != 0) {
        log_error("the event loop has no descriptor or thread left");
        memory_exhausted();
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sentry->running = true;
}

static void stop_sentry(struct reactor *reactor)
{
    struct sentry *sentry = &reactor->sentry;
    if (!sentry->running)
        return;
    eventfd_write(sentry->quit, 1);
    pthread_join(sentry->thread, NULL);
    close(sentry->epoll);
    close(sentry->quit);
    sentry->running = sentry->armed = false;
}

/* A loop without handles needs none, so that a short command starts no thread for it. */
static void arm_sentry(struct reactor *reactor)
{
    struct sentry *sentry = &reactor->sentry;
    if (atomic_exchange(&sentry->fired, false))
        sentry->armed = false;
    if (sentry->armed || !uv_loop_alive(&reactor->loop))
        return;
    if (!sentry->running)
        start_sentry(reactor);
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = SENTRY_LOOP};
    epoll_ctl(sentry->epoll, EPOLL_CTL_MOD, uv_backend_fd(&reactor->loop), &event);
    sentry->armed = true;
}

void reactor_set_source(struct reactor *reactor, const struct reactor_source *source)
{
    stop_sentry(reactor);
    pthread_mutex_lock(&reactor->mutex);
    reactor->source = source;
    pthread_mutex_unlock(&reactor->mutex);
    if (source != NULL)
        uv_unref((uv_handle_t *)&reactor->wake);
    else
        uv_ref((uv_handle_t *)&reactor->wake);
}

void reactor_when_quiet(struct reactor *reactor, int milliseconds, void (*function)(void))
{
    reactor->quiet.function = function;
    reactor->quiet.milliseconds = milliseconds;
    reactor->quiet.told = false;
}

/* Sleeps in the source, and notices when the sleep is a long one. */
static void sleep_in_source(struct reactor *reactor, int milliseconds)
{
    const struct reactor_source *source = reactor->source;
    int limit = reactor->quiet.milliseconds;
    bool ask = reactor->quiet.function != NULL && !reactor->quiet.told &&
               (milliseconds < 0 || milliseconds > limit);
    uint64_t start = uv_hrtime();
    if (source->wait(source->argument, ask ? limit : milliseconds)) {
        reactor->quiet.told = false;
    } else if (ask && uv_hrtime() - start >= (uint64_t)limit * 1000000) {
        reactor->quiet.told = true;
        reactor->quiet.function();
    }
}

/* One turn of the loop and of the source; sleeps only when neither had anything to do. */
static void turn(struct reactor *reactor)
{
    const struct reactor_source *source = reactor->source;
    unsigned before = reactor->handled;
    run_posted(reactor);
    uv_run(&reactor->loop, UV_RUN_NOWAIT);
    if (reactor->handled != before)
        reactor->quiet.told = false;
    if (reactor->stopped || reactor->source != source)
        return;
    if (reactor->handled != before) {
        source->wait(source->argument, 0);
        return;
    }
    /* libuv says 0 for a loop without handles, which here may sleep. */
    int milliseconds = uv_loop_alive(&reactor->loop) ? uv_backend_timeout(&reactor->loop) : -1;
    arm_sentry(reactor);
    sleep_in_source(reactor, milliseconds);
}

static void run_loop(struct reactor *reactor, uv_run_mode mode)
{
    if (reactor->source == NULL)
        uv_run(&reactor->loop, mode);
    else
        turn(reactor);
}

void reactor_run(struct reactor *reactor)
{
    while (!reactor->stopped)
        run_loop(reactor, UV_RUN_ONCE);
    reactor->stopped = false;
}

void reactor_run_once(struct reactor *reactor)
{
    run_loop(reactor, UV_RUN_ONCE);
}

void reactor_stop(struct reactor *reactor)
{
    reactor->stopped = true;
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
    if (first && reactor->source != NULL)
        reactor->source->wake(reactor->source->argument);
    else if (first)
        uv_async_send(&reactor->wake);
    pthread_mutex_unlock(&reactor->mutex);
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
    offloaded->reactor->handled++;
    offloaded->done(offloaded->argument);
    free(offloaded);
}

void reactor_offload(struct reactor *reactor, void (*work)(void *argument),
                     void (*done)(void *argument), void *argument)
{
    struct offloaded *offloaded = memory_new_of(struct offloaded);
    offloaded->request.data = offloaded;
    offloaded->reactor = reactor;
    offloaded->work = work;
    offloaded->done = done;
    offloaded->argument = argument;
    uv_queue_work(&reactor->loop, &offloaded->request, offload_run, offload_done);
}

static void on_timer(uv_timer_t *handle)
{
    struct reactor_timer *timer = handle->data;
    timer->reactor->handled++;
    timer->function(timer->argument);
}

struct reactor_timer *reactor_timer_start(struct reactor *reactor, uint64_t milliseconds,
                                          uint64_t repeat, void (*function)(void *argument),
                                          void *argument)
{
    struct reactor_timer *timer = memory_new_of(struct reactor_timer);
    uv_timer_init(&reactor->loop, &timer->handle);
    timer->handle.data = timer;
    timer->reactor = reactor;
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
    watch->reactor->handled++;
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
    watch->reactor = reactor;
    watch->function = function;
    watch->argument = argument;
    reactor_watch_update(watch, events);
    return watch;
}

void reactor_watch_update(struct reactor_watch *watch, int events)
{
    if (events == watch->events)
        return; /* libuv would tell the kernel all the same */
    watch->events = events;
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
    watched->reactor->handled++;
    watched->function(number, watched->argument);
}

struct reactor_signal *reactor_signal_start(struct reactor *reactor, int number,
                                            void (*function)(int number, void *argument),
                                            void *argument, struct error *error)
{
    struct reactor_signal *watched = memory_new_of(struct reactor_signal);
    uv_signal_init(&reactor->loop, &watched->handle);
    watched->handle.data = watched;
    watched->reactor = reactor;
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
