#include "gateway_fixture.h"

#include "base/reactor.h"
#include "gateway/admission.h"
#include "gateway/conditions.h"
#include "gateway/labels.h"
#include "gateway/lifecycle.h"
#include "gateway/names.h"
#include "gateway/records.h"
#include "gateway/validate.h"

#define INSTANCE "aaaaaaaa-0000-4000-8000-000000000000"

struct fixture {
    char *directory;
    char *path;
    struct reactor *reactor;
    struct store *store;
    struct arena *arena;
};

static int set_up(void **state)
{
    struct fixture *fixture = memory_new_of(struct fixture);
    struct error error = {0};
    fixture->directory = fixture_directory();
    fixture->path = memory_printf("%s/openshell.db", fixture->directory);
    fixture->arena = arena_new(0);
    fixture->reactor = reactor_new(&error);
    fixture->store = store_open(fixture->path, fixture->reactor, &error);
    if (fixture->store == NULL)
        fail_msg("%s", error.message);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    reactor_free(fixture->reactor);
    arena_free(fixture->arena);
    free(fixture->path);
    fixture_remove(fixture->directory);
    free(fixture);
    return 0;
}

static void within(struct fixture *fixture,
                   bool (*work)(struct store_transaction *, void *, struct error *))
{
    struct error error = {0};
    if (!store_run_wait(fixture->store, work, fixture, &error))
        fail_msg("%s", error.message);
}

static bool save_and_load(struct store_transaction *transaction, void *argument,
                          struct error *error)
{
    struct arena *arena = ((struct fixture *)argument)->arena;
    Openshell__V1__Sandbox *sandbox = fixture_sandbox(arena, "id-1", "job"), *loaded;
    assert_true(record_insert_sandbox(transaction, arena, sandbox, error));
    assert_int_equal(sandbox->metadata->resource_version, 1);
    assert_non_null(sandbox->metadata->created_time);
    assert_true(record_load_sandbox(transaction, arena, "default", "job", &loaded, error));
    assert_string_equal(loaded->metadata->id, "id-1");
    assert_int_equal(loaded->metadata->resource_version, 1);
    record_set_annotation(loaded, arena, "note", "x");
    assert_true(record_save_sandbox(transaction, arena, loaded, error));
    assert_int_equal(loaded->metadata->resource_version, 2);
    assert_true(record_load_sandbox_by_id(transaction, arena, "id-1", &loaded, error));
    assert_int_equal(loaded->metadata->resource_version, 2);
    assert_string_equal(record_annotation(loaded, "note"), "x");
    /* The first copy is old now; a refused save leaves its version alone. */
    struct error outcome = {0};
    assert_false(record_save_sandbox(transaction, arena, sandbox, &outcome));
    assert_int_equal(outcome.code, ERROR_ABORTED);
    assert_int_equal(sandbox->metadata->resource_version, 1);
    assert_false(
        record_insert_sandbox(transaction, arena, fixture_sandbox(arena, "id-2", "job"), &outcome));
    assert_int_equal(outcome.code, ERROR_ALREADY_EXISTS);
    assert_string_equal(outcome.message, "sandbox 'job' exists already in workspace 'default'");
    assert_false(record_load_sandbox(transaction, arena, "default", "none\033", &loaded, &outcome));
    assert_int_equal(outcome.code, ERROR_NOT_FOUND);
    assert_string_equal(outcome.message,
                        "sandbox 'none\\x1b' does not exist in workspace 'default'");
    error_clear(&outcome);
    return true;
}

static void test_a_sandbox_is_stored_as_it_is(void **state)
{
    within(*state, save_and_load);
}

static bool generated(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct arena *arena = ((struct fixture *)argument)->arena;
    for (int i = 0; i < 50; i++) {
        char id[16];
        snprintf(id, sizeof(id), "id-%d", i);
        Openshell__V1__Sandbox *sandbox = fixture_sandbox(arena, id, ""), *loaded;
        assert_true(record_insert_sandbox(transaction, arena, sandbox, error));
        assert_true(validate_name("name", sandbox->metadata->name, NAMES_GENERATED_MAX, error));
        assert_true(record_load_sandbox(transaction, arena, "default", sandbox->metadata->name,
                                        &loaded, error));
        assert_string_equal(loaded->metadata->id, id);
        assert_string_equal(loaded->metadata->name, sandbox->metadata->name);
    }
    return true;
}

