#include "client/report.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "client/document.h"
#include "client/explain.h"
#include "client/settings.h"
#include "client/terminal.h"

static json_t *violations_document(const struct error *error)
{
    json_t *list = json_array();
    for (size_t i = 0; i < error->violation_count; i++) {
        json_t *violation = json_object();
        json_object_set_new(violation, "field", document_text(error->violations[i].field));
        json_object_set_new(violation, "description",
                            document_text(error->violations[i].description));
        json_array_append_new(list, violation);
    }
    return list;
}

static void report_document(const struct error *error, const struct explanation *explanation)
{
    json_t *document = json_object();
    json_object_set_new(document, "code", document_text(error_code_name(error->code)));
    json_object_set_new(document, "reason", document_text(error->reason));
    json_object_set_new(document, "message", document_text(explanation->message));
    json_object_set_new(document, "hint", document_text(explanation->hint));
    if (error->violation_count > 0)
        json_object_set_new(document, "violations", violations_document(error));
    document_print_line(document, stderr);
}

void report_error(const struct error *error)
{
    struct explanation explanation;
    explain(error, &explanation);
    fflush(stdout);
    if (settings.output == OUTPUT_JSON) {
        report_document(error, &explanation);
        return;
    }
    enum colour colour = terminal_colours(2) ? COLOUR_RED : COLOUR_NONE;
    fprintf(stderr, "%sopenshell:%s %s%s%s\n", terminal_begin(colour), terminal_end(colour),
            explanation.message, explanation.hint[0] != '\0' ? "; " : "", explanation.hint);
}

void report_notice(const char *format, ...)
{
    if (settings.output == OUTPUT_JSON)
        return;
    char text[ERROR_MESSAGE_MAX], escaped[ERROR_MESSAGE_MAX * 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    text_escape(text, escaped, sizeof(escaped));
    fprintf(stderr, "openshell: %s\n", escaped);
}

bool report_reader_gone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    return poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP)) != 0;
}
