#include "client/sandbox.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "client/document.h"
#include "client/failure.h"
#include "client/policy_document.h"

#define CONDITION_READY "Ready"

const char *sandbox_name(const Openshell__V1__Sandbox *sandbox)
{
    return sandbox->metadata != NULL ? sandbox->metadata->name : "";
}

/* ---- what the gateway says ---- */

const Openshell__V1__SandboxCondition *sandbox_condition(const Openshell__V1__Sandbox *sandbox,
                                                         const char *type)
{
    for (size_t i = 0; sandbox->status != NULL && i < sandbox->status->n_conditions; i++)
        if (strcmp(sandbox->status->conditions[i]->type, type) == 0)
            return sandbox->status->conditions[i];
    return NULL;
}

static bool has_exit_code(const Openshell__V1__SandboxStatus *status)
{
    return status->exit_code_presence_case ==
           OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE_EXIT_CODE;
}

enum sandbox_outcome sandbox_outcome(const Openshell__V1__Sandbox *sandbox, int *ret_exit_code)
{
    const Openshell__V1__SandboxCondition *ready = sandbox_condition(sandbox, CONDITION_READY);
    if (ready == NULL)
        return SANDBOX_UNUSABLE;
    if (strcmp(ready->status, "True") == 0)
        return SANDBOX_READY;
    if (strcmp(ready->reason, "Stopped") == 0)
        return SANDBOX_STOPPED;
    bool failed = strcmp(ready->reason, "MainProcessFailed") == 0;
    if (!failed && strcmp(ready->reason, "MainProcessCompleted") != 0)
        return SANDBOX_UNUSABLE;
    if (ret_exit_code != NULL)
        *ret_exit_code = has_exit_code(sandbox->status) ? sandbox->status->exit_code : failed;
    return SANDBOX_ENDED;
}

bool sandbox_failure(const Openshell__V1__Sandbox *sandbox, struct error *error)
{
    const Openshell__V1__SandboxCondition *ready = sandbox_condition(sandbox, CONDITION_READY);
    const char *reason = ready != NULL && ready->reason[0] != '\0' ? ready->reason : "Unknown";
    const char *message = ready != NULL ? ready->message : "";
    bool said = message[0] != '\0';
    error_set(error, ERROR_FAILED_PRECONDITION, "sandbox '%s' is not ready: %s%s%s%s",
              sandbox_name(sandbox), message, said ? " (" : "", reason, said ? ")" : "");
    error_set_reason(error, CLIENT_DOMAIN, reason);
    failure_hint(error, "see more with: openshell sandbox get %s", sandbox_name(sandbox));
    return false;
}

Openshell__V1__Sandbox *sandbox_copy(const Openshell__V1__Sandbox *sandbox, struct arena *arena)
{
    size_t size = protobuf_c_message_get_packed_size(&sandbox->base);
    uint8_t *bytes = arena_alloc(arena, size + 1);
    protobuf_c_message_pack(&sandbox->base, bytes);
    return openshell__v1__sandbox__unpack(arena_protobuf_allocator(arena), size, bytes);
}

/* ---- words ---- */

const char *sandbox_phase_word(Openshell__V1__SandboxPhase phase)
{
    static const char *const words[] = {"Unspecified", "Provisioning", "Ready",    "Error",
                                        "Deleting",    "Unknown",      "Stopping", "Stopped",
                                        "Starting",    "Completed"};
    return (size_t)phase < sizeof(words) / sizeof(words[0]) ? words[phase] : "Unknown";
}

enum colour sandbox_phase_colour(Openshell__V1__SandboxPhase phase)
{
    switch (phase) {
    case OPENSHELL__V1__SANDBOX_PHASE__SANDBOX_PHASE_READY:
        return COLOUR_GREEN;
    case OPENSHELL__V1__SANDBOX_PHASE__SANDBOX_PHASE_ERROR:
        return COLOUR_RED;
    case OPENSHELL__V1__SANDBOX_PHASE__SANDBOX_PHASE_STOPPED:
    case OPENSHELL__V1__SANDBOX_PHASE__SANDBOX_PHASE_COMPLETED:
        return COLOUR_FAINT;
    default:
        return COLOUR_YELLOW;
    }
}

const char *sandbox_restart_policy_word(Openshell__V1__SandboxRestartPolicy policy)
{
    static const char *const words[] = {"never", "never", "on-failure", "always"};
    return (size_t)policy < sizeof(words) / sizeof(words[0]) ? words[policy] : "unknown";
}

const char *sandbox_admission_word(Openshell__V1__ConfigurationAdmissionState state)
{
    static const char *const words[] = {"unknown", "pending", "accepted", "rejected"};
    return words[(size_t)state < sizeof(words) / sizeof(words[0]) ? (size_t)state : 0];
}

