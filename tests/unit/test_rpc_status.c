/* Errors to and from grpc-status-details-bin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rpc/status.h"

struct scene {
    struct arena *arena;
    struct error sent;
    struct error read;
};

static int setup(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    scene->arena = arena_new(0);
    *state = scene;
    return 0;
}

static int teardown(void **state)
{
    struct scene *scene = *state;
    error_clear(&scene->sent);
    error_clear(&scene->read);
    arena_free(scene->arena);
    free(scene);
    return 0;
}

static void plain_errors_have_no_details(void **state)
{
    struct scene *scene = *state;
    size_t size = 0;
    error_set(&scene->sent, ERROR_NOT_FOUND, "nothing there");
    assert_null(status_encode(&scene->sent, scene->arena, &size));
    status_decode(5, "nothing there", NULL, 0, &scene->read);
    assert_int_equal(scene->read.code, ERROR_NOT_FOUND);
    assert_string_equal(scene->read.message, "nothing there");
}

static void published_bytes_are_read(void **state)
{
    /* What another implementation sends: Status{9, "sandbox is not ready", [RetryInfo{5 s},
     * ErrorInfo{"Stopped", "openshell.nvidia.com", {"phase": "SUSPENDED"}}]}. */
    static const char BYTES[] = "\x08\x09\x12\x14sandbox is not ready"
                                "\x1a\x30\x0a\x28type.googleapis.com/google.rpc.RetryInfo"
                                "\x12\x04\x0a\x02\x08\x05"
                                "\x1a\x5f\x0a\x28type.googleapis.com/google.rpc.ErrorInfo"
                                "\x12\x33\x0a\x07Stopped\x12\x14openshell.nvidia.com"
                                "\x1a\x12\x0a\x05phase\x12\x09SUSPENDED";
    struct scene *scene = *state;
    status_decode(9, "sandbox is not ready", (const uint8_t *)BYTES, sizeof(BYTES) - 1,
                  &scene->read);
    assert_int_equal(scene->read.code, ERROR_FAILED_PRECONDITION);
    assert_string_equal(scene->read.reason, "Stopped");
    assert_string_equal(scene->read.domain, "openshell.nvidia.com");
    assert_string_equal(error_get_metadata(&scene->read, "phase"), "SUSPENDED");
}

static const uint8_t *encode_stopped(struct scene *scene, size_t *ret_size)
{
    error_set(&scene->sent, ERROR_FAILED_PRECONDITION, "sandbox is not ready");
    error_set_reason(&scene->sent, "openshell.nvidia.com", "Stopped");
    const uint8_t *data = status_encode(&scene->sent, scene->arena, ret_size);
    assert_non_null(data);
    return data;
}

static void details_that_contradict_are_ignored(void **state)
{
    struct scene *scene = *state;
    size_t size = 0;
    const uint8_t *data = encode_stopped(scene, &size);
    status_decode(9, "something else", data, size, &scene->read);
    assert_string_equal(scene->read.reason, "");
    assert_string_equal(scene->read.message, "something else");
    status_decode(5, "sandbox is not ready", data, size, &scene->read);
    assert_int_equal(scene->read.code, ERROR_NOT_FOUND);
    assert_string_equal(scene->read.reason, "");
    status_decode(9, "sandbox is not ready", data, size, &scene->read);
    assert_string_equal(scene->read.reason, "Stopped");
}

static void cut_details_are_ignored(void **state)
{
    struct scene *scene = *state;
    size_t size = 0;
    const uint8_t *data = encode_stopped(scene, &size);
    for (size_t length = 0; length < size; length++) {
        uint8_t *exact = malloc(length + 1);
        memcpy(exact, data, length);
        status_decode(9, "sandbox is not ready", exact, length, &scene->read);
        assert_int_equal(scene->read.code, ERROR_FAILED_PRECONDITION);
        assert_string_equal(scene->read.message, "sandbox is not ready");
        assert_string_equal(scene->read.reason, "");
        free(exact);
    }
}

static void many_violations_fit_into_the_limit(void **state)
{
    struct scene *scene = *state;
    size_t size = 0;
    for (int i = 0; i < ERROR_VIOLATIONS_MAX; i++)
        error_add_violation(&scene->sent, "spec.environment", "entry %d %0200d is wrong", i, 0);
    const uint8_t *data = status_encode(&scene->sent, scene->arena, &size);
    assert_non_null(data);
    assert_true(size <= STATUS_DETAILS_SEND_LIMIT);
    status_decode(3, scene->sent.message, data, size, &scene->read);
    assert_true(scene->read.violation_count >= 5);
    assert_true(scene->read.violation_count < ERROR_VIOLATIONS_MAX);
    assert_string_equal(scene->read.violations[4].description,
                        scene->sent.violations[4].description);
    assert_string_equal(scene->read.message, scene->sent.message);
}

static void strange_codes_and_texts_become_harmless(void **state)
{
    struct scene *scene = *state;
    status_decode(99, "odd", NULL, 0, &scene->read);
    assert_int_equal(scene->read.code, ERROR_UNKNOWN);
    status_decode(-1, "odd", NULL, 0, &scene->read);
    assert_int_equal(scene->read.code, ERROR_UNKNOWN);
    status_decode(13, "bad \xFF byte", NULL, 0, &scene->read);
    assert_string_equal(scene->read.message, "bad \\xff byte");
    status_decode(0, "", NULL, 0, &scene->read);
    assert_int_equal(scene->read.code, ERROR_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(plain_errors_have_no_details),        TEST(published_bytes_are_read),
        TEST(details_that_contradict_are_ignored), TEST(cut_details_are_ignored),
        TEST(many_violations_fit_into_the_limit),  TEST(strange_codes_and_texts_become_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
