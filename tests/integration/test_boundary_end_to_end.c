/* Supervisor and runtime together, from launch to end. Their gateway is a stand-in
 * (boundary_fixture.c); everything else is real. */
#include "boundary_fixture.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"

#define STATE(name)                                                                                \
    OPENSHELL__V1__CONFIGURATION_ADMISSION_STATE__CONFIGURATION_ADMISSION_STATE_##name
#define EXITED OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_EXITED
#define SIGNALED OPENSHELL__EXT__V1__SESSION_EXIT__STATUS_SIGNALED
#define ARGV(...) ((char *[]){__VA_ARGS__, NULL})
#define SHELL(script) ARGV((char *)"/bin/sh", (char *)"-c", (char *)(script))

static char *idle[] = {(char *)"/bin/sleep", (char *)"1000000", NULL};

static void assert_exited(const struct fixture_exec *exec, int code)
{
    if (exec->exit_case != EXITED || exec->code != code)
        fail_msg("ended with %d %d, error %d '%s', stderr '%s'", exec->exit_case, exec->code,
                 exec->error_code, exec->error_message, buffer_text(&exec->error_output));
}

static void test_admission_comes_before_the_session(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    assert_int_equal(fixture->report_count, 2);
    assert_int_equal(fixture->reports[0].state, STATE(PENDING));
    assert_string_equal(fixture->reports[0].expected_instance_id, "the-fence");
    assert_int_equal(fixture->reports[1].state, STATE(ACCEPTED));
    assert_int_equal(fixture->reports[1].policy_version, 7);
    assert_true(uuid_valid(fixture->reports[0].instance_id));
    assert_string_equal(fixture->reports[0].instance_id, fixture->reports[1].instance_id);
    assert_string_equal(fixture->session_instance, fixture->reports[0].instance_id);
    assert_int_equal(fixture->epoch, 1);
    struct owner_lock lock;
    assert_true(owner_lock_read(fixture->supervisor_lock, &lock, NULL));
    assert_int_equal(lock.process, fixture->supervisor_process);
    assert_true(owner_lock_read(fixture->runtime_lock, &lock, NULL));
    assert_int_equal(lock.process, fixture->runtime_process);
    assert_true(owner_lock_is_held(fixture->runtime_lock));
    assert_string_equal(lock.ended, "");
}

static void test_a_changed_configuration_is_fetched_again(void **state)
{
    struct fixture *fixture = *state;
    fixture->abort_accepted = 2;
    fixture_start(fixture, idle);
    assert_int_equal(fixture->configs_fetched, 3);
    assert_int_equal(fixture->report_count, 4);
}

static void test_what_the_gateway_does_not_admit_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    fixture->not_admitted = true;
    fixture_launch(fixture, idle);
    FIXTURE_RUN_UNTIL(fixture, fixture->configs_fetched == 3);
    assert_int_equal(fixture->report_count, 2); /* an unchanged rejection is said once */
    assert_int_equal(fixture->reports[1].state, STATE(REJECTED));
    assert_false(fixture->reports[1].refused_before_start);
    fixture->not_admitted = false;
    FIXTURE_RUN_UNTIL(fixture, fixture->session != NULL);
    assert_int_equal(fixture->reports[2].state, STATE(ACCEPTED));
}

static void test_a_refused_attach_is_reported_and_ends_both(void **state)
{
    struct fixture *fixture = *state;
    Openshell__Sandbox__V1__ProcessPolicy process = OPENSHELL__SANDBOX__V1__PROCESS_POLICY__INIT;
    process.run_as_user = (char *)"nobody-has-this-name";
    fixture->policy.process = &process;
    fixture_launch(fixture, idle);
    struct fixture_end end;
    fixture_wait_end(fixture, &end);
    assert_int_equal(fixture->report_count, 3);
    assert_int_equal(fixture->reports[1].state, STATE(ACCEPTED));
    assert_int_equal(fixture->reports[2].state, STATE(REJECTED));
    assert_true(fixture->reports[2].refused_before_start);
    assert_true(WIFEXITED(end.supervisor_status));
    assert_int_equal(WEXITSTATUS(end.supervisor_status), OWNER_EXIT_REFUSED);
    assert_string_equal(end.supervisor.ended, "refused");
    assert_string_equal(end.runtime.ended, "supervisor-lost");
    assert_int_equal(fixture->sessions, 0);
}

