#include "gateway_fixture.h"

#include "gateway/validate.h"

#define TEN "abcdefghij"
#define SIXTY TEN TEN TEN TEN TEN TEN

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* `length` bytes; owned by the caller. */
static char *repeated(char character, size_t length)
{
    char *text = memory_new(length + 1);
    memset(text, character, length);
    return text;
}

/* ---- names, ids, scopes ---- */

static void test_names(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "job", "a-b", "0", "9-a-0", SIXTY "abc"};
    static const char *const bad[] = {"",    "A",    "-a",  "a-", "a--b",     "a_b",       "a.b",
                                      "a b", "a\nb", "a/b", "..", "\xc3\xa4", SIXTY "abcd"};
    struct error error = {0};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(validate_name("name", good[i], VALIDATE_SANDBOX_NAME_MAX, &error));
    assert_int_equal(error.code, ERROR_OK);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(validate_name("name", bad[i], VALIDATE_SANDBOX_NAME_MAX, &error));
        assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
        assert_false(validate_sandbox_reference("name", bad[i], &error));
        error_clear(&error);
    }
    assert_false(validate_name("name", "a\033[2J", 63, &error));
    assert_null(strchr(error.violations[0].description, '\033'));
    assert_non_null(strstr(error.violations[0].description, "a\\x1b[2J"));
    assert_non_null(strstr(error.violations[0].description, "63"));
    error_clear(&error);
    CLEANUP_FREE char *huge = repeated('A', 100000);
    assert_false(validate_name("name", huge, 63, &error));
    assert_true(strlen(error.violations[0].description) < 400);
    error_clear(&error);
}

static void test_request_ids(void **state)
{
    (void)state;
    static const char *const good[] = {"", "12345678-1234-1234-1234-123456789abc",
                                       "ABCDEF00-1234-1234-1234-123456789ABC"};
    static const char *const bad[] = {
        "00000000-0000-0000-0000-000000000000", "12345678123412341234123456789abc",
        "12345678-1234-1234-1234-123456789abg", "12345678-1234-1234-1234-123456789abcd", " "};
    struct error error = {0};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_true(validate_request_id(good[i], &error));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(validate_request_id(bad[i], &error));
        assert_true(fixture_has_violation(&error, "request_id"));
        error_clear(&error);
    }
    assert_true(validate_is_uuid(good[2], false));
    assert_false(validate_is_uuid(good[2], true));
    assert_true(validate_is_uuid(good[1], true));
}

static void test_workspace_scopes(void **state)
{
    (void)state;
    Openshell__Datamodel__V1__WorkspaceSelector scope =
        OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__INIT;
    Openshell__Datamodel__V1__AllWorkspaces all = OPENSHELL__DATAMODEL__V1__ALL_WORKSPACES__INIT;
    struct error error = {0};
    const char *workspace = "untouched";
    assert_false(validate_workspace_scope(NULL, true, &workspace, &error));
    assert_true(fixture_has_violation(&error, "workspace_scope"));
    error_clear(&error);
    assert_false(validate_workspace_scope(&scope, true, &workspace, &error));
    error_clear(&error);
    scope.selection_case = OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__SELECTION_WORKSPACE;
    scope.workspace = text_of("");
    assert_false(validate_workspace_scope(&scope, true, &workspace, &error));
    assert_true(fixture_has_violation(&error, "workspace_scope.workspace"));
    error_clear(&error);
    assert_string_equal(workspace, "untouched");
    scope.workspace = text_of("default");
    assert_true(validate_workspace_scope(&scope, false, &workspace, &error));
    assert_string_equal(workspace, "default");
    scope.selection_case = OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__SELECTION_ALL_WORKSPACES;
    scope.all_workspaces = &all;
    assert_false(validate_workspace_scope(&scope, false, &workspace, &error));
    assert_true(fixture_has_violation(&error, "workspace_scope.all_workspaces"));
    error_clear(&error);
    assert_true(validate_workspace_scope(&scope, true, &workspace, &error));
    assert_null(workspace);
}

/* ---- create ---- */

