#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const CODE_NAMES[] = {
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
};

/* Cuts `text` so that it does not end within a UTF-8 sequence. */
static void trim_partial_character(char *text)
{
    size_t length = strlen(text);
    size_t start = length;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80 && length - start < 4)
        start--;
    if (start == 0)
        return;
    unsigned char lead = (unsigned char)text[start - 1];
    size_t need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (length - start < need)
        text[start - 1] = '\0';
}

static void set_text(char *buffer, size_t size, const char *text)
{
    if (strlen(text) < size) {
        memmove(buffer, text, strlen(text) + 1);
        return;
    }
    memmove(buffer, text, size - 1);
    buffer[size - 1] = '\0';
    trim_partial_character(buffer);
}

void error_clear(struct error *error)
{
    if (error == NULL)
        return;
    for (size_t i = 0; i < error->metadata_count; i++) {
        free(error->metadata[i].key);
        free(error->metadata[i].value);
    }
    for (size_t i = 0; i < error->violation_count; i++) {
        free(error->violations[i].field);
        free(error->violations[i].description);
    }
    error->code = ERROR_OK;
    error->message[0] = error->domain[0] = error->reason[0] = '\0';
    error->metadata_count = error->violation_count = 0;
}

static void set_formatted(struct error *error, enum error_code code, const char *format,
                          va_list arguments)
{
    char text[ERROR_MESSAGE_MAX * 2];
    vsnprintf(text, sizeof(text), format, arguments);
    error_clear(error);
    error->code = code;
    set_text(error->message, sizeof(error->message), text);
}

bool error_set(struct error *error, enum error_code code, const char *format, ...)
{
    if (error == NULL)
        return false;
    va_list arguments;
    va_start(arguments, format);
    set_formatted(error, code, format, arguments);
    va_end(arguments);
    return false;
}

bool error_set_errno(struct error *error, enum error_code code, int errnum, const char *format, ...)
{
    if (error == NULL)
        return false;
    va_list arguments;
    va_start(arguments, format);
    set_formatted(error, code, format, arguments);
    va_end(arguments);
    char text[ERROR_MESSAGE_MAX * 2];
    snprintf(text, sizeof(text), "%s: %s", error->message, strerror(errnum));
    set_text(error->message, sizeof(error->message), text);
    return false;
}

void error_prefix(struct error *error, const char *format, ...)
{
    if (error == NULL)
        return;
    char text[ERROR_MESSAGE_MAX * 2];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, ERROR_MESSAGE_MAX, format, arguments);
    va_end(arguments);
    if (length < 0)
        return;
    size_t used = strlen(text);
    snprintf(text + used, sizeof(text) - used, ": %s", error->message);
    set_text(error->message, sizeof(error->message), text);
}

void error_set_reason(struct error *error, const char *domain, const char *reason)
{
    if (error == NULL)
        return;
    set_text(error->domain, sizeof(error->domain), domain);
    set_text(error->reason, sizeof(error->reason), reason);
}

void error_add_metadata(struct error *error, const char *key, const char *value)
{
    if (error == NULL || error->metadata_count == ERROR_METADATA_MAX)
        return;
    struct error_metadata *entry = &error->metadata[error->metadata_count];
    entry->key = strdup(key);
    entry->value = strdup(value != NULL ? value : "");
    if (entry->key == NULL || entry->value == NULL) {
        free(entry->key);
        free(entry->value);
        return;
    }
    error->metadata_count++;
}

const char *error_get_metadata(const struct error *error, const char *key)
{
    for (size_t i = 0; i < error->metadata_count; i++)
        if (strcmp(error->metadata[i].key, key) == 0)
            return error->metadata[i].value;
    return NULL;
}

void error_add_violation(struct error *error, const char *field, const char *format, ...)
{
    if (error == NULL)
        return;
    char description[ERROR_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(description, sizeof(description), format, arguments);
    va_end(arguments);
    trim_partial_character(description);

    if (error->code == ERROR_OK) {
        error->code = ERROR_INVALID_ARGUMENT;
        error_set_reason(error, ERROR_DOMAIN_GATEWAY, "INVALID_ARGUMENT");
    }
    char text[ERROR_MESSAGE_MAX * 3];
    snprintf(text, sizeof(text), "%s%s%s: %s", error->message,
             error->message[0] != '\0' ? "; " : "", field, description);
    set_text(error->message, sizeof(error->message), text);

    if (error->violation_count == ERROR_VIOLATIONS_MAX)
        return;
    struct error_violation *entry = &error->violations[error->violation_count];
    entry->field = strdup(field);
    entry->description = strdup(description);
    if (entry->field == NULL || entry->description == NULL) {
        free(entry->field);
        free(entry->description);
        return;
    }
    error->violation_count++;
}

void error_copy(struct error *to, const struct error *from)
{
    if (to == NULL || to == from)
        return;
    error_clear(to);
    to->code = from->code;
    set_text(to->message, sizeof(to->message), from->message);
    error_set_reason(to, from->domain, from->reason);
    for (size_t i = 0; i < from->metadata_count; i++)
        error_add_metadata(to, from->metadata[i].key, from->metadata[i].value);
    for (size_t i = 0; i < from->violation_count; i++) {
        struct error_violation *entry = &to->violations[to->violation_count];
        entry->field = strdup(from->violations[i].field);
        entry->description = strdup(from->violations[i].description);
        if (entry->field == NULL || entry->description == NULL) {
            free(entry->field);
            free(entry->description);
            return;
        }
        to->violation_count++;
    }
}

const char *error_code_name(enum error_code code)
{
    size_t index = (size_t)code;
    return index < sizeof(CODE_NAMES) / sizeof(CODE_NAMES[0]) ? CODE_NAMES[index] : "UNKNOWN";
}
