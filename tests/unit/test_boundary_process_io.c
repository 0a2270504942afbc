/* The pump of a process's input and output: back-pressure both ways, and when reading ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "runtime/process_io.h"

/* One pump and the process's ends of its pipes. */
struct pump {
    struct reactor *reactor;
    struct process_io *io;
    int input, output, error;
    struct buffer taken;
    size_t pieces, largest;
    size_t error_bytes;
    size_t allowed; /* pieces that may be taken before the pump pauses */
    unsigned input_taken;
    bool drained, held;
    bool timed_out;
};

static bool on_output(bool is_error, const void *data, size_t length, void *user)
{
    struct pump *pump = user;
    buffer_append(&pump->taken, data, length);
    pump->pieces++;
    if (length > pump->largest)
        pump->largest = length;
    if (is_error)
        pump->error_bytes += length;
    return pump->pieces < pump->allowed;
}

static void on_input_taken(void *user)
{
    ((struct pump *)user)->input_taken++;
}

static void on_drained(bool held, void *user)
{
    struct pump *pump = user;
    assert_false(pump->drained);
    pump->drained = true;
    pump->held = held;
    process_io_free(pump->io); /* as the runtime does */
    pump->io = NULL;
}

static void make_pipe(int *ret_read, int *ret_write)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    *ret_read = ends[0];
    *ret_write = ends[1];
}

static int set_up(void **state)
{
    signal(SIGPIPE, SIG_IGN);
    struct pump *pump = memory_new_of(struct pump);
    pump->reactor = reactor_new(NULL);
    pump->allowed = SIZE_MAX;
    int input = -1, output = -1, error = -1;
    make_pipe(&pump->input, &input);
    make_pipe(&output, &pump->output);
    make_pipe(&error, &pump->error);
    struct process_io_events events = {on_output, on_input_taken, on_drained, pump};
    pump->io = process_io_new(pump->reactor, input, output, error, false, &events);
    *state = pump;
    return 0;
}

