/* Launch bundles: every byte survives, and nothing unknown, missing or odd is taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "boundary/launch.h"

static char *command[] = {(char *)"printf", (char *)"\x01\xff\xfe\n\"\\", (char *)"", NULL};
static char *environment[] = {(char *)"A=\xc3\x28", (char *)"B=ü", NULL};

static struct launch_supervisor supervisor_example(void)
{
    return (struct launch_supervisor){
        .sandbox_id = (char *)"id",
        .sandbox_name = (char *)"demo",
        .generation = (char *)"generation",
        .auth_epoch = INT64_MAX,
        .gateway_id = (char *)"gateway",
        .gateway_socket = (char *)"/run/\xff/gateway.sock",
        .gateway_token = (char *)"secret-1",
        .sandbox_token = (char *)"secret-2",
        .runtime_pin = (char *)"00",
        .backend_name = (char *)"openshell-sandbox",
        .driver_descriptor = (char *)"opaque",
        .main = {.command = command,
                 .environment = environment,
                 .terminal = true,
                 .columns = 101,
                 .rows = 33,
                 .await_attachment = true},
        .stop_grace_milliseconds = UINT32_MAX,
    };
}

static struct launch_runtime runtime_example(void)
{
    return (struct launch_runtime){
        .sandbox_id = (char *)"id",
        .sandbox_name = (char *)"demo",
        .generation = (char *)"generation",
        .auth_epoch = 1,
        .gateway_id = (char *)"gateway",
        .supervisor_socket = (char *)"/run/boundary.sock",
        .verification_key_id = (char *)"kid",
        .verification_key_pem = (char *)"pem\n",
        .driver_descriptor = (char *)"opaque",
        .state_directory = (char *)"/state",
        .cache_directory = (char *)"/cache",
        .from_directory = NULL,
        .host_id_base = 0x70000000,
        .process_limit = 2048,
    };
}

static struct buffer encoded_supervisor(void)
{
    struct launch_supervisor launch = supervisor_example();
    struct buffer text = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
    assert_true(launch_supervisor_encode(&launch, &text, NULL));
    return text;
}

static void test_supervisor_round_trip(void **state)
{
    (void)state;
    struct buffer text = encoded_supervisor();
    struct launch_supervisor launch;
    struct error error = {0};
    assert_true(launch_supervisor_decode(buffer_text(&text), text.length, &launch, &error));
    assert_string_equal(launch.gateway_socket, "/run/\xff/gateway.sock");
    assert_string_equal(launch.gateway_token, "secret-1");
    assert_true(launch.auth_epoch == INT64_MAX);
    assert_true(launch.stop_grace_milliseconds == UINT32_MAX);
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(launch.main.command[i], command[i]);
    assert_null(launch.main.command[3]);
    assert_string_equal(launch.main.environment[0], environment[0]);
    assert_string_equal(launch.main.environment[1], environment[1]);
    assert_null(launch.main.environment[2]);
    assert_true(launch.main.terminal);
    assert_int_equal(launch.main.columns, 101);
    assert_int_equal(launch.main.rows, 33);
    assert_true(launch.main.await_attachment);
    launch_supervisor_free(&launch);
    buffer_wipe(&text);
}

static void test_runtime_round_trip(void **state)
{
    (void)state;
    struct launch_runtime launch = runtime_example(), decoded;
    for (int pass = 0; pass < 2; pass++) {
        launch.from_directory = pass == 0 ? NULL : (char *)"/srv/root";
        struct buffer text = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
        assert_true(launch_runtime_encode(&launch, &text, NULL));
        assert_true(launch_runtime_decode(buffer_text(&text), text.length, &decoded, NULL));
        assert_int_equal(decoded.host_id_base, 0x70000000);
        assert_string_equal(decoded.verification_key_pem, "pem\n");
        if (pass == 0)
            assert_null(decoded.from_directory);
        else
            assert_string_equal(decoded.from_directory, "/srv/root");
        launch_runtime_free(&decoded);
        buffer_free(&text);
    }
}

static void test_secret_round_trip(void **state)
{
    (void)state;
    struct launch_runtime_secret secret = {(char *)"certificate", (char *)"key"}, decoded;
    struct buffer text = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
    assert_true(launch_runtime_secret_encode(&secret, &text, NULL));
    assert_true(launch_runtime_secret_decode(buffer_text(&text), text.length, &decoded, NULL));
    assert_string_equal(decoded.key_pem, "key");
    launch_runtime_secret_free(&decoded);
    assert_null(decoded.key_pem);
    buffer_wipe(&text);
}

/* Decodes the text of `json` as a supervisor bundle, which must fail with a message that has
 * `words` in it. */
static void assert_refused(json_t *json, const char *words)
{
    char *text = json_dumps(json, 0);
    struct launch_supervisor launch;
    struct error error = {0};
    assert_false(launch_supervisor_decode(text, strlen(text), &launch, &error));
    assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
    if (strstr(error.message, words) == NULL)
        fail_msg("'%s' does not say '%s'", error.message, words);
    assert_null(strstr(error.message, "secret"));
    free(text);
    error_clear(&error);
}

