/* Structured output: JSON and YAML, and a sandbox's record. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/document.h"
#include "client/failure.h"
#include "client/sandbox.h"

static void expect(json_t *document, enum output_format format, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    document_print(document, format, stream);
    fclose(stream);
    assert_string_equal(text, wanted);
    free(text);
}

static json_t *parsed(const char *text)
{
    json_t *document = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(document);
    return document;
}

static void test_json_layout(void **state)
{
    (void)state;
    expect(parsed("{\"z\":1,\"a\":[],\"m\":{\"k\":[true,null]},\"e\":{}}"), OUTPUT_JSON,
           "{\n"
           "  \"z\": 1,\n"
           "  \"a\": [],\n"
           "  \"m\": {\n"
           "    \"k\": [\n"
           "      true,\n"
           "      null\n"
           "    ]\n"
           "  },\n"
           "  \"e\": {}\n"
           "}\n");
    expect(json_array(), OUTPUT_JSON, "[]\n");
}

static void test_json_is_harmless(void **state)
{
    (void)state;
    json_t *document = json_object();
    /* Escape, C1's CSI, DEL, a line separator, a bidirectional override; letters stay. */
    json_object_set_new(document, "t",
                        document_text("\033\xc2\x9b\x7f\xe2\x80\xa8\xe2\x80\xae\xc3\xa9\n"));
    expect(document, OUTPUT_JSON,
           "{\n  \"t\": \"\\u001B\\u009B\\u007F\\u2028\\u202E\xc3\xa9\\n\"\n}\n");
}

static void test_json_takes_no_invalid_text(void **state)
{
    (void)state;
    json_t *document = json_object();
    json_object_set_new(document, "t", document_text("a\xff"));
    json_object_set_new(document, "n", document_text(NULL));
    expect(document, OUTPUT_JSON, "{\n  \"t\": \"a\\\\xff\",\n  \"n\": null\n}\n");
}

static void test_yaml_layout(void **state)
{
    (void)state;
    expect(
        parsed("{\"name\":\"job\",\"labels\":{\"a/b\":\"x\"},\"none\":{},\"list\":[],\"exit\":null,"
               "\"conditions\":[{\"type\":\"Ready\",\"more\":[1,2]},{\"type\":\"B\"}],"
               "\"lists\":[[1,2],[]]}"),
        OUTPUT_YAML,
        "name: job\n"
        "labels:\n"
        "  a/b: x\n"
        "none: {}\n"
        "list: []\n"
        "exit: null\n"
        "conditions:\n"
        "- type: Ready\n"
        "  more:\n"
        "  - 1\n"
        "  - 2\n"
        "- type: B\n"
        "lists:\n"
        "- - 1\n"
        "  - 2\n"
        "- []\n");
    expect(json_array(), OUTPUT_YAML, "[]\n");
}

static void test_yaml_quotes_what_is_no_plain_string(void **state)
{
    (void)state;
    static const char *const quoted[] = {"yes", "No",    "null", "TRUE",      "1", "1.5",
                                         "",    " a",    "a b",  "a:b",       "-", "a\n",
                                         "#x",  "*star", "~",    "2026-11-30"};
    for (size_t i = 0; i < sizeof(quoted) / sizeof(quoted[0]); i++) {
        char *text = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&text, &size);
        document_print(json_string(quoted[i]), OUTPUT_YAML, stream);
        fclose(stream);
        assert_int_equal(text[0], '"');
        free(text);
    }
    expect(json_string("a\033b"), OUTPUT_YAML, "\"a\\u001Bb\"\n");
    expect(json_string("plain-1.x_y/z"), OUTPUT_YAML, "plain-1.x_y/z\n");
}

/* ---- a sandbox ---- */

static Google__Protobuf__Timestamp moment = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
static Openshell__Datamodel__V1__ObjectMeta metadata = OPENSHELL__DATAMODEL__V1__OBJECT_META__INIT;
static Openshell__V1__SandboxCondition ready = OPENSHELL__V1__SANDBOX_CONDITION__INIT;
static Openshell__V1__SandboxCondition *conditions[] = {&ready};
static Openshell__V1__SandboxStatus status = OPENSHELL__V1__SANDBOX_STATUS__INIT;
static Openshell__V1__Sandbox sandbox = OPENSHELL__V1__SANDBOX__INIT;

static int make_sandbox(void **state)
{
    (void)state;
    openshell__v1__sandbox_status__init(&status);
    moment.seconds = 1764545474;
    moment.nanos = 123456789;
    metadata.id = (char *)"id-1";
    metadata.name = (char *)"job";
    metadata.workspace = (char *)"default";
    metadata.resource_version = 7;
    metadata.created_time = &moment;
    ready.type = (char *)"Ready";
    ready.status = (char *)"False";
    ready.reason = (char *)"ConfigurationPending";
    ready.message = (char *)"waiting";
    status.conditions = conditions;
    status.n_conditions = 1;
    sandbox.metadata = &metadata;
    sandbox.status = &status;
    return 0;
}

static void set_exit_code(int code)
{
    status.exit_code_presence_case = OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE_EXIT_CODE;
    status.exit_code = code;
}

