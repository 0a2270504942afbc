#include "gateway/lifecycle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/uuid.h"
#include "gateway/conditions.h"
#include "gateway/lifecycle_rules.h"
#include "gateway/records.h"

enum { TEXT_MAX = 512 /* bytes of a driver's words in a condition */ };

static const char *const PHASE_NAMES[LIFECYCLE_PHASE_COUNT] = {
    [PHASE(UNSPECIFIED)] = "SANDBOX_PHASE_UNSPECIFIED",
    [PHASE(PROVISIONING)] = "SANDBOX_PHASE_PROVISIONING",
    [PHASE(READY)] = "SANDBOX_PHASE_READY",
    [PHASE(ERROR)] = "SANDBOX_PHASE_ERROR",
    [PHASE(DELETING)] = "SANDBOX_PHASE_DELETING",
    [PHASE(UNKNOWN)] = "SANDBOX_PHASE_UNKNOWN",
    [PHASE(STOPPING)] = "SANDBOX_PHASE_STOPPING",
    [PHASE(STOPPED)] = "SANDBOX_PHASE_STOPPED",
    [PHASE(STARTING)] = "SANDBOX_PHASE_STARTING",
    [PHASE(COMPLETED)] = "SANDBOX_PHASE_COMPLETED",
};

static const char *const PHASE_WORDS[LIFECYCLE_PHASE_COUNT] = {
    [PHASE(UNSPECIFIED)] = "in no known phase",
    [PHASE(PROVISIONING)] = "being prepared",
    [PHASE(READY)] = "ready",
    [PHASE(ERROR)] = "in error",
    [PHASE(DELETING)] = "being deleted",
    [PHASE(UNKNOWN)] = "in an unknown state",
    [PHASE(STOPPING)] = "stopping",
    [PHASE(STOPPED)] = "stopped",
    [PHASE(STARTING)] = "starting",
    [PHASE(COMPLETED)] = "completed",
};

#define EVENT(name) [LIFECYCLE_##name] = #name
static const char *const EVENT_NAMES[LIFECYCLE_EVENT_COUNT] = {
    EVENT(CREATE),
    EVENT(DRIVER_CREATED),
    EVENT(DRIVER_CREATE_FAILED),
    EVENT(START_REQUESTED),
    EVENT(DRIVER_STARTED),
    EVENT(START_FAILED),
    EVENT(STOP_REQUESTED),
    EVENT(DRIVER_STOPPED),
    EVENT(DRIVER_STOP_FAILED),
    EVENT(DELETE_REQUESTED),
    EVENT(DRIVER_DELETED),
    EVENT(DRIVER_DELETE_FAILED),
    EVENT(SUPERVISOR_CONNECTED),
    EVENT(SUPERVISOR_DISCONNECTED),
    EVENT(MAIN_EXITED),
    EVENT(FINALIZED),
    EVENT(ADMISSION_PENDING),
    EVENT(ADMISSION_ACCEPTED),
    EVENT(ADMISSION_REJECTED),
    EVENT(ADMISSION_DESIRED_REJECTED),
    EVENT(ADMISSION_REFUSED),
    EVENT(SUPERVISOR_LOST),
    EVENT(RUNTIME_LOST),
    EVENT(SUPERVISOR_REFUSED),
    EVENT(DRIVER_FAILED),
    EVENT(ADOPTED),
    EVENT(BACKEND_MISSING),
    EVENT(PREPARATION_DEADLINE),
    EVENT(REPAIR_DEADLINE),
    EVENT(RESTART_DUE),
};

const char *lifecycle_phase_name(Openshell__V1__SandboxPhase phase)
{
    return (unsigned)phase < LIFECYCLE_PHASE_COUNT ? PHASE_NAMES[phase]
                                                   : PHASE_NAMES[PHASE(UNSPECIFIED)];
}

const char *lifecycle_phase_word(Openshell__V1__SandboxPhase phase)
{
    return (unsigned)phase < LIFECYCLE_PHASE_COUNT ? PHASE_WORDS[phase]
                                                   : PHASE_WORDS[PHASE(UNSPECIFIED)];
}

const char *lifecycle_event_name(enum lifecycle_event event)
{
    return (unsigned)event < LIFECYCLE_EVENT_COUNT ? EVENT_NAMES[event] : "?";
}

