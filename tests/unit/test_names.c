#include "gateway_fixture.h"

#include "gateway/names.h"
#include "gateway/validate.h"

static void expect_name(const char *name)
{
    struct error error = {0};
    if (!validate_name("name", name, NAMES_GENERATED_MAX, &error))
        fail_msg("%s", error.message);
}

static int compare(const void *left, const void *right)
{
    return strcmp(left, right);
}

static void test_every_name_is_valid_and_different(void **state)
{
    (void)state;
    unsigned count = names_count();
    assert_true(count >= 10000);
    char(*names)[NAMES_GENERATED_MAX + 1] = memory_new(sizeof(*names) * count);
    for (unsigned i = 0; i < count; i++) {
        names_at(i, names[i]);
        expect_name(names[i]);
        const char *hyphen = strchr(names[i], '-');
        assert_non_null(hyphen);
        assert_null(strchr(hyphen + 1, '-'));
    }
    qsort(names, count, sizeof(*names), compare);
    for (unsigned i = 1; i < count; i++)
        assert_string_not_equal(names[i - 1], names[i]);
    free(names);
}

static void test_later_attempts_have_digits(void **state)
{
    (void)state;
    char name[NAMES_GENERATED_MAX + 1];
    unsigned same = 0;
    char before[NAMES_GENERATED_MAX + 1] = "";
    for (unsigned i = 0; i < 2000; i++) {
        names_generate(i % NAMES_ATTEMPTS, name);
        expect_name(name);
        bool digits = strpbrk(name, "0123456789") != NULL;
        assert_int_equal(digits, i % NAMES_ATTEMPTS >= 3);
        same += strcmp(before, name) == 0;
        strcpy(before, name);
    }
    assert_true(same < 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name_is_valid_and_different),
        cmocka_unit_test(test_later_attempts_have_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
