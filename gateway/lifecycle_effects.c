#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/conditions.h"
#include "gateway/lifecycle_rules.h"
#include "gateway/records.h"

enum { CLEANUP_RETRY_DELAY = 10 * 1000 /* milliseconds */ };

static const char *or_empty(const char *text)
{
    return text != NULL ? text : "";
}

static bool set_text(char **field, struct arena *arena, const char *text)
{
    if (strcmp(*field, text) == 0)
        return false;
    *field = arena_strdup(arena, text);
    return true;
}

static bool clear_result(Openshell__V1__Sandbox *sandbox)
{
    if (!lifecycle_has_result(sandbox))
        return false;
    sandbox->status->exit_code_presence_case =
        OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE__NOT_SET;
    sandbox->status->exit_code = 0;
    return true;
}

static void new_attempt(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                        const struct lifecycle_facts *facts, unsigned effects)
{
    Openshell__V1__SandboxStatus *status = sandbox->status;
    int64_t timeout = facts->preparation_timeout != 0     ? facts->preparation_timeout
                      : (effects & EFFECT_RESTARTED) != 0 ? LIFECYCLE_RESTART_TIMEOUT
                                                          : LIFECYCLE_PREPARATION_TIMEOUT;
    Openshell__V1__SandboxProvisioning *provisioning =
        arena_new_of(arena, Openshell__V1__SandboxProvisioning);
    openshell__v1__sandbox_provisioning__init(provisioning);
    provisioning->attempt_id = arena_strdup(arena, facts->new_attempt_id);
    provisioning->configuration_change_id =
        arena_printf(arena, "initial:%s", facts->new_attempt_id);
    provisioning->configuration_change_time = record_timestamp(arena, facts->now);
    provisioning->preparation_deadline = record_timestamp(arena, facts->now + timeout);
    provisioning->deadline = record_timestamp(arena, facts->now + timeout);
    status->provisioning = provisioning;

    Openshell__V1__SandboxConfigurationAdmission *admission =
        arena_new_of(arena, Openshell__V1__SandboxConfigurationAdmission);
    openshell__v1__sandbox_configuration_admission__init(admission);
    admission->instance_id = arena_strdup(arena, facts->new_fence_instance_id);
    admission->state = ADMISSION_STATE(PENDING);
    status->configuration_admission = admission;
    conditions_set_configuration(status, arena, facts->now);

    if ((effects & EFFECT_RESTARTED) == 0)
        status->restart_count = 0;
    status->next_restart_time = NULL;
    status->main_process_started_time = NULL;
    const char *epoch = record_annotation(sandbox, ANNOTATION_AUTH_EPOCH);
    uint64_t number = epoch != NULL ? strtoull(epoch, NULL, 10) : 0;
    record_set_annotation(sandbox, arena, ANNOTATION_AUTH_EPOCH,
                          arena_printf(arena, "%" PRIu64, number + 1));
    record_set_annotation(sandbox, arena, ANNOTATION_GENERATION, facts->new_generation);
    record_set_annotation(sandbox, arena, ANNOTATION_REFUSED, NULL);
    if ((effects & EFFECT_FIRST) == 0)
        record_set_annotation(sandbox, arena, ANNOTATION_AWAIT_ATTACHMENT, NULL);
}

/* A run that lasted begins the count anew (1.4). */
static void schedule_restart(Openshell__V1__SandboxStatus *status, struct arena *arena, int64_t now)
{
    int64_t started = record_milliseconds(status->main_process_started_time);
    bool lasted = started != 0 && now - started >= LIFECYCLE_RESTART_STABLE;
    status->restart_count = lasted ? 1 : status->restart_count + 1;
    status->next_restart_time =
        record_timestamp(arena, now + lifecycle_restart_delay(status->restart_count));
}

static bool apply_restart(Openshell__V1__SandboxStatus *status, struct arena *arena,
                          const struct lifecycle_facts *facts, unsigned effects)
{
    bool changed = false;
    if ((effects & EFFECT_DISARM) != 0 && status->next_restart_time != NULL) {
        status->next_restart_time = NULL;
        changed = true;
    }
    if ((effects & EFFECT_SCHEDULE_RESTART) != 0) {
        schedule_restart(status, arena, facts->now);
        changed = true;
    }
    if ((effects & EFFECT_RETRY_RESTART) != 0) {
        status->next_restart_time = record_timestamp(arena, facts->now + LIFECYCLE_RESTART_RETRY);
        changed = true;
    }
    return changed;
}

