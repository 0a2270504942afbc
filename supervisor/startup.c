/* The launch order: the boundary is opened and its policy discovered while the gateway is asked for
 * the configuration; then admission, attach, confirm, start. Nothing of the workload runs before
 * ACCEPTED was acknowledged and the evidence held. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "boundary/failure.h"
#include "boundary/owner_lock.h"
#include "supervisor/supervisor.h"

struct startup {
    struct supervisor *supervisor;
    struct opened_boundary *opened;
    struct bound_boundary *bound;
    struct ready_boundary *ready;
    bool discovered;
    bool registered;
    struct reactor_timer *timer;
};

static void fail(struct startup *startup, const char *step, const struct error *error)
{
    struct error copy = {0};
    error_copy(&copy, error);
    error_prefix(&copy, "%s", step);
    supervisor_fail(startup->supervisor, &copy);
    error_clear(&copy);
}

static void on_too_slow(void *argument)
{
    struct startup *startup = argument;
    struct supervisor *supervisor = startup->supervisor;
    if (supervisor->admission != NULL && admission_waits(supervisor->admission))
        return; /* the timer comes again */
    struct error error = {0};
    error_set(&error, ERROR_DEADLINE_EXCEEDED, "the start took longer than %d s",
              STARTUP_MILLISECONDS / 1000);
    supervisor_fail(supervisor, &error);
}

/* ---- 5: start ---- */

static void on_started(struct running_boundary *running,
                       const Openshell__Sandbox__Protocol__V1__Started *started,
                       const struct error *error, void *user)
{
    struct startup *startup = user;
    if (error != NULL) {
        fail(startup, "start", error);
        return;
    }
    const struct log_field fields[] = {{"process", started->process_id}, {NULL, NULL}};
    log_write_fields(LOG_LEVEL_INFO, "startup", fields, "the main process is started");
    reactor_timer_cancel(startup->timer);
    struct supervisor *supervisor = startup->supervisor;
    supervisor->startup = NULL;
    free(startup);
    supervisor_running(supervisor, running);
}

static size_t as_bytes(char *const *list, ProtobufCBinaryData **ret_entries)
{
    size_t count = 0;
    while (list != NULL && list[count] != NULL)
        count++;
    *ret_entries = memory_new((count + 1) * sizeof(**ret_entries));
    for (size_t i = 0; i < count; i++)
        (*ret_entries)[i] = (ProtobufCBinaryData){strlen(list[i]), (uint8_t *)list[i]};
    return count;
}

static void start_main(struct startup *startup)
{
    const struct launch_main *main = &startup->supervisor->options.launch->main;
    Openshell__Sandbox__Protocol__V1__StartAgent start =
        OPENSHELL__SANDBOX__PROTOCOL__V1__START_AGENT__INIT;
    start.n_command = as_bytes(main->command, &start.command);
    start.n_environment = as_bytes(main->environment, &start.environment);
    start.terminal = main->terminal;
    start.columns = main->columns;
    start.rows = main->rows;
    ready_boundary_start(&startup->ready, &start, on_started, startup);
    free(start.command);
    free(start.environment);
}

/* ---- 4: confirm ---- */

static void on_confirmed(struct ready_boundary *ready, const struct error *error, void *user)
{
    struct startup *startup = user;
    if (error != NULL) {
        fail(startup, "confirm", error);
        return;
    }
    log_write_fields(LOG_LEVEL_INFO, "startup", NULL, "the boundary's controls are confirmed");
    startup->ready = ready;
    start_main(startup);
}

/* ---- 3: attach ---- */

static void on_refusal_reported(void *user)
{
    struct startup *startup = user;
    supervisor_end(startup->supervisor, OWNER_ENDED_REFUSED, OWNER_EXIT_REFUSED);
}

/* A refusal of what was accepted is the configuration's fault; anything else is ours (decision A2).
 */
static void attach_failed(struct startup *startup, const struct error *error)
{
    enum failure_kind kind = failure_kind_of(error);
    if (kind != FAILURE_DENIED && kind != FAILURE_ATTACH) {
        fail(startup, "attach", error);
        return;
    }
    log_error("the backend refused the accepted configuration: %s", error->message);
    admission_report_refusal(startup->supervisor->admission, error, on_refusal_reported, startup);
}

static void on_attached(struct bound_boundary *bound,
                        const Openshell__Sandbox__Protocol__V1__Attached *attached,
                        const struct error *error, void *user)
{
    struct startup *startup = user;
    if (error != NULL) {
        attach_failed(startup, error);
        return;
    }
    for (size_t i = 0; i < attached->n_warnings; i++)
        log_warn("%s", attached->warnings[i]);
    log_debug("attached");
    startup->bound = bound;
    bound_boundary_confirm(&startup->bound, on_confirmed, startup);
}

