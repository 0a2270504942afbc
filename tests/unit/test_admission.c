/* The check list of behaviour reference 3.2, row by row and in its order, and what a report that
 * passes it changes (3.1, 1.7, decisions A1 and A2). */
#include "gateway_fixture.h"

#include "gateway/admission.h"
#include "gateway/conditions.h"
#include "gateway/records.h"

#define NOW INT64_C(1800000000000)
#define SANDBOX "99999999-0000-4000-8000-000000000000"
#define FENCE "ffffffff-0000-4000-8000-000000000000"
#define INSTANCE "aaaaaaaa-0000-4000-8000-000000000000"
#define OTHER "bbbbbbbb-0000-4000-8000-000000000000"
#define HASH "00112233"

struct subject {
    struct arena *arena;
    Openshell__V1__Sandbox *sandbox;
    Openshell__V1__ReportSandboxConfigurationRequest report;
    Openshell__V1__SandboxConfigurationAdmission reported;
    struct admission_generation current;
    struct lifecycle_facts facts;
    const char *caller;
    struct admission_result result;
    struct error error;
};

static Openshell__V1__SandboxConfigurationAdmission *stored(const struct subject *subject)
{
    return subject->sandbox->status->configuration_admission;
}

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void set_state(struct subject *subject, Openshell__V1__ConfigurationAdmissionState state)
{
    subject->reported.state = state;
    subject->report.refused_before_start = false;
}

/* A new sandbox whose supervisor has not reported yet. The report: PENDING, as it should be. */
static struct subject *subject_new(void)
{
    struct subject *subject = memory_new_of(struct subject);
    subject->arena = arena_new(0);
    subject->sandbox = fixture_sandbox(subject->arena, SANDBOX, "job");
    subject->facts = (struct lifecycle_facts){
        .now = NOW,
        .new_attempt_id = "attempt",
        .new_generation = "generation",
        .new_fence_instance_id = FENCE,
        .new_operation_id = "operation",
    };
    struct lifecycle_result result;
    assert_true(lifecycle_apply(subject->sandbox, subject->arena, LIFECYCLE_CREATE, &subject->facts,
                                &result, &subject->error));
    openshell__v1__report_sandbox_configuration_request__init(&subject->report);
    openshell__v1__sandbox_configuration_admission__init(&subject->reported);
    subject->report.admission = &subject->reported;
    subject->report.sandbox_id = text_of(SANDBOX);
    subject->report.expected_instance_id = text_of(FENCE);
    subject->reported.instance_id = text_of(INSTANCE);
    subject->reported.state = ADMISSION_STATE(PENDING);
    subject->reported.policy_version = 1;
    subject->reported.policy_hash = text_of(HASH);
    subject->reported.config_revision = 77;
    subject->reported.provider_env_revision = 5;
    subject->current = (struct admission_generation){true, 1, HASH, 77, 5};
    subject->caller = SANDBOX;
    return subject;
}

static void subject_free(struct subject *subject)
{
    error_clear(&subject->error);
    arena_free(subject->arena);
    free(subject);
}

static bool report(struct subject *subject)
{
    error_clear(&subject->error);
    return admission_apply(subject->sandbox, subject->arena, subject->caller, &subject->report,
                           &subject->current, &subject->facts, &subject->result, &subject->error);
}

static void expect_success(struct subject *subject, bool changed)
{
    if (!report(subject))
        fail_msg("%s", subject->error.message);
    assert_int_equal(subject->result.changed, changed);
    assert_false(subject->result.expired);
}

static void *pack(const Openshell__V1__Sandbox *sandbox, size_t *ret_size)
{
    *ret_size = openshell__v1__sandbox__get_packed_size(sandbox);
    uint8_t *bytes = memory_allocate(*ret_size + 1);
    openshell__v1__sandbox__pack(sandbox, bytes);
    return bytes;
}

/* Refused, and the record is as it was. */
static void expect_refusal(struct subject *subject, enum error_code code)
{
    size_t before_size, after_size;
    CLEANUP_FREE void *before = pack(subject->sandbox, &before_size);
    assert_false(report(subject));
    if (subject->error.code != code)
        fail_msg("%s: %s where %s is right", error_code_name(subject->error.code),
                 subject->error.message, error_code_name(code));
    assert_false(subject->result.changed);
    assert_false(subject->result.expired);
    CLEANUP_FREE void *after = pack(subject->sandbox, &after_size);
    assert_int_equal(before_size, after_size);
    assert_memory_equal(before, after, before_size);
}