static void test_each_key_is_needed(void **state)
{
    (void)state;
    struct buffer text = encoded_supervisor();
    json_t *whole = json_loads(buffer_text(&text), 0, NULL);
    const char *key;
    json_t *value;
    size_t keys = 0;
    json_object_foreach(whole, key, value)
    {
        json_t *less = json_deep_copy(whole);
        json_object_del(less, key);
        assert_refused(less, key);
        json_decref(less);
        /* No member is an array. */
        less = json_deep_copy(whole);
        json_object_set_new(less, key, json_array());
        assert_refused(less, strcmp(key, "main") == 0 ? "main process" : key);
        json_decref(less);
        keys++;
    }
    assert_int_equal(keys, 13);
    json_t *less = json_deep_copy(whole);
    json_object_del(json_object_get(less, "main"), "environment");
    assert_refused(less, "environment");
    json_decref(less);
    json_decref(whole);
    buffer_wipe(&text);
}

static void test_unknown_and_odd_values_are_refused(void **state)
{
    (void)state;
    struct buffer text = encoded_supervisor();
    json_t *whole = json_loads(buffer_text(&text), 0, NULL);
    json_object_set_new(whole, "surprise", json_true());
    assert_refused(whole, "surprise");
    json_object_del(whole, "surprise");

    json_object_set_new(json_object_get(whole, "main"), "extra", json_null());
    assert_refused(whole, "extra");
    json_object_del(json_object_get(whole, "main"), "extra");

    static const char *const ODD[] = {
        "{\"base64url\":\"AA\"}",         /* a NUL */
        "{\"base64url\":\"_w==\"}",       /* padding */
        "{\"base64url\":\"a/b\"}",        /* another alphabet */
        "{\"base64url\":\"_x\"}",         /* stray bits */
        "{\"base64url\":1}",              /* not text */
        "{\"base64\":\"QQ\"}",            /* another key */
        "{\"base64url\":\"QQ\",\"x\":1}", /* one key too many */
        "null",
        "1",
    };
    for (size_t i = 0; i < sizeof(ODD) / sizeof(ODD[0]); i++) {
        json_object_set_new(whole, "sandbox_name", json_loads(ODD[i], JSON_DECODE_ANY, NULL));
        assert_refused(whole, "sandbox_name");
    }
    json_object_set_new(whole, "sandbox_name", json_string("demo"));
    json_object_set_new(whole, "auth_epoch", json_integer(-1));
    assert_refused(whole, "auth_epoch");
    json_object_set_new(whole, "auth_epoch", json_integer(1));
    json_object_set_new(whole, "stop_grace_milliseconds", json_integer(1LL << 32));
    assert_refused(whole, "stop_grace_milliseconds");
    json_decref(whole);
    buffer_wipe(&text);
}

static void test_bad_json_is_refused_without_quoting_it(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {
        "",         "{", "[]", "\"secret\"", "{\"a\":1,\"a\":2}", "{\"sandbox_id\":\"\\u0000\"}",
        "{} secret"};
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
        struct launch_supervisor launch;
        struct error error = {0};
        assert_false(launch_supervisor_decode(TEXTS[i], strlen(TEXTS[i]), &launch, &error));
        assert_null(strstr(error.message, "secret"));
    }
}

static void test_size_is_bounded(void **state)
{
    (void)state;
    char *large = memory_allocate(LAUNCH_BUNDLE_LIMIT + 1);
    memset(large, ' ', LAUNCH_BUNDLE_LIMIT + 1);
    large[LAUNCH_BUNDLE_LIMIT] = '\0';
    struct launch_supervisor launch = supervisor_example();
    launch.sandbox_name = large;
    struct buffer text = BUFFER_INIT(0);
    struct error error = {0};
    assert_false(launch_supervisor_encode(&launch, &text, &error));
    assert_int_equal(error.code, ERROR_RESOURCE_EXHAUSTED);
    assert_false(launch_supervisor_decode(large, LAUNCH_BUNDLE_LIMIT + 1, &launch, &error));
    assert_int_equal(error.code, ERROR_RESOURCE_EXHAUSTED);
    buffer_free(&text);
    free(large);
}

static void test_read_takes_a_whole_pipe(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t writer = fork();
    if (writer == 0) {
        close(ends[0]);
        char block[1000];
        memset(block, 'x', sizeof(block));
        for (int i = 0; i < 300; i++)
            if (write(ends[1], block, sizeof(block)) < 0)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    struct buffer bundle;
    assert_true(launch_read(ends[0], &bundle, NULL));
    assert_int_equal(bundle.length, 300000);
    buffer_wipe(&bundle);
    close(ends[0]);
}

static void test_read_refuses_more_than_the_limit(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), LAUNCH_BUNDLE_LIMIT + 1), 0);
    struct buffer bundle;
    struct error error = {0};
    assert_false(launch_read(fileno(file), &bundle, &error));
    assert_int_equal(error.code, ERROR_RESOURCE_EXHAUSTED);
    assert_int_equal(ftruncate(fileno(file), LAUNCH_BUNDLE_LIMIT), 0);
    rewind(file);
    assert_true(launch_read(fileno(file), &bundle, NULL));
    assert_int_equal(bundle.length, LAUNCH_BUNDLE_LIMIT);
    buffer_wipe(&bundle);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_supervisor_round_trip),
        cmocka_unit_test(test_runtime_round_trip),
        cmocka_unit_test(test_secret_round_trip),
        cmocka_unit_test(test_each_key_is_needed),
        cmocka_unit_test(test_unknown_and_odd_values_are_refused),
        cmocka_unit_test(test_bad_json_is_refused_without_quoting_it),
        cmocka_unit_test(test_size_is_bounded),
        cmocka_unit_test(test_read_takes_a_whole_pipe),
        cmocka_unit_test(test_read_refuses_more_than_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
