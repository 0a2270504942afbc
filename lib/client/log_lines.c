#include "client/log_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/document.h"
#include "client/failure.h"
#include "client/terminal.h"

enum { SINCE_MAX_SECONDS = 10 * 365 * 24 * 3600 };

typedef Openshell__V1__SandboxLogLine__FieldsEntry line_field;

static int64_t milliseconds(const Google__Protobuf__Timestamp *time)
{
    return time != NULL ? time->seconds * 1000 + time->nanos / 1000000 : 0;
}

static const char *source_of(const Openshell__V1__SandboxLogLine *line)
{
    return line->source[0] != '\0' ? line->source : "gateway";
}

static enum colour colour_of(const char *level)
{
    static const struct {
        const char *level;
        enum colour colour;
    } colours[] = {{"ERROR", COLOUR_RED},
                   {"WARN", COLOUR_YELLOW},
                   {"DEBUG", COLOUR_FAINT},
                   {"TRACE", COLOUR_FAINT}};
    for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
        if (strcmp(colours[i].level, level) == 0)
            return colours[i].colour;
    return COLOUR_NONE;
}

/* The text without anything that acts on a terminal, and with spaces up to the width. */
static void print_padded(const char *text, size_t width, FILE *stream)
{
    CLEANUP_FREE char *escaped = text_escaped(text);
    size_t used = text_width(escaped);
    fprintf(stream, "%s%*s", escaped, (int)(used < width ? width - used : 0), "");
}

static int compare_keys(const void *left, const void *right)
{
    const line_field *const *first = left, *const *second = right;
    return strcmp((*first)->key, (*second)->key);
}

/* In the order of their keys; owned by the caller. */
static line_field **sorted_fields(const Openshell__V1__SandboxLogLine *line)
{
    line_field **fields = memory_allocate((line->n_fields + 1) * sizeof(line_field *));
    for (size_t i = 0; i < line->n_fields; i++)
        fields[i] = line->fields[i];
    qsort(fields, line->n_fields, sizeof(line_field *), compare_keys);
    return fields;
}

static void print_value(const char *value, FILE *stream)
{
    if (value[0] != '\0' && strpbrk(value, " \"'=") == NULL) {
        print_padded(value, 0, stream);
        return;
    }
    CLEANUP_FREE char *escaped = text_escaped(value);
    fputc('"', stream);
    for (const char *at = escaped; *at != '\0'; at++) {
        if (*at == '"')
            fputc('\\', stream);
        fputc(*at, stream);
    }
    fputc('"', stream);
}

void log_line_print(const Openshell__V1__SandboxLogLine *line, bool colours, FILE *stream)
{
    int64_t time = milliseconds(line->event_time);
    enum colour colour = colours ? colour_of(line->level) : COLOUR_NONE;
    fprintf(stream, "[%lld.%03lld] [", (long long)(time / 1000), (long long)(time % 1000));
    print_padded(source_of(line), 7, stream);
    fprintf(stream, "] [%s", terminal_begin(colour));
    print_padded(line->level, 5, stream);
    fprintf(stream, "%s] [", terminal_end(colour));
    print_padded(line->target, 0, stream);
    fputs("] ", stream);
    print_padded(line->message, 0, stream);
    CLEANUP_FREE line_field **fields = sorted_fields(line);
    for (size_t i = 0; i < line->n_fields; i++) {
        fputc(' ', stream);
        print_padded(fields[i]->key, 0, stream);
        fputc('=', stream);
        print_value(fields[i]->value, stream);
    }
    fputc('\n', stream);
}

json_t *log_line_document(const Openshell__V1__SandboxLogLine *line)
{
    char time[32];
    clock_format_rfc3339(milliseconds(line->event_time), time, sizeof(time));
    json_t *document = json_object(), *values = json_object();
    json_object_set_new(document, "event_time", document_text(time));
    json_object_set_new(document, "source", document_text(source_of(line)));
    json_object_set_new(document, "level", document_text(line->level));
    json_object_set_new(document, "target", document_text(line->target));
    json_object_set_new(document, "message", document_text(line->message));
    CLEANUP_FREE line_field **fields = sorted_fields(line);
    for (size_t i = 0; i < line->n_fields; i++)
        json_object_set_new(values, fields[i]->key, document_text(fields[i]->value));
    json_object_set_new(document, "fields", values);
    return document;
}

bool log_since_parse(const char *text, int64_t *ret_seconds, struct error *error)
{
    static const struct {
        char unit;
        int seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}};
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]) && length > 1; i++) {
        if (text[length - 1] != units[i].unit)
            continue;
        CLEANUP_FREE char *number = memory_printf("%.*s", (int)length - 1, text);
        long long count;
        if (text[0] < '0' || text[0] > '9' ||
            !text_parse_integer(number, 0, SINCE_MAX_SECONDS / units[i].seconds, &count))
            break;
        *ret_seconds = count * units[i].seconds;
        return true;
    }
    CLEANUP_FREE char *shown = text_escaped(text);
    failure_usage(error, "'%s' is no span of time", shown);
    failure_hint(error, "write a number and s, m or h, as --since 15m");
    return false;
}
