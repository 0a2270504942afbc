/* Refusals in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/explain.h"
#include "client/failure.h"

static struct error error;
static struct explanation explanation;

static int set_up(void **state)
{
    (void)state;
    error_clear(&error);
    return 0;
}

static void refusal(const char *reason, const char *phase, const char *sandbox)
{
    error_set(&error, ERROR_FAILED_PRECONDITION, "sandbox is not ready");
    error_set_reason(&error, ERROR_DOMAIN_GATEWAY, reason);
    if (phase != NULL)
        error_add_metadata(&error, "phase", phase);
    if (sandbox != NULL)
        error_add_metadata(&error, "sandbox", sandbox);
    explain(&error, &explanation);
}

static void test_stopped(void **state)
{
    (void)state;
    refusal("Stopped", "SANDBOX_PHASE_STOPPED", "job");
    assert_string_equal(explanation.message, "sandbox 'job' is stopped");
    assert_string_equal(explanation.hint, "start it with: openshell sandbox start job");
}

static void test_every_reason_of_the_gate(void **state)
{
    (void)state;
    static const char *const reasons[] = {"PhaseNotServing", "Stopped", "Deleting",
                                          "SupervisorDisconnected", "ServiceInfraError"};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        refusal(reasons[i], "SANDBOX_PHASE_PROVISIONING", "job");
        assert_non_null(strstr(explanation.message, "'job'"));
        assert_non_null(strstr(explanation.hint, "openshell sandbox "));
        assert_null(strstr(explanation.message, "{"));
        assert_null(strstr(explanation.hint, "{"));
    }
    refusal("PhaseNotServing", "SANDBOX_PHASE_PROVISIONING", "job");
    assert_string_equal(explanation.message,
                        "sandbox 'job' cannot be used now: it is provisioning");
}

static void test_unknown_reason_is_the_raw_message(void **state)
{
    (void)state;
    refusal("SomethingNew", "SANDBOX_PHASE_NEW", "job");
    assert_string_equal(explanation.message, "sandbox is not ready");
    assert_string_equal(explanation.hint, "");
}

static void test_a_known_reason_of_another_domain_is_unknown(void **state)
{
    (void)state;
    refusal("Stopped", "SANDBOX_PHASE_STOPPED", "job");
    error_set_reason(&error, "example.com", "Stopped");
    explain(&error, &explanation);
    assert_string_equal(explanation.message, "sandbox is not ready");
    assert_string_equal(explanation.hint, "");
}

static void test_missing_metadata_is_the_raw_message(void **state)
{
    (void)state;
    refusal("Stopped", NULL, NULL);
    assert_string_equal(explanation.message, "sandbox is not ready");
    assert_string_equal(explanation.hint, "");
}

static void test_the_name_comes_from_the_command_too(void **state)
{
    (void)state;
    error_set(&error, ERROR_NOT_FOUND, "no such sandbox");
    failure_about(&error, "job");
    explain(&error, &explanation);
    assert_string_equal(explanation.message, "there is no sandbox 'job'");
    assert_string_equal(explanation.hint, "see which there are with: openshell sandbox list");
}

static void test_exists(void **state)
{
    (void)state;
    error_set(&error, ERROR_ALREADY_EXISTS, "sandbox 'job' exists already");
    failure_about(&error, "job");
    explain(&error, &explanation);
    assert_non_null(strstr(explanation.hint, "openshell sandbox delete job"));
}

static void test_text_from_outside_is_escaped(void **state)
{
    (void)state;
    refusal("Stopped", "SANDBOX_PHASE_STOPPED", "a\033[2J\a\xc2\x9bz");
    assert_string_equal(explanation.message, "sandbox 'a\\x1b[2J\\x07\\x9bz' is stopped");
    error_set(&error, ERROR_INTERNAL, "line\n\033]0;x\a");
    explain(&error, &explanation);
    assert_string_equal(explanation.message, "line\\n\\x1b]0;x\\x07");
}

static void test_a_long_name_does_not_overflow(void **state)
{
    (void)state;
    char name[ERROR_MESSAGE_MAX * 3];
    memset(name, '\033', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    refusal("Stopped", "SANDBOX_PHASE_STOPPED", name);
    assert_string_equal(explanation.message, "sandbox is not ready");
}

static void test_no_message_is_the_code(void **state)
{
    (void)state;
    error_set(&error, ERROR_ABORTED, "%s", "");
    explain(&error, &explanation);
    assert_string_equal(explanation.message, "ABORTED");
}

static void test_own_hint(void **state)
{
    (void)state;
    failure_set(&error, CLIENT_REASON_GATEWAY_UNKNOWN, "there is no gateway 'x'");
    explain(&error, &explanation);
    assert_string_equal(explanation.hint, "see which there are with: openshell gateway list");
    failure_hint(&error, "another hint");
    explain(&error, &explanation);
    assert_string_equal(explanation.hint, "another hint");
    /* A gateway's metadata of that name is no hint of ours. */
    refusal("SomethingNew", NULL, "job");
    error_add_metadata(&error, "hint", "run this");
    explain(&error, &explanation);
    assert_string_equal(explanation.hint, "");
}

static void test_exit_codes(void **state)
{
    (void)state;
    refusal("Stopped", NULL, "job");
    assert_int_equal(failure_exit_code(&error), 1);
    failure_usage(&error, "wrong");
    assert_int_equal(failure_exit_code(&error), 2);
    failure_set(&error, CLIENT_REASON_TIMED_OUT, "late");
    assert_int_equal(failure_exit_code(&error), 124);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_stopped, set_up),
        cmocka_unit_test_setup(test_every_reason_of_the_gate, set_up),
        cmocka_unit_test_setup(test_unknown_reason_is_the_raw_message, set_up),
        cmocka_unit_test_setup(test_a_known_reason_of_another_domain_is_unknown, set_up),
        cmocka_unit_test_setup(test_missing_metadata_is_the_raw_message, set_up),
        cmocka_unit_test_setup(test_the_name_comes_from_the_command_too, set_up),
        cmocka_unit_test_setup(test_exists, set_up),
        cmocka_unit_test_setup(test_text_from_outside_is_escaped, set_up),
        cmocka_unit_test_setup(test_a_long_name_does_not_overflow, set_up),
        cmocka_unit_test_setup(test_no_message_is_the_code, set_up),
        cmocka_unit_test_setup(test_own_hint, set_up),
        cmocka_unit_test_setup(test_exit_codes, set_up),
    };
    int failed = cmocka_run_group_tests_name("explain", tests, NULL, NULL);
    error_clear(&error);
    return failed;
}