static void test_exec_keeps_streams_bytes_and_code(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    struct fixture_exec exec = {0};
    fixture_exec_run(fixture, &exec, SHELL("printf 'out\\0\\377'; printf 'err' >&2; exit 42"));
    assert_exited(&exec, 42);
    assert_int_equal(exec.output.length, 5);
    assert_memory_equal(exec.output.data, "out\0\377", 5);
    assert_string_equal(buffer_text(&exec.error_output), "err");
    fixture_exec_free(&exec);

    fixture_exec_run(fixture, &exec, SHELL("kill -9 $$"));
    assert_int_equal(exec.exit_case, SIGNALED);
    assert_int_equal(exec.code, 9);
    fixture_exec_free(&exec);

    fixture_exec_run(fixture, &exec, ARGV((char *)"/no/such/program"));
    assert_exited(&exec, 127);
    assert_non_null(strstr(buffer_text(&exec.error_output), "/no/such/program"));
    fixture_exec_free(&exec);

    /* Many quick ones: none hangs, none loses its output. */
    for (int i = 0; i < 50; i++) {
        fixture_exec_run(fixture, &exec, SHELL("echo done"));
        assert_exited(&exec, 0);
        assert_string_equal(buffer_text(&exec.output), "done\n");
        fixture_exec_free(&exec);
    }
}

static void change_environment(Openshell__Ext__V1__SessionStart *start)
{
    static Openshell__Ext__V1__SessionStart__EnvironmentEntry entry =
        OPENSHELL__EXT__V1__SESSION_START__ENVIRONMENT_ENTRY__INIT;
    static Openshell__Ext__V1__SessionStart__EnvironmentEntry *list[] = {&entry};
    entry.key = (char *)"GIVEN";
    entry.value = (ProtobufCBinaryData){2, (uint8_t *)"x\n"};
    start->n_environment = 1;
    start->environment = list;
    start->workdir = (char *)"/tmp";
    start->stdin_complete = 1;
}

static void test_environment_and_workdir(void **state)
{
    struct fixture *fixture = *state;
    static char *environment[] = {(char *)"OWN=o", (char *)"GIVEN=hidden", NULL};
    fixture->supervisor.main.environment = environment;
    fixture_start(fixture, idle);
    fixture->supervisor.main.environment = NULL;
    struct fixture_exec exec = {0};
    fixture_exec_begin(fixture, &exec, SHELL("printf '%s|%s|%s' \"$OWN\" \"$GIVEN\" \"$PWD\""),
                       change_environment);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    assert_exited(&exec, 0);
    assert_string_equal(buffer_text(&exec.output), "o|x\n|/tmp");
    fixture_exec_free(&exec);
}

static void test_input_and_slow_reading(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    enum { SIZE = 3 * 1024 * 1024 };
    unsigned char *data = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (unsigned char)(i * 2654435761u >> 13);
    struct fixture_exec exec = {0};
    fixture_exec_begin(fixture, &exec, ARGV((char *)"cat"), NULL);
    fixture_exec_input(&exec, data, SIZE);
    fixture_exec_end_input(&exec);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    assert_exited(&exec, 0);
    assert_int_equal(exec.output.length, SIZE);
    assert_memory_equal(exec.output.data, data, SIZE);
    fixture_exec_free(&exec);
    free(data);

    /* Who does not read stops the writer: it cannot get far ahead, and loses nothing. */
    exec.unread = true;
    fixture_exec_begin(fixture, &exec, SHELL("head -c 20000000 /dev/zero; echo x >/tmp/written"),
                       NULL);
    FIXTURE_RUN_UNTIL(fixture, exec.call != NULL);
    struct fixture_exec other = {0};
    fixture_exec_run(fixture, &other, SHELL("sleep 0.3; test -e /tmp/written"));
    assert_exited(&other, 1);
    fixture_exec_free(&other);
    fixture_exec_read(&exec);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    assert_exited(&exec, 0);
    assert_int_equal(exec.output.length, 20000000);
    fixture_exec_free(&exec);

    /* Input that nobody takes does not hold up the end. */
    fixture_exec_begin(fixture, &exec, ARGV((char *)"true"), NULL);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    assert_exited(&exec, 0);
    fixture_exec_free(&exec);
}

