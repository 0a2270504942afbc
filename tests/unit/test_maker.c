/* The process-maker through its interface: real sandboxes, made by whoever runs the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/reactor.h"
#include "runtime/maker.h"

enum { PATIENCE_MILLISECONDS = 30000, SESSIONS_MAX = 64 };

struct watched {
    struct maker_session *session;
    struct maker_exit exit;
    struct buffer output;
    struct reactor_watch *watch;
    int descriptor;
    unsigned starts, exits, empties;
    enum error_code start_code;
    char start_text[512];
    bool order_right;
};

struct fixture {
    char *root;
    struct reactor *reactor;
    struct maker *maker;
    struct reactor_timer *patience;
    bool ready, attached, measured, gone, out_of_patience;
    struct error ready_error, attach_error, measure_error;
    unsigned warnings;
    unsigned process_limit; /* 0: plenty */
    struct maker_evidence evidence;
};

/* ---- waiting ---- */

static void on_patience(void *argument)
{
    struct fixture *fixture = argument;
    fixture->out_of_patience = true;
}

/* Runs the loop until `condition` holds. */
#define WAIT_FOR(fixture, condition)                                                               \
    do {                                                                                           \
        while (!(condition) && !(fixture)->out_of_patience)                                        \
            reactor_run_once((fixture)->reactor);                                                  \
        assert_true(condition);                                                                    \
    } while (0)

static void on_ready(struct maker *maker, const struct error *error, void *user)
{
    (void)maker;
    struct fixture *fixture = user;
    assert_false(fixture->ready);
    fixture->ready = true;
    if (error != NULL)
        error_copy(&fixture->ready_error, error);
}

static void on_gone(struct maker *maker, void *user)
{
    (void)maker;
    struct fixture *fixture = user;
    assert_false(fixture->gone);
    fixture->gone = true;
}

static void on_attached(struct maker *maker, const struct error *error, void *user)
{
    (void)maker;
    struct fixture *fixture = user;
    fixture->attached = true;
    error_clear(&fixture->attach_error);
    if (error != NULL)
        error_copy(&fixture->attach_error, error);
}

static void on_measured(struct maker *maker, const struct error *error, void *user)
{
    (void)maker;
    struct fixture *fixture = user;
    fixture->measured = true;
    error_clear(&fixture->measure_error);
    if (error != NULL)
        error_copy(&fixture->measure_error, error);
}

static void on_warning(const char *text, void *user)
{
    (void)text;
    struct fixture *fixture = user;
    fixture->warnings++;
}

/* ---- sessions ---- */

static void on_output(int events, void *argument)
{
    (void)events;
    struct watched *watched = argument;
    char bytes[4096];
    ssize_t got = read(watched->descriptor, bytes, sizeof(bytes));
    if (got > 0) {
        buffer_append(&watched->output, bytes, (size_t)got);
        return;
    }
    if (got < 0 && errno == EAGAIN)
        return;
    reactor_watch_cancel(watched->watch);
    watched->watch = NULL;
    close(watched->descriptor);
    watched->descriptor = -1;
}

static void on_started(struct maker_session *session, const struct error *error, void *user)
{
    (void)session;
    struct watched *watched = user;
    watched->starts++;
    watched->order_right = watched->exits == 0;
    if (error != NULL) {
        watched->start_code = error->code;
        snprintf(watched->start_text, sizeof(watched->start_text), "%.*s", 500, error->message);
    }
}

static void on_exit_status(struct maker_session *session, const struct maker_exit *status,
                           void *user)
{
    (void)session;
    struct watched *watched = user;
    watched->exits++;
    watched->exit = *status;
    watched->order_right = watched->order_right && watched->starts == 1 && watched->empties == 0;
}

static void on_empty(struct maker_session *session, void *user)
{
    (void)session;
    struct watched *watched = user;
    watched->empties++;
    watched->order_right = watched->order_right && watched->exits == 1;
}

static const struct maker_session_events EVENTS = {on_started, on_exit_status, on_empty};

