#include <string.h>
#include <strings.h>

#include "gateway/conditions.h"
#include "gateway/lifecycle_rules.h"
#include "gateway/records.h"

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static bool deadline_passed(const Openshell__V1__Sandbox *sandbox, int64_t now)
{
    const Openshell__V1__SandboxProvisioning *provisioning = sandbox->status->provisioning;
    return provisioning != NULL && provisioning->deadline != NULL &&
           now >= record_milliseconds(provisioning->deadline);
}

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

/* Reasons of a driver that a later observation may change (1.2). */
static bool is_transient(const char *reason)
{
    static const char *const words[] = {
        "ReconcilerError",   "DependenciesNotReady", "SupervisorNotConnected", "Starting",
        "ContainerStarting", "ContainerCreated",     "HealthCheckStarting",    "InspectFailed",
    };
    return is_one_of(reason, words, sizeof(words) / sizeof(words[0]));
}

static bool instance_guard(const Openshell__V1__Sandbox *sandbox, enum lifecycle_guard guard,
                           const char *speaker)
{
    const Openshell__V1__SandboxConfigurationAdmission *admission =
        sandbox->status->configuration_admission;
    const char *admitted = admission != NULL ? admission->instance_id : "";
    const char *stored = sandbox->status->main_process_instance_id;
    switch (guard) {
    case GUARD_OLD_INSTANCE:
        return stored[0] != '\0' && strcmp(speaker, stored) == 0 && strcmp(speaker, admitted) != 0;
    case GUARD_OTHER_INSTANCE:
        return stored[0] != '\0' && strcmp(speaker, stored) != 0;
    case GUARD_UNADMITTED_SPEAKER:
        return lifecycle_admitted(sandbox) && strcmp(speaker, admitted) != 0;
    default: /* GUARD_SESSION_ADMITTED: the session is the stored instance's */
        return lifecycle_admitted(sandbox) && stored[0] != '\0' && strcmp(stored, admitted) == 0;
    }
}

static bool due_guard(const Openshell__V1__Sandbox *sandbox, enum lifecycle_event event,
                      int64_t now)
{
    enum lifecycle_event due;
    return lifecycle_deadline_due(sandbox, now, &due) && due == event;
}

static bool error_guard(const Openshell__V1__Sandbox *sandbox, enum lifecycle_guard guard)
{
    const Openshell__V1__SandboxProvisioning *provisioning = sandbox->status->provisioning;
    const char *reason = conditions_reason(sandbox->status, CONDITION_READY);
    switch (guard) {
    case GUARD_CLEANUP_PENDING:
        return lifecycle_timed_out(sandbox) && provisioning->cleanup_completed_time == NULL;
    case GUARD_INFRASTRUCTURE:
        return strcmp(reason, "ContainerExited") != 0 && strcmp(reason, "MainProcessFailed") != 0;
    default: /* GUARD_MAIN_FAILED */
        return lifecycle_main_failed(sandbox);
    }
}

static bool policy_restarts(const Openshell__V1__Sandbox *sandbox, int32_t exit_code)
{
    if (sandbox->spec == NULL)
        return false;
    switch (sandbox->spec->restart_policy) {
    case OPENSHELL__V1__SANDBOX_RESTART_POLICY__SANDBOX_RESTART_POLICY_ALWAYS:
        return true;
    case OPENSHELL__V1__SANDBOX_RESTART_POLICY__SANDBOX_RESTART_POLICY_ON_FAILURE:
        return exit_code != 0;
    default:
        return false;
    }
}

/* Starting by the restart policy, as the condition says. */
static bool starts_automatically(const Openshell__V1__Sandbox *sandbox)
{
    static const char *const reasons[] = {"MainProcessExitDraining", "MainProcessRestartScheduled",
                                          "MainProcessRestartBackoff"};
    return lifecycle_phase_of(sandbox) == PHASE(STARTING) &&
           is_one_of(conditions_reason(sandbox->status, CONDITION_READY), reasons, 3);
}

static bool restart_guard(const Openshell__V1__Sandbox *sandbox, enum lifecycle_guard guard,
                          const struct lifecycle_facts *facts)
{
    const Openshell__V1__SandboxStatus *status = sandbox->status;
    switch (guard) {
    case GUARD_RESTARTS:
        return policy_restarts(sandbox, facts->exit_code);
    case GUARD_ASKED_START:
        return !starts_automatically(sandbox);
    case GUARD_AUTOMATIC:
        return starts_automatically(sandbox);
    case GUARD_RESTART_PENDING:
        return starts_automatically(sandbox) && status->next_restart_time != NULL;
    case GUARD_DRAINING:
        return lifecycle_exit_draining(sandbox);
    case GUARD_DRAINING_AT_ONCE:
        return lifecycle_exit_draining(sandbox) &&
               lifecycle_restart_delay(status->restart_count) == 0;
    case GUARD_DRAINING_SPEAKER:
        return lifecycle_exit_draining(sandbox) &&
               !instance_guard(sandbox, GUARD_OTHER_INSTANCE, or_empty(facts->instance_id));
    default: /* GUARD_RESTART_DUE */
        return due_guard(sandbox, LIFECYCLE_RESTART_DUE, facts->now);
    }
}