static void change_timeout(Openshell__Ext__V1__SessionStart *start)
{
    static Google__Protobuf__Duration limit = GOOGLE__PROTOBUF__DURATION__INIT;
    limit.nanos = 200 * 1000000;
    start->timeout = &limit;
}

/* Whether some process has this word in its command line; without the word in its own. */
static bool runs(struct fixture *fixture, const char *word)
{
    struct fixture_exec exec = {0};
    char script[256];
    snprintf(script, sizeof(script),
             "w='%c''%s'; for p in /proc/[0-9]*; do "
             "tr '\\0' ' ' <$p/cmdline 2>/dev/null | grep -q -- \"$w\" && exit 0; done; exit 1",
             word[0], word + 1);
    fixture_exec_run(fixture, &exec, SHELL(script));
    bool found = exec.exit_case == EXITED && exec.code == 0;
    fixture_exec_free(&exec);
    return found;
}

static void wait_until_gone(struct fixture *fixture, const char *word)
{
    int64_t deadline = clock_monotonic_milliseconds() + FIXTURE_PATIENCE_MILLISECONDS;
    while (runs(fixture, word))
        if (clock_monotonic_milliseconds() > deadline)
            fail_msg("'%s' still runs", word);
}

static void test_timeout_and_abort_kill_the_tree(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    struct fixture_exec exec = {0};
    fixture_exec_begin(fixture, &exec, SHELL("setsid sleep 4711 & sleep 4711; echo never"),
                       change_timeout);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    assert_true(exec.timed_out);
    assert_int_equal(exec.exit_case, SIGNALED);
    assert_int_equal(exec.output.length, 0);
    fixture_exec_free(&exec);
    wait_until_gone(fixture, "sleep 4711");

    fixture_exec_begin(fixture, &exec, SHELL("setsid sleep 4712 & echo up; sleep 4712"), NULL);
    FIXTURE_RUN_UNTIL(fixture, exec.output.length == 3);
    assert_true(runs(fixture, "sleep 4712"));
    Openshell__Ext__V1__SessionFrame frame = OPENSHELL__EXT__V1__SESSION_FRAME__INIT;
    frame.frame_case = OPENSHELL__EXT__V1__SESSION_FRAME__FRAME_ABORT;
    frame.abort = (char *)"the client is gone";
    fixture_exec_send(&exec, &frame);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    assert_int_equal(exec.exit_case, SIGNALED);
    fixture_exec_free(&exec);
    wait_until_gone(fixture, "sleep 4712");

    /* A relay that just ends is an abort too. */
    fixture_exec_begin(fixture, &exec, SHELL("echo up; sleep 4713"), NULL);
    FIXTURE_RUN_UNTIL(fixture, exec.output.length == 3);
    rpc_call_cancel(exec.call);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    fixture_exec_free(&exec);
    wait_until_gone(fixture, "sleep 4713");
}

static void change_keep_running(Openshell__Ext__V1__SessionStart *start)
{
    start->keep_running = 1;
}

static void test_keep_running_and_background(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    struct fixture_exec exec = {0};
    fixture_exec_begin(fixture, &exec, SHELL("echo up; sleep 4714"), change_keep_running);
    FIXTURE_RUN_UNTIL(fixture, exec.output.length == 3);
    rpc_call_cancel(exec.call);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    fixture_exec_free(&exec);
    assert_true(runs(fixture, "sleep 4714"));

    /* What an exec leaves behind goes on; it holds the output, which is said. */
    int64_t before = clock_monotonic_milliseconds();
    fixture_exec_run(fixture, &exec, SHELL("sleep 4715 & echo left"));
    assert_exited(&exec, 0);
    assert_string_equal(buffer_text(&exec.output), "left\n");
    assert_true(exec.output_held);
    assert_true(clock_monotonic_milliseconds() - before < 5000);
    fixture_exec_free(&exec);
    fixture_exec_run(fixture, &exec, SHELL("sleep 4716 >/dev/null 2>&1 & exit 3"));
    assert_exited(&exec, 3);
    assert_false(exec.output_held);
    fixture_exec_free(&exec);
    assert_true(runs(fixture, "sleep 4715"));
    assert_true(runs(fixture, "sleep 4716"));
}