static void test_a_nameless_sandbox_gets_a_name(void **state)
{
    within(*state, generated);
}

/* Every name without digits is taken: the later attempts find one with them. */
static bool crowded(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct arena *arena = ((struct fixture *)argument)->arena;
    for (unsigned i = 0; i < names_count(); i++) {
        char name[NAMES_GENERATED_MAX + 1];
        names_at(i, name);
        struct store_record record = {
            .object_type = RECORD_SANDBOX, .id = name, .workspace = "default", .name = name};
        assert_true(store_insert(transaction, &record, error));
    }
    Openshell__V1__Sandbox *sandbox = fixture_sandbox(arena, "the-last", "");
    assert_true(record_insert_sandbox(transaction, arena, sandbox, error));
    assert_non_null(strpbrk(sandbox->metadata->name, "0123456789"));
    return error_set(error, ERROR_CANCELLED, "not kept");
}

static void test_a_crowded_workspace_has_a_name_left(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    assert_false(store_run_wait(fixture->store, crowded, fixture, &error));
    assert_int_equal(error.code, ERROR_CANCELLED);
    error_clear(&error);
}

/* ---- pages ---- */

static bool insert_ten(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct arena *arena = ((struct fixture *)argument)->arena;
    for (int i = 0; i < 10; i++) {
        char name[16];
        snprintf(name, sizeof(name), "job-%d", i);
        Openshell__V1__Sandbox *sandbox = fixture_sandbox(arena, name, name);
        Openshell__Datamodel__V1__ObjectMeta__LabelsEntry *label =
            arena_new_of(arena, Openshell__Datamodel__V1__ObjectMeta__LabelsEntry);
        openshell__datamodel__v1__object_meta__labels_entry__init(label);
        label->key = arena_strdup(arena, "parity");
        label->value = arena_strdup(arena, i % 2 == 0 ? "even" : "odd");
        sandbox->metadata->labels = arena_memdup(arena, &label, sizeof(void *));
        sandbox->metadata->n_labels = 1;
        assert_true(record_insert_sandbox(transaction, arena, sandbox, error));
    }
    return true;
}

/* Reads the whole list in pages of `size`, through tokens; the names with a blank after each. */
static void walk(struct store_transaction *transaction, struct arena *arena,
                 const struct pages_key *key, const char *selector, size_t size, char *names)
{
    struct error error = {0};
    Openshell__V1__ListSandboxesRequest request = OPENSHELL__V1__LIST_SANDBOXES_REQUEST__INIT;
    request.label_selector = arena_strdup(arena, selector);
    struct store_label *pairs;
    size_t pair_count;
    assert_true(labels_parse_selector(selector, arena, &pairs, &pair_count, &error));
    names[0] = '\0';
    for (int page = 0;; page++) {
        assert_true(page < 20);
        struct pages_position after, last;
        assert_true(pages_parse(key, &request.base, arena, &after, &error));
        Openshell__V1__Sandbox **sandboxes;
        size_t count;
        assert_true(record_list_sandboxes(transaction, arena, "default", &after, size, pairs,
                                          pair_count, &sandboxes, &count, &last, &error));
        for (size_t i = 0; i < count; i++) {
            strcat(names, sandboxes[i]->metadata->name);
            strcat(names, " ");
        }
        if (last.name == NULL)
            break;
        request.page_token = pages_make(key, &request.base, &last, arena);
    }
}

static bool list_pages(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct arena *arena = ((struct fixture *)argument)->arena;
    struct pages_key key;
    char names[256];
    assert_true(record_load_page_key(transaction, arena, &key, error));
    static const char all[] = "job-0 job-1 job-2 job-3 job-4 job-5 job-6 job-7 job-8 job-9 ";
    for (size_t size = 1; size <= 11; size++) {
        walk(transaction, arena, &key, "", size, names);
        assert_string_equal(names, all);
        walk(transaction, arena, &key, "parity=odd", size, names);
        assert_string_equal(names, "job-1 job-3 job-5 job-7 job-9 ");
    }
    return true;
}