struct create {
    struct arena *arena;
    Openshell__V1__CreateSandboxRequest request;
    Openshell__V1__SandboxSpec spec;
    Openshell__V1__SandboxTemplate template;
    struct error error;
};

static struct create *create_new(void)
{
    struct create *create = memory_new_of(struct create);
    create->arena = arena_new(0);
    openshell__v1__create_sandbox_request__init(&create->request);
    openshell__v1__sandbox_spec__init(&create->spec);
    openshell__v1__sandbox_template__init(&create->template);
    create->request.spec = &create->spec;
    return create;
}

static void create_free(struct create *create)
{
    error_clear(&create->error);
    arena_free(create->arena);
    free(create);
}

static void expect_valid(struct create *create)
{
    error_clear(&create->error);
    if (!validate_create_sandbox(&create->request, &create->error))
        fail_msg("%s", create->error.message);
    assert_int_equal(create->error.code, ERROR_OK);
}

static void expect_field(struct create *create, const char *field)
{
    error_clear(&create->error);
    assert_false(validate_create_sandbox(&create->request, &create->error));
    assert_int_equal(create->error.code, ERROR_INVALID_ARGUMENT);
    assert_string_equal(create->error.reason, "INVALID_ARGUMENT");
    if (!fixture_has_violation(&create->error, field))
        fail_msg("'%s' is not among: %s", field, create->error.message);
}

static Openshell__V1__SandboxSpec__EnvironmentEntry *variable(struct arena *arena, const char *key,
                                                              const char *value)
{
    Openshell__V1__SandboxSpec__EnvironmentEntry *entry =
        arena_new_of(arena, Openshell__V1__SandboxSpec__EnvironmentEntry);
    openshell__v1__sandbox_spec__environment_entry__init(entry);
    entry->key = arena_strdup(arena, key);
    entry->value = arena_strdup(arena, value);
    return entry;
}

/* `count` variables with values of `size` bytes. */
static void set_environment(struct create *create, size_t count, size_t size)
{
    create->spec.environment =
        arena_array_of(create->arena, Openshell__V1__SandboxSpec__EnvironmentEntry *, count + 1);
    create->spec.n_environment = count;
    CLEANUP_FREE char *value = repeated('v', size);
    for (size_t i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof(key), "KEY_%zu", i);
        create->spec.environment[i] = variable(create->arena, key, value);
    }
}

static void test_the_smallest_create(void **state)
{
    (void)state;
    struct create *create = create_new();
    expect_valid(create);
    create->request.spec = NULL;
    expect_field(create, "spec");
    create_free(create);
}

static void test_create_lists_every_bad_field(void **state)
{
    (void)state;
    struct create *create = create_new();
    create->request.name = text_of("Bad_Name");
    create->request.request_id = text_of("x");
    set_environment(create, 3, 1);
    create->spec.environment[0]->key = text_of("1BAD");
    create->spec.environment[1]->key = text_of("OPENSHELL_X");
    char *command[] = {text_of("")};
    create->spec.command = command;
    create->spec.n_command = 1;
    create->spec.log_level = text_of("a log level that has more than 32 bytes");
    create->spec.restart_policy = 9;
    expect_field(create, "name");
    assert_true(fixture_has_violation(&create->error, "request_id"));
    assert_true(fixture_has_violation(&create->error, "spec.environment[1BAD]"));
    assert_true(fixture_has_violation(&create->error, "spec.environment[OPENSHELL_X]"));
    assert_true(fixture_has_violation(&create->error, "spec.command[0]"));
    assert_true(fixture_has_violation(&create->error, "spec.log_level"));
    assert_true(fixture_has_violation(&create->error, "spec.restart_policy"));
    assert_int_equal(create->error.violation_count, 7);
    create_free(create);
}

static void test_violations_are_bounded(void **state)
{
    (void)state;
    struct create *create = create_new();
    set_environment(create, VALIDATE_ENVIRONMENT_MAX, 0);
    for (size_t i = 0; i < VALIDATE_ENVIRONMENT_MAX; i++)
        create->spec.environment[i]->key[0] = '-';
    expect_field(create, "spec.environment[-EY_0]");
    assert_int_equal(create->error.violation_count, ERROR_VIOLATIONS_MAX);
    create_free(create);
}

