/* Option tables: what parses, what is refused and how, and what help shows of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/failure.h"
#include "client/options.h"
#include "client/settings.h"

static struct {
    bool flag;
    bool other;
    bool needing;
    int constant;
    int count;
    const char *text;
    const char *fallible;
    struct option_list list;
    long long number;
    int choice;
    bool help;
} given;

static const struct option table[] = {
    {.type = OPTION_FLAG, .letter = 'f', .name = "flag", .value = &given.flag, .help = "A flag"},
    {.type = OPTION_FLAG,
     .name = "other",
     .value = &given.other,
     .help = "Another",
     .conflicts = "flag --"},
    {.type = OPTION_FLAG,
     .name = "needing",
     .value = &given.needing,
     .help = "Needs one",
     .requires = "text"},
    {.type = OPTION_CONSTANT,
     .name = "yes",
     .value = &given.constant,
     .constant = 1,
     .help = "This way"},
    {.type = OPTION_CONSTANT,
     .name = "no",
     .value = &given.constant,
     .constant = 2,
     .help = "That way"},
    {.type = OPTION_COUNT, .letter = 'v', .name = "verbose", .value = &given.count, .help = "More"},
    {.type = OPTION_TEXT,
     .letter = 't',
     .name = "text",
     .value = &given.text,
     .metavar = "TEXT",
     .help = "A text",
     .environment = "TEST_OPTIONS_TEXT"},
    {.type = OPTION_TEXT,
     .name = "empty",
     .value = &given.fallible,
     .metavar = "TEXT",
     .help = "May be empty",
     .may_be_empty = true},
    {.type = OPTION_LIST,
     .letter = 'l',
     .name = "list",
     .value = &given.list,
     .metavar = "ITEM",
     .help = "Items"},
    {.type = OPTION_NUMBER,
     .name = "number",
     .value = &given.number,
     .metavar = "N",
     .minimum = 1,
     .maximum = 10,
     .fallback = "7",
     .help = "A number"},
    {.type = OPTION_CHOICE,
     .letter = 'o',
     .name = "choice",
     .value = &given.choice,
     .metavar = "WORD",
     .choices = "table yaml json",
     .environment = "TEST_OPTIONS_CHOICE",
     .help = "One of these"},
    {.type = OPTION_FLAG,
     .letter = 'h',
     .name = OPTION_HELP_NAME,
     .value = &given.help,
     .help = "Help"},
    {.type = OPTION_FLAG,
     .name = "secret",
     .value = &given.other,
     .help = "Not shown",
     .hidden = true},
    {0},
};

static struct option_parser parser;
static struct error error;

static int set_up(void **state)
{
    (void)state;
    memset(&given, 0, sizeof(given));
    parser = (struct option_parser){.tables = {table}};
    error_clear(&error);
    unsetenv("TEST_OPTIONS_TEXT");
    unsetenv("TEST_OPTIONS_CHOICE");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    options_free(&parser);
    error_clear(&error);
    return 0;
}

/* As argv has them: strings that nobody writes to. */
#define WORDS(...) ((char **)(const char *[]){__VA_ARGS__, NULL})
/* Parses the words given as arguments. */
#define PARSE(...) (parser.arguments = WORDS(__VA_ARGS__), options_parse(&parser, &error))

static void refuses(bool parsed, const char *message)
{
    assert_false(parsed);
    assert_true(failure_is(&error, CLIENT_REASON_USAGE));
    assert_int_equal(failure_exit_code(&error), 2);
    assert_string_equal(error.message, message);
}

static void test_every_type(void **state)
{
    (void)state;
    assert_true(PARSE("-f", "--yes", "--no", "-vv", "--verbose", "--text=a=b", "--list", "x", "-ly",
                      "-l=z", "--number", "10", "-ojson", "word"));
    assert_true(given.flag);
    assert_int_equal(given.constant, 2);
    assert_int_equal(given.count, 3);
    assert_string_equal(given.text, "a=b");
    assert_int_equal(given.list.count, 3);
    assert_string_equal(given.list.values[0], "x");
    assert_string_equal(given.list.values[1], "y");
    assert_string_equal(given.list.values[2], "z");
    assert_int_equal(given.number, 10);
    assert_int_equal(given.choice, 2);
    assert_int_equal(parser.word_count, 1);
    assert_string_equal(parser.words[0], "word");
    assert_true(options_given(&parser, "text"));
    assert_false(options_given(&parser, "other"));
}

