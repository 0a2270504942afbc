/* The table of operation, direction and state, compared cell by cell with a second, independent
 * statement of it; and the walk of a stream through it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boundary/failure.h"
#include "boundary/operations.h"

/* What is allowed, as text: "operation direction state: frame>next ...". Anything else is not. */
static const char *const ALLOWED[] = {
    "nothing > unbound: binding>bound",
    "nothing > bound: discover_policy>closed attach>closed confirm>closed start_agent>closed "
    "exec>input attach_process>input wait>closed signal>closed terminate>closed "
    "terminate_boundary>closed",
    "exec > input: stdin>input stdin_eof>input_ended resize>input process_signal>input "
    "cancel>closed",
    "exec > input_ended: resize>input_ended process_signal>input_ended cancel>closed",
    "attach_process > input: stdin>input stdin_eof>input_ended resize>input process_signal>input",
    "attach_process > input_ended: resize>input_ended process_signal>input_ended",
    "discover_policy < asked: image_policy>closed failure>closed",
    "attach < asked: attached>closed failure>closed",
    "confirm < asked: confirmed>closed failure>closed",
    "start_agent < asked: started>closed failure>closed",
    "exec < asked: exec_started>output failure>closed",
    "exec < output: stdout>output stderr>output exited>closed failure>closed",
    "attach_process < asked: process_attached>output failure>closed",
    "attach_process < output: stdout>output stderr>output skipped>output exited>closed "
    "failure>closed",
    "wait < asked: exited>closed failure>closed",
    "signal < asked: signaled>closed failure>closed",
    "terminate < asked: terminated>closed failure>closed",
    "terminate_boundary < asked: boundary_terminated>closed failure>closed",
};
static const char *const STATES[STATE_COUNT] = {"unbound", "bound", "input",  "input_ended",
                                                "silent",  "asked", "output", "closed"};

/* Finds "frame>" in the row for this cell; returns the name of the next state, or NULL. */
static bool expected(const char *operation, enum exchange_direction direction, const char *state,
                     const char *frame, char next[32])
{
    char head[64], word[64];
    snprintf(head, sizeof(head), "%s %s %s:", operation, direction == TO_RUNTIME ? ">" : "<",
             state);
    snprintf(word, sizeof(word), " %s>", frame);
    for (size_t i = 0; i < sizeof(ALLOWED) / sizeof(ALLOWED[0]); i++) {
        if (strncmp(ALLOWED[i], head, strlen(head)) != 0)
            continue;
        const char *found = strstr(ALLOWED[i], word);
        if (found == NULL)
            return false;
        snprintf(next, 32, "%.*s", (int)strcspn(found + strlen(word), " "), found + strlen(word));
        return true;
    }
    return false;
}

static void test_every_cell(void **state)
{
    (void)state;
    size_t allowed = 0, cells = 0;
    for (int operation = 0; operation < OPERATION_COUNT; operation++)
        for (int direction = TO_RUNTIME; direction <= TO_SUPERVISOR; direction++)
            for (int at = 0; at < STATE_COUNT; at++)
                for (int frame = 0; frame < 80; frame++) {
                    exchange_frame message = EXCHANGE_FRAME_INIT;
                    message.frame_case = frame;
                    const char *name = exchange_frame_name(&message);
                    enum exchange_operation named;
                    enum exchange_state next;
                    char next_name[32] = "";
                    bool want = strcmp(name, "nothing") != 0 &&
                                expected(exchange_operation_name(operation), direction, STATES[at],
                                         name, next_name);
                    bool got = exchange_allows(operation, direction, at, frame, &named, &next);
                    cells++;
                    if (got != want)
                        fail_msg("%s %s %s: %s", exchange_operation_name(operation),
                                 direction == TO_RUNTIME ? ">" : "<", STATES[at], name);
                    if (!got)
                        continue;
                    allowed++;
                    assert_string_equal(STATES[next], next_name);
                    if (operation == OPERATION_NONE && at == STATE_BOUND)
                        assert_string_equal(exchange_operation_name(named), name);
                    else
                        assert_int_equal(named, operation);
                }
    assert_int_equal(cells, 11 * 2 * 8 * 80);
    assert_int_equal(allowed, 54);
}

static bool step(struct exchange *exchange, enum exchange_direction direction, int frame_case)
{
    static Openshell__Sandbox__Protocol__V1__Binding binding =
        OPENSHELL__SANDBOX__PROTOCOL__V1__BINDING__INIT;
    static Openshell__Sandbox__Protocol__V1__Exec exec =
        OPENSHELL__SANDBOX__PROTOCOL__V1__EXEC__INIT;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = frame_case;
    if (frame_case == EXCHANGE_FRAME(BINDING))
        frame.binding = &binding;
    else if (frame_case == EXCHANGE_FRAME(EXEC))
        frame.exec = &exec;
    else if (frame_case == EXCHANGE_FRAME(STDIN_EOF))
        frame.stdin_eof = 1;
    struct error error = {0};
    bool taken = exchange_step(exchange, direction, &frame, &error);
    if (!taken)
        assert_int_equal(failure_kind_of(&error), FAILURE_PROTOCOL_VIOLATION);
    return taken;
}

