/* CreateSandbox (behaviour reference 1.5). */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "gateway/validate.h"
#include "gateway/validate_parts.h"
#include "policy/policy.h"

static const struct validate_environment_limits ENVIRONMENT_LIMITS = {
    .entries = VALIDATE_ENVIRONMENT_MAX,
    .value = VALIDATE_ENVIRONMENT_VALUE_MAX,
    .total = VALIDATE_ENVIRONMENT_TOTAL_MAX,
};

static const struct validate_command_limits COMMAND_LIMITS = {
    .arguments = VALIDATE_COMMAND_MAX,
    .argument = VALIDATE_ARGUMENT_MAX,
    .total = VALIDATE_COMMAND_TOTAL_MAX,
};

static bool check_struct(const char *field, const Google__Protobuf__Struct *value,
                         struct error *error)
{
    if (value == NULL)
        return true;
    size_t size = google__protobuf__struct__get_packed_size(value);
    if (size <= VALIDATE_STRUCT_MAX)
        return true;
    error_add_violation(error, field, "%zu bytes are more than %d", size, VALIDATE_STRUCT_MAX);
    return false;
}

/* rootfs_tar_path names a file of the gateway's own: nobody else may set it. */
static bool check_driver_config(const Google__Protobuf__Struct *config, struct error *error)
{
    if (!check_struct("spec.template.driver_config", config, error))
        return false;
    bool valid = true;
    for (size_t i = 0; config != NULL && i < config->n_fields; i++) {
        const Google__Protobuf__Value *driver = config->fields[i]->value;
        if (driver == NULL || driver->kind_case != GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE)
            continue;
        for (size_t j = 0; j < driver->struct_value->n_fields; j++) {
            if (strcmp(driver->struct_value->fields[j]->key, "rootfs_tar_path") != 0)
                continue;
            char shown[VALIDATE_SHOWN_SIZE];
            validate_show(config->fields[i]->key, shown);
            CLEANUP_FREE char *name =
                memory_printf("spec.template.driver_config.%s.rootfs_tar_path", shown);
            error_add_violation(error, name, "this is set by the gateway alone");
            valid = false;
        }
    }
    return valid;
}

static bool check_pairs_count(const char *field, const void *entries, size_t count,
                              struct error *error)
{
    if (count > VALIDATE_MAP_MAX) {
        error_add_violation(error, field, "%zu entries are more than %d", count, VALIDATE_MAP_MAX);
        return false;
    }
    bool valid = true;
    for (size_t i = 0; i < count; i++) {
        const struct validate_pair *pair = ((const struct validate_pair *const *)entries)[i];
        if (!validate_text_length(field, pair->key, VALIDATE_TEMPLATE_STRING_MAX, error) ||
            !validate_text_length(field, pair->value, VALIDATE_TEMPLATE_STRING_MAX, error))
            valid = false;
    }
    return valid;
}

static bool check_template(const Openshell__V1__SandboxTemplate *template, struct error *error)
{
    const struct {
        const char *field;
        const char *text;
    } texts[] = {
        {"spec.template.image", template->image},
        {"spec.template.runtime_class_name", template->runtime_class_name},
        {"spec.template.agent_socket", template->agent_socket},
    };
    bool valid = true;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (!validate_text_length(texts[i].field, texts[i].text, VALIDATE_TEMPLATE_STRING_MAX,
                                  error))
            valid = false;
    if (!check_pairs_count("spec.template.labels", template->labels, template->n_labels, error))
        valid = false;
    if (!check_pairs_count("spec.template.annotations", template->annotations,
                           template->n_annotations, error))
        valid = false;
    if (!validate_environment("spec.template.environment", template->environment,
                              template->n_environment, &ENVIRONMENT_LIMITS, error))
        valid = false;
    if (!check_struct("spec.template.resources", template->resources, error))
        valid = false;
    return check_driver_config(template->driver_config, error) && valid;
}

static bool check_providers(char *const *providers, size_t count, struct error *error)
{
    if (count > VALIDATE_PROVIDERS_MAX) {
        error_add_violation(error, "spec.providers", "%zu providers are more than %d", count,
                            VALIDATE_PROVIDERS_MAX);
        return false;
    }
    bool valid = true;
    for (size_t i = 0; i < count; i++) {
        CLEANUP_FREE char *name = memory_printf("spec.providers[%zu]", i);
        if (providers[i][0] == '\0') {
            error_add_violation(error, name, "the name of a provider is required");
            valid = false;
        } else if (!validate_text_length(name, providers[i], VALIDATE_OTHER_NAME_MAX, error)) {
            valid = false;
        }
    }
    return valid;
}

static bool check_resources(const Openshell__V1__ResourceRequirements *resources,
                            struct error *error)
{
    if (resources->gpu == NULL ||
        resources->gpu->count_presence_case !=
            OPENSHELL__V1__GPU_RESOURCE_REQUIREMENTS__COUNT_PRESENCE_COUNT ||
        resources->gpu->count != 0)
        return true;
    error_add_violation(error, "spec.resource_requirements.gpu.count",
                        "a count of 0 asks for nothing; leave gpu out");
    return false;
}