static void test_letters_together(void **state)
{
    (void)state;
    assert_true(PARSE("-fvt", "value", "-"));
    assert_true(given.flag);
    assert_int_equal(given.count, 1);
    assert_string_equal(given.text, "value");
    /* A lone dash is a word. */
    assert_string_equal(parser.words[0], "-");
}

static void test_unknown(void **state)
{
    (void)state;
    refuses(PARSE("--nubmer", "3"), "unknown option '--nubmer'");
    assert_string_equal(error_get_metadata(&error, "hint"), "did you mean '--number'?");
    refuses(PARSE("--nothing-like-it"), "unknown option '--nothing-like-it'");
    assert_null(error_get_metadata(&error, "hint"));
    refuses(PARSE("-fx"), "unknown option '-x'");
    refuses(PARSE("--\033[2J"), "unknown option '--\\x1b[2J'");
    /* A name is not to be guessed from its beginning. */
    refuses(PARSE("--numb", "3"), "unknown option '--numb'");
    /* Nor is a hidden one suggested. */
    refuses(PARSE("--secre"), "unknown option '--secre'");
    assert_null(error_get_metadata(&error, "hint"));
}

static void test_values(void **state)
{
    (void)state;
    refuses(PARSE("--text"), "option '--text' needs a value (TEXT)");
    refuses(PARSE("--text", ""), "option '--text' needs a value that is not empty");
    refuses(PARSE("--flag=1"), "option '--flag' takes no value");
    refuses(PARSE("--number", "0"), "option '--number' needs a whole number from 1 to 10, not '0'");
    refuses(PARSE("--number=3x"), "option '--number' needs a whole number from 1 to 10, not '3x'");
    refuses(PARSE("--number=99999999999999999999"), "option '--number' needs a whole number from 1 "
                                                    "to 10, not '99999999999999999999'");
    refuses(PARSE("--choice", "xml\a"), "option '--choice' does not know 'xml\\x07'");
    assert_string_equal(error_get_metadata(&error, "hint"), "it takes one of: table yaml json");
    refuses(PARSE("--choice", "tab"), "option '--choice' does not know 'tab'");
    refuses(PARSE("--choice="), "option '--choice' does not know ''");
    assert_true(PARSE("--empty", ""));
    assert_string_equal(given.fallible, "");
}

static void test_together(void **state)
{
    (void)state;
    refuses(PARSE("--other", "--flag"), "options '--other' and '--flag' exclude each other");
}

static void test_together_with_a_command(void **state)
{
    (void)state;
    parser.trailing = true;
    refuses(PARSE("--other", "--", "true"),
            "option '--other' and a command after '--' exclude each other");
}

static void test_required(void **state)
{
    (void)state;
    refuses(PARSE("--needing"), "option '--needing' needs '--text'");
    assert_true(PARSE("--needing", "--text", "x"));
}

static void test_double_dash_ends_options(void **state)
{
    (void)state;
    assert_true(PARSE("a", "--", "--flag", "--", "b"));
    assert_false(given.flag);
    assert_int_equal(parser.word_count, 4);
    assert_string_equal(parser.words[1], "--flag");
    assert_string_equal(parser.words[2], "--");
    assert_null(parser.command);
}

static void test_double_dash_starts_a_command(void **state)
{
    (void)state;
    parser.trailing = true;
    assert_true(PARSE("a", "--flag", "--", "--text", "--", "-x"));
    assert_true(given.flag);
    assert_int_equal(parser.word_count, 1);
    assert_int_equal(parser.command_count, 3);
    assert_string_equal(parser.command[0], "--text");
    assert_string_equal(parser.command[1], "--");
    assert_string_equal(parser.command[2], "-x");
}

static void test_an_empty_command_is_not_none(void **state)
{
    (void)state;
    parser.trailing = true;
    assert_true(PARSE("a", "--"));
    assert_non_null(parser.command);
    assert_int_equal(parser.command_count, 0);
}

static void test_environment(void **state)
{
    (void)state;
    setenv("TEST_OPTIONS_TEXT", "from outside", 1);
    assert_true(PARSE("word"));
    assert_string_equal(given.text, "from outside");
    assert_false(options_given(&parser, "text"));
    /* What is given wins. */
    assert_true(PARSE("--text", "given"));
    assert_string_equal(given.text, "given");
}