static char fixed_request[UUID_SIZE];
static int64_t expiry_offset;

static void change_request(Openshell__Ext__V1__SessionStart *start)
{
    start->stdin_complete = 1;
    start->request_id = fixed_request;
    start->expiry->seconds += expiry_offset;
}

static void change_no_expiry(Openshell__Ext__V1__SessionStart *start)
{
    start->expiry = NULL;
}

static void test_requests_are_admitted_once_and_in_time(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    struct fixture_exec exec = {0};
    uuid_generate(fixed_request);
    expiry_offset = 0;
    for (int i = 0; i < 2; i++) {
        fixture_exec_begin(fixture, &exec, ARGV((char *)"true"), change_request);
        FIXTURE_RUN_UNTIL(fixture, exec.done);
        if (i == 0)
            assert_exited(&exec, 0);
        else
            assert_int_equal(exec.error_code, ERROR_ALREADY_EXISTS);
        fixture_exec_free(&exec);
    }
    uuid_generate(fixed_request);
    expiry_offset = -31;
    fixture_exec_begin(fixture, &exec, ARGV((char *)"true"), change_request);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    assert_int_equal(exec.error_code, ERROR_PERMISSION_DENIED);
    assert_non_null(strstr(exec.error_message, "expired"));
    fixture_exec_free(&exec);
    fixture_exec_begin(fixture, &exec, ARGV((char *)"true"), change_no_expiry);
    FIXTURE_RUN_UNTIL(fixture, exec.done);
    assert_int_equal(exec.error_code, ERROR_INVALID_ARGUMENT);
    fixture_exec_free(&exec);
}

static void test_many_at_once(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    enum { COUNT = 32 };
    static struct fixture_exec execs[COUNT];
    memset(execs, 0, sizeof(execs));
    for (int i = 0; i < COUNT; i++) {
        char script[64];
        snprintf(script, sizeof(script), "read line; echo $line; exit %d", i);
        fixture_exec_begin(fixture, &execs[i], SHELL(script), NULL);
    }
    for (int i = COUNT - 1; i >= 0; i--)
        fixture_exec_input(&execs[i], "hello\n", 6);
    for (int i = 0; i < COUNT; i++) {
        FIXTURE_RUN_UNTIL(fixture, execs[i].done);
        assert_exited(&execs[i], i);
        assert_string_equal(buffer_text(&execs[i].output), "hello\n");
        fixture_exec_free(&execs[i]);
    }
}

static void test_end_of_main_is_reported(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, SHELL("exit 5"));
    FIXTURE_RUN_UNTIL(fixture, fixture->main_finalized);
    assert_true(fixture->main_exited);
    assert_int_equal(fixture->main_code, 5);
    struct fixture_exec exec = {0}; /* the sandbox stays */
    fixture_exec_run(fixture, &exec, ARGV((char *)"true"));
    assert_exited(&exec, 0);
    fixture_exec_free(&exec);
}

static void test_main_killed_by_a_signal(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, SHELL("kill -TERM $$"));
    FIXTURE_RUN_UNTIL(fixture, fixture->main_finalized);
    assert_int_equal(fixture->main_code, 128 + SIGTERM);
}

static void test_main_that_cannot_be_run(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, ARGV((char *)"/no/such/program"));
    FIXTURE_RUN_UNTIL(fixture, fixture->main_finalized);
    assert_int_equal(fixture->main_code, 127);
}

static void attach_main(Openshell__Ext__V1__SessionStart *start)
{
    start->kind = OPENSHELL__EXT__V1__SESSION_START__KIND__KIND_ATTACH_MAIN;
}