static void test_environment_limits(void **state)
{
    (void)state;
    struct create *create = create_new();
    set_environment(create, VALIDATE_ENVIRONMENT_MAX, 10);
    expect_valid(create);
    set_environment(create, VALIDATE_ENVIRONMENT_MAX + 1, 10);
    expect_field(create, "spec.environment");
    set_environment(create, 1, VALIDATE_ENVIRONMENT_VALUE_MAX);
    expect_valid(create);
    set_environment(create, 1, VALIDATE_ENVIRONMENT_VALUE_MAX + 1);
    expect_field(create, "spec.environment[KEY_0]");
    set_environment(create, 33, 8000); /* 264,000 bytes and more */
    expect_field(create, "spec.environment");
    set_environment(create, 2, 1);
    create->spec.environment[1]->key = text_of("KEY_0");
    expect_field(create, "spec.environment");
    /* Any bytes in a value (P22). */
    set_environment(create, 1, 0);
    create->spec.environment[0]->value = text_of("two\nlines\r\033[31m \xc3\xa4 'quoted' $(x)");
    expect_valid(create);
    CLEANUP_FREE char *long_key = repeated('K', VALIDATE_ENVIRONMENT_KEY_MAX + 1);
    create->spec.environment[0]->key = long_key;
    assert_false(validate_create_sandbox(&create->request, &create->error));
    error_clear(&create->error);
    long_key[VALIDATE_ENVIRONMENT_KEY_MAX] = '\0';
    expect_valid(create);
    static const char *const bad[] = {"", "A-B", "A B", "\xc3\xa4", "A=B", "9"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        create->spec.environment[0]->key = text_of(bad[i]);
        error_clear(&create->error);
        assert_false(validate_create_sandbox(&create->request, &create->error));
    }
    create_free(create);
}

static void test_command_limits(void **state)
{
    (void)state;
    struct create *create = create_new();
    char **command = arena_array_of(create->arena, char *, VALIDATE_COMMAND_MAX + 1);
    for (size_t i = 0; i <= VALIDATE_COMMAND_MAX; i++)
        command[i] = text_of(i == 0 ? "program" : "");
    create->spec.command = command;
    create->spec.n_command = VALIDATE_COMMAND_MAX;
    expect_valid(create);
    create->spec.n_command++;
    expect_field(create, "spec.command");
    CLEANUP_FREE char *longest = repeated('a', VALIDATE_ARGUMENT_MAX);
    CLEANUP_FREE char *too_long = repeated('a', VALIDATE_ARGUMENT_MAX + 1);
    create->spec.n_command = 2;
    command[1] = longest;
    expect_valid(create);
    command[1] = too_long;
    expect_field(create, "spec.command[1]");
    for (size_t i = 0; i < 8; i++)
        command[i] = longest;
    create->spec.n_command = 8; /* 8 * 32769 bytes */
    expect_field(create, "spec.command");
    create_free(create);
}

static void test_labels_and_annotations(void **state)
{
    (void)state;
    struct create *create = create_new();
    Openshell__V1__CreateSandboxRequest__LabelsEntry label =
        OPENSHELL__V1__CREATE_SANDBOX_REQUEST__LABELS_ENTRY__INIT;
    Openshell__V1__CreateSandboxRequest__LabelsEntry *labels[] = {&label, &label};
    Openshell__V1__CreateSandboxRequest__AnnotationsEntry annotation =
        OPENSHELL__V1__CREATE_SANDBOX_REQUEST__ANNOTATIONS_ENTRY__INIT;
    Openshell__V1__CreateSandboxRequest__AnnotationsEntry *annotations[] = {&annotation};
    create->request.labels = labels;
    create->request.n_labels = 1;
    label.key = text_of("team");
    label.value = text_of("red");
    expect_valid(create);
    label.value = text_of("not ok");
    expect_field(create, "labels[team]");
    label.value = text_of("");
    create->request.n_labels = 2;
    expect_field(create, "labels"); /* given twice */
    create->request.n_labels = 0;
    create->request.annotations = annotations;
    create->request.n_annotations = 1;
    annotation.key = text_of("openshell.nvidia.com/retention");
    annotation.value = text_of("ephemeral");
    expect_valid(create);
    annotation.key = text_of("internal.openshell.ai/auth-epoch");
    expect_field(create, "annotations[internal.openshell.ai/auth-epoch]");
    create_free(create);
}