static void test_pages_make_a_whole(void **state)
{
    within(*state, insert_ten);
    within(*state, list_pages);
}

static struct pages_key first_key;

static bool load_key(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct arena *arena = ((struct fixture *)argument)->arena;
    struct pages_key key;
    assert_true(record_load_page_key(transaction, arena, &first_key, error));
    assert_true(record_load_page_key(transaction, arena, &key, error));
    assert_memory_equal(&key, &first_key, sizeof(key));
    return true;
}

static bool same_key(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct arena *arena = ((struct fixture *)argument)->arena;
    struct pages_key key;
    assert_true(record_load_page_key(transaction, arena, &key, error));
    assert_memory_equal(&key, &first_key, sizeof(key));
    return true;
}

static void test_the_key_of_pages_survives_a_restart(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    within(fixture, load_key);
    store_close(fixture->store);
    fixture->store = store_open(fixture->path, fixture->reactor, &error);
    within(fixture, same_key);
}

/* ---- the rest ---- */

static bool workspaces(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct arena *arena = ((struct fixture *)argument)->arena;
    Openshell__Datamodel__V1__Workspace *workspace;
    struct error outcome = {0};
    assert_false(record_require_active_workspace(transaction, arena, "default", &outcome));
    assert_int_equal(outcome.code, ERROR_NOT_FOUND);
    assert_true(record_ensure_default_workspace(transaction, arena, error));
    assert_true(record_ensure_default_workspace(transaction, arena, error));
    assert_true(record_load_workspace(transaction, arena, "default", &workspace, error));
    assert_string_equal(workspace->metadata->name, "default");
    assert_true(validate_is_uuid(workspace->metadata->id, true));
    assert_true(record_require_active_workspace(transaction, arena, "default", error));
    uint64_t count;
    assert_true(store_count(transaction, RECORD_WORKSPACE, NULL, &count, error));
    assert_int_equal(count, 1);
    error_clear(&outcome);
    return true;
}

static void test_the_default_workspace(void **state)
{
    within(*state, workspaces);
}

static bool cascade(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct arena *arena = ((struct fixture *)argument)->arena;
    static const char *const types[] = {"ssh_session", "service_endpoint", "sandbox_settings",
                                        "sandbox_policy", "draft_policy_chunk"};
    uint64_t count;
    for (int i = 1; i <= 2; i++) {
        const char *id = i == 1 ? "id-1" : "id-2";
        assert_true(
            record_insert_sandbox(transaction, arena, fixture_sandbox(arena, id, id), error));
        for (size_t j = 0; j < 5; j++) {
            struct store_record record = {.object_type = types[j],
                                          .id = arena_printf(arena, "%s-%s", types[j], id),
                                          .workspace = "default",
                                          .scope = id};
            assert_true(store_insert(transaction, &record, error));
        }
    }
    assert_true(record_delete_sandbox(transaction, "id-1", error));
    for (size_t j = 0; j < 5; j++) {
        assert_true(store_count(transaction, types[j], NULL, &count, error));
        assert_int_equal(count, 1);
    }
    assert_true(store_count(transaction, RECORD_SANDBOX, NULL, &count, error));
    assert_int_equal(count, 1);
    struct error outcome = {0};
    assert_false(record_delete_sandbox(transaction, "id-1", &outcome));
    assert_int_equal(outcome.code, ERROR_NOT_FOUND);
    error_clear(&outcome);
    return true;
}

static void test_what_hangs_on_a_sandbox_goes_with_it(void **state)
{
    within(*state, cascade);
}

