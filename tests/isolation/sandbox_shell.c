/* Runs a command in a sandbox made by the process-maker, without a gateway: a way to try the
 * boundary from inside.
 *
 *   isolation-shell [options] -- COMMAND [ARGUMENT...]
 *
 * Exits with the command's code, 128 + N for a signal, 125 when its end is unknown or the sandbox
 * could not be made. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/reactor.h"
#include "runtime/maker.h"

enum { LIST_MAX = 256, EXIT_UNKNOWN = 125, DRAIN_MILLISECONDS = 300, REPEAT_MAX = 1000 };

struct list {
    const char *strings[LIST_MAX];
    size_t count;
};

struct shell {
    struct reactor *reactor;
    struct maker *maker;
    struct list read_only, read_write, environment;
    bool include_workdir, hard, filesystem;
    const char *run_as_user, *run_as_group, *workdir;
    bool through_exec, login_shell, terminal, with_input, print_evidence, print_timings;
    unsigned kill_after, kill_grace;
    unsigned repeat; /* execs, one after the other; only the last one's streams are shown */
    double started_times[REPEAT_MAX], ended_times[REPEAT_MAX];
    unsigned done;
    const char *const *argv;
    size_t argc;

    struct maker_session *session, *main;
    struct maker_evidence evidence;
    int input, output, error;
    struct reactor_watch *output_watch, *error_watch, *input_watch;
    struct buffer pending; /* input that is still to be written */
    struct reactor_timer *drain_timer, *kill_timer;
    bool exited;
    int code;
    double start, ready, attached, requested, started, ended;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1000 + (double)time.tv_nsec / 1e6;
}

static void end(struct shell *shell)
{
    maker_terminate(shell->maker, 0);
}

static void fail(struct shell *shell, const char *what, const struct error *error)
{
    fprintf(stderr, "isolation-shell: %s: %s\n", what, error->message);
    if (shell->code == 0)
        shell->code = EXIT_UNKNOWN;
    end(shell);
}

/* ---- streams ---- */

/* Copies what is there. Returns false at the end. */
static bool copy(int from, int to)
{
    char bytes[65536];
    for (;;) {
        ssize_t got = read(from, bytes, sizeof(bytes));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return true;
        if (got <= 0)
            return false;
        file_write_all(to, bytes, (size_t)got, NULL);
    }
}

static void finish_if_drained(struct shell *shell)
{
    if (shell->exited && shell->output_watch == NULL && shell->error_watch == NULL)
        end(shell);
}

static void on_output(int events, void *argument)
{
    (void)events;
    struct shell *shell = argument;
    if (copy(shell->output, STDOUT_FILENO))
        return;
    reactor_watch_cancel(shell->output_watch);
    shell->output_watch = NULL;
    finish_if_drained(shell);
}

static void on_error_output(int events, void *argument)
{
    (void)events;
    struct shell *shell = argument;
    if (copy(shell->error, STDERR_FILENO))
        return;
    reactor_watch_cancel(shell->error_watch);
    shell->error_watch = NULL;
    finish_if_drained(shell);
}

/* Writes what the pipe takes; the end of input follows the last byte. */
static void on_input(int events, void *argument)
{
    (void)events;
    struct shell *shell = argument;
    ssize_t written = write(shell->input, shell->pending.data, shell->pending.length);
    if (written > 0)
        buffer_consume(&shell->pending, (size_t)written);
    if (shell->pending.length > 0 && (written >= 0 || errno == EAGAIN || errno == EINTR))
        return;
    reactor_watch_cancel(shell->input_watch);
    shell->input_watch = NULL;
    buffer_free(&shell->pending);
    close(shell->input);
    shell->input = -1;
}

static void on_drain_timer(void *argument)
{
    struct shell *shell = argument;
    end(shell);
}

static void take_streams(struct shell *shell)
{
    if (shell->output >= 0)
        return;
    shell->input = maker_session_take_input(shell->session);
    shell->output = maker_session_take_output(shell->session);
    shell->error = maker_session_take_error(shell->session);
    if (shell->output >= 0)
        shell->output_watch =
            reactor_watch_start(shell->reactor, shell->output, UV_READABLE, on_output, shell, NULL);
    if (shell->error >= 0)
        shell->error_watch = reactor_watch_start(shell->reactor, shell->error, UV_READABLE,
                                                 on_error_output, shell, NULL);
    if (shell->with_input && shell->input >= 0) {
        file_read_descriptor(STDIN_FILENO, &shell->pending, NULL);
        shell->input_watch =
            reactor_watch_start(shell->reactor, shell->input, UV_WRITABLE, on_input, shell, NULL);
        return;
    }
    if (!shell->terminal && shell->input >= 0) {
        close(shell->input);
        shell->input = -1;
    }
}

/* ---- the session ---- */

