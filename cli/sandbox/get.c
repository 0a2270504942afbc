/* openshell sandbox get */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/document.h"
#include "client/failure.h"
#include "client/last_sandbox.h"
#include "client/policy_document.h"
#include "client/sandbox.h"
#include "client/settings.h"
#include "proto/method_table.h"

typedef Openshell__Sandbox__V1__GetSandboxConfigResponse sandbox_config;

static struct {
    bool policy_only;
} given;

static const struct option options[] = {
    {.type = OPTION_FLAG,
     .name = "policy-only",
     .value = &given.policy_only,
     .help = "Print the policy in force alone, as YAML",
     .conflicts = "output"},
    OPTION_OUTPUT,
    {0},
};

/* ---- the block for people ---- */

static void line(const char *name, const char *text)
{
    CLEANUP_FREE char *escaped = text_escaped(text);
    printf("%-18s %s\n", name, escaped[0] != '\0' ? escaped : "-");
}

static void number_line(const char *name, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    line(name, text);
}

static void time_line(const char *name, const Google__Protobuf__Timestamp *time)
{
    CLEANUP_FREE char *text = sandbox_time(time);
    if (time != NULL)
        line(name, text);
}

static void print_condition(const Openshell__V1__SandboxCondition *condition)
{
    CLEANUP_FREE char *when = sandbox_time(condition->transition_time);
    CLEANUP_FREE char *text =
        memory_printf("%s=%s %s%s%s%s%s%s", condition->type, condition->status, condition->reason,
                      condition->message[0] != '\0' ? ": " : "", condition->message,
                      when[0] != '\0' ? " (" : "", when, when[0] != '\0' ? ")" : "");
    line("Condition:", text);
}

static void print_phase(const Openshell__V1__SandboxStatus *status)
{
    enum colour colour =
        terminal_table_colours() ? sandbox_phase_colour(status->phase) : COLOUR_NONE;
    printf("%-18s %s%s%s\n", "Phase:", terminal_begin(colour), sandbox_phase_word(status->phase),
           terminal_end(colour));
    if (status->configuration_admission != NULL &&
        status->configuration_admission->error[0] != '\0')
        line("Configuration:", status->configuration_admission->error);
    if (status->exit_code_presence_case ==
        OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE_EXIT_CODE) {
        char code[16];
        snprintf(code, sizeof(code), "%d", status->exit_code);
        line("Exit code:", code);
    }
}

static void print_main_process(const Openshell__V1__Sandbox *sandbox)
{
    const Openshell__V1__SandboxStatus *status = sandbox->status;
    if (sandbox->spec != NULL)
        line("Restart policy:", sandbox_restart_policy_word(sandbox->spec->restart_policy));
    if (status == NULL)
        return;
    if (status->main_process_instance_id[0] != '\0')
        line("Main instance:", status->main_process_instance_id);
    time_line("Main started:", status->main_process_started_time);
    if (status->restart_count > 0)
        number_line("Restarts:", status->restart_count);
    time_line("Next restart:", status->next_restart_time);
}

static void print_metadata(const Openshell__Datamodel__V1__ObjectMeta *metadata)
{
    for (size_t i = 0; i < metadata->n_labels; i++) {
        CLEANUP_FREE char *text =
            memory_printf("%s=%s", metadata->labels[i]->key, metadata->labels[i]->value);
        line("Label:", text);
    }
    for (size_t i = 0; i < metadata->n_annotations; i++) {
        CLEANUP_FREE char *text =
            memory_printf("%s=%s", metadata->annotations[i]->key, metadata->annotations[i]->value);
        line("Annotation:", text);
    }
}

static void print_progress(const Openshell__V1__SandboxStatus *status)
{
    const Openshell__V1__SandboxConfigurationAdmission *admission = status->configuration_admission;
    const Openshell__V1__SandboxProvisioning *provisioning = status->provisioning;
    if (admission != NULL) {
        CLEANUP_FREE char *text =
            memory_printf("%s, policy version %u%s%.12s", sandbox_admission_word(admission->state),
                          admission->policy_version, admission->policy_hash[0] != '\0' ? ", " : "",
                          admission->policy_hash);
        line("Admission:", text);
    }
    if (provisioning != NULL) {
        line("Provisioning:", sandbox_provisioning_word(provisioning));
        time_line("Deadline:", provisioning->deadline);
        time_line("Timed out:", provisioning->timeout_time);
        if (provisioning->cleanup_error[0] != '\0')
            line("Cleanup error:", provisioning->cleanup_error);
    }
    for (size_t i = 0; i < status->n_conditions; i++)
        print_condition(status->conditions[i]);
}

