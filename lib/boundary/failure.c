#include "boundary/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    enum error_code code;
} KINDS[] = {
    [FAILURE_UNKNOWN] = {"Unknown", ERROR_UNKNOWN},
    [FAILURE_DENIED] = {"Denied", ERROR_PERMISSION_DENIED},
    [FAILURE_ATTACH] = {"Attach", ERROR_FAILED_PRECONDITION},
    [FAILURE_DESCRIPTOR] = {"Descriptor", ERROR_FAILED_PRECONDITION},
    [FAILURE_UNAVAILABLE] = {"Unavailable", ERROR_UNAVAILABLE},
    [FAILURE_UNSUPPORTED] = {"Unsupported", ERROR_UNIMPLEMENTED},
    [FAILURE_PROTOCOL_VIOLATION] = {"ProtocolViolation", ERROR_INTERNAL},
    [FAILURE_TERMINATED] = {"Terminated", ERROR_ABORTED},
    [FAILURE_PROCESS] = {"Process", ERROR_FAILED_PRECONDITION},
    [FAILURE_INVALID] = {"Invalid", ERROR_INVALID_ARGUMENT},
};
enum { KIND_COUNT = sizeof(KINDS) / sizeof(KINDS[0]) };

const char *failure_kind_name(enum failure_kind kind)
{
    return (unsigned)kind < KIND_COUNT ? KINDS[kind].name : KINDS[FAILURE_UNKNOWN].name;
}

bool failure_set(struct error *error, enum failure_kind kind, const char *format, ...)
{
    char text[ERROR_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    error_set(error, KINDS[kind].code, "%s", text);
    failure_classify(error, kind);
    return false;
}

void failure_classify(struct error *error, enum failure_kind kind)
{
    error_set_reason(error, FAILURE_DOMAIN, failure_kind_name(kind));
}

enum failure_kind failure_kind_of(const struct error *error)
{
    if (strcmp(error->domain, FAILURE_DOMAIN) != 0)
        return FAILURE_UNKNOWN;
    for (int kind = 1; kind < KIND_COUNT; kind++)
        if (strcmp(error->reason, KINDS[kind].name) == 0)
            return (enum failure_kind)kind;
    return FAILURE_UNKNOWN;
}

void failure_encode(const struct error *error, failure_message *ret_message)
{
    enum failure_kind kind = failure_kind_of(error);
    openshell__sandbox__protocol__v1__failure__init(ret_message);
    if (kind == FAILURE_UNKNOWN)
        kind = FAILURE_UNAVAILABLE;
    ret_message->kind = (Openshell__Sandbox__Protocol__V1__Failure__Kind)kind;
    ret_message->message = (char *)error->message;
    if (error->code != KINDS[kind].code)
        ret_message->code = (uint32_t)error->code;
}

bool failure_decode(const failure_message *message, struct error *error)
{
    enum failure_kind kind = FAILURE_UNKNOWN;
    if (message->kind > 0 && (int)message->kind < KIND_COUNT)
        kind = (enum failure_kind)message->kind;
    failure_set(error, kind, "%s", message->message);
    if (error != NULL && message->code > 0 && message->code <= ERROR_UNAUTHENTICATED)
        error->code = (enum error_code)message->code;
    return false;
}
