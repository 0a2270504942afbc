/* Life of the processes: start, end, and what is remembered of them. */
#include "runtime/process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "boundary/failure.h"
#include "runtime/process_internal.h"
#include "runtime/process_spec.h"

/* ---- the table ---- */

struct process_table *process_table_new(struct service *service)
{
    struct process_table *table = memory_new_of(struct process_table);
    table->service = service;
    table->by_id = table_new();
    return table;
}

static void process_free(struct process *process)
{
    reactor_timer_cancel(process->timeout);
    reactor_timer_cancel(process->hang_up);
    process_io_free(process->io);
    output_ring_free(process->ring);
    free(process->program);
    free(process);
}

static struct process *process_new(struct process_table *table, const char *id)
{
    struct process *process = memory_new_of(struct process);
    process->table = table;
    snprintf(process->id, sizeof(process->id), "%s", id);
    return process;
}

static void drop_oldest(struct process_table *table)
{
    struct process *oldest = table->kept_first;
    table->kept_first = oldest->next_kept;
    if (table->kept_first == NULL)
        table->kept_last = NULL;
    table->kept_count--;
    table_remove(table->by_id, oldest->id);
    process_free(oldest);
}

static bool has_streams(const struct process *process)
{
    return process->owner != NULL || process->viewers != NULL || process->waiters != NULL ||
           process->terminators != NULL;
}

static void drop_old(struct process_table *table)
{
    int64_t now = clock_monotonic_milliseconds();
    while (table->kept_first != NULL && !has_streams(table->kept_first) &&
           (table->kept_count > PROCESS_KEPT_LIMIT ||
            now - table->kept_first->kept_since > PROCESS_KEPT_MILLISECONDS))
        drop_oldest(table);
}

/* Once nothing more can happen to it; main is kept as long as the boundary. */
static void keep_when_over(struct process *process)
{
    struct process_table *table = process->table;
    if (!process->exited || !process->drained || process->session != NULL || process->is_main)
        return;
    process->kept_since = clock_monotonic_milliseconds();
    if (table->kept_last == NULL)
        table->kept_first = process;
    else
        table->kept_last->next_kept = process;
    table->kept_last = process;
    table->kept_count++;
    drop_old(table);
}

struct process *process_find(struct process_table *table, const char *id)
{
    drop_old(table);
    return table_get(table->by_id, id);
}

static void close_terminal(void *argument)
{
    struct process *process = argument;
    reactor_timer_cancel(process->hang_up);
    process->hang_up = NULL;
    if (process->io != NULL)
        process_io_hang_up(process->io);
}

/* The signal first, so that the last words arrive; a shell may miss it between two of its steps,
 * but not that the terminal is gone. */
static void hang_up(struct process *process)
{
    if (!process->terminal || process->session == NULL || !process->started || process->exited)
        return;
    maker_session_signal(process->session, SIGHUP);
    if (!process->is_main && process->owner == NULL)
        close_terminal(process);
    else if (process->hang_up == NULL)
        process->hang_up =
            reactor_timer_start(process->table->service->options.reactor,
                                PROCESS_HANG_UP_MILLISECONDS, 0, close_terminal, process);
}

void process_hang_up_all(struct process_table *table)
{
    size_t position = 0;
    for (struct process *process; (process = table_next(table->by_id, &position, NULL)) != NULL;)
        hang_up(process);
}

void process_kill(struct process *process, unsigned grace_milliseconds)
{
    if (process->session == NULL)
        return;
    if (grace_milliseconds > 0)
        hang_up(process);
    maker_session_kill(process->session, grace_milliseconds);
}

/* ---- what the process-maker says ---- */

static void say_why_not_started(struct process *process, const struct error *error)
{
    char *line =
        memory_printf("openshell: cannot run '%s': %s\n", process->program, error->message);
    process_stream_output(process, true, line, strlen(line));
    free(line);
}

static bool on_output(bool is_error, const void *data, size_t length, void *user)
{
    return process_stream_output(user, is_error, data, length);
}

static void on_input_taken(void *user)
{
    process_stream_input_taken(user);
}

static void on_drained(bool held, void *user)
{
    struct process *process = user;
    process_io_free(process->io);
    process->io = NULL;
    process->held = held;
    process->drained = true;
    process_stream_drained(process);
    keep_when_over(process);
}

/* Pipes are there from the beginning, a terminal only once the process has started. */
static void open_io(struct process *process)
{
    static const struct process_io_events EVENTS = {
        .on_output = on_output, .on_input_taken = on_input_taken, .on_drained = on_drained};
    struct process_io_events events = EVENTS;
    events.user = process;
    int input = maker_session_take_input(process->session);
    int output = maker_session_take_output(process->session);
    int error = maker_session_take_error(process->session);
    process->io = process_io_new(process->table->service->options.reactor, input, output, error,
                                 process->terminal, &events);
}

static void on_started(struct maker_session *session, const struct error *error, void *user)
{
    (void)session;
    struct process *process = user;
    if (process->started)
        return;
    process->started = true;
    if (process->io == NULL)
        open_io(process);
    process_stream_started(process);
    if (error != NULL)
        say_why_not_started(process, error);
    process_io_resume(process->io);
}