static void print_policy(const sandbox_config *config)
{
    line("Policy source:", sandbox_policy_source_word(config->policy_source));
    number_line("Policy revision:", config->version);
    if (config->policy == NULL)
        return;
    printf("---\n");
    document_print(policy_document(config->policy), OUTPUT_YAML, stdout);
}

static void print_table(const Openshell__V1__Sandbox *sandbox, const sandbox_config *config)
{
    static const Openshell__Datamodel__V1__ObjectMeta no_metadata =
        OPENSHELL__DATAMODEL__V1__OBJECT_META__INIT;
    const Openshell__Datamodel__V1__ObjectMeta *metadata =
        sandbox->metadata != NULL ? sandbox->metadata : &no_metadata;
    CLEANUP_FREE char *created = sandbox_created(sandbox);
    line("Id:", metadata->id);
    line("Name:", metadata->name);
    if (sandbox->status != NULL)
        print_phase(sandbox->status);
    line("Created:", created);
    number_line("Resource version:", metadata->resource_version);
    print_main_process(sandbox);
    print_metadata(metadata);
    if (sandbox->created_from_workload_template != NULL)
        line("Template:", sandbox->created_from_workload_template->name);
    if (sandbox->status != NULL)
        print_progress(sandbox->status);
    if (config != NULL)
        print_policy(config);
}

/* ---- asking ---- */

/* The configuration is shown where the gateway has it to give; the status is shown in any case. */
static const sandbox_config *get_config(struct connection *connection, const char *name,
                                        struct error *error)
{
    Openshell__Sandbox__V1__GetSandboxConfigRequest request =
        OPENSHELL__SANDBOX__V1__GET_SANDBOX_CONFIG_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.name = (char *)name;
    return connection_call(connection, &rpc_openshell_v1_OpenShell_GetSandboxConfig, &request.base,
                           error);
}

static int print_policy_only(struct connection *connection, const char *name, struct error *error)
{
    const sandbox_config *config = get_config(connection, name, error);
    if (config == NULL) {
        failure_about(error, name);
        return -1;
    }
    if (config->policy == NULL) {
        error_set(error, ERROR_FAILED_PRECONDITION, "no policy is in force for sandbox '%s'", name);
        return -1;
    }
    document_print(policy_document(config->policy), OUTPUT_YAML, stdout);
    return EXIT_SUCCESS;
}

static int run(const struct invocation *invocation, struct error *error)
{
    struct connection connection;
    if (!connection_open(&connection, CONNECTION_START, error))
        return -1;
    char *name = last_sandbox_or(invocation->words != NULL ? invocation->words[0] : NULL,
                                 connection.gateway.name, error);
    if (name == NULL)
        return -1;
    if (given.policy_only)
        return print_policy_only(&connection, name, error);
    Openshell__V1__GetSandboxRequest request = OPENSHELL__V1__GET_SANDBOX_REQUEST__INIT;
    request.workspace_scope = &connection.workspace;
    request.name = name;
    const Openshell__V1__SandboxResponse *response =
        connection_call(&connection, &rpc_openshell_v1_OpenShell_GetSandbox, &request.base, error);
    if (response == NULL || response->sandbox == NULL) {
        failure_about(error, name);
        return -1;
    }
    const sandbox_config *config = get_config(&connection, name, NULL);
    if (settings.output == OUTPUT_TABLE) {
        print_table(response->sandbox, config);
        return EXIT_SUCCESS;
    }
    json_t *document = sandbox_document(response->sandbox);
    sandbox_document_add_detail(document, response->sandbox, config);
    document_print(document, settings.output, stdout);
    return EXIT_SUCCESS;
}

const struct command command_sandbox_get = {
    .usage = "[OPTIONS] [NAME]",
    .description = "Shows what the gateway knows about a sandbox: its phase, the exit code of its\n"
                   "main process, its conditions with their reasons, and the policy in force.\n"
                   "Without NAME it is the sandbox that was used last.",
    .examples = "  openshell sandbox get demo\n"
                "  openshell sandbox get demo -o json\n"
                "  openshell sandbox get demo --policy-only >policy.yaml",
    .options = options,
    .most_words = 1,
    .run = run,
};
