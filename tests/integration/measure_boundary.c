/* Measures the boundary without a gateway: from launch to session, and one exec, with the stand-in
 * of boundary_fixture.c. Not a test: usage: measure_boundary [STARTS [EXECS]]. */
#include "boundary_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void report(const char *what, double *values, size_t count)
{
    qsort(values, count, sizeof(*values), compare);
    printf("%-24s least %.2f ms, median %.2f ms, most %.2f ms (%zu)\n", what, values[0],
           values[count / 2], values[count - 1], count);
}

static double start_once(struct fixture *fixture)
{
    static char *idle[] = {(char *)"/bin/sleep", (char *)"1000000", NULL};
    double before = now();
    fixture_launch(fixture, idle);
    FIXTURE_RUN_UNTIL(fixture, fixture->session != NULL);
    return now() - before;
}

static double stop_once(struct fixture *fixture)
{
    double before = now();
    kill(fixture->supervisor_process, SIGTERM);
    struct fixture_end end;
    fixture_wait_end(fixture, &end);
    return now() - before;
}

static double exec_once(struct fixture *fixture)
{
    struct fixture_exec exec = {0};
    double before = now();
    fixture_exec_run(fixture, &exec, (char *[]){(char *)"/bin/true", NULL});
    double took = now() - before;
    fixture_exec_free(&exec);
    return took;
}

int main(int argc, char **argv)
{
    size_t starts = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;
    size_t execs = argc > 2 ? strtoul(argv[2], NULL, 10) : 200;
    double *start_times = calloc(starts, sizeof(double)),
           *stop_times = calloc(starts, sizeof(double));
    double *exec_times = calloc(execs, sizeof(double));
    for (size_t i = 0; i < starts; i++) {
        void *state = NULL;
        fixture_set_up(&state);
        struct fixture *fixture = state;
        start_times[i] = start_once(fixture);
        for (size_t j = 0; i == starts - 1 && j < execs; j++)
            exec_times[j] = exec_once(fixture);
        stop_times[i] = stop_once(fixture);
        fixture_tear_down(&state);
    }
    report("launch to session", start_times, starts);
    report("stop", stop_times, starts);
    report("exec /bin/true", exec_times, execs);
    return 0;
}