static void on_session_exit(struct maker_session *session, const struct maker_exit *status,
                            void *user)
{
    struct process *process = user;
    if (process->exited)
        return;
    if (!process->started) /* it never came so far */
        on_started(session, NULL, process);
    process->exited = true;
    process->status = *status;
    reactor_timer_cancel(process->timeout);
    process->timeout = NULL;
    log_debug("process %s: %s %d", process->id,
              status->kind == MAKER_EXITED     ? "exited"
              : status->kind == MAKER_SIGNALED ? "signal"
                                               : status->reason,
              status->value);
    if (process->is_main) /* what main leaves behind ends with it (decision P8) */
        process_kill(process, PROCESS_KILL_GRACE_MILLISECONDS);
    process_stream_exited(process);
    process_io_exited(process->io, PROCESS_IO_DRAIN_MILLISECONDS);
}

static void on_empty(struct maker_session *session, void *user)
{
    struct process *process = user;
    process->session = NULL;
    maker_session_close(session);
    process_stream_empty(process);
    keep_when_over(process);
}

static const struct maker_session_events SESSION_EVENTS = {
    .on_started = on_started, .on_exit = on_session_exit, .on_empty = on_empty};

/* ---- starting ---- */

static void on_timeout(void *argument)
{
    struct process *process = argument;
    reactor_timer_cancel(process->timeout);
    process->timeout = NULL;
    process->timed_out = true;
    process_kill(process, PROCESS_KILL_GRACE_MILLISECONDS);
}

static char *name_of(const struct maker_session_spec *spec)
{
    return memory_strdup(spec->argc > 0 ? spec->argv[0] : "login shell");
}

static bool exec_admitted(struct service *service,
                          const Openshell__Sandbox__Protocol__V1__Exec *exec, struct error *error)
{
    int64_t expiry = 0;
    if (exec->expiry != NULL)
        expiry = exec->expiry->seconds * 1000 + exec->expiry->nanos / 1000000;
    if (exec->timeout != NULL && (exec->timeout->seconds < 0 || exec->timeout->nanos < 0 ||
                                  (exec->timeout->seconds == 0 && exec->timeout->nanos == 0)))
        return failure_set(error, FAILURE_INVALID, "the time limit is not positive");
    return exec_admission_admit(service->admission, exec->request_id, expiry,
                                clock_realtime_milliseconds(), error);
}

static struct process *start_exec(struct service *service,
                                  const Openshell__Sandbox__Protocol__V1__Exec *exec,
                                  struct arena *arena, struct error *error)
{
    struct process_request request = {
        .command_count = exec->n_command,
        .command = exec->command,
        .environment_count = exec->n_environment,
        .environment = exec->environment,
        .workdir = exec->workdir,
        .terminal = exec->terminal,
        .columns = exec->columns,
        .rows = exec->rows,
        .login_shell = exec->login_shell,
        .helper = exec->helper,
    };
    struct maker_session_spec spec;
    if (!process_spec_make(&request, arena, &spec, error) || !exec_admitted(service, exec, error))
        return NULL;
    struct process *process = process_new(service->processes, exec->request_id);
    process->terminal = exec->terminal;
    process->keep_running = exec->keep_running;
    process->program = name_of(&spec);
    process->session = maker_exec(service->options.maker, &spec, &SESSION_EVENTS, process, error);
    if (process->session == NULL) {
        failure_classify(error, FAILURE_PROCESS);
        process_free(process);
        return NULL;
    }
    table_put(service->processes->by_id, process->id, process);
    if (!process->terminal)
        open_io(process);
    if (exec->timeout != NULL)
        process->timeout = reactor_timer_start(service->options.reactor,
                                               (uint64_t)exec->timeout->seconds * 1000 +
                                                   (uint64_t)exec->timeout->nanos / 1000000,
                                               0, on_timeout, process);
    return process;
}

void process_exec(struct exchange_stream *stream,
                  const Openshell__Sandbox__Protocol__V1__Exec *exec)
{
    struct error error = {0};
    struct process *process =
        start_exec(stream->service, exec, rpc_call_arena(stream->call), &error);
    if (process == NULL) {
        exchange_stream_fail(stream, &error);
        error_clear(&error);
        return;
    }
    stream->process = process;
    stream->writer = true;
    process->owner = stream;
    bool written = true;
    if (process->io != NULL) {
        if (exec->stdin.len > 0)
            written = process_io_write(process->io, exec->stdin.data, exec->stdin.len);
        if (exec->stdin_complete)
            process_io_end_input(process->io);
    }
    process->input_waits = !written || process->io == NULL;
    if (!process->input_waits)
        rpc_call_read(stream->call);
}

bool process_start_main(struct exchange_stream *stream,
                        const Openshell__Sandbox__Protocol__V1__StartAgent *start,
                        struct error *error)
{
    struct service *service = stream->service;
    struct process_request request = {
        .command_count = start->n_command,
        .command = start->command,
        .environment_count = start->n_environment,
        .environment = start->environment,
        .workdir = start->workdir,
        .terminal = start->terminal,
        .columns = start->columns,
        .rows = start->rows,
        .login_shell = start->n_command == 0,
    };
    struct maker_session_spec spec;
    if (!process_spec_make(&request, rpc_call_arena(stream->call), &spec, error))
        return false;
    struct process *process = process_new(service->processes, MAIN_PROCESS_ID);
    process->is_main = true;
    process->terminal = start->terminal;
    process->program = name_of(&spec);
    process->ring = output_ring_new();
    process->session =
        maker_start_main(service->options.maker, &spec, &SESSION_EVENTS, process, error);
    if (process->session == NULL) {
        failure_classify(error, FAILURE_PROCESS);
        process_free(process);
        return false;
    }
    table_put(service->processes->by_id, process->id, process);
    process->starting = stream;
    stream->process = process;
    if (!process->terminal)
        open_io(process);
    return true;
}