static struct watched *exec_spec(struct fixture *fixture, const struct maker_session_spec *spec)
{
    struct watched *watched = memory_new_of(struct watched);
    struct error error = {0};
    watched->descriptor = -1;
    watched->session = maker_exec(fixture->maker, spec, &EVENTS, watched, &error);
    if (watched->session == NULL)
        fail_msg("%s", error.message);
    if (!spec->terminal) {
        watched->descriptor = maker_session_take_output(watched->session);
        watched->watch = reactor_watch_start(fixture->reactor, watched->descriptor, UV_READABLE,
                                             on_output, watched, &error);
    }
    return watched;
}

static struct watched *exec_shell(struct fixture *fixture, const char *script)
{
    const char *const arguments[] = {"sh", "-c", script};
    const struct maker_session_spec spec = {.argv = arguments, .argc = 3, .workdir = ""};
    return exec_spec(fixture, &spec);
}

static void forget(struct watched *watched)
{
    maker_session_close(watched->session);
    reactor_watch_cancel(watched->watch);
    if (watched->descriptor >= 0)
        close(watched->descriptor);
    buffer_free(&watched->output);
    free(watched);
}

/* ---- fixtures ---- */

static struct maker_config make_config(const struct fixture *fixture)
{
    static char state[512], cache[512];
    snprintf(state, sizeof(state), "%s/state", fixture->root);
    snprintf(cache, sizeof(cache), "%s/cache", fixture->root);
    return (struct maker_config){
        .sandbox_name = "unit",
        .state_directory = state,
        .cache_directory = cache,
        .host_id_base = geteuid() == 0 ? 0x61000000 : 0,
        .process_limit = fixture->process_limit != 0 ? fixture->process_limit : 400,
    };
}

static int set_up_bare(void **state)
{
    struct fixture *fixture = memory_new_of(struct fixture);
    const char *parent = getenv("TMPDIR");
    fixture->root = memory_printf("%s/maker-XXXXXX", parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(fixture->root));
    struct error error = {0};
    fixture->reactor = reactor_new(&error);
    assert_non_null(fixture->reactor);
    fixture->patience =
        reactor_timer_start(fixture->reactor, PATIENCE_MILLISECONDS, 0, on_patience, fixture);
    *state = fixture;
    return 0;
}

static void spawn(struct fixture *fixture)
{
    struct maker_config config = make_config(fixture);
    struct error error = {0};
    fixture->maker = maker_spawn(&config, &error);
    if (fixture->maker == NULL)
        fail_msg("%s", error.message);
    const struct maker_events events = {on_ready, on_gone, fixture};
    assert_true(maker_watch(fixture->maker, fixture->reactor, &events, &error));
}

static void attach(struct fixture *fixture)
{
    const struct maker_policy policy = {.run_as_user = "", .run_as_group = ""};
    fixture->attached = false;
    maker_attach(fixture->maker, &policy, on_warning, on_attached, fixture);
    WAIT_FOR(fixture, fixture->attached);
}

static int set_up(void **state)
{
    set_up_bare(state);
    struct fixture *fixture = *state;
    spawn(fixture);
    WAIT_FOR(fixture, fixture->ready);
    if (fixture->ready_error.code != ERROR_OK) {
        print_message("%s\n", fixture->ready_error.message);
        return -1;
    }
    attach(fixture);
    assert_int_equal(ERROR_OK, fixture->attach_error.code);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    if (fixture->maker != NULL && !fixture->gone && fixture->ready) {
        maker_terminate(fixture->maker, 0);
        WAIT_FOR(fixture, fixture->gone);
    }
    maker_free(fixture->maker);
    reactor_timer_cancel(fixture->patience);
    reactor_free(fixture->reactor);
    assert_true(file_remove_tree(fixture->root, NULL));
    /* No child of any kind is left. */
    assert_int_equal(-1, waitpid(-1, NULL, WNOHANG));
    assert_int_equal(ECHILD, errno);
    free(fixture->root);
    free(fixture);
    return 0;
}

/* ---- tests ---- */

