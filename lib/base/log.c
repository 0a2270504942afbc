#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

static const char *component_name = "openshell";
static enum log_level least_level = LOG_LEVEL_INFO;
static const char *const LEVEL_NAMES[] = {"ERROR", "WARN", "INFO", "DEBUG", "TRACE"};

void log_init(const char *component, enum log_level level)
{
    component_name = component;
    least_level = level;
}

bool log_level_parse(const char *text, enum log_level *ret_level)
{
    for (size_t i = 0; i < sizeof(LEVEL_NAMES) / sizeof(LEVEL_NAMES[0]); i++) {
        if (strcasecmp(text, LEVEL_NAMES[i]) == 0) {
            *ret_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

bool log_enabled(enum log_level level)
{
    return level <= least_level;
}

void log_write(enum log_level level, const char *format, ...)
{
    if (!log_enabled(level))
        return;
    char message[2048], escaped[4096], line[4352];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    text_escape(message, escaped, sizeof(escaped));

    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    char when[32];
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
    int length = snprintf(line, sizeof(line), "%s.%03ldZ %-5s %s: %s\n", when,
                          now.tv_nsec / 1000000, LEVEL_NAMES[level], component_name, escaped);
    if (length > 0) {
        ssize_t ignored = write(STDERR_FILENO, line, (size_t)length);
        (void)ignored;
    }
}
