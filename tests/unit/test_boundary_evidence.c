/* Evidence: all of it must hold, and be of this launch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "boundary/failure.h"
#include "supervisor/evidence.h"

static unsigned warnings;
static char last_warning[256];

static void warn(const char *text, void *user)
{
    (void)user;
    warnings++;
    strncpy(last_warning, text, sizeof(last_warning) - 1);
}

static exchange_evidence whole(void)
{
    exchange_evidence evidence = OPENSHELL__SANDBOX__PROTOCOL__V1__EVIDENCE__INIT;
    evidence.generation = (char *)"g";
    evidence.user_namespace = evidence.mount_namespace = evidence.pid_namespace = 1;
    evidence.network_namespace = evidence.ipc_namespace = evidence.uts_namespace = 1;
    evidence.cgroup_namespace = evidence.landlock_denies = 1;
    evidence.landlock_abi = 7;
    evidence.seccomp_filter = evidence.seccomp_denies = evidence.no_new_privileges = 1;
    evidence.no_capabilities = evidence.loopback_only = evidence.no_core_dumps = 1;
    evidence.death_link = 1;
    evidence.user_id = evidence.group_id = 1000;
    evidence.host_user_id = evidence.host_group_id = 70000;
    evidence.process_limit_mechanism = (char *)"rlimit";
    evidence.process_limit = 512;
    evidence.root_kind = (char *)"composed";
    evidence.usr_mechanism = (char *)"overlay";
    return evidence;
}

static bool check(exchange_evidence *evidence, const char *session, bool landlock_required,
                  struct error *error)
{
    Openshell__Sandbox__Protocol__V1__Confirmed confirmed =
        OPENSHELL__SANDBOX__PROTOCOL__V1__CONFIRMED__INIT;
    confirmed.evidence = evidence;
    confirmed.session_id = (char *)session;
    struct evidence_expectation expected = {"g", "s", landlock_required};
    warnings = 0;
    return evidence_check(&confirmed, &expected, warn, NULL, error);
}

static void assert_refused(exchange_evidence *evidence, const char *words)
{
    struct error error = {0};
    assert_false(check(evidence, "s", evidence != NULL && evidence->landlock_required, &error));
    assert_int_equal(failure_kind_of(&error), FAILURE_DENIED);
    if (strstr(error.message, words) == NULL)
        fail_msg("'%s' does not say '%s'", error.message, words);
}

static void test_whole_evidence_is_taken(void **state)
{
    (void)state;
    exchange_evidence evidence = whole();
    assert_true(check(&evidence, "s", false, NULL));
    assert_int_equal(warnings, 0);
    evidence.landlock_required = 1;
    assert_true(check(&evidence, "s", true, NULL));
    evidence.root_kind = (char *)"copied";
    assert_true(check(&evidence, "s", true, NULL));
}

/* By the message's own description, so that a control added later cannot be forgotten here. */
static void test_each_control_must_hold(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *descriptor =
        &openshell__sandbox__protocol__v1__evidence__descriptor;
    size_t controls = 0;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_BOOL || strcmp(field->name, "landlock_required") == 0)
            continue;
        exchange_evidence evidence = whole();
        *(protobuf_c_boolean *)((char *)&evidence + field->offset) = 0;
        assert_refused(&evidence, "was not measured");
        controls++;
    }
    assert_int_equal(controls, 15);
}

static void test_foreign_evidence(void **state)
{
    (void)state;
    assert_refused(NULL, "no evidence");
    exchange_evidence evidence = whole();
    evidence.generation = (char *)"other";
    assert_refused(&evidence, "another launch");
    evidence = whole();
    assert_false(check(&evidence, "other", false, NULL));
    evidence = whole();
    evidence.landlock_required = 1; /* the policy does not */
    assert_false(check(&evidence, "s", false, NULL));
    evidence = whole();
    assert_false(check(&evidence, "s", true, NULL));
}

static void test_landlock_by_the_policy(void **state)
{
    (void)state;
    exchange_evidence evidence = whole();
    evidence.landlock_abi = 0;
    evidence.landlock_denies = 0;
    assert_true(check(&evidence, "s", false, NULL));
    assert_int_equal(warnings, 1);
    assert_non_null(strstr(last_warning, "landlock-unavailable"));
    evidence.landlock_required = 1;
    assert_refused(&evidence, "demands Landlock");
}

static void test_identity_and_limits(void **state)
{
    (void)state;
    exchange_evidence evidence = whole();
    evidence.user_id = 0;
    assert_refused(&evidence, "root inside");
    evidence = whole();
    evidence.group_id = 0;
    assert_refused(&evidence, "root inside");
    evidence = whole();
    evidence.host_user_id = 0;
    assert_refused(&evidence, "root on the host");
    evidence = whole();
    evidence.root_kind = (char *)"";
    assert_refused(&evidence, "unknown kind");
    evidence = whole();
    evidence.process_limit_mechanism = (char *)"";
    assert_refused(&evidence, "not measured");
    evidence = whole();
    evidence.process_limit = 0;
    assert_refused(&evidence, "zero");

    evidence = whole();
    evidence.process_limit_mechanism = (char *)"none";
    uint32_t groups[64];
    for (uint32_t i = 0; i < 64; i++)
        groups[i] = 4000000000u + i;
    evidence.supplementary_groups = groups;
    evidence.n_supplementary_groups = 64;
    assert_true(check(&evidence, "s", false, NULL));
    assert_int_equal(warnings, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_evidence_is_taken),
        cmocka_unit_test(test_each_control_must_hold),
        cmocka_unit_test(test_foreign_evidence),
        cmocka_unit_test(test_landlock_by_the_policy),
        cmocka_unit_test(test_identity_and_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