static void test_template_and_resources(void **state)
{
    (void)state;
    struct create *create = create_new();
    create->spec.template_ = &create->template;
    CLEANUP_FREE char *longest = repeated('i', VALIDATE_TEMPLATE_STRING_MAX);
    CLEANUP_FREE char *too_long = repeated('i', VALIDATE_TEMPLATE_STRING_MAX + 1);
    create->template.image = longest;
    expect_valid(create);
    create->template.image = too_long;
    expect_field(create, "spec.template.image");
    create->template.image = text_of("dir:/srv/root");

    Google__Protobuf__Value path = GOOGLE__PROTOBUF__VALUE__INIT;
    path.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE;
    path.string_value = text_of("/etc/shadow");
    Google__Protobuf__Struct__FieldsEntry field = GOOGLE__PROTOBUF__STRUCT__FIELDS_ENTRY__INIT;
    Google__Protobuf__Struct__FieldsEntry *fields[] = {&field};
    field.key = text_of("rootfs_tar_path");
    field.value = &path;
    Google__Protobuf__Struct driver = GOOGLE__PROTOBUF__STRUCT__INIT;
    driver.n_fields = 1;
    driver.fields = fields;
    Google__Protobuf__Value driver_value = GOOGLE__PROTOBUF__VALUE__INIT;
    driver_value.kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE;
    driver_value.struct_value = &driver;
    Google__Protobuf__Struct__FieldsEntry outer_field =
        GOOGLE__PROTOBUF__STRUCT__FIELDS_ENTRY__INIT;
    Google__Protobuf__Struct__FieldsEntry *outer_fields[] = {&outer_field};
    outer_field.key = text_of("local");
    outer_field.value = &driver_value;
    Google__Protobuf__Struct config = GOOGLE__PROTOBUF__STRUCT__INIT;
    config.n_fields = 1;
    config.fields = outer_fields;
    create->template.driver_config = &config;
    expect_field(create, "spec.template.driver_config.local.rootfs_tar_path");
    CLEANUP_FREE char *big = repeated('x', VALIDATE_STRUCT_MAX);
    field.key = text_of("other");
    expect_valid(create);
    path.string_value = big;
    expect_field(create, "spec.template.driver_config");
    create->template.driver_config = NULL;

    Openshell__V1__ResourceRequirements resources = OPENSHELL__V1__RESOURCE_REQUIREMENTS__INIT;
    Openshell__V1__GpuResourceRequirements gpu = OPENSHELL__V1__GPU_RESOURCE_REQUIREMENTS__INIT;
    create->spec.resource_requirements = &resources;
    resources.gpu = &gpu;
    expect_valid(create);
    gpu.count_presence_case = OPENSHELL__V1__GPU_RESOURCE_REQUIREMENTS__COUNT_PRESENCE_COUNT;
    expect_field(create, "spec.resource_requirements.gpu.count");
    gpu.count = 1;
    expect_valid(create);
    create_free(create);
}

static void test_a_workload_template_says_the_rest(void **state)
{
    (void)state;
    struct create *create = create_new();
    create->request.workload_template = text_of("template");
    expect_valid(create);
    create->request.spec = NULL;
    expect_valid(create);
    create->request.spec = &create->spec;
    create->spec.template_ = &create->template;
    create->spec.log_level = text_of("info");
    set_environment(create, 1, 1);
    expect_field(create, "spec.template");
    assert_true(fixture_has_violation(&create->error, "spec.log_level"));
    assert_true(fixture_has_violation(&create->error, "spec.environment"));
    create_free(create);
}

