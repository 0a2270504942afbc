/* The access rule, for every phase and every fact it depends on, against a table of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/access.h"
#include "gateway/lifecycle.h"

/* Decisions P1, P2, P12: the phase alone, and with a session, and with one that is expected back.
 * "" is allowed, "wait" waits, anything else is the reason of a refusal. */
static const struct row {
    int phase;
    bool main_failed;
    const char *without;
    const char *connected;
    const char *expected_back;
    const char *service_without;
    const char *service_connected;
} rows[] = {
    {PHASE(UNSPECIFIED), false, "PhaseNotServing", "PhaseNotServing", "PhaseNotServing",
     "PhaseNotServing", "PhaseNotServing"},
    {PHASE(PROVISIONING), false, "PhaseNotServing", "PhaseNotServing", "PhaseNotServing",
     "PhaseNotServing", "PhaseNotServing"},
    {PHASE(READY), false, "PhaseNotServing", "", "wait", "PhaseNotServing", ""},
    {PHASE(ERROR), true, "SupervisorDisconnected", "", "wait", "SupervisorDisconnected", ""},
    {PHASE(ERROR), false, "SupervisorDisconnected", "", "wait", "ServiceInfraError",
     "ServiceInfraError"},
    {PHASE(DELETING), false, "Deleting", "Deleting", "Deleting", "Deleting", "Deleting"},
    {PHASE(UNKNOWN), false, "PhaseNotServing", "PhaseNotServing", "PhaseNotServing",
     "PhaseNotServing", "PhaseNotServing"},
    {PHASE(STOPPING), false, "Stopped", "Stopped", "Stopped", "Stopped", "Stopped"},
    {PHASE(STOPPED), false, "Stopped", "Stopped", "Stopped", "Stopped", "Stopped"},
    {PHASE(STARTING), false, "PhaseNotServing", "PhaseNotServing", "PhaseNotServing",
     "PhaseNotServing", "PhaseNotServing"},
    {PHASE(COMPLETED), false, "SupervisorDisconnected", "", "wait", "SupervisorDisconnected", ""},
    /* A value that a newer gateway may have stored. */
    {10, false, "PhaseNotServing", "PhaseNotServing", "PhaseNotServing", "PhaseNotServing",
     "PhaseNotServing"},
};

static void check(const struct row *row, enum access_purpose purpose, bool connected,
                  bool expected_back, const char *answer)
{
    struct access_facts facts = {
        .phase = (Openshell__V1__SandboxPhase)row->phase,
        .main_failed = row->main_failed,
        .session_connected = connected,
        .session_expected = expected_back,
        .purpose = purpose,
    };
    const char *reason = NULL;
    enum access_verdict verdict = access_decide(&facts, &reason);
    if (answer[0] == '\0') {
        assert_int_equal(verdict, ACCESS_ALLOWED);
    } else if (strcmp(answer, "wait") == 0) {
        assert_int_equal(verdict, ACCESS_WAIT);
    } else {
        assert_int_equal(verdict, ACCESS_REFUSED);
        assert_string_equal(reason, answer);
    }
}

static void test_every_phase(void **state)
{
    (void)state;
    bool seen[11] = {false};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        check(row, ACCESS_USER, false, false, row->without);
        check(row, ACCESS_USER, true, false, row->connected);
        check(row, ACCESS_USER, false, true, row->expected_back);
        check(row, ACCESS_ATTACH, false, false, row->without);
        check(row, ACCESS_ATTACH, true, false, row->connected);
        check(row, ACCESS_ATTACH, false, true, row->expected_back);
        check(row, ACCESS_SERVICE, false, false, row->service_without);
        check(row, ACCESS_SERVICE, true, false, row->service_connected);
        seen[row->phase] = true;
    }
    for (size_t i = 0; i < LIFECYCLE_PHASE_COUNT; i++)
        assert_true(seen[i]);
}

/* A session that is there is never waited for. */
static void test_connected_wins(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        check(&rows[i], ACCESS_USER, true, true, rows[i].connected);
}

/* What a main process left that is about to be replaced can be fetched, and nothing else (1.4). */
static void test_draining(void **state)
{
    (void)state;
    for (int purpose = ACCESS_USER; purpose <= ACCESS_SERVICE; purpose++)
        for (int draining = 0; draining < 2; draining++)
            for (int connected = 0; connected < 2; connected++) {
                struct access_facts facts = {.phase = PHASE(STARTING),
                                             .exit_draining = draining,
                                             .session_connected = connected,
                                             .purpose = purpose};
                const char *reason = NULL;
                bool allowed = access_decide(&facts, &reason) == ACCESS_ALLOWED;
                assert_int_equal(allowed, purpose == ACCESS_ATTACH && draining && connected);
                if (!allowed)
                    assert_string_equal(reason, "PhaseNotServing");
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_phase),
        cmocka_unit_test(test_connected_wins),
        cmocka_unit_test(test_draining),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