/* A sandbox that is full: an exec runs, or says why not; it never ends with a made-up code. */
static void test_full(void **state)
{
    struct fixture *fixture = *state;
    fixture->process_limit = 24;
    spawn(fixture);
    attach(fixture);
    struct watched *bomb = exec_shell(
        fixture,
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26; do "
        "sleep 1000 & done; exec sleep 1000");
    while (bomb->exits == 0) {
        struct watched *watched = exec_shell(fixture, "exit 0");
        WAIT_FOR(fixture, watched->exits == 1);
        bool refused = watched->starts == 1 && watched->start_code != ERROR_OK;
        assert_true(watched->order_right);
        if (refused) {
            assert_int_equal(ERROR_RESOURCE_EXHAUSTED, watched->start_code);
            assert_true(watched->exit.kind == MAKER_UNKNOWN || watched->exit.value == 126);
        }
        forget(watched);
        /* For an ordinary user only the workload itself is limited: then an exec can still look. */
        if (refused || geteuid() != 0)
            break;
    }
    maker_session_kill(bomb->session, 0);
    WAIT_FOR(fixture, bomb->empties == 1);
    forget(bomb);
    struct watched *after = exec_shell(fixture, "exit 8");
    WAIT_FOR(fixture, after->exits == 1);
    assert_int_equal(MAKER_EXITED, after->exit.kind);
    assert_int_equal(8, after->exit.value);
    forget(after);
}

static void test_exec(void **state)
{
    struct fixture *fixture = *state;
    struct watched *watched = exec_shell(fixture, "echo text; exit 3");
    WAIT_FOR(fixture, watched->empties == 1 && watched->descriptor < 0);
    assert_int_equal(MAKER_EXITED, watched->exit.kind);
    assert_int_equal(3, watched->exit.value);
    assert_string_equal("text\n", buffer_text(&watched->output));
    assert_true(maker_session_process(watched->session) > 1);
    assert_true(watched->order_right);
    assert_int_equal(-1, maker_session_take_output(watched->session));
    forget(watched);

    watched = exec_shell(fixture, "kill -HUP $$");
    WAIT_FOR(fixture, watched->exits == 1);
    assert_int_equal(MAKER_SIGNALED, watched->exit.kind);
    assert_int_equal(SIGHUP, watched->exit.value);
    forget(watched);
}

static void test_order_of_requests(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    const char *const arguments[] = {"sleep", "1000"};
    const struct maker_session_spec spec = {.argv = arguments, .argc = 2, .workdir = ""};

    maker_measure(fixture->maker, &fixture->evidence, on_measured, fixture);
    WAIT_FOR(fixture, fixture->measured);
    assert_int_equal(ERROR_OK, fixture->measure_error.code);
    assert_true(fixture->evidence.seccomp_denies && fixture->evidence.death_link &&
                fixture->evidence.no_capabilities && fixture->evidence.user_namespace);

    /* Attached once, started once, measured only before. */
    attach(fixture);
    assert_int_equal(ERROR_FAILED_PRECONDITION, fixture->attach_error.code);
    struct watched watched = {.descriptor = -1};
    watched.session = maker_start_main(fixture->maker, &spec, &EVENTS, &watched, &error);
    assert_non_null(watched.session);
    assert_null(maker_start_main(fixture->maker, &spec, &EVENTS, &watched, &error));
    assert_int_equal(ERROR_FAILED_PRECONDITION, error.code);
    WAIT_FOR(fixture, watched.starts == 1);
    fixture->measured = false;
    maker_measure(fixture->maker, &fixture->evidence, on_measured, fixture);
    assert_true(fixture->measured);
    assert_int_equal(ERROR_FAILED_PRECONDITION, fixture->measure_error.code);
    maker_session_kill(watched.session, 0);
    WAIT_FOR(fixture, watched.empties == 1);
    assert_true(watched.order_right);
    maker_session_close(watched.session);
    error_clear(&error);
}

