#include "runtime/exec_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "runtime/copy_helper.h"
#include "runtime/descriptors.h"
#include "runtime/landlock.h"
#include "runtime/limits.h"
#include "runtime/maker_protocol.h"
#include "runtime/namespaces.h"
#include "runtime/seccomp.h"
#include "runtime/syscalls.h"
#include "runtime/terminal.h"

/* Exit codes as shells give them. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct program {
    struct spec_header header;
    const char *workdir;
    const char **arguments;   /* NULL-terminated */
    const char **environment; /* of the spec */
    const char **result;      /* the whole environment */
    int terminal;             /* -1 without one */
    int streams[3];           /* input, output, error; -1 with a terminal */
};

static _Noreturn void fail(int channel, int code, const struct error *error)
{
    message_send_error(channel, MESSAGE_START_FAILED, code, error);
    _exit(code);
}

/* In the order of policy reference 2.2. */
static bool apply_controls(const struct controls *controls, struct error *error)
{
    static const struct rlimit NO_CORE = {0, 0};
    if (!identity_become_workload(&controls->identity, error) ||
        !limits_enforce(controls->process_limit, error))
        return false;
    if (setrlimit(RLIMIT_CORE, &NO_CORE) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno, "cannot forbid core dumps");
    if (controls->landlock_ruleset >= 0 && !landlock_enforce(controls->landlock_ruleset, error))
        return false;
    /* These two were handed down. */
    return seccomp_is_enforced() ||
           error_set(error, ERROR_FAILED_PRECONDITION, "the system call filter is not in force");
}