static void on_kill_timer(void *argument)
{
    struct shell *shell = argument;
    maker_session_kill(shell->session, shell->kill_grace);
}

static void on_started(struct maker_session *session, const struct error *error, void *user)
{
    struct shell *shell = user;
    (void)session;
    shell->started = now();
    if (error != NULL) {
        fprintf(stderr, "isolation-shell: %s\n", error->message);
        return;
    }
    if (shell->terminal)
        take_streams(shell);
    if (shell->kill_after > 0)
        shell->kill_timer =
            reactor_timer_start(shell->reactor, shell->kill_after, 0, on_kill_timer, shell);
}

static void start_exec(struct shell *shell);

/* Between two of many execs: forget the one that ended, start the next. */
static void repeat(struct shell *shell)
{
    shell->started_times[shell->done] = shell->started - shell->requested;
    shell->ended_times[shell->done++] = shell->ended - shell->requested;
    if (shell->done >= shell->repeat || shell->done >= REPEAT_MAX)
        return;
    maker_session_close(shell->session);
    reactor_watch_cancel(shell->output_watch);
    reactor_watch_cancel(shell->error_watch);
    shell->output_watch = shell->error_watch = NULL;
    close(shell->output);
    close(shell->error);
    shell->output = -1;
    start_exec(shell);
}

static void on_exit_status(struct maker_session *session, const struct maker_exit *status,
                           void *user)
{
    struct shell *shell = user;
    (void)session;
    shell->ended = now();
    repeat(shell);
    if (shell->done < shell->repeat)
        return;
    shell->exited = true;
    shell->code = status->kind == MAKER_EXITED     ? status->value
                  : status->kind == MAKER_SIGNALED ? 128 + status->value
                                                   : EXIT_UNKNOWN;
    if (status->kind == MAKER_UNKNOWN)
        fprintf(stderr, "isolation-shell: unknown end: %s\n", status->reason);
    shell->drain_timer =
        reactor_timer_start(shell->reactor, DRAIN_MILLISECONDS, 0, on_drain_timer, shell);
    finish_if_drained(shell);
}

static void on_empty(struct maker_session *session, void *user)
{
    (void)session;
    (void)user;
}

static const struct maker_session_events EVENTS = {on_started, on_exit_status, on_empty};
static const struct maker_session_events IGNORE = {NULL, NULL, NULL};

static struct maker_session_spec make_spec(const struct shell *shell)
{
    return (struct maker_session_spec){
        .argv = shell->argv,
        .argc = shell->argc,
        .environment = shell->environment.strings,
        .environment_count = shell->environment.count,
        .workdir = shell->workdir,
        .terminal = shell->terminal,
        .columns = 101,
        .rows = 33,
        .login_shell = shell->login_shell,
    };
}

static void watch_session(struct shell *shell, struct maker_session *session,
                          const struct error *error)
{
    shell->session = session;
    if (session == NULL)
        fail(shell, "cannot start", error);
    else if (!shell->terminal)
        take_streams(shell);
}

static void start_exec(struct shell *shell)
{
    struct error error = {0};
    struct maker_session_spec spec = make_spec(shell);
    shell->requested = now();
    watch_session(shell, maker_exec(shell->maker, &spec, &EVENTS, shell, &error), &error);
}

static void start(struct shell *shell)
{
    struct error error = {0};
    if (!shell->through_exec) {
        struct maker_session_spec spec = make_spec(shell);
        shell->requested = now();
        watch_session(shell, maker_start_main(shell->maker, &spec, &EVENTS, shell, &error), &error);
        return;
    }
    const char *const idle[] = {"sleep", "infinity"};
    struct maker_session_spec main = {.argv = idle, .argc = 2, .workdir = ""};
    shell->main = maker_start_main(shell->maker, &main, &IGNORE, shell, &error);
    if (shell->main == NULL)
        fail(shell, "cannot start", &error);
    else
        start_exec(shell);
}

static void print_evidence(const struct maker_evidence *evidence)
{
    const struct {
        const char *name;
        bool value;
    } facts[] = {
        {"user_namespace", evidence->user_namespace},
        {"mount_namespace", evidence->mount_namespace},
        {"pid_namespace", evidence->pid_namespace},
        {"network_namespace", evidence->network_namespace},
        {"ipc_namespace", evidence->ipc_namespace},
        {"uts_namespace", evidence->uts_namespace},
        {"cgroup_namespace", evidence->cgroup_namespace},
        {"landlock_denies", evidence->landlock_denies},
        {"seccomp_filter", evidence->seccomp_filter},
        {"seccomp_denies", evidence->seccomp_denies},
        {"no_new_privileges", evidence->no_new_privileges},
        {"no_capabilities", evidence->no_capabilities},
        {"loopback_only", evidence->loopback_only},
        {"not_dumpable_core", evidence->not_dumpable_core},
        {"death_link", evidence->death_link},
    };
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
        printf("%s=%d\n", facts[i].name, facts[i].value);
    printf("landlock_abi=%d\nuser_id=%u\ngroup_id=%u\nhost_user_id=%u\nhost_group_id=%u\n",
           evidence->landlock_abi, evidence->user_id, evidence->group_id, evidence->host_user_id,
           evidence->host_group_id);
    printf("supplementary_groups=");
    for (size_t i = 0; i < evidence->supplementary_group_count; i++)
        printf("%s%u", i > 0 ? "," : "", evidence->supplementary_groups[i]);
    printf("\nprocess_limit_mechanism=%s\nprocess_limit=%u\nroot_kind=%s\nusr_mechanism=%s\n",
           evidence->process_limit_mechanism, evidence->process_limit, evidence->root_kind,
           evidence->usr_mechanism);
    fflush(stdout);
}