static void test_blank_environment_counts_as_unset(void **state)
{
    (void)state;
    setenv("TEST_OPTIONS_TEXT", " \t", 1);
    assert_true(PARSE("word"));
    assert_null(given.text);
}

static void test_wrong_environment_is_named(void **state)
{
    (void)state;
    setenv("TEST_OPTIONS_CHOICE", "xml", 1);
    refuses(PARSE("word"), "the environment variable TEST_OPTIONS_CHOICE does not know 'xml'");
}

static void test_help_ends_parsing(void **state)
{
    (void)state;
    setenv("TEST_OPTIONS_CHOICE", "xml", 1);
    assert_true(PARSE("--other", "--flag", "-h", "--nonsense"));
    assert_true(given.help);
}

static void test_stop_at_word(void **state)
{
    (void)state;
    parser.stop_at_word = true;
    assert_true(PARSE("-v", "sandbox", "-v", "list", "--nonsense"));
    assert_string_equal(*parser.arguments, "sandbox");
    parser.arguments++;
    assert_true(options_parse(&parser, &error));
    assert_string_equal(*parser.arguments, "list");
    assert_int_equal(given.count, 2);
}

static void test_export(void **state)
{
    (void)state;
    assert_true(PARSE("--text", "x y", "-o", "yaml"));
    options_export(&parser);
    assert_string_equal(getenv("TEST_OPTIONS_TEXT"), "x y");
    assert_string_equal(getenv("TEST_OPTIONS_CHOICE"), "yaml");
}

static void test_list_has_a_bound(void **state)
{
    (void)state;
    static char *words[OPTION_LIST_MAX + 2];
    for (size_t i = 0; i <= OPTION_LIST_MAX; i++)
        words[i] = (char *)"-lx";
    words[OPTION_LIST_MAX + 1] = NULL;
    parser.arguments = words;
    refuses(options_parse(&parser, &error), "option '--list' can be given 1024 times at most");
    assert_int_equal(given.list.count, OPTION_LIST_MAX);
}

static void test_peek(void **state)
{
    (void)state;
    assert_string_equal(options_peek(WORDS("-o", "json"), 'o', "output"), "json");
    assert_string_equal(options_peek(WORDS("x", "-ojson"), 'o', "output"), "json");
    assert_string_equal(options_peek(WORDS("--output=json"), 'o', "output"), "json");
    assert_string_equal(options_peek(WORDS("--output", "json"), 'o', "output"), "json");
    assert_null(options_peek(WORDS("--outputs", "json"), 'o', "output"));
    assert_null(options_peek(WORDS("--", "-o", "json"), 'o', "output"));
    assert_null(options_peek(WORDS("-o"), 'o', "output"));
}

static void test_help_text(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    options_print_help(table, stream);
    fclose(stream);
    assert_non_null(strstr(text, "  -f, --flag                  A flag\n"));
    assert_non_null(strstr(text, "  -t, --text TEXT             A text [$TEST_OPTIONS_TEXT]\n"));
    assert_non_null(strstr(text, "      --number N              A number (default: 7)\n"));
    assert_non_null(strstr(text, "  -l, --list ITEM             Items; may be repeated\n"));
    assert_non_null(strstr(text, "One of these; one of: table yaml json\n"));
    assert_null(strstr(text, "secret"));
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= 79);
    free(text);
}

/* Every global option can be passed on to the command that the front-end starts. */
static void test_global_options_travel(void **state)
{
    (void)state;
    for (const struct option *option = global_options; option->type != OPTION_END; option++)
        if (strcmp(option->name, "help") != 0 && strcmp(option->name, "version") != 0)
            assert_non_null(option->environment);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_every_type),
        TEST(test_letters_together),
        TEST(test_unknown),
        TEST(test_values),
        TEST(test_together),
        TEST(test_together_with_a_command),
        TEST(test_required),
        TEST(test_double_dash_ends_options),
        TEST(test_double_dash_starts_a_command),
        TEST(test_an_empty_command_is_not_none),
        TEST(test_environment),
        TEST(test_blank_environment_counts_as_unset),
        TEST(test_wrong_environment_is_named),
        TEST(test_help_ends_parsing),
        TEST(test_stop_at_word),
        TEST(test_export),
        TEST(test_list_has_a_bound),
        TEST(test_peek),
        TEST(test_help_text),
        TEST(test_global_options_travel),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