/* The supervisor has registered. */
static struct subject *subject_registered(void)
{
    struct subject *subject = subject_new();
    expect_success(subject, true);
    set_state(subject, ADMISSION_STATE(ACCEPTED));
    return subject;
}

/* ... and accepted its configuration. */
static struct subject *subject_accepted(void)
{
    struct subject *subject = subject_registered();
    expect_success(subject, true);
    return subject;
}

/* ... whose boundary then refused it. */
static struct subject *subject_refused(void)
{
    struct subject *subject = subject_accepted();
    set_state(subject, ADMISSION_STATE(REJECTED));
    subject->report.refused_before_start = true;
    expect_success(subject, true);
    return subject;
}

/* ---- the rows ---- */

static void test_row_1_only_its_own_sandbox(void **state)
{
    (void)state;
    struct subject *subject = subject_new();
    subject->caller = OTHER;
    expect_refusal(subject, ERROR_PERMISSION_DENIED);
    subject->report.admission = NULL; /* row 2 would be INVALID_ARGUMENT */
    expect_refusal(subject, ERROR_PERMISSION_DENIED);
    subject_free(subject);
}

static void test_row_2_a_whole_report(void **state)
{
    (void)state;
    struct subject *subject = subject_new();
    subject->report.admission = NULL;
    expect_refusal(subject, ERROR_INVALID_ARGUMENT);
    assert_true(fixture_has_violation(&subject->error, "admission"));
    subject->report.admission = &subject->reported;
    subject->reported.instance_id = text_of("not-a-uuid");
    subject->reported.state = ADMISSION_STATE(UNSPECIFIED);
    expect_refusal(subject, ERROR_INVALID_ARGUMENT);
    assert_true(fixture_has_violation(&subject->error, "admission.instance_id"));
    assert_true(fixture_has_violation(&subject->error, "admission.state"));
    subject->reported.instance_id = text_of(INSTANCE);
    subject->reported.state = 4;
    expect_refusal(subject, ERROR_INVALID_ARGUMENT);
    subject_free(subject);
}

static void test_row_3_the_sandbox_exists(void **state)
{
    (void)state;
    struct subject *subject = subject_new();
    Openshell__V1__Sandbox *sandbox = subject->sandbox;
    subject->sandbox = NULL;
    assert_false(report(subject));
    assert_int_equal(subject->error.code, ERROR_NOT_FOUND);
    subject->reported.state = ADMISSION_STATE(UNSPECIFIED); /* row 2 comes first */
    assert_false(report(subject));
    assert_int_equal(subject->error.code, ERROR_INVALID_ARGUMENT);
    subject->sandbox = sandbox;
    subject_free(subject);
}

static void test_row_4_not_timed_out(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    subject->sandbox->status->provisioning->timeout_time = record_timestamp(subject->arena, NOW);
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    assert_non_null(strstr(subject->error.message, "timed out"));
    subject->current.config_revision++; /* row 7 would be ABORTED */
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    subject_free(subject);
}

static void test_row_5_the_fence_of_a_registration(void **state)
{
    (void)state;
    struct subject *subject = subject_new();
    subject->report.expected_instance_id = text_of(OTHER);
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    assert_non_null(strstr(subject->error.message, "registration fence changed"));
    subject->report.expected_instance_id = text_of("");
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    subject->report.expected_instance_id = text_of(FENCE);
    expect_success(subject, true);
    /* Registered: the same fence does not serve a second one, the first one's id does. */
    subject->reported.instance_id = text_of(OTHER);
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    subject->report.expected_instance_id = text_of(INSTANCE);
    expect_success(subject, true);
    assert_string_equal(stored(subject)->instance_id, OTHER);
    subject_free(subject);
}

static void test_row_6_the_registered_instance(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    subject->reported.instance_id = text_of(OTHER);
    subject->report.expected_instance_id = text_of(INSTANCE);
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    set_state(subject, ADMISSION_STATE(REJECTED));
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    subject->current.config_revision++; /* rows 7 and 8 would be ABORTED */
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    subject_free(subject);
    /* Nor may one accept that never registered. */
    subject = subject_new();
    set_state(subject, ADMISSION_STATE(ACCEPTED));
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    subject_free(subject);
}

static void expect_each_number_counts(struct subject *subject)
{
    const struct admission_generation right = subject->current;
    subject->current.policy_version++;
    expect_refusal(subject, ERROR_ABORTED);
    subject->current = right;
    subject->current.policy_hash = "another";
    expect_refusal(subject, ERROR_ABORTED);
    subject->current = right;
    subject->current.config_revision++;
    expect_refusal(subject, ERROR_ABORTED);
    subject->current = right;
    subject->current.provider_env_revision++;
    expect_refusal(subject, ERROR_ABORTED);
    /* Row 9 comes later. */
    subject->facts.now = NOW + 2 * LIFECYCLE_REPAIR_WINDOW;
    expect_refusal(subject, ERROR_ABORTED);
    subject->facts.now = NOW;
    subject->current = right;
}