/* ---- what a record says ---- */

static const Openshell__V1__SandboxConfigurationAdmission *
admission_of(const Openshell__V1__Sandbox *sandbox)
{
    return sandbox->status != NULL ? sandbox->status->configuration_admission : NULL;
}

static const Openshell__V1__SandboxProvisioning *
provisioning_of(const Openshell__V1__Sandbox *sandbox)
{
    return sandbox->status != NULL ? sandbox->status->provisioning : NULL;
}

Openshell__V1__SandboxPhase lifecycle_phase_of(const Openshell__V1__Sandbox *sandbox)
{
    if (sandbox->status == NULL || (unsigned)sandbox->status->phase >= LIFECYCLE_PHASE_COUNT)
        return PHASE(UNSPECIFIED);
    return sandbox->status->phase;
}

bool lifecycle_has_result(const Openshell__V1__Sandbox *sandbox)
{
    return sandbox->status->exit_code_presence_case ==
           OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE_EXIT_CODE;
}

bool lifecycle_admission_is(const Openshell__V1__Sandbox *sandbox,
                            Openshell__V1__ConfigurationAdmissionState state)
{
    const Openshell__V1__SandboxConfigurationAdmission *admission = admission_of(sandbox);
    return admission != NULL && admission->state == state;
}

bool lifecycle_admitted(const Openshell__V1__Sandbox *sandbox)
{
    return lifecycle_admission_is(sandbox, ADMISSION_STATE(ACCEPTED));
}

bool lifecycle_timed_out(const Openshell__V1__Sandbox *sandbox)
{
    const Openshell__V1__SandboxProvisioning *provisioning = provisioning_of(sandbox);
    return provisioning != NULL && provisioning->timeout_time != NULL;
}

bool lifecycle_main_failed(const Openshell__V1__Sandbox *sandbox)
{
    return lifecycle_phase_of(sandbox) == PHASE(ERROR) &&
           strcmp(conditions_reason(sandbox->status, CONDITION_READY), "MainProcessFailed") == 0;
}

bool lifecycle_refused(const Openshell__V1__Sandbox *sandbox)
{
    return record_annotation(sandbox, ANNOTATION_REFUSED) != NULL;
}

bool lifecycle_exit_draining(const Openshell__V1__Sandbox *sandbox)
{
    return lifecycle_phase_of(sandbox) == PHASE(STARTING) &&
           strcmp(conditions_reason(sandbox->status, CONDITION_READY), "MainProcessExitDraining") ==
               0;
}

int64_t lifecycle_restart_delay(uint32_t count)
{
    int64_t delay = count < 2 ? 0 : LIFECYCLE_RESTART_DELAY_FIRST;
    for (uint32_t i = 2; i < count && delay < LIFECYCLE_RESTART_DELAY_MOST; i++)
        delay *= 2;
    return delay < LIFECYCLE_RESTART_DELAY_MOST ? delay : LIFECYCLE_RESTART_DELAY_MOST;
}

/* While output may still be fetched, not before the grace is over. */
static int64_t restart_time(const Openshell__V1__Sandbox *sandbox)
{
    int64_t time = record_milliseconds(sandbox->status->next_restart_time);
    int64_t exit_time = time - lifecycle_restart_delay(sandbox->status->restart_count);
    int64_t grace_end = exit_time + LIFECYCLE_RESTART_GRACE;
    return lifecycle_exit_draining(sandbox) && grace_end > time ? grace_end : time;
}

int64_t lifecycle_next_deadline(const Openshell__V1__Sandbox *sandbox)
{
    const Openshell__V1__SandboxProvisioning *provisioning = provisioning_of(sandbox);
    Openshell__V1__SandboxPhase phase = lifecycle_phase_of(sandbox);
    if (phase == PHASE(STARTING) && sandbox->status->next_restart_time != NULL)
        return restart_time(sandbox);
    if (provisioning == NULL || (phase != PHASE(PROVISIONING) && phase != PHASE(STARTING)))
        return 0;
    return record_milliseconds(provisioning->deadline);
}