static void test_public_views(void **state)
{
    struct arena *arena = ((struct fixture *)*state)->arena;
    Openshell__V1__Sandbox *sandbox = fixture_sandbox(arena, "id-1", "job");
    record_set_annotation(sandbox, arena, ANNOTATION_AUTH_EPOCH, "1");
    record_set_annotation(sandbox, arena, "mine", "kept");
    record_set_annotation(sandbox, arena, ANNOTATION_GENERATION, "g");
    record_set_annotation(sandbox, arena, ANNOTATION_GENERATION, "h");
    assert_int_equal(sandbox->metadata->n_annotations, 3);
    assert_string_equal(record_annotation(sandbox, ANNOTATION_GENERATION), "h");
    record_public_view(sandbox);
    assert_int_equal(sandbox->metadata->n_annotations, 1);
    assert_string_equal(record_annotation(sandbox, "mine"), "kept");
    record_set_annotation(sandbox, arena, "mine", NULL);
    assert_null(record_annotation(sandbox, "mine"));
}

static void test_timestamps(void **state)
{
    struct arena *arena = ((struct fixture *)*state)->arena;
    static const int64_t times[] = {0, 1, 999, 1000, 1800000000123, -1, -1000, -1001};
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        const Google__Protobuf__Timestamp *timestamp = record_timestamp(arena, times[i]);
        assert_true(timestamp->nanos >= 0 && timestamp->nanos < 1000000000);
        assert_int_equal(record_milliseconds(timestamp), times[i]);
    }
    assert_int_equal(record_milliseconds(NULL), 0);
}

/* ---- one launch, each event in a transaction of its own ---- */

struct step {
    struct fixture *fixture;
    enum lifecycle_event event;
    struct lifecycle_facts facts;
    Openshell__V1__ConfigurationAdmissionState report; /* 0: an event */
    Openshell__V1__SandboxPhase phase;                 /* afterwards */
    const char *reason;
};

static bool create_step(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct step *step = argument;
    struct arena *arena = step->fixture->arena;
    struct lifecycle_result result;
    Openshell__V1__Sandbox *sandbox = fixture_sandbox(arena, "id-1", "job");
    lifecycle_fresh_facts(arena, &step->facts);
    return lifecycle_apply(sandbox, arena, LIFECYCLE_CREATE, &step->facts, &result, error) &&
           record_insert_sandbox(transaction, arena, sandbox, error);
}

static bool apply_report(Openshell__V1__Sandbox *sandbox, struct step *step, bool *ret_changed,
                         struct error *error)
{
    Openshell__V1__ReportSandboxConfigurationRequest report =
        OPENSHELL__V1__REPORT_SANDBOX_CONFIGURATION_REQUEST__INIT;
    Openshell__V1__SandboxConfigurationAdmission admission =
        OPENSHELL__V1__SANDBOX_CONFIGURATION_ADMISSION__INIT;
    struct arena *arena = step->fixture->arena;
    struct admission_generation current = {.admitted = true, .policy_hash = ""};
    struct admission_result result;
    report.admission = &admission;
    report.sandbox_id = sandbox->metadata->id;
    report.expected_instance_id = sandbox->status->configuration_admission->instance_id;
    admission.instance_id = arena_strdup(arena, INSTANCE);
    admission.state = step->report;
    bool applied =
        admission_apply(sandbox, arena, "id-1", &report, &current, &step->facts, &result, error);
    *ret_changed = result.changed;
    return applied;
}

static bool run_step(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct step *step = argument;
    struct arena *arena = step->fixture->arena;
    Openshell__V1__Sandbox *sandbox;
    struct lifecycle_result result = {0};
    if (!record_load_sandbox_by_id(transaction, arena, "id-1", &sandbox, error))
        return false;
    bool applied = step->report != 0
                       ? apply_report(sandbox, step, &result.changed, error)
                       : lifecycle_apply(sandbox, arena, step->event, &step->facts, &result, error);
    if (!applied)
        return false;
    if (result.remove)
        return record_delete_sandbox(transaction, "id-1", error);
    if (sandbox->status->phase != step->phase ||
        strcmp(conditions_reason(sandbox->status, CONDITION_READY), step->reason) != 0)
        return error_set(error, ERROR_INTERNAL, "%s: %s where %s is right",
                         lifecycle_phase_name(sandbox->status->phase),
                         conditions_reason(sandbox->status, CONDITION_READY), step->reason);
    return !result.changed || record_save_sandbox(transaction, arena, sandbox, error);
}

