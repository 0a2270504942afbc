/* Log lines on stderr: "2026-11-30T23:31:14.123Z INFO  gateway: message key=value". Daemons start
 * with their stderr on a log file. Bytes outside printable UTF-8 are escaped, so that what a
 * workload wrote cannot act on a terminal. No secret may reach a log line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARN,
    LOG_LEVEL_INFO,
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_TRACE
};

enum {
    /* Bytes of a log file; one earlier part of the same size is kept beside it as NAME.1. */
    LOG_FILE_LIMIT = 1024 * 1024,
    LOG_FIELDS_LIMIT = 16, /* fields of one line; further ones are dropped */
};

/* What a line says beside its message. */
struct log_field {
    const char *key;
    const char *value;
};

/* One line, as the listener gets it: every text is harmless and valid UTF-8, and lives until the
 * listener returns. */
struct log_line {
    enum log_level level;
    int64_t seconds; /* since the epoch */
    int32_t nanoseconds;
    const char *target; /* the part of the program that speaks */
    const char *message;
    const struct log_field *fields;
    size_t field_count;
};

/* The name of the process in each line (a string that outlives the process) and the least level. */
void log_init(const char *component, enum log_level level);
/* Parses "error", "warn", "info", "debug" or "trace". False, and nothing written, otherwise. */
bool log_level_parse(const char *text, enum log_level *ret_level);
/* "ERROR", "WARN", "INFO", "DEBUG" or "TRACE". */
const char *log_level_name(enum log_level level);
bool log_enabled(enum log_level level);

/* From here on this process, and none that it forks, moves its stderr's file aside when it has
 * reached LOG_FILE_LIMIT bytes. Nothing happens where stderr is not a regular file. */
void log_limit_file(void);
/* Moves a log file aside that is not open yet, when it is that long. */
void log_limit_closed_file(const char *path);

/* Is told of every line that is enabled, after it was written. On the thread that logs, so only
 * for processes that log on one. */
void log_set_listener(void (*listener)(const struct log_line *line, void *user), void *user);

void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* With a target of its own (NULL: the component) and fields, whose end is a NULL key. */
void log_write_fields(enum log_level level, const char *target, const struct log_field *fields,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_enabled(LOG_LEVEL_DEBUG))                                                          \
            log_write(LOG_LEVEL_DEBUG, __VA_ARGS__);                                               \
    } while (0)

#endif
