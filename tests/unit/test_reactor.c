/* The loop, alone and with a second source of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/reactor.h"

enum { PATIENCE = 10 * 1000 };

/* A source as gRPC is one: it sleeps where the loop's descriptors are not seen. */
struct sleeper {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned woken;
    unsigned events; /* to be handled */
    unsigned handled;
};

static bool sleeper_wait(void *argument, int milliseconds)
{
    struct sleeper *sleeper = argument;
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    int limit = milliseconds < 0 ? PATIENCE : milliseconds;
    end.tv_sec += limit / 1000;
    end.tv_nsec += limit % 1000 * 1000000L;
    if (end.tv_nsec >= 1000000000L) {
        end.tv_nsec -= 1000000000L;
        end.tv_sec++;
    }
    pthread_mutex_lock(&sleeper->mutex);
    int result = 0;
    while (sleeper->woken == 0 && sleeper->events == 0 && result == 0)
        result = pthread_cond_timedwait(&sleeper->changed, &sleeper->mutex, &end);
    bool any = sleeper->events > 0;
    sleeper->handled += sleeper->events;
    sleeper->woken = sleeper->events = 0;
    pthread_mutex_unlock(&sleeper->mutex);
    return any;
}

static void sleeper_wake(void *argument)
{
    struct sleeper *sleeper = argument;
    pthread_mutex_lock(&sleeper->mutex);
    sleeper->woken++;
    pthread_cond_signal(&sleeper->changed);
    pthread_mutex_unlock(&sleeper->mutex);
}

struct scene {
    struct reactor *reactor;
    struct sleeper sleeper;
    struct reactor_source source;
    unsigned count;
    bool timed_out;
};

static int setup_plain(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    scene->reactor = reactor_new(NULL);
    assert_non_null(scene->reactor);
    *state = scene;
    return 0;
}

static int setup_source(void **state)
{
    setup_plain(state);
    struct scene *scene = *state;
    pthread_mutex_init(&scene->sleeper.mutex, NULL);
    pthread_cond_init(&scene->sleeper.changed, NULL);
    scene->source = (struct reactor_source){sleeper_wait, sleeper_wake, &scene->sleeper};
    reactor_set_source(scene->reactor, &scene->source);
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    reactor_free(scene->reactor);
    free(scene);
    return 0;
}

static void count_up(void *argument)
{
    ((struct scene *)argument)->count++;
}

static void *post_three(void *argument)
{
    struct scene *scene = argument;
    for (int i = 0; i < 3; i++)
        reactor_post(scene->reactor, count_up, scene);
    return NULL;
}

static void expect_quick(struct scene *scene, unsigned count)
{
    int64_t start = clock_monotonic_milliseconds();
    while (scene->count < count)
        reactor_run_once(scene->reactor);
    assert_int_equal(scene->count, count);
    assert_true(clock_monotonic_milliseconds() - start < PATIENCE / 2);
}

static void posts_arrive_from_other_threads(void **state)
{
    struct scene *scene = *state;
    pthread_t thread;
    pthread_create(&thread, NULL, post_three, scene);
    expect_quick(scene, 3);
    pthread_join(thread, NULL);
}

static void timers_fire_and_repeat(void **state)
{
    struct scene *scene = *state;
    struct reactor_timer *once = reactor_timer_start(scene->reactor, 1, 0, count_up, scene);
    expect_quick(scene, 1);
    reactor_timer_cancel(once);
    struct reactor_timer *often = reactor_timer_start(scene->reactor, 1, 1, count_up, scene);
    expect_quick(scene, 6);
    reactor_timer_cancel(often);
}

static void on_readable(int events, void *argument)
{
    assert_true(events & UV_READABLE);
    count_up(argument);
}

static void *write_later(void *argument)
{
    char byte = 'x';
    assert_int_equal(write(*(int *)argument, &byte, 1), 1);
    return NULL;
}