static void first_time(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                       const struct lifecycle_facts *facts)
{
    sandbox->status->configuration_activated_presence_case =
        OPENSHELL__V1__SANDBOX_STATUS__CONFIGURATION_ACTIVATED_PRESENCE_CONFIGURATION_ACTIVATED;
    sandbox->status->configuration_activated = false;
    if (sandbox->spec == NULL)
        return;
    if (sandbox->spec->restart_policy ==
        OPENSHELL__V1__SANDBOX_RESTART_POLICY__SANDBOX_RESTART_POLICY_UNSPECIFIED)
        sandbox->spec->restart_policy =
            OPENSHELL__V1__SANDBOX_RESTART_POLICY__SANDBOX_RESTART_POLICY_NEVER;
    sandbox->spec->provider_attachment_epoch =
        arena_strdup(arena, or_empty(facts->new_attachment_epoch));
}

static bool apply_instance(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                           const struct lifecycle_facts *facts, unsigned effects)
{
    Openshell__V1__SandboxStatus *status = sandbox->status;
    bool changed = false;
    if ((effects & (EFFECT_SET_INSTANCE | EFFECT_STORE_RESULT)) != 0 &&
        set_text(&status->main_process_instance_id, arena, or_empty(facts->instance_id))) {
        clear_result(sandbox);
        changed = true;
    }
    if ((effects & EFFECT_STORE_RESULT) != 0) {
        status->exit_code_presence_case =
            OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE_EXIT_CODE;
        status->exit_code = facts->exit_code;
        changed = true;
    }
    if ((effects & EFFECT_READY) != 0 && status->main_process_started_time == NULL) {
        status->main_process_started_time = record_timestamp(arena, facts->now);
        changed = true;
    }
    return changed;
}

static bool apply_pending(Openshell__V1__SandboxProvisioning *provisioning, struct arena *arena,
                          const struct lifecycle_facts *facts, unsigned effects)
{
    if ((effects & EFFECT_SET_PENDING) != 0) {
        provisioning->driver_operation_pending = true;
        provisioning->driver_operation_id = arena_strdup(arena, or_empty(facts->new_operation_id));
        return true;
    }
    if ((effects & EFFECT_CLEAR_PENDING) == 0 || !provisioning->driver_operation_pending)
        return false;
    provisioning->driver_operation_pending = false;
    provisioning->driver_operation_id = arena_strdup(arena, "");
    return true;
}

static bool apply_deadline(Openshell__V1__SandboxProvisioning *provisioning, struct arena *arena,
                           const struct lifecycle_facts *facts, unsigned effects)
{
    bool changed = false;
    if ((effects & (EFFECT_READY | EFFECT_DISARM | EFFECT_EXPIRE)) != 0 &&
        provisioning->deadline != NULL) {
        provisioning->deadline = NULL;
        changed = true;
    }
    if ((effects & EFFECT_EXPIRE) != 0) {
        provisioning->timeout_time = record_timestamp(arena, facts->now);
        changed = true;
    }
    if ((effects & EFFECT_CLEANED_UP) != 0) {
        provisioning->cleanup_completed_time = record_timestamp(arena, facts->now);
        provisioning->cleanup_error = arena_strdup(arena, "");
        provisioning->cleanup_retry_time = NULL;
        changed = true;
    }
    if ((effects & EFFECT_CLEANUP_FAILED) != 0) {
        provisioning->cleanup_error = lifecycle_fill_in(
            arena, "%text", &(Openshell__V1__Sandbox)OPENSHELL__V1__SANDBOX__INIT, facts);
        provisioning->cleanup_retry_time =
            record_timestamp(arena, facts->now + CLEANUP_RETRY_DELAY);
        changed = true;
    }
    return changed;
}

bool lifecycle_apply_effects(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                             const struct lifecycle_facts *facts, unsigned effects)
{
    bool changed = false;
    if ((effects & EFFECT_FIRST) != 0)
        first_time(sandbox, arena, facts);
    if ((effects & EFFECT_NEW_ATTEMPT) != 0) {
        new_attempt(sandbox, arena, facts, effects);
        changed = true;
    }
    if ((effects & EFFECT_CLEAR_RESULT) != 0 && clear_result(sandbox))
        changed = true;
    if (apply_instance(sandbox, arena, facts, effects))
        changed = true;
    if (apply_restart(sandbox->status, arena, facts, effects))
        changed = true;
    if ((effects & EFFECT_DELETION_TIME) != 0 && sandbox->metadata != NULL) {
        sandbox->metadata->deletion_time = record_timestamp(arena, facts->now);
        changed = true;
    }
    Openshell__V1__SandboxProvisioning *provisioning = sandbox->status->provisioning;
    if (provisioning == NULL)
        return changed;
    bool pending = apply_pending(provisioning, arena, facts, effects);
    return apply_deadline(provisioning, arena, facts, effects) || pending || changed;
}