static void test_exec_before_attach(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    const char *const arguments[] = {"true"};
    const struct maker_session_spec spec = {.argv = arguments, .argc = 1, .workdir = ""};
    spawn(fixture);
    struct watched watched = {0};
    assert_null(maker_exec(fixture->maker, &spec, &EVENTS, &watched, &error));
    assert_int_equal(ERROR_FAILED_PRECONDITION, error.code);
    assert_null(maker_start_main(fixture->maker, &spec, &EVENTS, &watched, &error));
    WAIT_FOR(fixture, fixture->ready);
    assert_int_equal(ERROR_OK, fixture->ready_error.code);
}

static void test_bad_programs(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    const char *const empty[] = {""};
    struct maker_session_spec spec = {.argv = empty, .argc = 1, .workdir = ""};
    struct watched unused = {0};
    assert_null(maker_exec(fixture->maker, &spec, &EVENTS, &unused, &error));
    assert_int_equal(ERROR_INVALID_ARGUMENT, error.code);

    const char *const missing[] = {"/no/such/program"};
    spec.argv = missing;
    struct watched *watched = exec_spec(fixture, &spec);
    WAIT_FOR(fixture, watched->empties == 1);
    assert_int_equal(ERROR_NOT_FOUND, watched->start_code);
    assert_int_equal(127, watched->exit.value);
    assert_true(watched->order_right);
    forget(watched);

    /* More than the kernel takes, and more than we do. */
    char *large = memory_allocate(200001);
    memset(large, 'x', 200000);
    large[200000] = '\0';
    const char *many[60] = {"true"};
    for (size_t i = 1; i < 60; i++)
        many[i] = large;
    spec.argv = many;
    spec.argc = 20;
    watched = exec_spec(fixture, &spec);
    WAIT_FOR(fixture, watched->empties == 1);
    assert_int_equal(126, watched->exit.value);
    assert_non_null(strstr(watched->start_text, strerror(E2BIG)));
    forget(watched);
    spec.argc = 60;
    assert_null(maker_exec(fixture->maker, &spec, &EVENTS, &unused, &error));
    assert_int_equal(ERROR_INVALID_ARGUMENT, error.code);
    free(large);
}

/* A process of its own that stays behind keeps the session, not the exit. */
static void test_background(void **state)
{
    struct fixture *fixture = *state;
    struct watched *watched = exec_shell(fixture, "setsid sleep 1000 >/dev/null 2>&1 & exit 5");
    WAIT_FOR(fixture, watched->exits == 1);
    assert_int_equal(5, watched->exit.value);
    assert_int_equal(0, watched->empties);
    maker_session_kill(watched->session, 1000);
    WAIT_FOR(fixture, watched->empties == 1);
    assert_true(watched->order_right);
    forget(watched);
}

static void test_kill(void **state)
{
    struct fixture *fixture = *state;
    struct watched *watched = exec_shell(
        fixture,
        "trap '' TERM; (trap '' TERM; setsid sleep 1000) & echo go; sleep 1000; sleep 1000");
    WAIT_FOR(fixture, watched->output.length > 0);
    int64_t start = clock_monotonic_milliseconds();
    maker_session_kill(watched->session, 300);
    WAIT_FOR(fixture, watched->empties == 1);
    int64_t took = clock_monotonic_milliseconds() - start;
    assert_true(took >= 300 && took < 5300);
    assert_int_equal(MAKER_SIGNALED, watched->exit.kind);
    assert_int_equal(SIGKILL, watched->exit.value);
    forget(watched);
}

static void test_signal(void **state)
{
    struct fixture *fixture = *state;
    struct watched *watched =
        exec_shell(fixture, "trap 'exit 7' USR1; echo go; while :; do sleep 0.05; done");
    WAIT_FOR(fixture, watched->output.length > 0);
    maker_session_signal(watched->session, 0);
    maker_session_signal(watched->session, 1000);
    maker_session_signal(watched->session, SIGUSR1);
    WAIT_FOR(fixture, watched->exits == 1);
    assert_int_equal(7, watched->exit.value);
    forget(watched);
}