static void test_an_exec_walks_through(void **state)
{
    (void)state;
    struct exchange exchange = EXCHANGE_INIT;
    assert_false(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(EXEC))); /* without a binding */
    assert_false(step(&exchange, TO_SUPERVISOR, EXCHANGE_FRAME(FAILURE)));
    assert_true(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(BINDING)));
    assert_false(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(BINDING))); /* a second one */
    assert_false(step(&exchange, TO_SUPERVISOR, EXCHANGE_FRAME(FAILURE)));
    assert_true(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(EXEC)));
    assert_int_equal(exchange.operation, OPERATION_EXEC);
    assert_false(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(EXEC)));
    assert_false(step(&exchange, TO_SUPERVISOR, EXCHANGE_FRAME(STDOUT))); /* before the start */
    assert_true(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(STDIN)));
    assert_true(step(&exchange, TO_SUPERVISOR, EXCHANGE_FRAME(EXEC_STARTED)));
    assert_true(step(&exchange, TO_SUPERVISOR, EXCHANGE_FRAME(STDOUT)));
    assert_false(step(&exchange, TO_SUPERVISOR, EXCHANGE_FRAME(STDIN))); /* wrong direction */
    assert_false(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(STDOUT)));
    assert_true(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(STDIN_EOF)));
    assert_false(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(STDIN)));
    assert_true(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(CANCEL)));
    assert_false(step(&exchange, TO_RUNTIME, EXCHANGE_FRAME(CANCEL)));
    assert_true(step(&exchange, TO_SUPERVISOR, EXCHANGE_FRAME(EXITED)));
    assert_false(step(&exchange, TO_SUPERVISOR, EXCHANGE_FRAME(EXITED)));
}

static void test_content(void **state)
{
    (void)state;
    struct exchange running = {OPERATION_EXEC, STATE_INPUT, STATE_OUTPUT};
    struct exchange exchange = running;
    unsigned char *bytes = calloc(1, EXCHANGE_CHUNK_LIMIT + 1);
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(STDIN);
    frame.stdin = (ProtobufCBinaryData){EXCHANGE_CHUNK_LIMIT, bytes};
    assert_true(exchange_step(&exchange, TO_RUNTIME, &frame, NULL));
    frame.stdin.len++;
    assert_false(exchange_step(&exchange, TO_RUNTIME, &frame, NULL));
    frame.frame_case = EXCHANGE_FRAME(STDOUT);
    assert_false(exchange_step(&exchange, TO_SUPERVISOR, &frame, NULL));
    frame.frame_case = EXCHANGE_FRAME(STDERR);
    assert_false(exchange_step(&exchange, TO_SUPERVISOR, &frame, NULL));
    free(bytes);

    frame.frame_case = EXCHANGE_FRAME(STDIN_EOF);
    frame.stdin_eof = 0;
    assert_false(exchange_step(&exchange, TO_RUNTIME, &frame, NULL));
    assert_int_equal(exchange.to_runtime, STATE_INPUT);

    /* Input that was complete from the start has ended. */
    Openshell__Sandbox__Protocol__V1__Exec exec = OPENSHELL__SANDBOX__PROTOCOL__V1__EXEC__INIT;
    exec.stdin_complete = 1;
    frame.frame_case = EXCHANGE_FRAME(EXEC);
    frame.exec = &exec;
    exchange = (struct exchange){OPERATION_NONE, STATE_BOUND, STATE_SILENT};
    assert_true(exchange_step(&exchange, TO_RUNTIME, &frame, NULL));
    assert_int_equal(exchange.to_runtime, STATE_INPUT_ENDED);

    char handle[BOUNDARY_ID_LIMIT + 2];
    memset(handle, 'h', sizeof(handle));
    handle[BOUNDARY_ID_LIMIT + 1] = '\0';
    Openshell__Sandbox__Protocol__V1__Binding binding =
        OPENSHELL__SANDBOX__PROTOCOL__V1__BINDING__INIT;
    binding.boundary_id = handle;
    frame.frame_case = EXCHANGE_FRAME(BINDING);
    frame.binding = &binding;
    exchange = EXCHANGE_INIT;
    assert_false(exchange_step(&exchange, TO_RUNTIME, &frame, NULL));
    handle[BOUNDARY_ID_LIMIT] = '\0';
    assert_true(exchange_step(&exchange, TO_RUNTIME, &frame, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cell),
        cmocka_unit_test(test_an_exec_walks_through),
        cmocka_unit_test(test_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