static void test_row_7_accepted_for_exactly_this_generation(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    expect_each_number_counts(subject);
    subject->current.admitted = false;
    expect_refusal(subject, ERROR_ABORTED);
    subject->current.admitted = true;
    expect_success(subject, true);
    subject_free(subject);
}

static void test_row_8_rejected_for_exactly_this_generation(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    set_state(subject, ADMISSION_STATE(REJECTED));
    expect_each_number_counts(subject);
    subject->current.admitted = false; /* what the gateway thinks does not matter here */
    expect_success(subject, true);
    subject_free(subject);
}

static void expect_expiry(struct subject *subject, const char *reason)
{
    assert_false(report(subject));
    assert_int_equal(subject->error.code, ERROR_FAILED_PRECONDITION);
    assert_true(subject->result.expired);
    assert_true(subject->result.changed);
    assert_true((subject->result.lifecycle.actions & LIFECYCLE_STOP_COMPUTE) != 0);
    assert_int_equal(subject->sandbox->status->phase, PHASE(ERROR));
    assert_true(lifecycle_timed_out(subject->sandbox));
    assert_string_equal(conditions_reason(subject->sandbox->status, CONDITION_READY), reason);
}

static void test_row_9_before_the_deadline(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    subject->facts.now = NOW + LIFECYCLE_REPAIR_WINDOW - 1;
    expect_success(subject, true);
    subject_free(subject);
    subject = subject_registered();
    subject->facts.now = NOW + LIFECYCLE_REPAIR_WINDOW;
    expect_expiry(subject, "ProvisioningTimedOut");
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(PENDING));
    expect_refusal(subject, ERROR_FAILED_PRECONDITION); /* row 4 from now on */
    subject_free(subject);
    subject = subject_new();
    subject->facts.now = NOW + LIFECYCLE_PREPARATION_TIMEOUT;
    expect_expiry(subject, "ImagePreparationTimedOut");
    subject_free(subject);
}

static void test_row_10_the_flag_goes_with_rejected(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    subject->report.refused_before_start = true;
    expect_refusal(subject, ERROR_INVALID_ARGUMENT);
    assert_true(fixture_has_violation(&subject->error, "refused_before_start"));
    subject->reported.state = ADMISSION_STATE(PENDING);
    expect_refusal(subject, ERROR_INVALID_ARGUMENT);
    /* Row 9 comes first. */
    subject->facts.now = NOW + LIFECYCLE_REPAIR_WINDOW;
    expect_expiry(subject, "ProvisioningTimedOut");
    subject_free(subject);
}

/* ---- what a report changes ---- */

static void test_a_registration(void **state)
{
    (void)state;
    struct subject *subject = subject_new();
    subject->facts.now = NOW + 1000;
    expect_success(subject, true);
    const Openshell__V1__SandboxProvisioning *provisioning = subject->sandbox->status->provisioning;
    assert_string_equal(stored(subject)->instance_id, INSTANCE);
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(PENDING));
    assert_int_equal(record_milliseconds(provisioning->admission_start_time), NOW + 1000);
    assert_int_equal(record_milliseconds(provisioning->deadline),
                     NOW + 1000 + LIFECYCLE_REPAIR_WINDOW);
    /* The same again grants nothing. */
    subject->facts.now = NOW + 2000;
    expect_success(subject, false);
    assert_int_equal(record_milliseconds(provisioning->deadline),
                     NOW + 1000 + LIFECYCLE_REPAIR_WINDOW);
    subject_free(subject);
}

static void test_pending_keeps_what_is_stored(void **state)
{
    (void)state;
    struct subject *subject = subject_accepted();
    set_state(subject, ADMISSION_STATE(PENDING));
    expect_success(subject, false);
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(ACCEPTED));
    subject_free(subject);
}