static void close_end(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

static int tear_down(void **state)
{
    struct pump *pump = *state;
    process_io_free(pump->io);
    close_end(&pump->input);
    close_end(&pump->output);
    close_end(&pump->error);
    buffer_free(&pump->taken);
    reactor_free(pump->reactor);
    free(pump);
    return 0;
}

static void on_time(void *argument)
{
    ((struct pump *)argument)->timed_out = true;
}

/* Runs the loop for so long, or until `*until`. */
static void run(struct pump *pump, unsigned milliseconds, const bool *until)
{
    pump->timed_out = false;
    struct reactor_timer *timer =
        reactor_timer_start(pump->reactor, milliseconds, 0, on_time, pump);
    while (!pump->timed_out && (until == NULL || !*until))
        reactor_run_once(pump->reactor);
    reactor_timer_cancel(timer);
}

static void test_nothing_is_read_before_it_is_wanted(void **state)
{
    struct pump *pump = *state;
    assert_int_equal(write(pump->output, "x", 1), 1);
    run(pump, 20, NULL);
    assert_int_equal(pump->pieces, 0);
    process_io_resume(pump->io);
    run(pump, 20, NULL);
    assert_int_equal(pump->taken.length, 1);
}

static void test_both_ends_of_file_end_it_at_once(void **state)
{
    struct pump *pump = *state;
    process_io_resume(pump->io);
    assert_int_equal(write(pump->output, "out", 3), 3);
    assert_int_equal(write(pump->error, "error", 5), 5);
    close_end(&pump->output);
    close_end(&pump->error);
    process_io_exited(pump->io, PROCESS_IO_DRAIN_MILLISECONDS); /* without a turn of the loop */
    assert_true(pump->drained);
    assert_false(pump->held);
    assert_int_equal(pump->taken.length, 8);
    assert_int_equal(pump->error_bytes, 5);
}

static void test_output_that_somebody_holds(void **state)
{
    struct pump *pump = *state;
    process_io_resume(pump->io);
    close_end(&pump->error);
    int64_t before = clock_monotonic_milliseconds();
    process_io_exited(pump->io, PROCESS_IO_DRAIN_MILLISECONDS);
    run(pump, 300, &pump->drained);
    assert_false(pump->drained);
    assert_int_equal(write(pump->output, "late", 4), 4); /* starts the quiet time again */
    run(pump, 400, &pump->drained);
    assert_false(pump->drained);
    run(pump, 5000, &pump->drained);
    assert_true(pump->drained);
    assert_true(pump->held);
    assert_int_equal(pump->taken.length, 4);
    assert_true(clock_monotonic_milliseconds() - before >= 300 + PROCESS_IO_QUIET_MILLISECONDS);
}

static void test_a_slow_taker_loses_nothing(void **state)
{
    struct pump *pump = *state;
    fcntl(pump->output, F_SETPIPE_SZ, 256 * 1024);
    char block[50000];
    memset(block, 'b', sizeof(block));
    for (int i = 0; i < 4; i++)
        assert_int_equal(write(pump->output, block, sizeof(block)), sizeof(block));
    pump->allowed = 1;
    process_io_resume(pump->io);
    close_end(&pump->error);
    process_io_exited(pump->io, PROCESS_IO_DRAIN_MILLISECONDS);
    /* Quiet for longer than the limit, but because nobody takes: and somebody holds the pipe. */
    run(pump, 2 * PROCESS_IO_QUIET_MILLISECONDS, &pump->drained);
    assert_false(pump->drained);
    assert_int_equal(pump->pieces, 1);
    while (!pump->drained && pump->pieces < 100) {
        pump->allowed = pump->pieces + 1;
        process_io_resume(pump->io);
        run(pump, 50, &pump->drained);
    }
    run(pump, 5000, &pump->drained);
    assert_true(pump->drained);
    assert_true(pump->held);
    assert_int_equal(pump->taken.length, 200000);
    assert_true(pump->largest <= PROCESS_IO_CHUNK);
}

/* The workload can open its own pipe for reading. */
static void test_what_another_reader_took_is_not_waited_for(void **state)
{
    struct pump *pump = *state;
    char path[32], block[4096] = "", taken[8192];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", pump->output);
    int thief = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(thief >= 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(write(pump->output, block, sizeof(block)), sizeof(block));
    process_io_exited(pump->io, PROCESS_IO_DRAIN_MILLISECONDS); /* paused: 16 KiB are owed */
    while (read(thief, taken, sizeof(taken)) > 0)
        ;
    process_io_resume(pump->io);
    run(pump, 10 * PROCESS_IO_QUIET_MILLISECONDS, &pump->drained);
    assert_true(pump->drained);
    assert_true(pump->held);
    assert_int_equal(pump->taken.length, 0);
    close(thief);
}

static void make_noise(void *argument)
{
    struct pump *pump = argument;
    ssize_t ignored = write(pump->output, "noise", 5);
    (void)ignored;
}

static void test_noise_without_end_is_left(void **state)
{
    struct pump *pump = *state;
    enum { LIMIT = 2 * PROCESS_IO_QUIET_MILLISECONDS };
    process_io_resume(pump->io);
    close_end(&pump->error);
    struct reactor_timer *noise = reactor_timer_start(pump->reactor, 1, 20, make_noise, pump);
    int64_t before = clock_monotonic_milliseconds();
    process_io_exited(pump->io, LIMIT);
    run(pump, 10 * LIMIT, &pump->drained);
    reactor_timer_cancel(noise);
    assert_true(pump->drained);
    assert_true(pump->held);
    int64_t took = clock_monotonic_milliseconds() - before;
    assert_true(took >= LIMIT && took < 5 * LIMIT);
}

static void test_input_waits_for_the_process(void **state)
{
    struct pump *pump = *state;
    size_t size = 300000;
    char *data = malloc(size), *got = malloc(size);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 31 >> 3);
    assert_false(process_io_write(pump->io, data, size));
    process_io_end_input(pump->io);
    run(pump, 30, NULL);
    assert_int_equal(pump->input_taken, 0);
    size_t total = 0;
    for (;;) {
        ssize_t count = read(pump->input, got + total, size - total);
        if (count > 0)
            total += (size_t)count;
        else if (count == 0 || total == size)
            break;
        run(pump, 5, NULL);
    }
    assert_int_equal(total, size);
    assert_memory_equal(got, data, size);
    run(pump, 20, NULL);
    assert_int_equal(pump->input_taken, 1);
    assert_int_equal(read(pump->input, got, 1), 0); /* and then the end */
    free(got);
    free(data);
}

static void test_input_that_fits_is_taken_at_once(void **state)
{
    struct pump *pump = *state;
    char text[8];
    assert_true(process_io_write(pump->io, "abc", 3));
    assert_true(process_io_write(pump->io, "", 0));
    assert_int_equal(read(pump->input, text, sizeof(text)), 3);
    process_io_end_input(pump->io);
    process_io_end_input(pump->io);
    assert_int_equal(read(pump->input, text, sizeof(text)), 0);
    assert_true(process_io_write(pump->io, "late", 4)); /* goes nowhere */
}

static void test_a_closed_input_swallows(void **state)
{
    struct pump *pump = *state;
    char *data = calloc(1, 200000);
    assert_false(process_io_write(pump->io, data, 200000));
    close_end(&pump->input); /* the process does not want it */
    run(pump, 1000, NULL);
    assert_int_equal(pump->input_taken, 1);
    assert_true(process_io_write(pump->io, data, 200000));
    process_io_end_input(pump->io);
    free(data);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_is_read_before_it_is_wanted),
        TEST(test_both_ends_of_file_end_it_at_once),
        TEST(test_output_that_somebody_holds),
        TEST(test_a_slow_taker_loses_nothing),
        TEST(test_what_another_reader_took_is_not_waited_for),
        TEST(test_noise_without_end_is_left),
        TEST(test_input_waits_for_the_process),
        TEST(test_input_that_fits_is_taken_at_once),
        TEST(test_a_closed_input_swallows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
