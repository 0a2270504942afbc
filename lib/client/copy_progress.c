#include "client/copy_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/report.h"
#include "client/settings.h"

enum { PERIOD = 200 }; /* milliseconds between two lines */

struct copy_progress {
    const struct copy *copy;
    struct reactor_timer *timer;
    int64_t started;
    bool shown;
};

void copy_format_bytes(uint64_t bytes, char *buffer, size_t size)
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(UNITS) / sizeof(UNITS[0])) {
        value /= 1024;
        unit++;
    }
    snprintf(buffer, size, unit == 0 ? "%.0f %s" : "%.1f %s", value, UNITS[unit]);
}

static void on_timer(void *argument)
{
    struct copy_progress *progress = argument;
    uint64_t bytes, entries;
    copy_child_progress(&progress->copy->child, &bytes, &entries);
    int64_t elapsed = clock_monotonic_milliseconds() - progress->started;
    if (elapsed <= 0)
        return;
    double rate = (double)bytes * 1000 / (double)elapsed;
    char done[32], speed[32], left[64] = "";
    copy_format_bytes(bytes, done, sizeof(done));
    copy_format_bytes((uint64_t)rate, speed, sizeof(speed));
    uint64_t total = progress->copy->total_bytes;
    if (total > bytes && rate >= 1) {
        uint64_t seconds = (uint64_t)((double)(total - bytes) / rate) + 1;
        snprintf(left, sizeof(left), ", %" PRIu64 ":%02" PRIu64 " left", seconds / 60,
                 seconds % 60);
    }
    fprintf(stderr, "\r%s, %" PRIu64 " entries, %s/s%s\033[K", done, entries, speed, left);
    fflush(stderr);
    progress->shown = true;
}

struct copy_progress *copy_progress_start(struct reactor *reactor, const struct copy *copy)
{
    if (!isatty(STDERR_FILENO) || settings.output == OUTPUT_JSON)
        return NULL;
    struct copy_progress *progress = memory_new_of(struct copy_progress);
    progress->copy = copy;
    progress->started = clock_monotonic_milliseconds();
    progress->timer = reactor_timer_start(reactor, PERIOD, PERIOD, on_timer, progress);
    return progress;
}

void copy_progress_stop(struct copy_progress *progress)
{
    if (progress == NULL)
        return;
    reactor_timer_cancel(progress->timer);
    if (progress->shown)
        fputs("\r\033[K", stderr);
    free(progress);
}

void copy_progress_summary(const struct copy *copy, const struct copy_result *result)
{
    char bytes[32];
    copy_format_bytes(result->bytes, bytes, sizeof(bytes));
    report_notice("%s '%s': %" PRIu64 " entries, %s",
                  copy->direction == ARCHIVE_UPLOAD ? "uploaded" : "downloaded", copy->shown,
                  result->entries, bytes);
}
