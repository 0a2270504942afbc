#include "gateway/admission.h"

#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "gateway/conditions.h"
#include "gateway/records.h"

#define DIAGNOSTIC_REFUSED                                                                         \
    "The sandbox's boundary refused the configuration before the workload was started. Delete "    \
    "the sandbox and create it again with a configuration that this machine can enforce"

typedef Openshell__V1__SandboxConfigurationAdmission admission_record;

/* ---- the public words ---- */

const char *admission_diagnostic(const char *reported)
{
    static const struct {
        const char *family;
        const char *text;
    } families[] = {
        {"middleware", "The configuration's network middleware could not be activated. Check the "
                       "middleware's name, its options and its endpoints"},
        {"provider", "The configuration's providers or credentials could not be activated. Check "
                     "the attached providers and what the policy binds to them"},
        {"credential", "The configuration's providers or credentials could not be activated. "
                       "Check the attached providers and what the policy binds to them"},
        {"policy", "The policy is not valid for this sandbox. Check its sections, and what the "
                   "image and the providers add to it"},
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (text_has_prefix(reported, families[i].family))
            return families[i].text;
    return "The configuration could not be activated";
}

bool admission_static_sections_open(const Openshell__V1__Sandbox *sandbox)
{
    const Openshell__V1__SandboxStatus *status = sandbox->status;
    return status != NULL &&
           status->configuration_activated_presence_case ==
               OPENSHELL__V1__SANDBOX_STATUS__CONFIGURATION_ACTIVATED_PRESENCE_CONFIGURATION_ACTIVATED &&
           !status->configuration_activated;
}

/* ---- the checks ---- */

static bool same_generation(const admission_record *reported, uint32_t policy_version,
                            const char *policy_hash, uint64_t config_revision,
                            uint64_t provider_env_revision)
{
    return reported->policy_version == policy_version &&
           strcmp(reported->policy_hash, policy_hash) == 0 &&
           reported->config_revision == config_revision &&
           reported->provider_env_revision == provider_env_revision;
}

static bool is_current(const admission_record *reported, const struct admission_generation *current)
{
    return same_generation(reported, current->policy_version,
                           current->policy_hash != NULL ? current->policy_hash : "",
                           current->config_revision, current->provider_env_revision);
}

static bool is_stored(const admission_record *reported, const admission_record *stored)
{
    return strcmp(reported->instance_id, stored->instance_id) == 0 &&
           same_generation(reported, stored->policy_version, stored->policy_hash,
                           stored->config_revision, stored->provider_env_revision);
}

/* Steps 1 to 3. */
static bool check_request(const Openshell__V1__Sandbox *sandbox, const char *caller_sandbox_id,
                          const Openshell__V1__ReportSandboxConfigurationRequest *report,
                          struct error *error)
{
    if (strcmp(caller_sandbox_id, report->sandbox_id) != 0)
        return error_set(error, ERROR_PERMISSION_DENIED,
                         "a supervisor may report for its own sandbox only");
    if (report->admission == NULL) {
        error_add_violation(error, "admission", "a report needs it");
        return false;
    }
    bool valid = true;
    if (!uuid_valid(report->admission->instance_id)) {
        error_add_violation(error, "admission.instance_id", "must be a UUID");
        valid = false;
    }
    if (report->admission->state != ADMISSION_STATE(PENDING) &&
        report->admission->state != ADMISSION_STATE(ACCEPTED) &&
        report->admission->state != ADMISSION_STATE(REJECTED)) {
        error_add_violation(error, "admission.state", "must be PENDING, ACCEPTED or REJECTED");
        valid = false;
    }
    if (!valid)
        return false;
    if (sandbox == NULL)
        return error_set(error, ERROR_NOT_FOUND, "the sandbox does not exist");
    return true;
}

/* Whether the report repeats the refusal that is on record (A2). */
static bool repeats_refusal(const Openshell__V1__Sandbox *sandbox,
                            const Openshell__V1__ReportSandboxConfigurationRequest *report)
{
    const admission_record *stored = sandbox->status->configuration_admission;
    return lifecycle_refused(sandbox) && report->refused_before_start &&
           report->admission->state == ADMISSION_STATE(REJECTED) &&
           stored->state == ADMISSION_STATE(REJECTED) && is_stored(report->admission, stored);
}

/* Steps 4 to 6. */
static bool check_speaker(const Openshell__V1__Sandbox *sandbox,
                          const Openshell__V1__ReportSandboxConfigurationRequest *report,
                          struct error *error)
{
    const admission_record *stored =
        sandbox->status != NULL ? sandbox->status->configuration_admission : NULL;
    if (stored == NULL)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the sandbox has no admission to report for");
    if (lifecycle_timed_out(sandbox))
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the attempt to start the sandbox has timed out");
    if (lifecycle_refused(sandbox) && !repeats_refusal(sandbox, report))
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the configuration was refused before the start, which is final");
    bool same = strcmp(report->admission->instance_id, stored->instance_id) == 0;
    if (report->admission->state == ADMISSION_STATE(PENDING)) {
        if (!same && strcmp(report->expected_instance_id, stored->instance_id) != 0)
            return error_set(error, ERROR_FAILED_PRECONDITION,
                             "registration fence changed: another supervisor instance registered");
        return true;
    }
    return same || error_set(error, ERROR_FAILED_PRECONDITION,
                             "another supervisor instance is registered for the sandbox");
}

/* Steps 7 to 10. A passed deadline is claimed in *ret_expired. */
static bool check_report(const Openshell__V1__Sandbox *sandbox,
                         const Openshell__V1__ReportSandboxConfigurationRequest *report,
                         const struct admission_generation *current, int64_t now,
                         enum lifecycle_event *ret_deadline, bool *ret_expired, struct error *error)
{
    Openshell__V1__ConfigurationAdmissionState state = report->admission->state;
    if (state == ADMISSION_STATE(ACCEPTED) && !current->admitted)
        return error_set(error, ERROR_ABORTED,
                         "the gateway has not admitted this configuration; fetch it again");
    if (state != ADMISSION_STATE(PENDING) && !is_current(report->admission, current))
        return error_set(error, ERROR_ABORTED, "the configuration has changed; fetch it again");
    if (lifecycle_deadline_due(sandbox, now, ret_deadline)) {
        *ret_expired = true;
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the sandbox's provisioning deadline has passed");
    }
    if (report->refused_before_start && state != ADMISSION_STATE(REJECTED)) {
        error_add_violation(error, "refused_before_start", "goes with a REJECTED report only");
        return false;
    }
    return true;
}

/* ---- what a report changes ---- */

static void store_admission(Openshell__V1__SandboxStatus *status, struct arena *arena,
                            const admission_record *reported, const char *error_text)
{
    admission_record *stored = status->configuration_admission;
    stored->instance_id = arena_strdup(arena, reported->instance_id);
    stored->state = reported->state;
    bool numbers = reported->state != ADMISSION_STATE(PENDING);
    stored->policy_version = numbers ? reported->policy_version : 0;
    stored->policy_hash = arena_strdup(arena, numbers ? reported->policy_hash : "");
    stored->config_revision = numbers ? reported->config_revision : 0;
    stored->provider_env_revision = numbers ? reported->provider_env_revision : 0;
    stored->error = arena_strdup(arena, error_text);
}

/* The first report of an attempt ends its preparation and opens the repair window (1.7). */
static bool begin_admission(Openshell__V1__SandboxProvisioning *provisioning, struct arena *arena,
                            int64_t now)
{
    if (provisioning == NULL || provisioning->admission_start_time != NULL)
        return false;
    provisioning->admission_start_time = record_timestamp(arena, now);
    if (provisioning->deadline != NULL)
        provisioning->deadline = record_timestamp(arena, now + LIFECYCLE_REPAIR_WINDOW);
    return true;
}

/* The first rejection of a change grants one more window (1.7). */
static void note_rejection(Openshell__V1__SandboxProvisioning *provisioning, struct arena *arena,
                           int64_t now)
{
    if (provisioning == NULL || provisioning->first_rejection_time != NULL)
        return;
    provisioning->first_rejection_time = record_timestamp(arena, now);
    if (provisioning->deadline != NULL &&
        record_milliseconds(provisioning->deadline) < now + LIFECYCLE_REPAIR_WINDOW)
        provisioning->deadline = record_timestamp(arena, now + LIFECYCLE_REPAIR_WINDOW);
}

static enum lifecycle_event apply_pending(Openshell__V1__SandboxStatus *status, struct arena *arena,
                                          const admission_record *reported, bool *ret_changed)
{
    if (strcmp(reported->instance_id, status->configuration_admission->instance_id) == 0)
        return LIFECYCLE_EVENT_COUNT; /* keeps what is stored */
    store_admission(status, arena, reported, "");
    *ret_changed = true;
    return LIFECYCLE_ADMISSION_PENDING;
}

static enum lifecycle_event apply_accepted(Openshell__V1__SandboxStatus *status,
                                           struct arena *arena, const admission_record *reported,
                                           bool *ret_changed)
{
    const admission_record *stored = status->configuration_admission;
    if (stored->state != ADMISSION_STATE(ACCEPTED) || stored->error[0] != '\0' ||
        !is_stored(reported, stored)) {
        store_admission(status, arena, reported, "");
        *ret_changed = true;
    }
    /* The marker is set together with ACCEPTED and never taken back (A1). */
    if (status->configuration_activated_presence_case !=
            OPENSHELL__V1__SANDBOX_STATUS__CONFIGURATION_ACTIVATED_PRESENCE_CONFIGURATION_ACTIVATED ||
        !status->configuration_activated) {
        status->configuration_activated_presence_case =
            OPENSHELL__V1__SANDBOX_STATUS__CONFIGURATION_ACTIVATED_PRESENCE_CONFIGURATION_ACTIVATED;
        status->configuration_activated = true;
        *ret_changed = true;
    }
    return LIFECYCLE_ADMISSION_ACCEPTED;
}

static enum lifecycle_event
apply_rejected(Openshell__V1__Sandbox *sandbox, struct arena *arena,
               const Openshell__V1__ReportSandboxConfigurationRequest *report, int64_t now,
               bool *ret_changed)
{
    const admission_record *reported = report->admission;
    admission_record *stored = sandbox->status->configuration_admission;
    if (repeats_refusal(sandbox, report))
        return LIFECYCLE_EVENT_COUNT;
    *ret_changed = true;
    note_rejection(sandbox->status->provisioning, arena, now);
    if (stored->state != ADMISSION_STATE(ACCEPTED)) {
        store_admission(sandbox->status, arena, reported, admission_diagnostic(reported->error));
        return LIFECYCLE_ADMISSION_REJECTED;
    }
    if (report->refused_before_start && is_stored(reported, stored)) {
        store_admission(sandbox->status, arena, reported, DIAGNOSTIC_REFUSED);
        record_set_annotation(sandbox, arena, ANNOTATION_REFUSED, reported->instance_id);
        return LIFECYCLE_ADMISSION_REFUSED;
    }
    /* What runs stays accepted; only the newer wish is bad. */
    stored->error = arena_strdup(arena, admission_diagnostic(reported->error));
    return LIFECYCLE_ADMISSION_DESIRED_REJECTED;
}

static enum lifecycle_event
apply_report(Openshell__V1__Sandbox *sandbox, struct arena *arena,
             const Openshell__V1__ReportSandboxConfigurationRequest *report, int64_t now,
             bool *ret_changed)
{
    if (report->admission->state == ADMISSION_STATE(PENDING))
        return apply_pending(sandbox->status, arena, report->admission, ret_changed);
    if (report->admission->state == ADMISSION_STATE(ACCEPTED))
        return apply_accepted(sandbox->status, arena, report->admission, ret_changed);
    return apply_rejected(sandbox, arena, report, now, ret_changed);
}

/* The record as the deadline leaves it; the report itself is refused. */
static bool claim_expiry(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                         enum lifecycle_event event, const struct lifecycle_facts *facts,
                         struct admission_result *ret_result)
{
    struct admission_result result = {.expired = true};
    struct error ignored = {0};
    result.changed = lifecycle_apply(sandbox, arena, event, facts, &result.lifecycle, &ignored) &&
                     result.lifecycle.changed;
    error_clear(&ignored);
    *ret_result = result;
    return false;
}

bool admission_apply(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                     const char *caller_sandbox_id,
                     const Openshell__V1__ReportSandboxConfigurationRequest *report,
                     const struct admission_generation *current,
                     const struct lifecycle_facts *facts, struct admission_result *ret_result,
                     struct error *error)
{
    enum lifecycle_event deadline = LIFECYCLE_EVENT_COUNT;
    bool expired = false;
    *ret_result = (struct admission_result){0};
    if (!check_request(sandbox, caller_sandbox_id, report, error) ||
        !check_speaker(sandbox, report, error))
        return false;
    if (!check_report(sandbox, report, current, facts->now, &deadline, &expired, error))
        return expired ? claim_expiry(sandbox, arena, deadline, facts, ret_result) : false;

    struct admission_result result = {0};
    result.lifecycle.phase = result.lifecycle.previous_phase = sandbox->status->phase;
    result.lifecycle.ignored = true;
    if (begin_admission(sandbox->status->provisioning, arena, facts->now))
        result.changed = true;
    enum lifecycle_event event = apply_report(sandbox, arena, report, facts->now, &result.changed);
    if (conditions_set_configuration(sandbox->status, arena, facts->now))
        result.changed = true;
    if (event != LIFECYCLE_EVENT_COUNT &&
        !lifecycle_apply(sandbox, arena, event, facts, &result.lifecycle, error))
        return false;
    result.changed = result.changed || result.lifecycle.changed;
    *ret_result = result;
    return true;
}
