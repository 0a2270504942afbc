/* Log lines on stderr: "2026-11-30T23:31:14.123Z INFO  gateway: message". Daemons start with their
 * stderr on a log file. Bytes outside printable UTF-8 are escaped, so that what a workload wrote
 * cannot act on a terminal. No secret may reach a log line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_TRACE
};

/* The name of the process in each line (a string that outlives the process) and the least level. */
void log_init(const char *component, enum log_level level);
/* Parses "error", "warn", "info", "debug" or "trace". False, and nothing written, otherwise. */
bool log_level_parse(const char *text, enum log_level *ret_level);
bool log_enabled(enum log_level level);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_enabled(LOG_LEVEL_DEBUG))                                                          \
            log_write(LOG_LEVEL_DEBUG, __VA_ARGS__);                                               \
    } while (0)

#endif