static void descriptors_are_watched(void **state)
{
    struct scene *scene = *state;
    int ends[2];
    pthread_t thread;
    char byte;
    assert_int_equal(pipe(ends), 0);
    struct reactor_watch *watch =
        reactor_watch_start(scene->reactor, ends[0], UV_READABLE, on_readable, scene, NULL);
    assert_non_null(watch);
    for (unsigned round = 1; round <= 20; round++) {
        pthread_create(&thread, NULL, write_later, &ends[1]);
        expect_quick(scene, round);
        assert_int_equal(read(ends[0], &byte, 1), 1);
        pthread_join(thread, NULL);
    }
    reactor_watch_cancel(watch);
    close(ends[0]);
    close(ends[1]);
}

static void do_nothing(void *argument)
{
    (void)argument;
}

static void offloaded_work_comes_back(void **state)
{
    struct scene *scene = *state;
    for (unsigned round = 1; round <= 20; round++) {
        reactor_offload(scene->reactor, do_nothing, count_up, scene);
        expect_quick(scene, round);
    }
}

static void on_signal(int number, void *argument)
{
    assert_int_equal(number, SIGUSR1);
    count_up(argument);
}

static void signals_arrive(void **state)
{
    struct scene *scene = *state;
    struct reactor_signal *watched =
        reactor_signal_start(scene->reactor, SIGUSR1, on_signal, scene, NULL);
    kill(getpid(), SIGUSR1);
    expect_quick(scene, 1);
    reactor_signal_cancel(watched);
}

static void stop(void *argument)
{
    struct scene *scene = argument;
    scene->count++;
    reactor_stop(scene->reactor);
}

static void stopping_ends_the_run(void **state)
{
    struct scene *scene = *state;
    reactor_post(scene->reactor, stop, scene);
    reactor_run(scene->reactor);
    assert_int_equal(scene->count, 1);
    reactor_stop(scene->reactor);
    reactor_run(scene->reactor); /* was stopped before it ran */
    struct reactor_timer *timer = reactor_timer_start(scene->reactor, 1, 0, stop, scene);
    reactor_run(scene->reactor);
    assert_int_equal(scene->count, 2);
    reactor_timer_cancel(timer);
}

static void the_source_has_its_turn(void **state)
{
    struct scene *scene = *state;
    struct reactor_timer *busy = reactor_timer_start(scene->reactor, 0, 1, count_up, scene);
    scene->sleeper.events = 1;
    for (int i = 0; i < 10 && scene->sleeper.handled == 0; i++)
        reactor_run_once(scene->reactor);
    assert_int_equal(scene->sleeper.handled, 1);
    reactor_timer_cancel(busy);
}

static unsigned quiet_count;

static void on_quiet(void)
{
    quiet_count++;
}

/* Runs until the timer of so many milliseconds fires. */
static void run_for(struct scene *scene, uint64_t milliseconds)
{
    struct reactor_timer *timer = reactor_timer_start(scene->reactor, milliseconds, 0, stop, scene);
    reactor_run(scene->reactor);
    reactor_timer_cancel(timer);
}

static void quiet_is_told_once(void **state)
{
    struct scene *scene = *state;
    quiet_count = 0;
    reactor_when_quiet(scene->reactor, 20, on_quiet);
    run_for(scene, 10); /* not so long */
    assert_int_equal(quiet_count, 0);
    run_for(scene, 500);
    assert_int_equal(quiet_count, 1);
    run_for(scene, 500); /* the timer was something */
    assert_int_equal(quiet_count, 2);
    scene->sleeper.events = 1;
    struct reactor_timer *busy = reactor_timer_start(scene->reactor, 1, 1, count_up, scene);
    run_for(scene, 100);
    reactor_timer_cancel(busy);
    assert_int_equal(quiet_count, 2);
}

#define BOTH(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, setup_plain, teardown),                                  \
        cmocka_unit_test_setup_teardown(name, setup_source, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(posts_arrive_from_other_threads),
        BOTH(timers_fire_and_repeat),
        BOTH(descriptors_are_watched),
        BOTH(offloaded_work_comes_back),
        BOTH(signals_arrive),
        BOTH(stopping_ends_the_run),
        cmocka_unit_test_setup_teardown(the_source_has_its_turn, setup_source, teardown),
        cmocka_unit_test_setup_teardown(quiet_is_told_once, setup_source, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