/* An infrastructure failure is kept for whoever wants to know why. */
static bool is_ephemeral(const Openshell__V1__Sandbox *sandbox)
{
    const char *retention = record_annotation(sandbox, ANNOTATION_RETENTION);
    return retention != NULL && strcmp(retention, RETENTION_EPHEMERAL) == 0 &&
           lifecycle_has_result(sandbox) &&
           (lifecycle_phase_of(sandbox) == PHASE(COMPLETED) || lifecycle_main_failed(sandbox));
}

bool lifecycle_guard_holds(const Openshell__V1__Sandbox *sandbox, enum lifecycle_guard guard,
                           const struct lifecycle_facts *facts)
{
    static const char *const stopped_reasons[] = {"ContainerExited", "ContainerStopped"};
    const Openshell__V1__SandboxProvisioning *provisioning = sandbox->status->provisioning;
    switch (guard) {
    case GUARD_NONE:
        return true;
    case GUARD_OPERATION_PENDING:
        return provisioning != NULL && provisioning->driver_operation_pending;
    case GUARD_ACTIVATED:
        return sandbox->status->configuration_activated_presence_case ==
                   OPENSHELL__V1__SANDBOX_STATUS__CONFIGURATION_ACTIVATED_PRESENCE_CONFIGURATION_ACTIVATED &&
               sandbox->status->configuration_activated;
    case GUARD_REFUSED:
        return lifecycle_refused(sandbox);
    case GUARD_TIMED_OUT:
        return lifecycle_timed_out(sandbox);
    case GUARD_CLEANUP_PENDING:
    case GUARD_MAIN_FAILED:
    case GUARD_INFRASTRUCTURE:
        return error_guard(sandbox, guard);
    case GUARD_OLD_INSTANCE:
    case GUARD_OTHER_INSTANCE:
    case GUARD_UNADMITTED_SPEAKER:
        return instance_guard(sandbox, guard, or_empty(facts->instance_id));
    case GUARD_ADMITTED:
        return lifecycle_admitted(sandbox);
    case GUARD_ADMITTED_LATE:
        return lifecycle_admitted(sandbox) && deadline_passed(sandbox, facts->now);
    case GUARD_SESSION_ADMITTED:
        return facts->session_connected && instance_guard(sandbox, guard, "");
    case GUARD_SESSION_LATE:
        return facts->session_connected && instance_guard(sandbox, GUARD_SESSION_ADMITTED, "") &&
               deadline_passed(sandbox, facts->now);
    case GUARD_NO_SESSION_YET:
        return sandbox->status->main_process_instance_id[0] == '\0' &&
               !lifecycle_admission_is(sandbox, ADMISSION_STATE(REJECTED));
    case GUARD_NO_SESSION:
        return !facts->session_connected;
    case GUARD_RESULT_STORED:
        return lifecycle_has_result(sandbox);
    case GUARD_NO_RESULT:
        return !lifecycle_has_result(sandbox);
    case GUARD_EXIT_ZERO:
        return facts->exit_code == 0;
    case GUARD_RUNNING_ADMITTED:
        return facts->compute_running && facts->session_connected && lifecycle_admitted(sandbox);
    case GUARD_RUNNING:
        return facts->compute_running;
    case GUARD_TRANSIENT_REASON:
        return is_transient(or_empty(facts->reason));
    case GUARD_STOPPED_REASON:
        return is_one_of(or_empty(facts->reason), stopped_reasons, 2);
    case GUARD_RESTART_REASON:
        return strcasecmp(or_empty(facts->reason), "ContainerRuntimeRestart") == 0;
    case GUARD_PREPARATION_DUE:
        return due_guard(sandbox, LIFECYCLE_PREPARATION_DEADLINE, facts->now);
    case GUARD_REPAIR_DUE:
        return due_guard(sandbox, LIFECYCLE_REPAIR_DEADLINE, facts->now);
    case GUARD_RESTARTS:
    case GUARD_ASKED_START:
    case GUARD_AUTOMATIC:
    case GUARD_RESTART_PENDING:
    case GUARD_DRAINING:
    case GUARD_DRAINING_AT_ONCE:
    case GUARD_DRAINING_SPEAKER:
    case GUARD_RESTART_DUE:
        return restart_guard(sandbox, guard, facts);
    case GUARD_EPHEMERAL:
        return is_ephemeral(sandbox);
    }
    return false;
}