/* Closing kills, and nothing is told any more. */
static void test_close(void **state)
{
    struct fixture *fixture = *state;
    struct watched *watched = exec_shell(fixture, "echo go; exec sleep 1000");
    WAIT_FOR(fixture, watched->output.length > 0);
    maker_session_close(watched->session);
    watched->session = NULL;
    /* Its output ends, since the process did. */
    WAIT_FOR(fixture, watched->descriptor < 0);
    assert_int_equal(0, watched->exits + watched->empties);
    forget(watched);
}

static void test_many_sessions(void **state)
{
    struct fixture *fixture = *state;
    struct watched *sessions[SESSIONS_MAX];
    struct error error = {0};
    const char *const arguments[] = {"sleep", "1000"};
    const struct maker_session_spec spec = {.argv = arguments, .argc = 2, .workdir = ""};
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        sessions[i] = exec_spec(fixture, &spec);
    struct watched unused = {0};
    assert_null(maker_exec(fixture->maker, &spec, &EVENTS, &unused, &error));
    assert_int_equal(ERROR_RESOURCE_EXHAUSTED, error.code);
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        WAIT_FOR(fixture, sessions[i]->starts == 1);
    for (size_t i = 0; i < SESSIONS_MAX; i++)
        forget(sessions[i]);
    /* There is room again. */
    for (int round = 0; round < 100; round++) {
        struct watched *watched = exec_shell(fixture, "exit 1");
        WAIT_FOR(fixture, watched->exits == 1);
        assert_int_equal(MAKER_EXITED, watched->exit.kind);
        assert_int_equal(1, watched->exit.value);
        forget(watched);
    }
}

static void test_terminal(void **state)
{
    struct fixture *fixture = *state;
    const char *const arguments[] = {"sh", "-c", "stty size; read x; echo got $x"};
    const struct maker_session_spec spec = {
        .argv = arguments, .argc = 3, .workdir = "", .terminal = true, .columns = 77, .rows = 11};
    struct watched *watched = exec_spec(fixture, &spec);
    assert_int_equal(-1, maker_session_take_output(watched->session));
    WAIT_FOR(fixture, watched->starts == 1);
    int input = maker_session_take_input(watched->session);
    watched->descriptor = maker_session_take_output(watched->session);
    assert_int_equal(-1, maker_session_take_error(watched->session));
    assert_true(input >= 0 && watched->descriptor >= 0);
    watched->watch = reactor_watch_start(fixture->reactor, watched->descriptor, UV_READABLE,
                                         on_output, watched, NULL);
    assert_int_equal(5, write(input, "word\n", 5));
    WAIT_FOR(fixture, watched->exits == 1 && watched->descriptor < 0);
    assert_non_null(strstr(buffer_text(&watched->output), "11 77"));
    assert_non_null(strstr(buffer_text(&watched->output), "got word"));
    close(input);
    forget(watched);
}

/* The end of the terminal's other side ends what runs on it. */
static void test_hangup(void **state)
{
    struct fixture *fixture = *state;
    const char *const arguments[] = {"sleep", "1000"};
    const struct maker_session_spec spec = {
        .argv = arguments, .argc = 2, .workdir = "", .terminal = true};
    struct watched *watched = exec_spec(fixture, &spec);
    WAIT_FOR(fixture, watched->starts == 1);
    close(maker_session_take_input(watched->session));
    close(maker_session_take_output(watched->session));
    WAIT_FOR(fixture, watched->exits == 1);
    assert_int_equal(SIGHUP, watched->exit.value);
    forget(watched);
}