static void test_attach_replays_main_and_one_writes(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, SHELL("echo before; read line; echo \"got $line\"; exit 4"));
    struct fixture_exec first = {0}, second = {0};
    fixture_exec_begin(fixture, &first, ARGV((char *)"unused"), attach_main);
    FIXTURE_RUN_UNTIL(fixture, first.output.length == 7);
    fixture_exec_begin(fixture, &second, ARGV((char *)"unused"), attach_main);
    FIXTURE_RUN_UNTIL(fixture, second.output.length == 7);
    fixture_exec_input(&second, "no\n", 3); /* reads only: it is told so */
    FIXTURE_RUN_UNTIL(fixture, second.done);
    assert_int_not_equal(second.error_code, 0);
    fixture_exec_input(&first, "yes\n", 4);
    FIXTURE_RUN_UNTIL(fixture, first.done);
    assert_exited(&first, 4);
    assert_string_equal(buffer_text(&first.output), "before\ngot yes\n");
    fixture_exec_free(&first);
    fixture_exec_free(&second);
}

static void test_gateway_comes_back(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    struct fixture_exec exec = {0}, kept = {0};
    fixture_exec_begin(fixture, &exec, SHELL("echo up; sleep 4717"), NULL);
    FIXTURE_RUN_UNTIL(fixture, exec.output.length == 3);
    fixture_gateway_down(fixture);
    assert_true(exec.done); /* a running exec ends for its client */
    fixture_exec_free(&exec);
    fixture_gateway_up(fixture);
    FIXTURE_RUN_UNTIL(fixture, fixture->session != NULL);
    assert_int_equal(fixture->epoch, 2);
    fixture_exec_run(fixture, &kept, ARGV((char *)"true"));
    assert_exited(&kept, 0);
    fixture_exec_free(&kept);
    wait_until_gone(fixture, "sleep 4717");
}

static void test_signal_reconnects_at_once(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    fixture_gateway_down(fixture);
    fixture_gateway_up(fixture);
    assert_int_equal(kill(fixture->supervisor_process, SIGUSR1), 0);
    FIXTURE_RUN_UNTIL(fixture, fixture->session != NULL);
    assert_int_equal(fixture->sessions, 2);
}

static void test_stop_is_graceful(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, SHELL("trap 'sleep 0.2; exit 0' TERM; while :; do sleep 0.05; done"));
    int64_t before = clock_monotonic_milliseconds();
    kill(fixture->supervisor_process, SIGTERM);
    struct fixture_end end;
    fixture_wait_end(fixture, &end);
    assert_string_equal(end.supervisor.ended, "stopped");
    assert_string_equal(end.runtime.ended, "stopped");
    assert_int_equal(end.supervisor_status, 0);
    assert_int_equal(end.runtime_status, 0);
    assert_true(clock_monotonic_milliseconds() - before < 1900); /* did not wait for the grace */
}

/* An interactive shell ignores TERM: it is told that its terminal is gone. */
static void test_stop_of_a_shell_on_a_terminal(void **state)
{
    struct fixture *fixture = *state;
    fixture->supervisor.main.terminal = true;
    fixture->supervisor.stop_grace_milliseconds = 20000;
    fixture_start(fixture, ARGV(NULL)); /* the login shell */
    struct fixture_exec exec = {0};
    fixture_exec_begin(fixture, &exec, ARGV((char *)"unused"), attach_main);
    FIXTURE_RUN_UNTIL(fixture, exec.output.length > 0); /* its prompt: it has set up its signals */
    int64_t before = clock_monotonic_milliseconds();
    kill(fixture->supervisor_process, SIGTERM);
    struct fixture_end end;
    fixture_wait_end(fixture, &end);
    assert_string_equal(end.runtime.ended, "stopped");
    assert_true(clock_monotonic_milliseconds() - before < 10000);
    fixture_exec_free(&exec);
}

static void test_loss_of_the_supervisor_ends_everything(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    kill(fixture->supervisor_process, SIGKILL);
    struct fixture_end end;
    fixture_wait_end(fixture, &end);
    assert_string_equal(end.supervisor.ended, "");
    assert_string_equal(end.runtime.ended, "supervisor-lost");
}

