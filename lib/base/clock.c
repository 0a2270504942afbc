#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t now(clockid_t clock)
{
    struct timespec value;
    clock_gettime(clock, &value);
    return (int64_t)value.tv_sec * 1000 + value.tv_nsec / 1000000;
}

int64_t clock_realtime_milliseconds(void)
{
    return now(CLOCK_REALTIME);
}

int64_t clock_monotonic_milliseconds(void)
{
    return now(CLOCK_MONOTONIC);
}

void clock_format_rfc3339(int64_t realtime_milliseconds, char *buffer, size_t size)
{
    time_t seconds = (time_t)(realtime_milliseconds / 1000);
    struct tm utc;
    char text[32];
    if (gmtime_r(&seconds, &utc) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        snprintf(buffer, size, "-");
    else
        snprintf(buffer, size, "%s.%03dZ", text, (int)(realtime_milliseconds % 1000));
}

void clock_format_plain(int64_t realtime_milliseconds, char *buffer, size_t size)
{
    time_t seconds = (time_t)(realtime_milliseconds / 1000);
    struct tm utc;
    if (gmtime_r(&seconds, &utc) == NULL || strftime(buffer, size, "%Y-%m-%d %H:%M:%S", &utc) == 0)
        snprintf(buffer, size, "-");
}
