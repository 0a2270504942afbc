/* Runs a command many times and prints how long one run takes.
 *
 *   stopwatch [-n RUNS] [-w WARM-UPS] [-p AT-ONCE] [-f] [-e STATUS] -- COMMAND [ARGUMENT...]
 *
 * Prints "MEDIAN P90 MINIMUM RATE FAILURES": milliseconds, milliseconds, milliseconds, runs a
 * second over all of them, and how many ended otherwise than with STATUS (0). With -f a run's time
 * ends at the first byte of its output. A "{}" in an argument becomes the number of the run. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { RUNS_MAX = 100000, ARGUMENTS_MAX = 256 };

struct run {
    pid_t process;
    int64_t started; /* nanoseconds */
};

struct settings {
    int runs;
    int warm_ups;
    int at_once;
    int expected_status;
    bool first_byte;
    char **command;
};

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "stopwatch: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* The argument, with the run's number in place of "{}". Not freed: the process is short. */
static char *numbered(char *argument, int number)
{
    char *place = strstr(argument, "{}");
    if (place == NULL)
        return argument;
    char *made;
    if (asprintf(&made, "%.*s%d%s", (int)(place - argument), argument, number, place + 2) < 0)
        die("asprintf");
    return made;
}

/* Starts the command; its output goes to DESCRIPTOR. */
static struct run start(const struct settings *settings, int number, int descriptor)
{
    char *arguments[ARGUMENTS_MAX + 1];
    int count = 0;
    for (; settings->command[count] != NULL && count < ARGUMENTS_MAX; count++)
        arguments[count] = numbered(settings->command[count], number);
    arguments[count] = NULL;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, descriptor, 1);
    struct run run = {.started = now()};
    errno = posix_spawnp(&run.process, arguments[0], &actions, NULL, arguments, environ);
    if (errno != 0)
        die(arguments[0]);
    posix_spawn_file_actions_destroy(&actions);
    return run;
}

static bool failed(const struct settings *settings, int status)
{
    return !WIFEXITED(status) || WEXITSTATUS(status) != settings->expected_status;
}

/* One run from start to end, or to the first byte that it prints. */
static double measure(const struct settings *settings, int number, int sink, int *failures)
{
    int ends[2] = {-1, sink};
    if (settings->first_byte && pipe2(ends, O_CLOEXEC) < 0)
        die("pipe");
    struct run run = start(settings, number, ends[1]);
    int64_t end = 0;
    if (settings->first_byte) {
        close(ends[1]);
        char byte;
        if (read(ends[0], &byte, 1) == 1)
            end = now();
        while (read(ends[0], &byte, 1) == 1)
            continue;
        close(ends[0]);
    }
    int status;
    if (waitpid(run.process, &status, 0) < 0)
        die("waitpid");
    if (end == 0)
        end = now();
    if (failed(settings, status))
        ++*failures;
    return (double)(end - run.started) / 1e6;
}

/* All runs, so many at once; each run's time is from its start to its end. */
static void measure_at_once(const struct settings *settings, int sink, double *times, int *failures)
{
    struct run *running = calloc((size_t)settings->at_once, sizeof *running);
    if (running == NULL)
        die("calloc");
    int started = 0;
    for (int ended = 0; ended < settings->runs;) {
        for (int slot = 0; slot < settings->at_once && started < settings->runs; slot++) {
            if (running[slot].process == 0)
                running[slot] = start(settings, started++, sink);
        }
        int status;
        pid_t process = waitpid(-1, &status, 0);
        if (process < 0)
            die("waitpid");
        for (int slot = 0; slot < settings->at_once; slot++) {
            if (running[slot].process != process)
                continue;
            times[ended++] = (double)(now() - running[slot].started) / 1e6;
            running[slot].process = 0;
            *failures += failed(settings, status);
        }
    }
    free(running);
}

static int by_size(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static int number_of(const char *text, int maximum)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || number < 0 || number > maximum) {
        fprintf(stderr, "stopwatch: not a number from 0 to %d: %s\n", maximum, text);
        exit(2);
    }
    return (int)number;
}

static struct settings parse(int argc, char **argv)
{
    struct settings settings = {.runs = 20, .warm_ups = 1, .at_once = 1};
    int option;
    while ((option = getopt(argc, argv, "+n:w:p:e:f")) != -1) {
        switch (option) {
        case 'n':
            settings.runs = number_of(optarg, RUNS_MAX);
            break;
        case 'w':
            settings.warm_ups = number_of(optarg, RUNS_MAX);
            break;
        case 'p':
            settings.at_once = number_of(optarg, 4096);
            break;
        case 'e':
            settings.expected_status = number_of(optarg, 255);
            break;
        case 'f':
            settings.first_byte = true;
            break;
        default:
            exit(2);
        }
    }
    settings.command = argv + optind;
    if (*settings.command == NULL || settings.runs == 0 || settings.at_once == 0) {
        fprintf(stderr, "usage: stopwatch [-n RUNS] [-w WARM-UPS] [-p AT-ONCE] [-f] [-e STATUS] "
                        "-- COMMAND [ARGUMENT...]\n");
        exit(2);
    }
    return settings;
}

int main(int argc, char **argv)
{
    struct settings settings = parse(argc, argv);
    int sink = open("/dev/null", O_WRONLY | O_CLOEXEC);
    double *times = calloc((size_t)settings.runs, sizeof *times);
    if (sink < 0 || times == NULL)
        die("starting");
    int failures = 0;
    for (int i = 0; i < settings.warm_ups; i++)
        measure(&settings, RUNS_MAX + i, sink, &failures);
    failures = 0;
    int64_t started = now();
    if (settings.at_once > 1) {
        measure_at_once(&settings, sink, times, &failures);
    } else {
        for (int i = 0; i < settings.runs; i++)
            times[i] = measure(&settings, i, sink, &failures);
    }
    double rate = settings.runs / ((double)(now() - started) / 1e9);
    qsort(times, (size_t)settings.runs, sizeof *times, by_size);
    printf("%.2f %.2f %.2f %.1f %d\n", times[settings.runs / 2], times[settings.runs * 9 / 10],
           times[0], rate, failures);
    return 0;
}