static void on_measured(struct maker *maker, const struct error *error, void *user)
{
    (void)maker;
    struct shell *shell = user;
    if (error != NULL) {
        fail(shell, "cannot measure", error);
        return;
    }
    print_evidence(&shell->evidence);
    if (shell->argc > 0)
        start(shell);
    else
        end(shell);
}

static void on_warning(const char *text, void *user)
{
    (void)user;
    fprintf(stderr, "isolation-shell: warning: %s\n", text);
}

static void on_attached(struct maker *maker, const struct error *error, void *user)
{
    struct shell *shell = user;
    shell->attached = now();
    if (error != NULL)
        fail(shell, "cannot attach", error);
    else if (shell->print_evidence)
        maker_measure(maker, &shell->evidence, on_measured, shell);
    else
        start(shell);
}

static void on_ready(struct maker *maker, const struct error *error, void *user)
{
    struct shell *shell = user;
    shell->ready = now();
    if (error != NULL) {
        fail(shell, "cannot build the root", error);
        return;
    }
    struct maker_policy policy = {
        .read_only = shell->read_only.strings,
        .read_only_count = shell->read_only.count,
        .read_write = shell->read_write.strings,
        .read_write_count = shell->read_write.count,
        .include_workdir = shell->include_workdir,
        .landlock_required = shell->hard,
        .has_filesystem = shell->filesystem,
        .run_as_user = shell->run_as_user,
        .run_as_group = shell->run_as_group,
    };
    maker_attach(maker, &policy, on_warning, on_attached, shell);
}

static void on_gone(struct maker *maker, void *user)
{
    (void)maker;
    struct shell *shell = user;
    reactor_stop(shell->reactor);
}

/* ---- start ---- */

static void add(struct list *list, const char *text)
{
    if (list->count < LIST_MAX)
        list->strings[list->count++] = text;
}

static void usage(void)
{
    fputs("usage: isolation-shell [--state DIR] [--cache DIR] [--from DIR] [--base N] [--limit N]\n"
          "    [--read-only PATH] [--read-write PATH] [--include-workdir] [--filesystem] [--hard]\n"
          "    [--run-as-user ID] [--run-as-group ID] [--env NAME=VALUE] [--workdir DIR] [--exec]\n"
          "    [--login] [--tty] [--input] [--kill-after MS] [--grace MS] [--evidence]\n"
          "    [--timings] [--repeat N] -- COMMAND...\n",
          stderr);
    exit(2);
}

