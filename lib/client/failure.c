#include "client/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set_formatted(struct error *error, const char *reason, const char *format,
                          va_list arguments)
{
    char text[ERROR_MESSAGE_MAX];
    vsnprintf(text, sizeof(text), format, arguments);
    enum error_code code = strcmp(reason, CLIENT_REASON_USAGE) == 0       ? ERROR_INVALID_ARGUMENT
                           : strcmp(reason, CLIENT_REASON_TIMED_OUT) == 0 ? ERROR_DEADLINE_EXCEEDED
                           : strcmp(reason, CLIENT_REASON_INTERRUPTED) == 0
                               ? ERROR_CANCELLED
                               : ERROR_FAILED_PRECONDITION;
    error_set(error, code, "%s", text);
    error_set_reason(error, CLIENT_DOMAIN, reason);
}

bool failure_set(struct error *error, const char *reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_formatted(error, reason, format, arguments);
    va_end(arguments);
    return false;
}

bool failure_usage(struct error *error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_formatted(error, CLIENT_REASON_USAGE, format, arguments);
    va_end(arguments);
    return false;
}

void failure_hint(struct error *error, const char *format, ...)
{
    char text[ERROR_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    error_add_metadata(error, "hint", text);
}

void failure_about(struct error *error, const char *sandbox)
{
    if (error != NULL && sandbox != NULL && error_get_metadata(error, "sandbox") == NULL)
        error_add_metadata(error, "sandbox", sandbox);
}

bool failure_is(const struct error *error, const char *reason)
{
    return strcmp(error->domain, CLIENT_DOMAIN) == 0 && strcmp(error->reason, reason) == 0;
}

int failure_exit_code(const struct error *error)
{
    if (failure_is(error, CLIENT_REASON_USAGE))
        return EXIT_USAGE;
    if (failure_is(error, CLIENT_REASON_TIMED_OUT))
        return EXIT_TIMED_OUT;
    return 1;
}