static void test_providers_and_exposures(void **state)
{
    (void)state;
    struct create *create = create_new();
    char *providers[VALIDATE_PROVIDERS_MAX + 1];
    for (size_t i = 0; i <= VALIDATE_PROVIDERS_MAX; i++)
        providers[i] = text_of("p");
    create->spec.providers = providers;
    create->spec.n_providers = VALIDATE_PROVIDERS_MAX;
    expect_valid(create);
    create->spec.n_providers++;
    expect_field(create, "spec.providers");
    create->spec.n_providers = 1;
    providers[0] = text_of("");
    expect_field(create, "spec.providers[0]");
    create->spec.n_providers = 0;

    Openshell__V1__SandboxServiceExposure one = OPENSHELL__V1__SANDBOX_SERVICE_EXPOSURE__INIT;
    Openshell__V1__SandboxServiceExposure two = OPENSHELL__V1__SANDBOX_SERVICE_EXPOSURE__INIT;
    Openshell__V1__SandboxServiceExposure *exposures[] = {&one, &two};
    create->request.service_exposures = exposures;
    create->request.n_service_exposures = 2;
    one.target_port = 80;
    two.target_port = 65535;
    two.service = text_of("web");
    expect_valid(create);
    two.service = text_of("");
    expect_field(create, "service_exposures[1].service");
    two.service = text_of("twenty-letters-name-");
    expect_field(create, "service_exposures[1].service");
    two.service = text_of("web");
    two.target_port = 65536;
    expect_field(create, "service_exposures[1].target_port");
    two.target_port = 0;
    expect_field(create, "service_exposures[1].target_port");
    create_free(create);
}

static void test_the_policy_is_looked_at(void **state)
{
    (void)state;
    struct create *create = create_new();
    Openshell__Sandbox__V1__SandboxPolicy policy = OPENSHELL__SANDBOX__V1__SANDBOX_POLICY__INIT;
    create->spec.policy = &policy;
    policy.version = 1;
    expect_valid(create);
    Openshell__Sandbox__V1__ProcessPolicy process = OPENSHELL__SANDBOX__V1__PROCESS_POLICY__INIT;
    policy.process = &process;
    process.run_as_user = text_of("root");
    expect_field(create, "spec.policy.process.run_as_user");
    create_free(create);
}

/* ---- exec ---- */

struct exec {
    Openshell__V1__ExecSandboxRequest request;
    char *command[VALIDATE_EXEC_COMMAND_MAX + 1];
    struct error error;
};

static struct exec *exec_new(void)
{
    struct exec *exec = memory_new_of(struct exec);
    openshell__v1__exec_sandbox_request__init(&exec->request);
    for (size_t i = 0; i <= VALIDATE_EXEC_COMMAND_MAX; i++)
        exec->command[i] = text_of("word");
    exec->request.sandbox = text_of("job");
    exec->request.command = exec->command;
    exec->request.n_command = 1;
    return exec;
}

static void expect_exec(struct exec *exec, const char *field)
{
    error_clear(&exec->error);
    bool valid = validate_exec_sandbox(&exec->request, "start.", &exec->error);
    if (field == NULL ? !valid : valid || !fixture_has_violation(&exec->error, field))
        fail_msg("'%s': %s", field != NULL ? field : "valid", exec->error.message);
}

static void test_exec_command_limits(void **state)
{
    (void)state;
    struct exec *exec = exec_new();
    expect_exec(exec, NULL);
    exec->request.n_command = VALIDATE_EXEC_COMMAND_MAX;
    expect_exec(exec, NULL);
    exec->request.n_command++;
    expect_exec(exec, "start.command");
    exec->request.n_command = 0;
    expect_exec(exec, "start.command");
    exec->request.n_command = 1;
    exec->command[0] = text_of("");
    expect_exec(exec, "start.command[0]");
    CLEANUP_FREE char *longest = repeated('a', VALIDATE_ARGUMENT_MAX);
    CLEANUP_FREE char *too_long = repeated('a', VALIDATE_ARGUMENT_MAX + 1);
    exec->command[0] = longest;
    expect_exec(exec, NULL);
    exec->command[0] = too_long;
    expect_exec(exec, "start.command[0]");
    for (size_t i = 0; i < 8; i++)
        exec->command[i] = longest;
    exec->request.n_command = 8;
    expect_exec(exec, "start.command");
    error_clear(&exec->error);
    free(exec);
}

