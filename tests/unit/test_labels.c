#include "gateway_fixture.h"

#include "gateway/labels.h"

#define TEN "abcdefghij"
#define SIXTY TEN TEN TEN TEN TEN TEN
#define P50 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwx"
#define PREFIX_254 P50 "." P50 "." P50 "." P50 "." P50

static void test_keys(void **state)
{
    (void)state;
    static const char *const good[] = {
        "a", "A1", "app.kubernetes.io/name", "a_b-c.d", SIXTY "abc", "x/y", "a-b.c-d/e", "0"};
    static const char *const bad[] = {"",     "-a",   "a-",    ".a",         "a b",      "a/",
                                      "/a",   "a//b", "A.B/c", "a..b/c",     ".a/b",     "a./b",
                                      "-a/b", "a-/b", "a=b",   SIXTY "abcd", "\xc3\xa4", "a\n"};
    const char *rule;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!labels_key_valid(good[i], &rule))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (labels_key_valid(bad[i], &rule))
            fail_msg("%s", bad[i]);
    const char *longest = PREFIX_254;
    CLEANUP_FREE char *fits = memory_printf("%s/name", longest + 1);
    CLEANUP_FREE char *too_long = memory_printf("%s/name", longest);
    assert_int_equal(strlen(longest), 254);
    assert_true(labels_key_valid(fits, &rule));
    assert_false(labels_key_valid(too_long, &rule));
}

static void test_values(void **state)
{
    (void)state;
    static const char *const good[] = {"", "a", "A.b_c-1", SIXTY "abc"};
    static const char *const bad[] = {"-a", "a-", "_", "a b", "a/b", SIXTY "abcd", "\xc3\xa4"};
    const char *rule;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(labels_value_valid(good[i], &rule));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(labels_value_valid(bad[i], &rule));
}

struct parsed {
    struct arena *arena;
    struct store_label *pairs;
    size_t count;
    struct error error;
};

static bool parse(struct parsed *parsed, const char *text)
{
    error_clear(&parsed->error);
    return labels_parse_selector(text, parsed->arena, &parsed->pairs, &parsed->count,
                                 &parsed->error);
}

static void test_selectors(void **state)
{
    (void)state;
    struct parsed parsed = {.arena = arena_new(0)};
    assert_true(parse(&parsed, ""));
    assert_int_equal(parsed.count, 0);
    assert_true(parse(&parsed, "   "));
    assert_int_equal(parsed.count, 0);
    assert_true(parse(&parsed, " team = red ,x/y=,b=2"));
    assert_int_equal(parsed.count, 3);
    assert_string_equal(parsed.pairs[0].key, "team");
    assert_string_equal(parsed.pairs[0].value, "red");
    assert_string_equal(parsed.pairs[1].key, "x/y");
    assert_string_equal(parsed.pairs[1].value, "");
    assert_string_equal(parsed.pairs[2].value, "2");
    static const char *const bad[] = {"a",     "=a",   "a=b,", ",a=b",   "a=b,,c=d",
                                      "a=b=c", "a==b", "a!=b", "a=b\tc", "a in (b)"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (parse(&parsed, bad[i]))
            fail_msg("'%s'", bad[i]);
        assert_int_equal(parsed.error.code, ERROR_INVALID_ARGUMENT);
        assert_true(fixture_has_violation(&parsed.error, "label_selector"));
    }
    assert_false(parse(&parsed, "a,b,c=d"));
    assert_int_equal(parsed.error.violation_count, 2);
    error_clear(&parsed.error);
    arena_free(parsed.arena);
}

static void test_a_selector_is_bounded(void **state)
{
    (void)state;
    struct parsed parsed = {.arena = arena_new(0)};
    char text[1024] = "";
    for (int i = 0; i < LABELS_SELECTOR_MAX; i++)
        sprintf(text + strlen(text), "%sk%d=v", i > 0 ? "," : "", i);
    assert_true(parse(&parsed, text));
    assert_int_equal(parsed.count, LABELS_SELECTOR_MAX);
    strcat(text, ",one=more");
    assert_false(parse(&parsed, text));
    error_clear(&parsed.error);
    arena_free(parsed.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_selectors),
        cmocka_unit_test(test_a_selector_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