static bool check_restart_policy(Openshell__V1__SandboxRestartPolicy policy, struct error *error)
{
    if ((unsigned)policy <= OPENSHELL__V1__SANDBOX_RESTART_POLICY__SANDBOX_RESTART_POLICY_ALWAYS)
        return true;
    error_add_violation(error, "spec.restart_policy", "%d is not a restart policy", (int)policy);
    return false;
}

static bool check_spec(const Openshell__V1__SandboxSpec *spec, struct error *error)
{
    bool valid =
        validate_text_length("spec.log_level", spec->log_level, VALIDATE_LOG_LEVEL_MAX, error);
    if (!validate_environment("spec.environment", spec->environment, spec->n_environment,
                              &ENVIRONMENT_LIMITS, error))
        valid = false;
    if (spec->template_ != NULL && !check_template(spec->template_, error))
        valid = false;
    if (spec->policy != NULL && !policy_validate_static("spec.policy", spec->policy, error))
        valid = false;
    if (!check_providers(spec->providers, spec->n_providers, error))
        valid = false;
    if (spec->resource_requirements != NULL && !check_resources(spec->resource_requirements, error))
        valid = false;
    if (!validate_command("spec.command", spec->command, spec->n_command, &COMMAND_LIMITS, error))
        valid = false;
    return check_restart_policy(spec->restart_policy, error) && valid;
}

/* A workload template brings these itself. */
static bool check_spec_beside_template(const Openshell__V1__SandboxSpec *spec, struct error *error)
{
    const struct {
        const char *field;
        bool set;
    } fields[] = {
        {"spec.log_level", spec->log_level[0] != '\0'},
        {"spec.environment", spec->n_environment > 0},
        {"spec.template", spec->template_ != NULL},
        {"spec.resource_requirements", spec->resource_requirements != NULL},
    };
    bool valid = true;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (!fields[i].set)
            continue;
        error_add_violation(error, fields[i].field,
                            "the workload template says this; leave it out");
        valid = false;
    }
    return valid;
}

static bool check_exposure(const Openshell__V1__SandboxServiceExposure *exposure, size_t index,
                           struct error *error)
{
    bool valid = true;
    CLEANUP_FREE char *service = memory_printf("service_exposures[%zu].service", index);
    CLEANUP_FREE char *port = memory_printf("service_exposures[%zu].target_port", index);
    CLEANUP_FREE char *mode = memory_printf("service_exposures[%zu].authorization_mode", index);
    if (exposure->service[0] != '\0' &&
        !validate_name(service, exposure->service, VALIDATE_ROUTABLE_NAME_MAX, error))
        valid = false;
    if (exposure->target_port < 1 || exposure->target_port > 65535) {
        error_add_violation(error, port, "a port is 1 to 65535, not %u", exposure->target_port);
        valid = false;
    }
    if ((unsigned)exposure->authorization_mode >
        OPENSHELL__V1__SERVICE_AUTHORIZATION_MODE__SERVICE_AUTHORIZATION_MODE_BEARER_PASSTHROUGH) {
        error_add_violation(error, mode, "%d is not an authorization mode",
                            (int)exposure->authorization_mode);
        valid = false;
    }
    return valid;
}

static bool check_exposures(Openshell__V1__SandboxServiceExposure *const *exposures, size_t count,
                            struct error *error)
{
    if (count > VALIDATE_SERVICE_EXPOSURES_MAX) {
        error_add_violation(error, "service_exposures", "%zu services are more than %d", count,
                            VALIDATE_SERVICE_EXPOSURES_MAX);
        return false;
    }
    bool valid = true;
    for (size_t i = 0; i < count; i++) {
        if (!check_exposure(exposures[i], i, error))
            valid = false;
        for (size_t j = 0; j < i; j++) {
            if (strcmp(exposures[i]->service, exposures[j]->service) != 0)
                continue;
            char shown[VALIDATE_SHOWN_SIZE];
            validate_show(exposures[i]->service, shown);
            CLEANUP_FREE char *name = memory_printf("service_exposures[%zu].service", i);
            error_add_violation(error, name, "the service '%s' is given twice", shown);
            valid = false;
            break;
        }
    }
    return valid;
}

bool validate_create_sandbox(const Openshell__V1__CreateSandboxRequest *request,
                             struct error *error)
{
    bool templated = request->workload_template[0] != '\0';
    bool valid = request->name[0] == '\0' ||
                 validate_name("name", request->name, VALIDATE_SANDBOX_NAME_MAX, error);
    if (!validate_labels("labels", request->labels, request->n_labels, error))
        valid = false;
    if (!validate_annotations("annotations", request->annotations, request->n_annotations, error))
        valid = false;
    if (!validate_text_length("workload_template", request->workload_template,
                              VALIDATE_OTHER_NAME_MAX, error))
        valid = false;
    if (!validate_request_id(request->request_id, error))
        valid = false;
    if (request->spec == NULL && !templated) {
        error_add_violation(error, "spec", "a sandbox without a workload template needs it");
        valid = false;
    }
    if (request->spec != NULL && templated && !check_spec_beside_template(request->spec, error))
        valid = false;
    if (request->spec != NULL && !check_spec(request->spec, error))
        valid = false;
    return check_exposures(request->service_exposures, request->n_service_exposures, error) &&
           valid;
}
