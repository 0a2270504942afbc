#include "base/log.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

enum {
    MESSAGE_MAX = 2048, /* bytes before escaping */
    ESCAPED_MAX = 4096,
    FIELD_MAX = 512, /* escaped bytes of one field's value */
    LINE_BYTES = 8192,
};

static const char *component_name = "openshell";
static enum log_level least_level = LOG_LEVEL_INFO;
static pid_t limiting_process;
static void (*line_listener)(const struct log_line *line, void *user);
static void *line_listener_user;
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

const char *log_level_name(enum log_level level)
{
    return LEVEL_NAMES[level];
}

bool log_enabled(enum log_level level)
{
    return level <= least_level;
}

void log_set_listener(void (*listener)(const struct log_line *line, void *user), void *user)
{
    line_listener = listener;
    line_listener_user = user;
}

/* ---- the file ---- */

void log_limit_file(void)
{
    limiting_process = getpid();
}

void log_limit_closed_file(const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0 || status.st_size < LOG_FILE_LIMIT)
        return;
    CLEANUP_FREE char *earlier = memory_printf("%s.1", path);
    rename(path, earlier);
}

/* The path by which stderr's file can still be reached, or NULL. */
static char *file_path(const struct stat *file)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/fd/2", path, sizeof(path) - 1);
    struct stat named;
    if (length <= 0 || (size_t)length >= sizeof(path) - 1)
        return NULL;
    path[length] = '\0';
    if (lstat(path, &named) != 0 || named.st_dev != file->st_dev || named.st_ino != file->st_ino)
        return NULL;
    return memory_strdup(path);
}

/* Other processes append to the same file through descriptors of their own: it is copied and then
 * emptied in place. What they write between the two is lost. */
static void limit_file(void)
{
    struct stat file;
    if (limiting_process != getpid() || fstat(STDERR_FILENO, &file) != 0 ||
        !S_ISREG(file.st_mode) || file.st_size < LOG_FILE_LIMIT)
        return;
    CLEANUP_FREE char *path = file_path(&file);
    if (path != NULL) {
        CLEANUP_FREE char *earlier = memory_printf("%s.1", path);
        CLEANUP_CLOSE int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        CLEANUP_CLOSE int to =
            open(earlier, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        for (off_t left = file.st_size; from >= 0 && to >= 0 && left > 0;) {
            ssize_t copied = sendfile(to, from, NULL, (size_t)left);
            if (copied <= 0)
                break;
            left -= copied;
        }
    }
    int ignored = ftruncate(STDERR_FILENO, 0);
    (void)ignored;
}

/* ---- lines ---- */

static size_t append(char *line, size_t used, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static size_t append(char *line, size_t used, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + used, LINE_BYTES - used, format, arguments);
    va_end(arguments);
    if (length < 0)
        return used;
    return used + (size_t)length < LINE_BYTES ? used + (size_t)length : LINE_BYTES - 1;
}

static void print_line(const struct log_line *line)
{
    char text[LINE_BYTES], when[32];
    struct tm utc;
    time_t seconds = (time_t)line->seconds;
    gmtime_r(&seconds, &utc);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &utc);
    bool own_target = strcmp(line->target, component_name) != 0;
    size_t used = append(text, 0, "%s.%03dZ %-5s %s%s%s: %s", when, line->nanoseconds / 1000000,
                         LEVEL_NAMES[line->level], component_name, own_target ? "/" : "",
                         own_target ? line->target : "", line->message);
    for (size_t i = 0; i < line->field_count; i++)
        used = append(text, used, " %s=%s", line->fields[i].key, line->fields[i].value);
    text[used < LINE_BYTES - 1 ? used++ : used - 1] = '\n';
    limit_file();
    ssize_t ignored = write(STDERR_FILENO, text, used);
    (void)ignored;
}

static void write_line(enum log_level level, const char *target, const struct log_field *fields,
                       const char *format, va_list arguments)
{
    char message[MESSAGE_MAX], escaped[ESCAPED_MAX], values[LOG_FIELDS_LIMIT][FIELD_MAX];
    struct log_field harmless[LOG_FIELDS_LIMIT];
    vsnprintf(message, sizeof(message), format, arguments);
    text_escape(message, escaped, sizeof(escaped));
    size_t count = 0;
    for (; fields != NULL && fields[count].key != NULL && count < LOG_FIELDS_LIMIT; count++) {
        text_escape(fields[count].value, values[count], FIELD_MAX);
        harmless[count] = (struct log_field){fields[count].key, values[count]};
    }
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct log_line line = {.level = level,
                                  .seconds = now.tv_sec,
                                  .nanoseconds = (int32_t)now.tv_nsec,
                                  .target = target != NULL ? target : component_name,
                                  .message = escaped,
                                  .fields = harmless,
                                  .field_count = count};
    print_line(&line);
    if (line_listener != NULL)
        line_listener(&line, line_listener_user);
}

void log_write(enum log_level level, const char *format, ...)
{
    if (!log_enabled(level))
        return;
    va_list arguments;
    va_start(arguments, format);
    write_line(level, NULL, NULL, format, arguments);
    va_end(arguments);
}

void log_write_fields(enum log_level level, const char *target, const struct log_field *fields,
                      const char *format, ...)
{
    if (!log_enabled(level))
        return;
    va_list arguments;
    va_start(arguments, format);
    write_line(level, target, fields, format, arguments);
    va_end(arguments);
}