bool lifecycle_deadline_due(const Openshell__V1__Sandbox *sandbox, int64_t now,
                            enum lifecycle_event *ret_event)
{
    int64_t deadline = lifecycle_next_deadline(sandbox);
    if (deadline == 0 || now < deadline)
        return false;
    if (sandbox->status->next_restart_time != NULL)
        *ret_event = LIFECYCLE_RESTART_DUE;
    else
        *ret_event = provisioning_of(sandbox)->admission_start_time != NULL
                         ? LIFECYCLE_REPAIR_DEADLINE
                         : LIFECYCLE_PREPARATION_DEADLINE;
    return true;
}

static const struct lifecycle_rule *find_rule(const Openshell__V1__Sandbox *sandbox,
                                              enum lifecycle_event event,
                                              const struct lifecycle_facts *facts)
{
    unsigned bit = 1u << lifecycle_phase_of(sandbox);
    for (size_t i = 0; i < lifecycle_rule_count; i++) {
        const struct lifecycle_rule *rule = &lifecycle_rules[i];
        if (rule->event == event && (rule->phases & bit) != 0 &&
            lifecycle_guard_holds(sandbox, rule->guard, facts))
            return rule;
    }
    return NULL;
}

/* ---- words ---- */

/* Fills the words that begin with % into a text of the table. */
char *lifecycle_fill_in(struct arena *arena, const char *text,
                        const Openshell__V1__Sandbox *sandbox, const struct lifecycle_facts *facts)
{
    char driver[TEXT_MAX + 1], code[16], restart[16] = "", seconds[16] = "";
    text_escape(facts->text != NULL && facts->text[0] != '\0' ? facts->text : "no reason was given",
                driver, sizeof(driver));
    snprintf(code, sizeof(code), "%" PRId32, facts->exit_code);
    if (sandbox->status != NULL) {
        uint32_t count = sandbox->status->restart_count;
        snprintf(restart, sizeof(restart), "%" PRIu32, count);
        snprintf(seconds, sizeof(seconds), "%" PRId64, lifecycle_restart_delay(count) / 1000);
    }
    const Openshell__V1__SandboxConfigurationAdmission *admission = admission_of(sandbox);
    bool rejected = admission != NULL && admission->state == ADMISSION_STATE(REJECTED);
    const struct {
        const char *word;
        const char *value;
    } words[] = {
        {"%text", driver},
        {"%code", code},
        {"%restart", restart},
        {"%seconds", seconds},
        {"%name", sandbox->metadata != NULL ? sandbox->metadata->name : ""},
        {"%configuration",
         rejected ? admission->error : "Configuration waits for validation before activation"},
    };
    struct buffer buffer = BUFFER_INIT(8192);
    while (text[0] != '\0') {
        const char *value = NULL;
        size_t taken = 1;
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && value == NULL; i++) {
            if (text_has_prefix(text, words[i].word)) {
                value = words[i].value;
                taken = strlen(words[i].word);
            }
        }
        if (value != NULL)
            buffer_append_text(&buffer, value);
        else
            buffer_append(&buffer, text, 1);
        text += taken;
    }
    char *filled = arena_strdup(arena, buffer_text(&buffer));
    buffer_free(&buffer);
    return filled;
}

static const char *reason_of(const struct lifecycle_rule *rule, struct arena *arena,
                             const Openshell__V1__Sandbox *sandbox,
                             const struct lifecycle_facts *facts)
{
    if (strcmp(rule->reason, "%configuration") == 0)
        return lifecycle_admission_is(sandbox, ADMISSION_STATE(REJECTED)) ? "ConfigurationInvalid"
                                                                          : "ConfigurationPending";
    if (strcmp(rule->reason, "%reason") != 0)
        return rule->reason;
    char reason[128];
    text_escape(facts->reason != NULL && facts->reason[0] != '\0' ? facts->reason : "DriverError",
                reason, sizeof(reason));
    return arena_strdup(arena, reason);
}

static bool refuse(const struct lifecycle_rule *rule, struct arena *arena,
                   const Openshell__V1__Sandbox *sandbox, const struct lifecycle_facts *facts,
                   struct error *error)
{
    if (rule->outcome == OUTCOME_RECONNECT)
        return error_set(error, ERROR_ABORTED,
                         "failed to persist supervisor session state; reconnect");
    Openshell__V1__SandboxPhase phase = lifecycle_phase_of(sandbox);
    const char *reason =
        phase == PHASE(ERROR) ? conditions_reason(sandbox->status, CONDITION_READY) : "";
    return error_set(error, ERROR_FAILED_PRECONDITION, "sandbox '%s' is %s%s%s%s: %s",
                     sandbox->metadata != NULL ? sandbox->metadata->name : "",
                     lifecycle_phase_word(phase), reason[0] != '\0' ? " (" : "", reason,
                     reason[0] != '\0' ? ")" : "",
                     lifecycle_fill_in(arena, rule->message, sandbox, facts));
}

