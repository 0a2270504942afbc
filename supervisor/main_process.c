#include "supervisor/main_process.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "method_table.h"
#include "openshell.pb-c.h"

struct main_process {
    struct reactor *reactor;
    struct gateway_link *link;
    bool session_accepted;
    bool ended;
    bool reporting; /* or done with it */
    bool reported;
    bool finalizing; /* or done with it */
    unsigned finalize_attempts;
    struct reactor_timer *timer;

    bool awaited; /* the creator announced that it attaches */
    bool settled; /* a client has the result, or left on purpose */
    unsigned attachments;
    bool attached_once;
    int64_t changed_at; /* monotonic milliseconds: the exit, the last piece taken, the last loss */
    struct reactor_timer *delivery;
    Openshell__V1__ReportMainProcessExitRequest report;
    Openshell__V1__FinalizeMainProcessExitRequest finalize;
};

static void finalize(struct main_process *process);

static void on_pause_over(void *argument)
{
    struct main_process *process = argument;
    reactor_timer_cancel(process->timer);
    process->timer = NULL;
    finalize(process);
}

static void on_finalized(const ProtobufCMessage *response, const struct error *error, void *user)
{
    (void)response;
    struct main_process *process = user;
    if (error == NULL) {
        log_debug("the end of the main process is final");
        return;
    }
    if (error->code == ERROR_FAILED_PRECONDITION &&
        ++process->finalize_attempts < FINALIZE_ATTEMPTS_LIMIT) {
        process->timer =
            reactor_timer_start(process->reactor, gateway_backoff(process->finalize_attempts), 0,
                                on_pause_over, process);
        return;
    }
    log_warn("the end of the main process could not be made final: %s", error->message);
    process->finalizing = false; /* the next session is another chance */
    process->finalize_attempts = 0;
}

static void finalize(struct main_process *process)
{
    gateway_link_call(process->link, &rpc_openshell_v1_OpenShell_FinalizeMainProcessExit,
                      &process->finalize.base, 0, on_finalized, process);
}

/* ---- delivery ---- */

/* How long after the last change the result stays open; 0: it need not. */
static int64_t delivery_patience(const struct main_process *process)
{
    if (process->attachments > 0)
        return DELIVERY_STALL_MILLISECONDS;
    if (!process->awaited || process->settled)
        return 0;
    return process->attached_once ? DELIVERY_AGAIN_MILLISECONDS : DELIVERY_FIRST_MILLISECONDS;
}

static void on_delivery_time(void *argument);

/* Makes the end final when nobody is to be waited for any more. */
static void consider(struct main_process *process)
{
    if (!process->reported || process->finalizing)
        return;
    int64_t left =
        process->changed_at + delivery_patience(process) - clock_monotonic_milliseconds();
    reactor_timer_cancel(process->delivery);
    process->delivery = NULL;
    if (left > 0) {
        process->delivery =
            reactor_timer_start(process->reactor, (uint64_t)left, 0, on_delivery_time, process);
        return;
    }
    if (process->attachments > 0 || (process->awaited && !process->settled))
        log_warn("the result of the main process is made final, and nobody has taken it");
    process->finalizing = true;
    finalize(process);
}

static void on_delivery_time(void *argument)
{
    consider(argument);
}

static void change(struct main_process *process)
{
    process->changed_at = clock_monotonic_milliseconds();
    consider(process);
}

void main_process_attached(struct main_process *process)
{
    process->attachments++;
    process->attached_once = true;
    change(process);
}

void main_process_output_taken(struct main_process *process)
{
    process->changed_at = clock_monotonic_milliseconds(); /* the timer looks again */
}

void main_process_attachment_ended(struct main_process *process, bool settled)
{
    process->attachments--;
    process->settled = process->settled || settled;
    change(process);
}

static void on_reported(const ProtobufCMessage *response, const struct error *error, void *user)
{
    (void)response;
    struct main_process *process = user;
    if (error != NULL) {
        log_error("the end of the main process could not be reported: %s", error->message);
        return;
    }
    process->reported = true;
    consider(process);
}

static void report_when_possible(struct main_process *process)
{
    if (!process->ended || !process->session_accepted || process->reporting)
        return;
    process->reporting = true;
    gateway_link_call(process->link, &rpc_openshell_v1_OpenShell_ReportMainProcessExit,
                      &process->report.base, 0, on_reported, process);
}

static int32_t exit_code_of(const Openshell__Sandbox__Protocol__V1__Exited *exited)
{
    const exchange_exit_status *status = exited->status;
    if (status != NULL && status->status_case == EXCHANGE_STATUS(EXITED))
        return status->exited;
    if (status != NULL && status->status_case == EXCHANGE_STATUS(SIGNALED))
        return 128 + status->signaled;
    log_warn("nobody knows how the main process ended: %s",
             status != NULL && status->status_case == EXCHANGE_STATUS(UNKNOWN) ? status->unknown
                                                                               : "no status");
    return MAIN_EXIT_CODE_UNKNOWN;
}

static void on_exited(const Openshell__Sandbox__Protocol__V1__Exited *exited,
                      const struct error *error, void *user)
{
    struct main_process *process = user;
    if (error != NULL) { /* the connection's end, which ends the supervisor */
        log_debug("waiting for the main process failed: %s", error->message);
        return;
    }
    process->ended = true;
    process->changed_at = clock_monotonic_milliseconds();
    process->report.exit_code = exit_code_of(exited);
    char code[16];
    snprintf(code, sizeof(code), "%d", process->report.exit_code);
    const struct log_field fields[] = {{"code", code}, {NULL, NULL}};
    log_write_fields(LOG_LEVEL_INFO, "main", fields, "the main process ended");
    report_when_possible(process);
}

void main_process_session_accepted(struct main_process *process)
{
    process->session_accepted = true;
    report_when_possible(process);
    consider(process);
}

struct main_process *main_process_follow(struct reactor *reactor, struct gateway_link *link,
                                         struct running_boundary *running,
                                         const struct launch_supervisor *launch,
                                         const char *instance_id)
{
    struct main_process *process = memory_new_of(struct main_process);
    process->reactor = reactor;
    process->link = link;
    process->awaited = launch->main.await_attachment;
    openshell__v1__report_main_process_exit_request__init(&process->report);
    process->report.sandbox_id = launch->sandbox_id;
    process->report.instance_id = (char *)instance_id;
    openshell__v1__finalize_main_process_exit_request__init(&process->finalize);
    process->finalize.sandbox_id = launch->sandbox_id;
    process->finalize.instance_id = (char *)instance_id;
    running_boundary_wait(running, MAIN_PROCESS_ID, on_exited, process);
    return process;
}