/* From the deadlines that are set. */
const char *sandbox_provisioning_word(const Openshell__V1__SandboxProvisioning *provisioning)
{
    if (provisioning->admission_start_time != NULL)
        return provisioning->deadline != NULL ? "admission" : "ready";
    return provisioning->preparation_deadline != NULL ? "preparation" : "ready";
}

const char *sandbox_policy_source_word(Openshell__Sandbox__V1__PolicySource source)
{
    return source == OPENSHELL__SANDBOX__V1__POLICY_SOURCE__POLICY_SOURCE_GLOBAL ? "global"
                                                                                 : "sandbox";
}

static int64_t milliseconds(const Google__Protobuf__Timestamp *time)
{
    return time->seconds * 1000 + time->nanos / 1000000;
}

char *sandbox_time(const Google__Protobuf__Timestamp *time)
{
    char text[32] = "";
    if (time != NULL)
        clock_format_rfc3339(milliseconds(time), text, sizeof(text));
    return memory_strdup(text);
}

char *sandbox_created(const Openshell__V1__Sandbox *sandbox)
{
    if (sandbox->metadata == NULL || sandbox->metadata->created_time == NULL)
        return memory_strdup("");
    char text[32];
    clock_format_plain(milliseconds(sandbox->metadata->created_time), text, sizeof(text));
    return memory_strdup(text);
}

/* ---- the document ---- */

static void set_text(json_t *object, const char *key, const char *text)
{
    json_object_set_new(object, key, document_text(text));
}

static void set_number(json_t *object, const char *key, uint64_t number)
{
    json_object_set_new(object, key, json_integer((json_int_t)number));
}

/* Revisions that fill 64 bits are strings: many readers of JSON take numbers as doubles. */
static void set_revision(json_t *object, const char *key, uint64_t revision)
{
    char text[24];
    snprintf(text, sizeof(text), "%" PRIu64, revision);
    set_text(object, key, text);
}

static void set_time(json_t *object, const char *key, const Google__Protobuf__Timestamp *time)
{
    CLEANUP_FREE char *text = sandbox_time(time);
    set_text(object, key, time != NULL ? text : NULL);
}

static void set_milliseconds(json_t *object, const char *key,
                             const Google__Protobuf__Timestamp *time)
{
    json_object_set_new(object, key, time != NULL ? json_integer(milliseconds(time)) : json_null());
}

static void set_metadata(json_t *document, const Openshell__Datamodel__V1__ObjectMeta *metadata)
{
    json_t *labels = json_object(), *annotations = json_object();
    for (size_t i = 0; i < metadata->n_labels; i++)
        set_text(labels, metadata->labels[i]->key, metadata->labels[i]->value);
    for (size_t i = 0; i < metadata->n_annotations; i++)
        set_text(annotations, metadata->annotations[i]->key, metadata->annotations[i]->value);
    set_text(document, "id", metadata->id);
    set_text(document, "name", metadata->name);
    set_text(document, "workspace", metadata->workspace);
    json_object_set_new(document, "labels", labels);
    json_object_set_new(document, "annotations", annotations);
    set_number(document, "resource_version", metadata->resource_version);
}

static json_t *conditions_document(const Openshell__V1__SandboxStatus *status)
{
    json_t *list = json_array();
    for (size_t i = 0; i < status->n_conditions; i++) {
        const Openshell__V1__SandboxCondition *condition = status->conditions[i];
        json_t *entry = json_object();
        set_text(entry, "type", condition->type);
        set_text(entry, "status", condition->status);
        set_text(entry, "reason", condition->reason);
        set_text(entry, "message", condition->message);
        set_time(entry, "last_transition_time", condition->transition_time);
        json_array_append_new(list, entry);
    }
    return list;
}

static const char *endpoint_result_word(Openshell__V1__EndpointResult result)
{
    static const char *const words[] = {
        "Unspecified",           "NoObservedExchange", "HttpResponseReceived", "PolicyDenied",
        "CredentialUnavailable", "TlsFailed",          "TransportFailed",      "UpstreamRejected"};
    return (size_t)result < sizeof(words) / sizeof(words[0]) ? words[result] : "Unspecified";
}