static void parse(int argc, char **argv, struct shell *shell, struct maker_config *config)
{
    static const struct option options[] = {
        {"state", 1, NULL, 's'},       {"cache", 1, NULL, 'c'},
        {"from", 1, NULL, 'f'},        {"base", 1, NULL, 'b'},
        {"limit", 1, NULL, 'l'},       {"read-only", 1, NULL, 'r'},
        {"read-write", 1, NULL, 'w'},  {"include-workdir", 0, NULL, 'i'},
        {"filesystem", 0, NULL, 'F'},  {"hard", 0, NULL, 'h'},
        {"run-as-user", 1, NULL, 'u'}, {"run-as-group", 1, NULL, 'g'},
        {"env", 1, NULL, 'e'},         {"workdir", 1, NULL, 'd'},
        {"exec", 0, NULL, 'x'},        {"login", 0, NULL, 'L'},
        {"tty", 0, NULL, 't'},         {"input", 0, NULL, 'I'},
        {"kill-after", 1, NULL, 'k'},  {"grace", 1, NULL, 'G'},
        {"evidence", 0, NULL, 'E'},    {"repeat", 1, NULL, 'R'},
        {"timings", 0, NULL, 'T'},     {NULL, 0, NULL, 0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        switch (option) {
        case 's':
            config->state_directory = optarg;
            break;
        case 'c':
            config->cache_directory = optarg;
            break;
        case 'f':
            config->from_directory = optarg;
            break;
        case 'b':
            config->host_id_base = (uid_t)strtoul(optarg, NULL, 0);
            break;
        case 'l':
            config->process_limit = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'r':
            add(&shell->read_only, optarg);
            shell->filesystem = true;
            break;
        case 'w':
            add(&shell->read_write, optarg);
            shell->filesystem = true;
            break;
        case 'i':
            shell->include_workdir = true;
            break;
        case 'F':
            shell->filesystem = true;
            break;
        case 'h':
            shell->hard = true;
            break;
        case 'u':
            shell->run_as_user = optarg;
            break;
        case 'g':
            shell->run_as_group = optarg;
            break;
        case 'e':
            add(&shell->environment, optarg);
            break;
        case 'd':
            shell->workdir = optarg;
            break;
        case 'x':
            shell->through_exec = true;
            break;
        case 'L':
            shell->login_shell = true;
            break;
        case 't':
            shell->terminal = true;
            break;
        case 'I':
            shell->with_input = true;
            break;
        case 'k':
            shell->kill_after = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'G':
            shell->kill_grace = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'E':
            shell->print_evidence = true;
            break;
        case 'R':
            shell->repeat = (unsigned)strtoul(optarg, NULL, 0);
            break;
        case 'T':
            shell->print_timings = true;
            break;
        default:
            usage();
        }
    }
    shell->argv = (const char *const *)argv + optind;
    shell->argc = (size_t)(argc - optind);
}

/* A state directory of its own below TMPDIR unless one was given; removed at the end. */
static char *make_temporary(struct maker_config *config)
{
    if (config->state_directory != NULL)
        return NULL;
    const char *parent = getenv("TMPDIR");
    char *path = memory_printf("%s/isolation-XXXXXX", parent != NULL ? parent : "/tmp");
    if (mkdtemp(path) == NULL) {
        perror(path);
        exit(EXIT_UNKNOWN);
    }
    config->state_directory = memory_printf("%s/state", path);
    if (config->cache_directory == NULL)
        config->cache_directory = memory_printf("%s/cache", path);
    return path;
}

static int compare_times(const void *left, const void *right)
{
    double one = *(const double *)left, other = *(const double *)right;
    return (one > other) - (one < other);
}

static void print_timings(struct shell *shell)
{
    if (shell->repeat > 1 && shell->done > 0) {
        qsort(shell->started_times, shell->done, sizeof(double), compare_times);
        qsort(shell->ended_times, shell->done, sizeof(double), compare_times);
        fprintf(stderr, "%u execs: request to execve %.2f ms, to exit %.2f ms (medians)\n",
                shell->done, shell->started_times[shell->done / 2],
                shell->ended_times[shell->done / 2]);
    }
    fprintf(stderr,
            "spawn to ready %.2f ms, attach %.2f ms, request to execve %.2f ms, to exit %.2f ms\n",
            shell->ready - shell->start, shell->attached - shell->ready,
            shell->started - shell->requested, shell->ended - shell->requested);
}

int main(int argc, char **argv)
{
    struct shell shell = {
        .run_as_user = "", .run_as_group = "", .workdir = "", .output = -1, .repeat = 1};
    struct maker_config config = {
        .sandbox_name = "trial",
        .host_id_base = geteuid() == 0 ? 0x60000000 : 0,
        .process_limit = 512,
    };
    struct error error = {0};
    log_init("isolation-shell", LOG_LEVEL_INFO);
    signal(SIGPIPE, SIG_IGN);
    parse(argc, argv, &shell, &config);
    char *temporary = make_temporary(&config);
    if (config.cache_directory == NULL)
        config.cache_directory = memory_printf("%s/cache", config.state_directory);
    shell.start = now();
    shell.maker = maker_spawn(&config, &error);
    if (shell.maker == NULL) {
        fprintf(stderr, "isolation-shell: cannot spawn: %s\n", error.message);
        shell.code = EXIT_UNKNOWN;
    } else {
        const struct maker_events events = {on_ready, on_gone, &shell};
        shell.reactor = reactor_new(&error);
        if (shell.reactor != NULL && maker_watch(shell.maker, shell.reactor, &events, &error))
            reactor_run(shell.reactor);
        else
            shell.code = EXIT_UNKNOWN;
        if (shell.print_timings)
            print_timings(&shell);
        maker_session_close(shell.session);
        maker_session_close(shell.main);
        reactor_watch_cancel(shell.output_watch);
        reactor_watch_cancel(shell.error_watch);
        reactor_watch_cancel(shell.input_watch);
        reactor_timer_cancel(shell.drain_timer);
        reactor_timer_cancel(shell.kill_timer);
        maker_free(shell.maker);
        reactor_free(shell.reactor);
    }
    if (temporary != NULL && !file_remove_tree(temporary, &error))
        fprintf(stderr, "isolation-shell: %s\n", error.message);
    return shell.code;
}