static void test_acceptance(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    assert_true(admission_static_sections_open(subject->sandbox));
    expect_success(subject, true);
    const Openshell__V1__SandboxStatus *status = subject->sandbox->status;
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(ACCEPTED));
    assert_int_equal(stored(subject)->policy_version, 1);
    assert_string_equal(stored(subject)->policy_hash, HASH);
    assert_int_equal(stored(subject)->config_revision, 77);
    assert_int_equal(stored(subject)->provider_env_revision, 5);
    assert_true(status->configuration_activated);
    assert_false(admission_static_sections_open(subject->sandbox));
    assert_true(lifecycle_admitted(subject->sandbox));
    assert_non_null(status->provisioning->deadline); /* acceptance alone does not disarm */
    assert_int_equal(status->phase, PHASE(PROVISIONING));
    assert_string_equal(conditions_reason(status, CONDITION_READY), "SupervisorNotConnected");
    assert_string_equal(conditions_reason(status, CONDITION_CONFIGURATION_READY),
                        "ConfigurationAccepted");
    expect_success(subject, false); /* again: no change */
    subject_free(subject);
}

static void test_acceptance_with_a_session_is_ready(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    struct lifecycle_result result;
    subject->facts.instance_id = INSTANCE;
    assert_true(lifecycle_apply(subject->sandbox, subject->arena, LIFECYCLE_SUPERVISOR_CONNECTED,
                                &subject->facts, &result, &subject->error));
    assert_int_equal(result.phase, PHASE(PROVISIONING));
    subject->facts.session_connected = true;
    expect_success(subject, true);
    assert_int_equal(subject->result.lifecycle.phase, PHASE(READY));
    subject_free(subject);
}

static void test_rejection_and_repair(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    const Openshell__V1__SandboxProvisioning *provisioning = subject->sandbox->status->provisioning;
    set_state(subject, ADMISSION_STATE(REJECTED));
    subject->reported.error = text_of("policy: \033[31mwords of the runtime");
    subject->facts.now = NOW + 5000;
    expect_success(subject, true);
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(REJECTED));
    assert_string_equal(stored(subject)->error, admission_diagnostic("policy"));
    assert_null(strstr(stored(subject)->error, "runtime"));
    assert_string_equal(conditions_reason(subject->sandbox->status, CONDITION_READY),
                        "ConfigurationInvalid");
    assert_string_equal(
        conditions_get(subject->sandbox->status, CONDITION_CONFIGURATION_READY)->message,
        admission_diagnostic("policy"));
    assert_int_equal(record_milliseconds(provisioning->first_rejection_time), NOW + 5000);
    assert_int_equal(record_milliseconds(provisioning->deadline),
                     NOW + 5000 + LIFECYCLE_REPAIR_WINDOW);
    assert_true(admission_static_sections_open(subject->sandbox));
    /* A second rejection grants no more time. */
    subject->facts.now = NOW + 9000;
    expect_success(subject, true);
    assert_int_equal(record_milliseconds(provisioning->deadline),
                     NOW + 5000 + LIFECYCLE_REPAIR_WINDOW);
    /* Repaired: the same supervisor accepts. */
    set_state(subject, ADMISSION_STATE(ACCEPTED));
    subject->current.config_revision = subject->reported.config_revision = 78;
    expect_success(subject, true);
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(ACCEPTED));
    assert_string_equal(stored(subject)->error, "");
    subject_free(subject);
}

/* What runs stays accepted when a newer wish is bad (3.1). */
static void test_a_bad_wish_beside_a_running_configuration(void **state)
{
    (void)state;
    struct subject *subject = subject_accepted();
    const Openshell__V1__SandboxStatus *status = subject->sandbox->status;
    set_state(subject, ADMISSION_STATE(REJECTED));
    subject->current.config_revision = subject->reported.config_revision = 78;
    expect_success(subject, true);
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(ACCEPTED));
    assert_int_equal(stored(subject)->config_revision, 77);
    assert_string_equal(conditions_get(status, CONDITION_CONFIGURATION_READY)->status, "True");
    assert_string_equal(conditions_reason(status, CONDITION_DESIRED_CONFIGURATION_READY),
                        "ConfigurationInvalid");
    /* The flag for a generation that was not the accepted one: an ordinary rejection. */
    subject->report.refused_before_start = true;
    expect_success(subject, true);
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(ACCEPTED));
    assert_false(lifecycle_refused(subject->sandbox));
    set_state(subject, ADMISSION_STATE(ACCEPTED));
    expect_success(subject, true);
    assert_int_equal(stored(subject)->config_revision, 78);
    assert_null(conditions_get(status, CONDITION_DESIRED_CONFIGURATION_READY));
    subject_free(subject);
}

/* ---- refused before the start (A2) ---- */

static void test_the_flag_on_pending_is_an_ordinary_rejection(void **state)
{
    (void)state;
    struct subject *subject = subject_registered();
    set_state(subject, ADMISSION_STATE(REJECTED));
    subject->report.refused_before_start = true;
    expect_success(subject, true);
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(REJECTED));
    assert_false(lifecycle_refused(subject->sandbox));
    set_state(subject, ADMISSION_STATE(ACCEPTED)); /* so it can be repaired */
    expect_success(subject, true);
    subject_free(subject);
}