static json_t *endpoints_document(const Openshell__V1__SandboxStatus *status)
{
    json_t *list = json_array();
    for (size_t i = 0; i < status->n_endpoint_statuses; i++) {
        const Openshell__V1__EndpointStatus *endpoint = status->endpoint_statuses[i];
        json_t *entry = json_object(), *ports = json_array();
        for (size_t j = 0; j < endpoint->n_ports; j++)
            json_array_append_new(ports, json_integer(endpoint->ports[j]));
        set_text(entry, "endpoint_id", endpoint->endpoint_id);
        set_text(entry, "host", endpoint->host);
        json_object_set_new(entry, "ports", ports);
        set_text(entry, "path", endpoint->path);
        set_text(entry, "last_result", endpoint_result_word(endpoint->last_result));
        set_time(entry, "last_reported_at", endpoint->last_reported_time);
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *admission_document(const Openshell__V1__SandboxConfigurationAdmission *admission)
{
    if (admission == NULL)
        return json_null();
    json_t *entry = json_object();
    set_text(entry, "state", sandbox_admission_word(admission->state));
    set_text(entry, "error", admission->error);
    set_number(entry, "policy_version", admission->policy_version);
    set_text(entry, "policy_hash", admission->policy_hash);
    set_revision(entry, "config_revision", admission->config_revision);
    set_revision(entry, "provider_env_revision", admission->provider_env_revision);
    return entry;
}

static json_t *provisioning_document(const Openshell__V1__SandboxProvisioning *provisioning)
{
    if (provisioning == NULL)
        return json_null();
    json_t *entry = json_object();
    set_text(entry, "attempt_id", provisioning->attempt_id);
    set_text(entry, "configuration_change_id", provisioning->configuration_change_id);
    set_time(entry, "configuration_change_time", provisioning->configuration_change_time);
    set_time(entry, "first_rejection_time", provisioning->first_rejection_time);
    set_text(entry, "phase", sandbox_provisioning_word(provisioning));
    set_time(entry, "preparation_deadline", provisioning->preparation_deadline);
    set_time(entry, "admission_start_time", provisioning->admission_start_time);
    set_time(entry, "deadline", provisioning->deadline);
    set_time(entry, "timeout_time", provisioning->timeout_time);
    set_time(entry, "cleanup_completed_time", provisioning->cleanup_completed_time);
    set_text(entry, "cleanup_error", provisioning->cleanup_error);
    set_time(entry, "cleanup_retry_time", provisioning->cleanup_retry_time);
    json_object_set_new(entry, "driver_operation_pending",
                        json_boolean(provisioning->driver_operation_pending));
    set_text(entry, "driver_operation_id", provisioning->driver_operation_id);
    return entry;
}

static void set_status(json_t *document, const Openshell__V1__SandboxStatus *status)
{
    set_text(document, "phase", sandbox_phase_word(status->phase));
    set_number(document, "current_policy_version", status->current_policy_version);
    json_object_set_new(document, "exit_code",
                        has_exit_code(status) ? json_integer(status->exit_code) : json_null());
    json_object_set_new(document, "conditions", conditions_document(status));
    json_object_set_new(document, "endpoint_statuses", endpoints_document(status));
    json_object_set_new(document, "configuration_admission",
                        admission_document(status->configuration_admission));
    json_object_set_new(document, "provisioning", provisioning_document(status->provisioning));
}

static json_t *provenance_document(const Openshell__V1__SandboxWorkloadTemplateProvenance *template)
{
    if (template == NULL)
        return json_null();
    json_t *entry = json_object();
    set_text(entry, "name", template->name);
    set_text(entry, "resource_version", template->resource_version);
    return entry;
}

json_t *sandbox_document(const Openshell__V1__Sandbox *sandbox)
{
    static const Openshell__Datamodel__V1__ObjectMeta no_metadata =
        OPENSHELL__DATAMODEL__V1__OBJECT_META__INIT;
    static const Openshell__V1__SandboxStatus no_status = OPENSHELL__V1__SANDBOX_STATUS__INIT;
    json_t *document = json_object();
    set_metadata(document, sandbox->metadata != NULL ? sandbox->metadata : &no_metadata);
    CLEANUP_FREE char *created = sandbox_created(sandbox);
    set_text(document, "created_at", created);
    set_status(document, sandbox->status != NULL ? sandbox->status : &no_status);
    json_object_set_new(document, "created_from_workload_template",
                        provenance_document(sandbox->created_from_workload_template));
    return document;
}

void sandbox_document_add_detail(json_t *document, const Openshell__V1__Sandbox *sandbox,
                                 const Openshell__Sandbox__V1__GetSandboxConfigResponse *config)
{
    if (config != NULL) {
        set_text(document, "policy_source", sandbox_policy_source_word(config->policy_source));
        set_number(document, "revision", config->version);
        json_object_set_new(document, "policy",
                            config->policy != NULL ? policy_document(config->policy) : json_null());
    }
    if (sandbox->spec != NULL)
        set_text(document, "restart_policy",
                 sandbox_restart_policy_word(sandbox->spec->restart_policy));
    const Openshell__V1__SandboxStatus *status = sandbox->status;
    if (status == NULL)
        return;
    set_text(document, "main_process_instance_id", status->main_process_instance_id);
    set_number(document, "restart_count", status->restart_count);
    set_milliseconds(document, "next_restart_at_ms", status->next_restart_time);
    set_milliseconds(document, "main_process_started_at_ms", status->main_process_started_time);
}
