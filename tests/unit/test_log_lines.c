/* Log lines as they are shown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "client/document.h"
#include "client/log_lines.h"

typedef Openshell__V1__SandboxLogLine__FieldsEntry line_field;

static Google__Protobuf__Timestamp event_time = {
    PROTOBUF_C_MESSAGE_INIT(&google__protobuf__timestamp__descriptor), 1764545474, 7089999};

static Openshell__V1__SandboxLogLine make_line(const char *message)
{
    Openshell__V1__SandboxLogLine line = OPENSHELL__V1__SANDBOX_LOG_LINE__INIT;
    line.event_time = &event_time;
    line.level = (char *)"WARN";
    line.target = (char *)"session";
    line.message = (char *)message;
    return line;
}

static char *printed(const Openshell__V1__SandboxLogLine *line, bool colours)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    log_line_print(line, colours, stream);
    fclose(stream);
    return text;
}

static void expect(const Openshell__V1__SandboxLogLine *line, const char *wanted)
{
    CLEANUP_FREE char *text = printed(line, false);
    assert_string_equal(text, wanted);
}

static void test_layout(void **state)
{
    (void)state;
    Openshell__V1__SandboxLogLine line = make_line("refused");
    expect(&line, "[1764545474.007] [gateway] [WARN ] [session] refused\n");
    line.source = (char *)"sandbox";
    line.level = (char *)"ERROR";
    line_field fields[4], *pointers[4];
    static const char *const pairs[][2] = {
        {"reason", "too many"}, {"code", "3"}, {"empty", ""}, {"quoted", "a\"b=c"}};
    for (size_t i = 0; i < 4; i++) {
        openshell__v1__sandbox_log_line__fields_entry__init(&fields[i]);
        fields[i].key = (char *)pairs[i][0];
        fields[i].value = (char *)pairs[i][1];
        pointers[i] = &fields[i];
    }
    line.n_fields = 4;
    line.fields = pointers;
    expect(&line, "[1764545474.007] [sandbox] [ERROR] [session] refused code=3 empty=\"\" "
                  "quoted=\"a\\\"b=c\" reason=\"too many\"\n");
    line.event_time = NULL;
    line.n_fields = 0;
    expect(&line, "[0.000] [sandbox] [ERROR] [session] refused\n");
}

/* Whoever wrote the line, in whatever part of it. */
static void test_hostile(void **state)
{
    (void)state;
    static const char hostile[] = "a\x1b[2J\x1b]52;c;QQ==\a\r\n\xc2\x9b"
                                  "31m\xe2\x80\xaez";
    Openshell__V1__SandboxLogLine line = make_line(hostile);
    line_field field = OPENSHELL__V1__SANDBOX_LOG_LINE__FIELDS_ENTRY__INIT, *fields[] = {&field};
    line.source = line.level = line.target = (char *)hostile;
    field.key = field.value = (char *)hostile;
    line.n_fields = 1;
    line.fields = fields;
    CLEANUP_FREE char *text = printed(&line, false);
    for (const char *at = text; at[1] != '\0'; at++)
        assert_true((unsigned char)*at >= ' ' && (unsigned char)*at < 0x7f);
    assert_int_equal(text[strlen(text) - 1], '\n');
    assert_non_null(strstr(text, "a\\x1b[2J\\x1b]52;c;QQ==\\x07\\x0d\\n\\x9b31m\\u{202e}z"));

    char *document = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&document, &size);
    document_print_line(log_line_document(&line), stream);
    fclose(stream);
    for (const char *at = document; at[1] != '\0'; at++)
        assert_true((unsigned char)*at >= ' ' && (unsigned char)*at < 0x7f);
    free(document);
}

static void test_colours(void **state)
{
    (void)state;
    Openshell__V1__SandboxLogLine line = make_line("m");
    CLEANUP_FREE char *text = printed(&line, true);
    assert_string_equal(text, "[1764545474.007] [gateway] [\x1b[33mWARN \x1b[0m] [session] m\n");
    line.level = (char *)"INFO";
    CLEANUP_FREE char *plain = printed(&line, true);
    assert_null(strchr(plain, '\x1b'));
}

static void test_document(void **state)
{
    (void)state;
    Openshell__V1__SandboxLogLine line = make_line("m");
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    document_print_line(log_line_document(&line), stream);
    fclose(stream);
    assert_string_equal(text, "{\"event_time\":\"2025-11-30T23:31:14.007Z\",\"source\":\"gateway\","
                              "\"level\":\"WARN\",\"target\":\"session\",\"message\":\"m\","
                              "\"fields\":{}}\n");
    free(text);
}

static void test_since(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds; /* -1: refused */
    } cases[] = {
        {"30s", 30},   {"5m", 300}, {"2h", 7200}, {"0s", 0},   {"", -1},
        {"5", -1},     {"s", -1},   {"5d", -1},   {"-5m", -1}, {"+5m", -1},
        {"1.5h", -1},  {" 5m", -1}, {"5 m", -1},  {"5mm", -1}, {"99999999999999999999s", -1},
        {"5m\x1b", -1}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct error error = {0};
        int64_t seconds = -1;
        bool good = log_since_parse(cases[i].text, &seconds, &error);
        assert_int_equal(good, cases[i].seconds >= 0);
        assert_int_equal(seconds, cases[i].seconds);
        assert_null(strchr(error.message, '\x1b'));
        error_clear(&error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),  cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_colours), cmocka_unit_test(test_document),
        cmocka_unit_test(test_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
