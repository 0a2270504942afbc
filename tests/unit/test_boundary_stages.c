/* The order of a boundary's life on both sides: the runtime's stages, and the supervisor's handles,
 * which are used up by their transitions; and the pauses between attempts to reach the gateway. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "boundary/failure.h"
#include "runtime/stage.h"
#include "supervisor/boundary_internal.h"
#include "supervisor/gateway_link.h"

/* Rows: operations in the order of the enum; columns: closed, opened, bound, ready, running,
 * terminated. '.': refused; '=': allowed, stays; a letter: allowed, leads there. */
static const char *const EXPECTED[OPERATION_COUNT] = {
    [OPERATION_NONE] = "......",
    [OPERATION_DISCOVER_POLICY] = ".=....",
    [OPERATION_ATTACH] = ".b....",
    [OPERATION_CONFIRM] = "..r...",
    [OPERATION_START_AGENT] = "...R..",
    [OPERATION_EXEC] = "....=.",
    [OPERATION_ATTACH_PROCESS] = "....=.",
    [OPERATION_WAIT] = "....=.",
    [OPERATION_SIGNAL] = "....=.",
    [OPERATION_TERMINATE] = "....=.",
    [OPERATION_TERMINATE_BOUNDARY] = ".TTTT.",
};
static const char LETTERS[STAGE_COUNT] = {'c', 'o', 'b', 'r', 'R', 'T'};

static void test_each_operation_in_each_stage(void **state)
{
    (void)state;
    for (int operation = 0; operation < OPERATION_COUNT; operation++)
        for (int stage = 0; stage < STAGE_COUNT; stage++) {
            char want = EXPECTED[operation][stage];
            struct error error = {0};
            bool allowed = stage_allows(stage, operation, &error);
            if (allowed != (want != '.'))
                fail_msg("%s while %s", exchange_operation_name(operation), stage_name(stage));
            if (!allowed) {
                assert_int_equal(failure_kind_of(&error), stage == STAGE_TERMINATED
                                                              ? FAILURE_TERMINATED
                                                              : FAILURE_PROTOCOL_VIOLATION);
                continue;
            }
            enum boundary_stage next = stage_after(stage, operation);
            assert_int_equal(LETTERS[next], want == '=' ? LETTERS[stage] : want);
        }
}

static unsigned called;
static enum failure_kind kind;

static void on_bound(struct bound_boundary *bound,
                     const Openshell__Sandbox__Protocol__V1__Attached *attached,
                     const struct error *error, void *user)
{
    (void)user;
    assert_null(bound);
    assert_null(attached);
    called++;
    kind = failure_kind_of(error);
}

static void on_ready(struct ready_boundary *ready, const struct error *error, void *user)
{
    (void)user;
    assert_null(ready);
    called++;
    kind = failure_kind_of(error);
}

static void on_running(struct running_boundary *running,
                       const Openshell__Sandbox__Protocol__V1__Started *started,
                       const struct error *error, void *user)
{
    (void)user;
    assert_null(running);
    assert_null(started);
    called++;
    kind = failure_kind_of(error);
}

/* Nothing is connected: each transition fails, and has used up its handle all the same. */
static void test_handles_are_used_up(void **state)
{
    (void)state;
    struct launch_supervisor launch = {.sandbox_token = (char *)"t", .generation = (char *)"g"};
    struct boundary boundary = {.launch = &launch};
    struct opened_boundary opened = {&boundary}, *opened_handle = &opened;
    struct bound_boundary bound = {&boundary}, *bound_handle = &bound;
    struct ready_boundary ready = {&boundary}, *ready_handle = &ready;
    Openshell__Sandbox__Protocol__V1__Attach attach =
        OPENSHELL__SANDBOX__PROTOCOL__V1__ATTACH__INIT;
    Openshell__Sandbox__Protocol__V1__StartAgent start =
        OPENSHELL__SANDBOX__PROTOCOL__V1__START_AGENT__INIT;
    for (int use = 0; use < 2; use++) {
        enum failure_kind expected = use == 0 ? FAILURE_UNAVAILABLE : FAILURE_PROTOCOL_VIOLATION;
        called = 0;
        opened_boundary_attach(&opened_handle, &attach, on_bound, NULL);
        assert_null(opened_handle);
        assert_int_equal(kind, expected);
        bound_boundary_confirm(&bound_handle, on_ready, NULL);
        assert_null(bound_handle);
        assert_int_equal(kind, expected);
        ready_boundary_start(&ready_handle, &start, on_running, NULL);
        assert_null(ready_handle);
        assert_int_equal(kind, expected);
        assert_int_equal(called, 3);
    }
}

static void test_pauses_between_attempts(void **state)
{
    (void)state;
    static const uint64_t EXPECTED_PAUSES[] = {20, 40, 80, 160, 250, 250};
    for (unsigned attempt = 1; attempt <= 6; attempt++)
        assert_int_equal(gateway_backoff(attempt), EXPECTED_PAUSES[attempt - 1]);
    assert_int_equal(gateway_backoff(UINT32_MAX), 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_operation_in_each_stage),
        cmocka_unit_test(test_handles_are_used_up),
        cmocka_unit_test(test_pauses_between_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
