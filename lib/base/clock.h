/* Time. Spans are milliseconds, points in time milliseconds since the epoch. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t clock_realtime_milliseconds(void);
int64_t clock_monotonic_milliseconds(void);
/* "2026-11-30T23:31:14.123Z"; `size` at least 32. */
void clock_format_rfc3339(int64_t realtime_milliseconds, char *buffer, size_t size);
/* "2026-11-30 23:31:14", UTC; `size` at least 32. */
void clock_format_plain(int64_t realtime_milliseconds, char *buffer, size_t size);

#endif
