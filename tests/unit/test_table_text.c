/* Tables for people: widths, escapes, colours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "client/settings.h"
#include "client/terminal.h"
#include "client/text_table.h"

static const char *const headings[] = {"NAME", "PHASE", NULL};

static char *printed(const struct text_table *table, bool colours)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    text_table_print(table, stream, colours);
    fclose(stream);
    return text;
}

static void expect(const struct text_table *table, bool colours, const char *wanted)
{
    char *text = printed(table, colours);
    assert_string_equal(text, wanted);
    free(text);
}

static void test_columns(void **state)
{
    (void)state;
    struct text_table *table = text_table_new(headings);
    text_table_add(table, "a");
    text_table_add(table, "Ready");
    text_table_add(table, "longer-than-that");
    text_table_add(table, "");
    expect(table, false,
           "NAME              PHASE\n"
           "a                 Ready\n"
           "longer-than-that  -\n");
    text_table_free(table);
}

static void test_width_is_that_of_the_terminal(void **state)
{
    (void)state;
    struct text_table *table = text_table_new(headings);
    text_table_add(table, "gr\xc3\xbcn\xc3\xa9"); /* 5 columns in 7 bytes */
    text_table_add(table, "x");
    text_table_add(table, "\xe6\x97\xa5\xe6\x9c\xac"); /* 4 columns in 6 bytes */
    text_table_add(table, "y");
    text_table_add(table, "e\xcc\x81"); /* 1 column: a combining accent */
    text_table_add(table, "z");
    expect(table, false,
           "NAME   PHASE\n"
           "gr\xc3\xbcn\xc3\xa9  x\n"
           "\xe6\x97\xa5\xe6\x9c\xac   y\n"
           "e\xcc\x81      z\n");
    text_table_free(table);
}

static void test_cells_cannot_act(void **state)
{
    (void)state;
    struct text_table *table = text_table_new(headings);
    text_table_add(table, "a\033[2J\xff");
    text_table_add(table, "b\nc\xe2\x80\xae");
    expect(table, false,
           "NAME          PHASE\n"
           "a\\x1b[2J\\xff  b\\nc\\u{202e}\n");
    text_table_free(table);
}

static void test_colours_do_not_count(void **state)
{
    (void)state;
    struct text_table *table = text_table_new(headings);
    text_table_add_coloured(table, COLOUR_RED, "a");
    text_table_add_coloured(table, COLOUR_GREEN, "Ready");
    expect(table, true,
           "\033[1mNAME\033[0m  \033[1mPHASE\033[0m\n"
           "\033[31ma\033[0m     \033[32mReady\033[0m\n");
    expect(table, false, "NAME  PHASE\na     Ready\n");
    text_table_free(table);
}

static void test_many_rows(void **state)
{
    (void)state;
    struct text_table *table = text_table_new(headings);
    for (int i = 0; i < 1000; i++) {
        text_table_add(table, "n");
        text_table_add(table, "p");
    }
    char *text = printed(table, false);
    size_t lines = 0;
    for (const char *at = text; *at != '\0'; at++)
        lines += *at == '\n';
    assert_int_equal(lines, 1001);
    free(text);
    text_table_free(table);
}

static void test_when_colours_are_used(void **state)
{
    (void)state;
    unsetenv("NO_COLOR");
    unsetenv("FORCE_COLOR");
    setenv("TERM", "xterm", 1);
    settings.colour = COLOUR_ALWAYS;
    assert_true(terminal_table_colours());
    settings.colour = COLOUR_NEVER;
    setenv("FORCE_COLOR", "1", 1);
    assert_false(terminal_table_colours());
    settings.colour = COLOUR_AUTO;
    assert_true(terminal_table_colours());
    setenv("NO_COLOR", "1", 1);
    assert_false(terminal_table_colours());
    setenv("NO_COLOR", "", 1);
    assert_true(terminal_table_colours());
    setenv("FORCE_COLOR", "", 1);
    /* Tests write into a pipe or a file. */
    int pipe_ends[2];
    assert_int_equal(pipe(pipe_ends), 0);
    assert_false(terminal_colours(pipe_ends[1]));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void test_width(void **state)
{
    (void)state;
    assert_int_equal(text_width(""), 0);
    assert_int_equal(text_width("abc"), 3);
    assert_int_equal(text_width("\xff"), 1);
    assert_int_equal(text_width("\xf0\x9f\x98\x80"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_width_is_that_of_the_terminal),
        cmocka_unit_test(test_cells_cannot_act),
        cmocka_unit_test(test_colours_do_not_count),
        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_when_colours_are_used),
        cmocka_unit_test(test_width),
    };
    return cmocka_run_group_tests_name("text_table", tests, NULL, NULL);
}