static void test_terminate(void **state)
{
    struct fixture *fixture = *state;
    struct watched *obeys =
        exec_shell(fixture, "trap 'exit 9' TERM; echo go; while :; do sleep 0.05; done");
    struct watched *resists =
        exec_shell(fixture, "trap '' TERM; echo go; while :; do sleep 1000; done");
    WAIT_FOR(fixture, obeys->output.length > 0 && resists->output.length > 0);
    maker_terminate(fixture->maker, 500);
    WAIT_FOR(fixture, fixture->gone);
    assert_int_equal(1, obeys->empties);
    assert_int_equal(1, resists->empties);
    assert_int_equal(MAKER_EXITED, obeys->exit.kind);
    assert_int_equal(9, obeys->exit.value);
    /* Killed by its reaper, or with the whole sandbox: never an exit code. */
    assert_true(resists->exit.kind != MAKER_EXITED);
    struct error error = {0};
    const char *const arguments[] = {"true"};
    const struct maker_session_spec spec = {.argv = arguments, .argc = 1, .workdir = ""};
    assert_null(maker_exec(fixture->maker, &spec, &EVENTS, obeys, &error));
    assert_int_equal(ERROR_UNAVAILABLE, error.code);
    forget(obeys);
    forget(resists);
}

/* Finds the process-maker: the only child of this process. */
static pid_t find_child(void)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
    CLEANUP_CLOSE int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file >= 0 ? read(file, text, sizeof(text) - 1) : 0;
    text[length > 0 ? length : 0] = '\0';
    return atoi(text);
}

static void test_maker_is_killed(void **state)
{
    struct fixture *fixture = *state;
    struct watched *watched = exec_shell(fixture, "echo go; exec sleep 1000");
    WAIT_FOR(fixture, watched->output.length > 0);
    assert_int_equal(0, kill(find_child(), SIGKILL));
    WAIT_FOR(fixture, fixture->gone);
    assert_int_equal(1, watched->exits);
    assert_int_equal(1, watched->empties);
    assert_int_equal(MAKER_UNKNOWN, watched->exit.kind);
    assert_true(watched->exit.reason[0] != '\0');
    assert_true(watched->order_right);
    fixture->attached = false;
    const struct maker_policy policy = {.run_as_user = "", .run_as_group = ""};
    maker_attach(fixture->maker, &policy, on_warning, on_attached, fixture);
    assert_true(fixture->attached);
    assert_int_equal(ERROR_UNAVAILABLE, fixture->attach_error.code);
    forget(watched);
}

static void test_gone_while_building(void **state)
{
    struct fixture *fixture = *state;
    spawn(fixture);
    kill(find_child(), SIGKILL);
    WAIT_FOR(fixture, fixture->gone);
    assert_true(fixture->ready);
}

static void test_free_before_watch(void **state)
{
    struct fixture *fixture = *state;
    struct maker_config config = make_config(fixture);
    struct error error = {0};
    fixture->maker = maker_spawn(&config, &error);
    assert_non_null(fixture->maker);
    maker_free(fixture->maker);
    fixture->maker = NULL;
    maker_free(NULL);
}

static void test_bad_config(void **state)
{
    struct fixture *fixture = *state;
    const struct maker_config good = make_config(fixture);
    struct error error = {0};
    struct maker_config config = good;
    config.process_limit = 15;
    assert_null(maker_spawn(&config, &error));
    assert_int_equal(ERROR_INVALID_ARGUMENT, error.code);
    config = good;
    config.state_directory = "relative";
    assert_null(maker_spawn(&config, &error));
    config = good;
    config.host_id_base = geteuid() == 0 ? 0 : 0x61000000;
    assert_null(maker_spawn(&config, &error));
    assert_int_equal(ERROR_INVALID_ARGUMENT, error.code);
    config = good;
    config.host_id_base = geteuid() == 0 ? 0xFFFF0000U + 1 : 1;
    assert_null(maker_spawn(&config, &error));
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
#define BARE(function) cmocka_unit_test_setup_teardown(function, set_up_bare, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_exec),
        TEST(test_order_of_requests),
        BARE(test_full),
        BARE(test_exec_before_attach),
        TEST(test_bad_programs),
        TEST(test_background),
        TEST(test_kill),
        TEST(test_signal),
        TEST(test_close),
        TEST(test_many_sessions),
        TEST(test_terminal),
        TEST(test_hangup),
        TEST(test_terminate),
        TEST(test_maker_is_killed),
        BARE(test_gone_while_building),
        BARE(test_free_before_watch),
        BARE(test_bad_config),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