/* Signals as a program expects them: nothing blocked, nothing ignored. */
static void reset_signals(void)
{
    syscall_reset_signals();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in a grandchild, which has the same domain and filter and may be lost. */
static _Noreturn void probe_child(int answer)
{
    bool denies[2] = {landlock_probe(), seccomp_probe()};
    ssize_t written = write(answer, denies, sizeof(denies));
    _exit(written == sizeof(denies) ? 0 : 1);
}

static void measure(int channel)
{
    struct message message = {.type = MESSAGE_MEASURED};
    int answer[2];
    bool denies[2] = {false, false};
    if (pipe2(answer, O_CLOEXEC) == 0) {
        pid_t probe = syscall_fork();
        if (probe == 0)
            probe_child(answer[1]);
        close(answer[1]);
        if (read(answer[0], denies, sizeof(denies)) != sizeof(denies))
            denies[0] = denies[1] = false;
        close(answer[0]);
        while (probe > 0 && waitpid(probe, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    message.main.landlock_denies = denies[0];
    message.main.seccomp_denies = denies[1];
    message.main.loopback_only = namespaces_only_loopback();
    message.main.user_id = geteuid();
    message.main.group_id = getegid();
    if (!namespaces_identify(&message.main.namespaces))
        message.code = ERROR_INTERNAL;
    message_send(channel, &message, NULL, 0, NULL);
}

/* Waits for the order to start; measures when asked to. Descriptors: the spec, then a terminal or
 * three streams. */
static void wait_for_start(int channel, int descriptors[MESSAGE_DESCRIPTORS_MAX])
{
    struct message message;
    for (;;) {
        enum message_result result = message_receive(channel, &message, descriptors, NULL);
        if (result == MESSAGE_END)
            _exit(EXIT_NOT_EXECUTABLE);
        if (result == MESSAGE_GOT && message.type == MESSAGE_START)
            return;
        if (result == MESSAGE_GOT && message.type == MESSAGE_MEASURE)
            measure(channel);
    }
}

static bool read_program(const int descriptors[MESSAGE_DESCRIPTORS_MAX],
                         struct program *ret_program, struct error *error)
{
    struct program program = {.terminal = -1, .streams = {-1, -1, -1}};
    struct blob blob;
    if (!blob_open(descriptors[0], &program.header, sizeof(program.header), &blob, error))
        return false;
    program.workdir = blob_next(&blob);
    program.arguments = blob_next_array(&blob, program.header.argument_count);
    program.environment = blob_next_array(&blob, program.header.environment_count);
    if (program.workdir == NULL || program.arguments == NULL || program.environment == NULL)
        return error_set(error, ERROR_INTERNAL, "a request to start a program is malformed");
    if (program.header.terminal)
        program.terminal = descriptors[1];
    else
        memcpy(program.streams, descriptors + 1, sizeof(program.streams));
    *ret_program = program;
    return true;
}

/* Appends or replaces NAME=VALUE in a NULL-terminated array with room for it. */
static void set_variable(const char **environment, const char *assignment)
{
    size_t name = strcspn(assignment, "=") + 1;
    while (*environment != NULL && strncmp(*environment, assignment, name) != 0)
        environment++;
    *environment = assignment;
}

static const char *find_variable(const char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

static const char *find_shell(void)
{
    return access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

static void make_environment(const struct identity *identity, struct program *program)
{
    const char **result = memory_new(sizeof(char *) * (program->header.environment_count + 16));
    set_variable(result, memory_printf("HOME=%s", identity->home));
    set_variable(result, memory_printf("USER=%s", identity->name));
    set_variable(result, memory_printf("LOGNAME=%s", identity->name));
    set_variable(result, memory_printf("SHELL=%s", find_shell()));
    set_variable(result, "PATH=" DEFAULT_PATH);
    set_variable(result, "LANG=C.UTF-8");
    if (program->header.terminal)
        set_variable(result, "TERM=xterm-256color");
    for (size_t i = 0; i < program->header.environment_count; i++)
        if (strchr(program->environment[i], '=') != NULL)
            set_variable(result, program->environment[i]);
    program->result = result;
}

/* Standard streams, a session, and nothing else open but `channel`, which becomes 3. */
static bool arrange_descriptors(const struct program *program, int *channel, struct error *error)
{
    if (setsid() < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make a session");
    if (program->terminal >= 0 && !terminal_take(program->terminal, error))
        return false;
    /* Above the standard ones first: a source may be where a target is. */
    int sources[4];
    for (int i = 0; i < 4; i++) {
        int from = i == 3                   ? *channel
                   : program->terminal >= 0 ? program->terminal
                                            : program->streams[i];
        sources[i] = fcntl(from, F_DUPFD_CLOEXEC, 10);
        if (sources[i] < 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot copy a descriptor");
    }
    for (int i = 0; i < 4; i++)
        if (dup3(sources[i], i, i == 3 ? O_CLOEXEC : 0) < 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot place a descriptor");
    *channel = 3;
    if (close_range(4, ~0U, 0) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot close descriptors");
    return true;
}

static bool enter_workdir(const struct identity *identity, const char *workdir, struct error *error)
{
    if (workdir[0] != '\0') {
        if (chdir(workdir) == 0)
            return true;
        return error_set_errno(error, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_FAILED_PRECONDITION,
                               errno, "cannot enter the working directory '%s'", workdir);
    }
    if (chdir(identity->home) != 0 && chdir("/") != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot enter '/'");
    return true;
}

static _Noreturn void fail_execve(int channel, const char *file, int errnum)
{
    struct error error = {0};
    bool missing = errnum == ENOENT || errnum == ENOTDIR;
    char shown[256];
    text_escape(file, shown, sizeof(shown));
    error_set(&error, missing ? ERROR_NOT_FOUND : ERROR_FAILED_PRECONDITION,
              "cannot run '%s' in the sandbox: %s", shown,
              missing ? "no such program" : strerror(errnum));
    fail(channel, missing ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE, &error);
}

/* execve leaves the words alone, though its declaration does not say so. */
static void execute(const char *file, const char *const *arguments, const char *const *environment)
{
    execve(file, (char *const *)arguments, (char *const *)environment);
}

/* Without a shell: the program is looked for in the workload's own PATH, under all controls. */
static _Noreturn void run_directly(const struct program *program, int channel)
{
    const char *file = program->arguments[0];
    if (strchr(file, '/') != NULL) {
        execute(file, program->arguments, program->result);
        fail_execve(channel, file, errno);
    }
    const char *path = find_variable(program->result, "PATH");
    int seen = ENOENT;
    for (const char *start = path != NULL ? path : DEFAULT_PATH; start != NULL;) {
        int length = (int)strcspn(start, ":");
        CLEANUP_FREE char *candidate =
            memory_printf("%.*s%s%s", length, start, length > 0 ? "/" : "", file);
        execute(candidate, program->arguments, program->result);
        /* As a shell does: go on looking, and remember that something was there. */
        if (errno != ENOENT && errno != ENOTDIR && (seen == ENOENT || errno != EACCES))
            seen = errno;
        start = start[length] == ':' ? start + length + 1 : NULL;
    }
    fail_execve(channel, file, seen);
}

/* The login environment without building a command line: words are passed as words (decision P3).
 */
static _Noreturn void run_in_login_shell(const struct program *program, int channel)
{
    const char *shell = find_shell();
    bool bash = text_has_suffix(shell, "bash");
    const char *name = bash ? "bash" : "sh";
    if (program->header.argument_count == 0) {
        execute(shell, (const char *[]){name, "-l", NULL}, program->result);
        fail_execve(channel, shell, errno);
    }
    if (!bash && program->arguments[0][0] == '-') {
        struct error error = {0};
        error_set(&error, ERROR_INVALID_ARGUMENT,
                  "this root has no bash, and its sh would take '%s' for an option; run it with "
                  "--no-login-shell",
                  program->arguments[0]);
        fail(channel, EXIT_NOT_FOUND, &error);
    }
    size_t count = program->header.argument_count;
    const char **words = memory_new(sizeof(char *) * (count + 5));
    words[0] = name;
    words[1] = "-lc";
    words[2] = bash ? "exec -- \"$@\"" : "exec \"$@\"";
    words[3] = "openshell-exec";
    memcpy(words + 4, program->arguments, sizeof(char *) * count);
    execute(shell, words, program->result);
    fail_execve(channel, shell, errno);
}

_Noreturn void exec_child_run(const struct controls *controls, int channel, int session)
{
    struct error error = {0};
    struct program program = {0};
    int descriptors[MESSAGE_DESCRIPTORS_MAX];

    if (!apply_controls(controls, &error))
        fail(channel, EXIT_NOT_EXECUTABLE, &error);
    message_send_simple(session, MESSAGE_PREPARED, 0);
    close(session);

    wait_for_start(channel, descriptors);
    if (!read_program(descriptors, &program, &error))
        fail(channel, EXIT_NOT_EXECUTABLE, &error);
    make_environment(&controls->identity, &program);
    umask(022);
    if (!arrange_descriptors(&program, &channel, &error) ||
        !enter_workdir(&controls->identity, program.workdir, &error))
        fail(channel, EXIT_NOT_EXECUTABLE, &error);
    reset_signals();
    if (program.header.helper != COPY_NONE) {
        close(channel); /* it runs from here on, as after execve */
        _exit(copy_helper_run(program.header.helper, program.arguments,
                              program.header.argument_count));
    }
    if (program.header.login_shell || program.header.argument_count == 0)
        run_in_login_shell(&program, channel);
    run_directly(&program, channel);
}
