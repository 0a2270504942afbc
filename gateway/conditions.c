#include "gateway/conditions.h"

#include <string.h>

#include "gateway/lifecycle.h"
#include "gateway/records.h"

Openshell__V1__SandboxCondition *conditions_get(const Openshell__V1__SandboxStatus *status,
                                                const char *type)
{
    if (status == NULL)
        return NULL;
    for (size_t i = 0; i < status->n_conditions; i++)
        if (strcmp(status->conditions[i]->type, type) == 0)
            return status->conditions[i];
    return NULL;
}

const char *conditions_reason(const Openshell__V1__SandboxStatus *status, const char *type)
{
    const Openshell__V1__SandboxCondition *condition = conditions_get(status, type);
    return condition != NULL ? condition->reason : "";
}

static Openshell__V1__SandboxCondition *add(Openshell__V1__SandboxStatus *status,
                                            struct arena *arena, const char *type)
{
    size_t count = status->n_conditions;
    Openshell__V1__SandboxCondition **conditions =
        arena_array_of(arena, Openshell__V1__SandboxCondition *, count + 1);
    if (count > 0)
        memcpy(conditions, status->conditions, count * sizeof(*conditions));
    conditions[count] = arena_new_of(arena, Openshell__V1__SandboxCondition);
    openshell__v1__sandbox_condition__init(conditions[count]);
    conditions[count]->type = arena_strdup(arena, type);
    status->conditions = conditions;
    status->n_conditions = count + 1;
    return conditions[count];
}

bool conditions_set(Openshell__V1__SandboxStatus *status, struct arena *arena, const char *type,
                    bool value, const char *reason, const char *message, int64_t now)
{
    Openshell__V1__SandboxCondition *condition = conditions_get(status, type);
    if (condition == NULL)
        condition = add(status, arena, type);
    const char *word = value ? "True" : "False";
    bool moved = strcmp(condition->status, word) != 0 || strcmp(condition->reason, reason) != 0;
    if (!moved && strcmp(condition->message, message) == 0)
        return false;
    condition->status = arena_strdup(arena, word);
    condition->reason = arena_strdup(arena, reason);
    condition->message = arena_strdup(arena, message);
    if (moved)
        condition->transition_time = record_timestamp(arena, now);
    return true;
}

bool conditions_remove(Openshell__V1__SandboxStatus *status, const char *type)
{
    const Openshell__V1__SandboxCondition *condition = conditions_get(status, type);
    if (condition == NULL)
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < status->n_conditions; i++)
        if (status->conditions[i] != condition)
            status->conditions[kept++] = status->conditions[i];
    status->n_conditions = kept;
    return true;
}

bool conditions_set_configuration(Openshell__V1__SandboxStatus *status, struct arena *arena,
                                  int64_t now)
{
    const Openshell__V1__SandboxConfigurationAdmission *admission = status->configuration_admission;
    bool changed = false;
    bool accepted = admission != NULL && admission->state == ADMISSION_STATE(ACCEPTED);
    if (accepted && admission->error[0] != '\0')
        changed = conditions_set(status, arena, CONDITION_DESIRED_CONFIGURATION_READY, false,
                                 "ConfigurationInvalid", admission->error, now);
    else
        changed = conditions_remove(status, CONDITION_DESIRED_CONFIGURATION_READY);
    if (admission == NULL)
        return conditions_remove(status, CONDITION_CONFIGURATION_READY) || changed;
    const char *reason = "ConfigurationPending";
    const char *message = "Configuration waits for validation before activation";
    if (accepted) {
        reason = "ConfigurationAccepted";
        message = "Configuration accepted";
    } else if (admission->state == ADMISSION_STATE(REJECTED)) {
        reason = "ConfigurationInvalid";
        message = admission->error;
    }
    return conditions_set(status, arena, CONDITION_CONFIGURATION_READY, accepted, reason, message,
                          now) ||
           changed;
}

bool conditions_set_identity(Openshell__V1__SandboxStatus *status, struct arena *arena,
                             uint32_t user, uint32_t group, int64_t now)
{
    return conditions_set(status, arena, CONDITION_WORKLOAD_IDENTITY, true, "DriverResolved",
                          arena_printf(arena, "%u:%u", user, group), now);
}