static void test_loss_of_the_runtime_ends_the_supervisor(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, idle);
    kill(fixture->runtime_process, SIGKILL);
    struct fixture_end end;
    fixture_wait_end(fixture, &end);
    assert_string_equal(end.supervisor.ended, "runtime-lost");
    assert_string_equal(end.runtime.ended, "");
}

static void test_runtime_ends_at_once_when_told(void **state)
{
    struct fixture *fixture = *state;
    fixture_start(fixture, SHELL("trap '' TERM; while :; do sleep 1; done"));
    int64_t before = clock_monotonic_milliseconds();
    kill(fixture->runtime_process, SIGTERM);
    struct fixture_end end;
    fixture_wait_end(fixture, &end);
    assert_string_equal(end.runtime.ended, "stopped");
    assert_string_equal(end.supervisor.ended, "runtime-lost");
    assert_true(clock_monotonic_milliseconds() - before < 2000);
}

static void test_another_certificate_is_refused(void **state)
{
    struct fixture *fixture = *state;
    memset(fixture->supervisor.runtime_pin, '0', 64);
    fixture_launch(fixture, idle);
    int status = 0;
    assert_int_equal(waitpid(fixture->runtime_process, &status, 0), fixture->runtime_process);
    fixture->runtime_process = 0;
    struct owner_lock lock;
    assert_true(owner_lock_read(fixture->runtime_lock, &lock, NULL));
    assert_memory_equal(lock.ended, "failed", 6);
    assert_int_equal(fixture->sessions, 0);
}

/* The runtime trusts neither a token of another key nor a descriptor of another resource. */
static void refused_by_the_runtime(struct fixture *fixture, const char *words)
{
    fixture_launch(fixture, idle);
    struct fixture_end end;
    fixture_wait_end(fixture, &end);
    if (strstr(end.supervisor.ended, words) == NULL)
        fail_msg("'%s' does not say '%s'", end.supervisor.ended, words);
    assert_int_equal(fixture->sessions, 0);
}

static void test_another_token_is_refused(void **state)
{
    struct fixture *fixture = *state;
    free(fixture->supervisor.sandbox_token);
    fixture->supervisor.sandbox_token = strdup(fixture->supervisor.gateway_token);
    refused_by_the_runtime(fixture, "session token");
}

static void test_another_epoch_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fixture->runtime.auth_epoch = 4;
    refused_by_the_runtime(fixture, "epoch");
}

static void test_another_descriptor_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fixture->supervisor.driver_descriptor[0] = 'D';
    refused_by_the_runtime(fixture, "descriptor");
}

static void test_another_backend_is_refused(void **state)
{
    struct fixture *fixture = *state;
    fixture->supervisor.backend_name[0] = 'O';
    refused_by_the_runtime(fixture, "backend");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_set_up, fixture_tear_down)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_admission_comes_before_the_session),
        TEST(test_a_changed_configuration_is_fetched_again),
        TEST(test_what_the_gateway_does_not_admit_is_waited_for),
        TEST(test_a_refused_attach_is_reported_and_ends_both),
        TEST(test_exec_keeps_streams_bytes_and_code),
        TEST(test_environment_and_workdir),
        TEST(test_input_and_slow_reading),
        TEST(test_timeout_and_abort_kill_the_tree),
        TEST(test_keep_running_and_background),
        TEST(test_requests_are_admitted_once_and_in_time),
        TEST(test_many_at_once),
        TEST(test_end_of_main_is_reported),
        TEST(test_main_killed_by_a_signal),
        TEST(test_main_that_cannot_be_run),
        TEST(test_attach_replays_main_and_one_writes),
        TEST(test_gateway_comes_back),
        TEST(test_signal_reconnects_at_once),
        TEST(test_stop_is_graceful),
        TEST(test_stop_of_a_shell_on_a_terminal),
        TEST(test_loss_of_the_supervisor_ends_everything),
        TEST(test_loss_of_the_runtime_ends_the_supervisor),
        TEST(test_runtime_ends_at_once_when_told),
        TEST(test_another_certificate_is_refused),
        TEST(test_another_token_is_refused),
        TEST(test_another_epoch_is_refused),
        TEST(test_another_descriptor_is_refused),
        TEST(test_another_backend_is_refused),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