/* ---- applying ---- */

static bool of_older_launch(const Openshell__V1__Sandbox *sandbox,
                            const struct lifecycle_facts *facts)
{
    const char *generation = record_annotation(sandbox, ANNOTATION_GENERATION);
    return facts->generation != NULL && generation != NULL &&
           strcmp(facts->generation, generation) != 0;
}

static void apply_rule(const struct lifecycle_rule *rule, Openshell__V1__Sandbox *sandbox,
                       struct arena *arena, const struct lifecycle_facts *facts,
                       struct lifecycle_result *result)
{
    result->changed = lifecycle_apply_effects(sandbox, arena, facts, rule->effects);
    if (rule->outcome == OUTCOME_MOVE && sandbox->status->phase != rule->next) {
        sandbox->status->phase = rule->next;
        result->changed = true;
    }
    if (rule->reason == NULL)
        return;
    bool ready = rule->outcome == OUTCOME_MOVE && rule->next == PHASE(READY);
    if (conditions_set(sandbox->status, arena, CONDITION_READY, ready,
                       reason_of(rule, arena, sandbox, facts),
                       lifecycle_fill_in(arena, rule->message, sandbox, facts), facts->now))
        result->changed = true;
}

bool lifecycle_apply(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                     enum lifecycle_event event, const struct lifecycle_facts *facts,
                     struct lifecycle_result *ret_result, struct error *error)
{
    if (sandbox->status == NULL) {
        sandbox->status = arena_new_of(arena, Openshell__V1__SandboxStatus);
        openshell__v1__sandbox_status__init(sandbox->status);
    }
    struct lifecycle_result result = {.previous_phase = lifecycle_phase_of(sandbox)};
    result.phase = result.previous_phase;
    if (of_older_launch(sandbox, facts)) {
        result.ignored = true;
        *ret_result = result;
        return true;
    }
    const struct lifecycle_rule *rule = find_rule(sandbox, event, facts);
    if (rule == NULL)
        return error_set(error, ERROR_INTERNAL, "no rule for %s in phase %s",
                         lifecycle_event_name(event), lifecycle_phase_name(result.phase));
    if (rule->outcome == OUTCOME_REFUSE || rule->outcome == OUTCOME_RECONNECT)
        return refuse(rule, arena, sandbox, facts, error);
    if ((rule->effects & EFFECT_NEW_ATTEMPT) != 0 &&
        (facts->new_attempt_id == NULL || facts->new_generation == NULL ||
         facts->new_fence_instance_id == NULL))
        return error_set(error, ERROR_INTERNAL, "%s without new identifiers",
                         lifecycle_event_name(event));
    result.actions = rule->actions;
    result.remove = rule->outcome == OUTCOME_REMOVE;
    if (rule->outcome == OUTCOME_STAY || rule->outcome == OUTCOME_MOVE)
        apply_rule(rule, sandbox, arena, facts, &result);
    result.phase = lifecycle_phase_of(sandbox);
    result.ignored = !result.changed && !result.remove;
    *ret_result = result;
    return true;
}

void lifecycle_fresh_facts(struct arena *arena, struct lifecycle_facts *ret_facts)
{
    char identifiers[5][UUID_SIZE];
    for (size_t i = 0; i < 5; i++)
        uuid_generate(identifiers[i]);
    *ret_facts = (struct lifecycle_facts){
        .now = clock_realtime_milliseconds(),
        .new_attempt_id = arena_strdup(arena, identifiers[0]),
        .new_generation = arena_strdup(arena, identifiers[1]),
        .new_fence_instance_id = arena_strdup(arena, identifiers[2]),
        .new_operation_id = arena_strdup(arena, identifiers[3]),
        .new_attachment_epoch = arena_strdup(arena, identifiers[4]),
    };
}