static void test_outcomes(void **state)
{
    (void)state;
    int code = -1;
    assert_int_equal(sandbox_outcome(&sandbox, &code), SANDBOX_UNUSABLE);
    ready.reason = (char *)"Stopped";
    assert_int_equal(sandbox_outcome(&sandbox, &code), SANDBOX_STOPPED);
    ready.reason = (char *)"SupervisorLost";
    set_exit_code(3);
    assert_int_equal(sandbox_outcome(&sandbox, &code), SANDBOX_UNUSABLE);
    assert_int_equal(code, -1);
    ready.reason = (char *)"MainProcessFailed";
    assert_int_equal(sandbox_outcome(&sandbox, &code), SANDBOX_ENDED);
    assert_int_equal(code, 3);
    ready.reason = (char *)"MainProcessCompleted";
    set_exit_code(0);
    assert_int_equal(sandbox_outcome(&sandbox, &code), SANDBOX_ENDED);
    assert_int_equal(code, 0);
    /* A failure without a code is never taken for success. */
    ready.reason = (char *)"MainProcessFailed";
    status.exit_code_presence_case = 0;
    assert_int_equal(sandbox_outcome(&sandbox, &code), SANDBOX_ENDED);
    assert_int_equal(code, 1);
    ready.status = (char *)"True";
    assert_int_equal(sandbox_outcome(&sandbox, &code), SANDBOX_READY);
    status.n_conditions = 0;
    assert_int_equal(sandbox_outcome(&sandbox, &code), SANDBOX_UNUSABLE);
}

/* What a command does may not depend on a phase: only the gateway knows what one means. */
static void test_outcome_does_not_look_at_the_phase(void **state)
{
    (void)state;
    for (int phase = 0; phase < 12; phase++) {
        status.phase = (Openshell__V1__SandboxPhase)phase;
        assert_int_equal(sandbox_outcome(&sandbox, NULL), SANDBOX_UNUSABLE);
    }
}

static void test_failure_in_words(void **state)
{
    (void)state;
    struct error error = {0};
    assert_false(sandbox_failure(&sandbox, &error));
    assert_string_equal(error.message,
                        "sandbox 'job' is not ready: waiting (ConfigurationPending)");
    assert_string_equal(error.reason, "ConfigurationPending");
    assert_int_equal(failure_exit_code(&error), 1);
    error_clear(&error);
}

static void test_record(void **state)
{
    (void)state;
    status.phase = OPENSHELL__V1__SANDBOX_PHASE__SANDBOX_PHASE_COMPLETED;
    set_exit_code(0);
    ready.transition_time = &moment;
    json_t *document = sandbox_document(&sandbox);
    static const char *const keys[] = {"id",         "name",        "workspace",
                                       "labels",     "annotations", "resource_version",
                                       "created_at", "phase",       "current_policy_version",
                                       "exit_code",  "conditions",  "endpoint_statuses"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        assert_non_null(json_object_get(document, keys[i]));
    assert_string_equal(json_string_value(json_object_get(document, "created_at")),
                        "2025-11-30 23:31:14");
    assert_string_equal(json_string_value(json_object_get(document, "phase")), "Completed");
    assert_int_equal(json_integer_value(json_object_get(document, "exit_code")), 0);
    assert_int_equal(json_integer_value(json_object_get(document, "resource_version")), 7);
    json_t *condition = json_array_get(json_object_get(document, "conditions"), 0);
    assert_string_equal(json_string_value(json_object_get(condition, "last_transition_time")),
                        "2025-11-30T23:31:14.123Z");
    ready.transition_time = NULL;
    json_decref(document);
}

static void test_record_without_a_result(void **state)
{
    (void)state;
    json_t *document = sandbox_document(&sandbox);
    assert_true(json_is_null(json_object_get(document, "exit_code")));
    json_decref(document);
    Openshell__V1__Sandbox bare = OPENSHELL__V1__SANDBOX__INIT;
    document = sandbox_document(&bare);
    assert_string_equal(json_string_value(json_object_get(document, "phase")), "Unspecified");
    json_decref(document);
}

static void test_copy_lives_on(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    Openshell__V1__Sandbox *copy = sandbox_copy(&sandbox, arena);
    assert_ptr_not_equal(copy->metadata->name, metadata.name);
    assert_string_equal(sandbox_name(copy), "job");
    assert_string_equal(sandbox_condition(copy, "Ready")->reason, "ConfigurationPending");
    assert_null(sandbox_condition(copy, "Nothing"));
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_layout),
        cmocka_unit_test(test_json_is_harmless),
        cmocka_unit_test(test_json_takes_no_invalid_text),
        cmocka_unit_test(test_yaml_layout),
        cmocka_unit_test(test_yaml_quotes_what_is_no_plain_string),
        cmocka_unit_test_setup(test_outcomes, make_sandbox),
        cmocka_unit_test_setup(test_outcome_does_not_look_at_the_phase, make_sandbox),
        cmocka_unit_test_setup(test_failure_in_words, make_sandbox),
        cmocka_unit_test_setup(test_record, make_sandbox),
        cmocka_unit_test_setup(test_record_without_a_result, make_sandbox),
        cmocka_unit_test_setup(test_copy_lives_on, make_sandbox),
    };
    return cmocka_run_group_tests_name("json_output", tests, NULL, NULL);
}