static void test_exec_environment(void **state)
{
    (void)state;
    struct exec *exec = exec_new();
    Openshell__V1__ExecSandboxRequest__EnvironmentEntry entry =
        OPENSHELL__V1__EXEC_SANDBOX_REQUEST__ENVIRONMENT_ENTRY__INIT;
    Openshell__V1__ExecSandboxRequest__EnvironmentEntry *entries[] = {&entry};
    exec->request.environment = entries;
    exec->request.n_environment = 1;
    entry.key = text_of("OPENSHELL_PYFUNC_B64"); /* what the published SDK sends */
    CLEANUP_FREE char *longest = repeated('v', VALIDATE_EXEC_VALUE_MAX);
    CLEANUP_FREE char *too_long = repeated('v', VALIDATE_EXEC_VALUE_MAX + 1);
    entry.value = longest;
    expect_exec(exec, NULL);
    entry.value = too_long;
    expect_exec(exec, "start.environment[OPENSHELL_PYFUNC_B64]");
    entry.value = text_of("x\ny");
    expect_exec(exec, NULL);
    entry.key = text_of("OPENSHELL_OTHER");
    expect_exec(exec, "start.environment[OPENSHELL_OTHER]");
    error_clear(&exec->error);
    free(exec);
}

static void test_exec_other_fields(void **state)
{
    (void)state;
    struct exec *exec = exec_new();
    exec->request.sandbox = text_of("");
    expect_exec(exec, "start.sandbox");
    exec->request.sandbox = text_of("job");
    CLEANUP_FREE char *longest = repeated('/', VALIDATE_WORKDIR_MAX);
    CLEANUP_FREE char *too_long = repeated('/', VALIDATE_WORKDIR_MAX + 1);
    exec->request.workdir = longest;
    expect_exec(exec, NULL);
    exec->request.workdir = too_long;
    expect_exec(exec, "start.workdir");
    exec->request.workdir = text_of("/a\nb");
    expect_exec(exec, "start.workdir");
    exec->request.workdir = text_of("");
    Google__Protobuf__Duration timeout = GOOGLE__PROTOBUF__DURATION__INIT;
    exec->request.execution_timeout = &timeout;
    expect_exec(exec, "start.execution_timeout"); /* 0 is not "none" */
    timeout.nanos = 1;
    expect_exec(exec, NULL);
    timeout.seconds = -1;
    expect_exec(exec, "start.execution_timeout");
    timeout.seconds = INT64_MAX;
    expect_exec(exec, "start.execution_timeout");
    timeout.seconds = 5;
    exec->request.cols = 65535;
    expect_exec(exec, NULL);
    exec->request.rows = 65536;
    expect_exec(exec, "start.rows");
    exec->request.rows = 0;
    exec->request.helper = 3;
    expect_exec(exec, "start.helper");
    exec->request.helper = 2;
    expect_exec(exec, NULL);
    exec->request.request_id = text_of("x");
    expect_exec(exec, "request_id");
    error_clear(&exec->error);
    free(exec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_request_ids),
        cmocka_unit_test(test_workspace_scopes),
        cmocka_unit_test(test_the_smallest_create),
        cmocka_unit_test(test_create_lists_every_bad_field),
        cmocka_unit_test(test_violations_are_bounded),
        cmocka_unit_test(test_environment_limits),
        cmocka_unit_test(test_command_limits),
        cmocka_unit_test(test_labels_and_annotations),
        cmocka_unit_test(test_template_and_resources),
        cmocka_unit_test(test_a_workload_template_says_the_rest),
        cmocka_unit_test(test_providers_and_exposures),
        cmocka_unit_test(test_the_policy_is_looked_at),
        cmocka_unit_test(test_exec_command_limits),
        cmocka_unit_test(test_exec_environment),
        cmocka_unit_test(test_exec_other_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