static void test_a_refusal_before_the_start(void **state)
{
    (void)state;
    struct subject *subject = subject_refused();
    const Openshell__V1__SandboxStatus *status = subject->sandbox->status;
    assert_int_equal(stored(subject)->state, ADMISSION_STATE(REJECTED));
    assert_true(lifecycle_refused(subject->sandbox));
    assert_true(status->configuration_activated);
    assert_int_equal(status->phase, PHASE(PROVISIONING));
    assert_string_equal(conditions_reason(status, CONDITION_CONFIGURATION_READY),
                        "ConfigurationInvalid");
    assert_string_equal(conditions_reason(status, CONDITION_READY), "ConfigurationInvalid");
    subject_free(subject);
}

static void test_a_refusal_is_final(void **state)
{
    (void)state;
    struct subject *subject = subject_refused();
    subject->facts.now = NOW + 1000;
    expect_success(subject, false); /* the same report again */
    set_state(subject, ADMISSION_STATE(ACCEPTED));
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    set_state(subject, ADMISSION_STATE(REJECTED));
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    set_state(subject, ADMISSION_STATE(PENDING));
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    subject->reported.instance_id = text_of(OTHER);
    subject->report.expected_instance_id = text_of(INSTANCE);
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    /* The deadline ends it. */
    struct lifecycle_result result;
    subject->facts.now = NOW + 2 * LIFECYCLE_REPAIR_WINDOW;
    assert_true(lifecycle_apply(subject->sandbox, subject->arena, LIFECYCLE_REPAIR_DEADLINE,
                                &subject->facts, &result, &subject->error));
    assert_int_equal(result.phase, PHASE(ERROR));
    subject_free(subject);
}

static void test_public_words(void **state)
{
    (void)state;
    static const char *const reported[] = {"middleware x", "provider y", "credential z",
                                           "policy: bad",  "anything",   ""};
    for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++) {
        const char *text = admission_diagnostic(reported[i]);
        assert_true(strlen(text) > 0 && strlen(text) <= ADMISSION_ERROR_MAX);
        for (const char *at = text; *at != '\0'; at++)
            assert_true(*at >= ' ' && *at <= '~');
    }
    assert_string_equal(admission_diagnostic("provider"), admission_diagnostic("credential"));
    assert_string_not_equal(admission_diagnostic("provider"), admission_diagnostic("policy"));
    assert_string_equal(admission_diagnostic("anything"),
                        "The configuration could not be activated");
}

static void test_static_sections_close_for_legacy_rows(void **state)
{
    (void)state;
    struct subject *subject = subject_new();
    subject->sandbox->status->configuration_activated_presence_case =
        OPENSHELL__V1__SANDBOX_STATUS__CONFIGURATION_ACTIVATED_PRESENCE__NOT_SET;
    assert_false(admission_static_sections_open(subject->sandbox));
    subject->sandbox->status->configuration_admission = NULL;
    expect_refusal(subject, ERROR_FAILED_PRECONDITION);
    subject_free(subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_1_only_its_own_sandbox),
        cmocka_unit_test(test_row_2_a_whole_report),
        cmocka_unit_test(test_row_3_the_sandbox_exists),
        cmocka_unit_test(test_row_4_not_timed_out),
        cmocka_unit_test(test_row_5_the_fence_of_a_registration),
        cmocka_unit_test(test_row_6_the_registered_instance),
        cmocka_unit_test(test_row_7_accepted_for_exactly_this_generation),
        cmocka_unit_test(test_row_8_rejected_for_exactly_this_generation),
        cmocka_unit_test(test_row_9_before_the_deadline),
        cmocka_unit_test(test_row_10_the_flag_goes_with_rejected),
        cmocka_unit_test(test_a_registration),
        cmocka_unit_test(test_pending_keeps_what_is_stored),
        cmocka_unit_test(test_acceptance),
        cmocka_unit_test(test_acceptance_with_a_session_is_ready),
        cmocka_unit_test(test_rejection_and_repair),
        cmocka_unit_test(test_a_bad_wish_beside_a_running_configuration),
        cmocka_unit_test(test_the_flag_on_pending_is_an_ordinary_rejection),
        cmocka_unit_test(test_a_refusal_before_the_start),
        cmocka_unit_test(test_a_refusal_is_final),
        cmocka_unit_test(test_public_words),
        cmocka_unit_test(test_static_sections_close_for_legacy_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
