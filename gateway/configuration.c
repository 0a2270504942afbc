#include "gateway/configuration.h"

#include <string.h>

#include <openssl/sha.h>

#include "policy/policy.h"

enum { FIRST_POLICY_VERSION = 1 };

/* A nonzero token of the provider environment, for comparing only (3.5). */
static uint64_t environment_revision(const char *attachment_epoch)
{
    unsigned char bytes[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)attachment_epoch, strlen(attachment_epoch), bytes);
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof(number); i++)
        number = number << 8 | bytes[i];
    return number != 0 ? number : 1;
}

bool configuration_load(const Openshell__V1__Sandbox *sandbox, struct arena *arena,
                        struct configuration *ret_configuration, struct error *error)
{
    const Openshell__V1__SandboxSpec *spec = sandbox->spec;
    struct configuration configuration = {0};
    configuration.policy = policy_effective(NULL, spec != NULL ? spec->policy : NULL, NULL, arena,
                                            &configuration.source);
    char hash[POLICY_HASH_SIZE];
    if (!policy_hash(configuration.policy, hash, error))
        return false;
    configuration.generation = (struct admission_generation){
        .admitted = true,
        .policy_version = FIRST_POLICY_VERSION,
        .policy_hash = arena_strdup(arena, hash),
        .config_revision = policy_config_revision(hash, configuration.source, 0),
        .provider_env_revision =
            environment_revision(spec != NULL ? spec->provider_attachment_epoch : ""),
    };
    *ret_configuration = configuration;
    return true;
}

bool configuration_fill(const Openshell__V1__Sandbox *sandbox, struct arena *arena,
                        Openshell__Sandbox__V1__GetSandboxConfigResponse *response,
                        struct error *error)
{
    struct configuration configuration;
    if (!configuration_load(sandbox, arena, &configuration, error))
        return false;
    const struct admission_generation *generation = &configuration.generation;
    response->policy = (Openshell__Sandbox__V1__SandboxPolicy *)configuration.policy;
    response->version = generation->policy_version;
    response->policy_hash = (char *)generation->policy_hash;
    response->config_revision = generation->config_revision;
    response->provider_env_revision = generation->provider_env_revision;
    response->policy_source = configuration.source;
    response->workspace = sandbox->metadata->workspace;
    response->policy_validation_failure_mode = (char *)"fail_closed";
    response->configuration_admitted = generation->admitted;
    if (sandbox->spec != NULL)
        response->provider_attachment_epoch = sandbox->spec->provider_attachment_epoch;
    const Openshell__V1__SandboxConfigurationAdmission *admission =
        sandbox->status != NULL ? sandbox->status->configuration_admission : NULL;
    if (admission != NULL) {
        response->configuration_instance_id = admission->instance_id;
        response->configuration_error = admission->error;
    }
    return true;
}
