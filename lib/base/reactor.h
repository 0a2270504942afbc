/* The one event loop of a process. All state of a process belongs to the thread that runs it, so
 * code there takes no locks; other threads hand work over with reactor_post. */
#ifndef BASE_REACTOR_H
#define BASE_REACTOR_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/error.h"

struct reactor;

struct reactor *reactor_new(struct error *error);
/* Only after the loop has been left; closes what is still open. */
void reactor_free(struct reactor *reactor);

/* Runs until reactor_stop. */
void reactor_run(struct reactor *reactor);
/* Waits for at least one event and handles it; for commands that wait for one thing. */
void reactor_run_once(struct reactor *reactor);
void reactor_stop(struct reactor *reactor);

/* Queues `function(argument)` for the loop thread, in order; callable from any thread. */
void reactor_post(struct reactor *reactor, void (*function)(void *argument), void *argument);

/* Runs `work(argument)` on libuv's pool, then `done(argument)` on the loop. For blocking work. */
void reactor_offload(struct reactor *reactor, void (*work)(void *argument),
                     void (*done)(void *argument), void *argument);

/* A timer. `milliseconds` from now, then every `repeat` milliseconds when that is not 0. */
struct reactor_timer;
struct reactor_timer *reactor_timer_start(struct reactor *reactor, uint64_t milliseconds,
                                          uint64_t repeat, void (*function)(void *argument),
                                          void *argument);
/* Stops and frees; NULL is allowed. A timer that does not repeat must be cancelled too, after it
 * fired, by its owner. */
void reactor_timer_cancel(struct reactor_timer *timer);

/* Watches a descriptor, which stays the caller's and must outlive the watch. `events` is a mask of
 * UV_READABLE, UV_WRITABLE, UV_DISCONNECT; `function` gets what happened. */
struct reactor_watch;
struct reactor_watch *reactor_watch_start(struct reactor *reactor, int descriptor, int events,
                                          void (*function)(int events, void *argument),
                                          void *argument, struct error *error);
/* Changes what is waited for; 0 pauses. */
void reactor_watch_update(struct reactor_watch *watch, int events);
/* The descriptor may be closed as soon as this returns. NULL is allowed. */
void reactor_watch_cancel(struct reactor_watch *watch);

/* A second source of events that has a wait of its own: gRPC, whose completions are then handled on
 * the loop's thread without a hop between threads. While there is one the loop sleeps in it, and a
 * thread that sleeps on the reactor's own descriptors ends that sleep. */
struct reactor_source {
    /* Handles what there is, after a wait of at most so many milliseconds (-1: without limit) for
     * the first event or `wake`. True when something was handled. */
    bool (*wait)(void *argument, int milliseconds);
    /* Ends a wait, or the next one. Called from any thread. */
    void (*wake)(void *argument);
    void *argument;
};
/* At most one; NULL takes it away. The structure must outlive its use. */
void reactor_set_source(struct reactor *reactor, const struct reactor_source *source);

/* Calls `function` once the reactor has slept for so long with a source, and again only when it did
 * something in between. At most one. */
void reactor_when_quiet(struct reactor *reactor, int milliseconds, void (*function)(void));

/* Calls `function(number, argument)` on the loop for each arrival of a signal. */
struct reactor_signal;
struct reactor_signal *reactor_signal_start(struct reactor *reactor, int number,
                                            void (*function)(int number, void *argument),
                                            void *argument, struct error *error);
void reactor_signal_cancel(struct reactor_signal *signal);

#endif