static void on_accepted(const sandbox_config *config, void *user)
{
    struct startup *startup = user;
    struct supervisor *supervisor = startup->supervisor;
    int64_t now = clock_realtime_milliseconds();
    Google__Protobuf__Timestamp time = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    time.seconds = now / 1000;
    time.nanos = (int32_t)(now % 1000) * 1000000;
    Openshell__Sandbox__Protocol__V1__Attach attach =
        OPENSHELL__SANDBOX__PROTOCOL__V1__ATTACH__INIT;
    attach.supervisor_instance_id = supervisor->instance_id;
    attach.policy = config->policy;
    attach.policy_hash = config->policy_hash;
    attach.supervisor_time = &time;
    opened_boundary_attach(&startup->opened, &attach, on_attached, startup);
}

/* ---- 2: admission, once both sides are ready ---- */

static void decide_when_ready(struct startup *startup)
{
    if (startup->discovered && startup->registered)
        admission_decide(startup->supervisor->admission);
}

static void on_registered(void *user)
{
    struct startup *startup = user;
    startup->registered = true;
    decide_when_ready(startup);
}

static void on_admission_failed(const struct error *error, void *user)
{
    fail(user, "admission", error);
}

/* ---- 1: the boundary ---- */

/* An image's policy that is invalid is never the same as a missing one (behaviour reference 3.3):
 * the gateway has no way to be told yet, so the start ends. A valid one needs the policy parser,
 * which the supervisor does not have yet. */
static bool image_policy_usable(const Openshell__Sandbox__Protocol__V1__ImagePolicy *policy,
                                struct error *error)
{
    switch (policy->source_case) {
    case OPENSHELL__SANDBOX__PROTOCOL__V1__IMAGE_POLICY__SOURCE__NOT_SET:
        return true;
    case OPENSHELL__SANDBOX__PROTOCOL__V1__IMAGE_POLICY__SOURCE_INVALID:
        return failure_set(error, FAILURE_INVALID, "the root's policy cannot be used: %s",
                           policy->invalid);
    default:
        return failure_set(error, FAILURE_UNSUPPORTED,
                           "the root has a policy of its own, which is not supported yet");
    }
}

static void on_discovered(const Openshell__Sandbox__Protocol__V1__ImagePolicy *policy,
                          const struct error *error, void *user)
{
    struct startup *startup = user;
    struct error problem = {0};
    if (error == NULL && !image_policy_usable(policy, &problem))
        error = &problem;
    if (error != NULL) {
        fail(startup, "policy discovery", error);
        error_clear(&problem);
        return;
    }
    log_debug("policy discovered");
    startup->discovered = true;
    decide_when_ready(startup);
}

static void on_opened(struct opened_boundary *opened, const struct error *error, void *user)
{
    struct supervisor *supervisor = user;
    struct startup *startup = supervisor->startup;
    if (error != NULL) {
        fail(startup, "opening the boundary", error);
        return;
    }
    log_write_fields(LOG_LEVEL_INFO, "startup", NULL, "the boundary is open");
    startup->opened = opened;
    opened_boundary_discover_policy(opened, on_discovered, startup);
}

static void on_lost(void *user)
{
    struct supervisor *supervisor = user;
    if (supervisor->stopping)
        supervisor_end(supervisor, OWNER_ENDED_STOPPED, EXIT_SUCCESS);
    else
        supervisor_end(supervisor, OWNER_ENDED_RUNTIME_LOST, EXIT_FAILURE);
}

void startup_begin(struct supervisor *supervisor)
{
    const struct supervisor_options *options = &supervisor->options;
    struct startup *startup = memory_new_of(struct startup);
    startup->supervisor = supervisor;
    supervisor->startup = startup;
    startup->timer = reactor_timer_start(options->reactor, STARTUP_MILLISECONDS,
                                         STARTUP_MILLISECONDS / 10, on_too_slow, startup);

    struct boundary_events boundary_events = {
        .on_opened = on_opened, .on_lost = on_lost, .user = supervisor};
    struct error error = {0};
    supervisor->boundary = boundary_new(options->reactor, options->rpc, options->listener,
                                        options->launch, &boundary_events, &error);
    if (supervisor->boundary == NULL) {
        supervisor_fail(supervisor, &error);
        error_clear(&error);
        return;
    }
    struct admission_events admission_events = {.on_registered = on_registered,
                                                .on_accepted = on_accepted,
                                                .on_failed = on_admission_failed,
                                                .user = startup};
    supervisor->admission = admission_begin(
        options->reactor, supervisor->link, options->launch, supervisor->instance_id,
        clock_monotonic_milliseconds() + STARTUP_MILLISECONDS, &admission_events);
}