static void run_steps(struct fixture *fixture, const struct step *steps, size_t count)
{
    struct error error = {0};
    for (size_t i = 0; i < count; i++) {
        struct step step = steps[i];
        step.fixture = fixture;
        lifecycle_fresh_facts(fixture->arena, &step.facts);
        step.facts.instance_id = INSTANCE;
        step.facts.exit_code = steps[i].facts.exit_code;
        step.facts.session_connected = steps[i].facts.session_connected;
        if (!store_run_wait(fixture->store, run_step, &step, &error))
            fail_msg("step %zu: %s", i, error.message);
    }
}

#define EVENT(name, after, why)                                                                    \
    {                                                                                              \
        .event = LIFECYCLE_##name, .phase = PHASE(after), .reason = why                            \
    }
#define REPORT(what, after, why)                                                                   \
    {                                                                                              \
        .report = ADMISSION_STATE(what), .phase = PHASE(after), .reason = why                      \
    }

static void test_a_life(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct step create = {.fixture = fixture};
    assert_true(store_run_wait(fixture->store, create_step, &create, &error));
    const struct step steps[] = {
        REPORT(PENDING, PROVISIONING, "ConfigurationPending"), /* faster than the driver's answer */
        EVENT(DRIVER_CREATED, PROVISIONING, "SupervisorNotConnected"),
        REPORT(ACCEPTED, PROVISIONING, "SupervisorNotConnected"),
        EVENT(SUPERVISOR_CONNECTED, READY, "DependenciesReady"),
        EVENT(SUPERVISOR_DISCONNECTED, PROVISIONING, "DependenciesNotReady"),
        EVENT(SUPERVISOR_CONNECTED, READY, "DependenciesReady"),
        EVENT(STOP_REQUESTED, STOPPING, "Stopping"),
        EVENT(DRIVER_STOPPED, STOPPED, "Stopped"),
        EVENT(START_REQUESTED, STARTING, "Starting"),
        EVENT(DRIVER_STARTED, STARTING, "Starting"),
        EVENT(SUPERVISOR_LOST, ERROR, "SupervisorLost"),
        EVENT(DELETE_REQUESTED, DELETING, "Deleting"),
        EVENT(DRIVER_DELETED, UNSPECIFIED, ""),
    };
    run_steps(fixture, steps, sizeof(steps) / sizeof(steps[0]));
    struct step gone = {.fixture = fixture, .event = LIFECYCLE_ADOPTED};
    assert_false(store_run_wait(fixture->store, run_step, &gone, &error));
    assert_int_equal(error.code, ERROR_NOT_FOUND);
    error_clear(&error);
}

/* A main process that ends at once: its result arrives before the session does. */
static void test_a_short_life(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    struct step create = {.fixture = fixture};
    assert_true(store_run_wait(fixture->store, create_step, &create, &error));
    const struct step steps[] = {
        EVENT(DRIVER_CREATED, PROVISIONING, "SupervisorNotConnected"),
        REPORT(PENDING, PROVISIONING, "ConfigurationPending"),
        REPORT(ACCEPTED, PROVISIONING, "SupervisorNotConnected"),
        EVENT(MAIN_EXITED, COMPLETED, "MainProcessCompleted"),
        EVENT(SUPERVISOR_CONNECTED, COMPLETED, "MainProcessCompleted"),
        {.event = LIFECYCLE_FINALIZED,
         .facts = {.session_connected = true},
         .phase = PHASE(COMPLETED),
         .reason = "MainProcessCompleted"},
        EVENT(STOP_REQUESTED, COMPLETED, "MainProcessCompleted"),
    };
    run_steps(fixture, steps, sizeof(steps) / sizeof(steps[0]));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_sandbox_is_stored_as_it_is),
        TEST(test_a_nameless_sandbox_gets_a_name),
        TEST(test_a_crowded_workspace_has_a_name_left),
        TEST(test_pages_make_a_whole),
        TEST(test_the_key_of_pages_survives_a_restart),
        TEST(test_the_default_workspace),
        TEST(test_what_hangs_on_a_sandbox_goes_with_it),
        TEST(test_public_views),
        TEST(test_timestamps),
        TEST(test_a_life),
        TEST(test_a_short_life),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
