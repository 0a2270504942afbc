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
    }
    return false;
}
