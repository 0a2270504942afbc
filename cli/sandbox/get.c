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
#include "client/sandbox.h"
#include "client/settings.h"
#include "proto/method_table.h"

static const struct option options[] = {OPTION_OUTPUT, {0}};

static void line(const char *name, const char *text)
{
    CLEANUP_FREE char *escaped = text_escaped(text);
    printf("%-18s %s\n", name, escaped[0] != '\0' ? escaped : "-");
}

static void print_condition(const Openshell__V1__SandboxCondition *condition)
{
    CLEANUP_FREE char *text =
        memory_printf("%s=%s %s%s%s", condition->type, condition->status, condition->reason,
                      condition->message[0] != '\0' ? ": " : "", condition->message);
    line("Condition:", text);
}

static void print_status(const Openshell__V1__SandboxStatus *status)
{
    char number[16];
    if (status->exit_code_presence_case ==
        OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE_EXIT_CODE) {
        snprintf(number, sizeof(number), "%d", status->exit_code);
        line("Exit code:", number);
    }
    if (status->configuration_admission != NULL &&
        status->configuration_admission->error[0] != '\0')
        line("Configuration:", status->configuration_admission->error);
    for (size_t i = 0; i < status->n_conditions; i++)
        print_condition(status->conditions[i]);
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

static void print_table(const Openshell__V1__Sandbox *sandbox,
                        const Openshell__Sandbox__V1__GetSandboxConfigResponse *config)
{
    enum colour colour = COLOUR_NONE;
    const char *phase = "Unknown";
    if (sandbox->status != NULL) {
        phase = sandbox_phase_word(sandbox->status->phase);
        colour = sandbox_phase_colour(sandbox->status->phase);
    }
    if (!terminal_table_colours())
        colour = COLOUR_NONE;
    CLEANUP_FREE char *created = sandbox_created(sandbox);
    line("Id:", sandbox->metadata != NULL ? sandbox->metadata->id : "");
    line("Name:", sandbox_name(sandbox));
    printf("%-18s %s%s%s\n", "Phase:", terminal_begin(colour), phase, terminal_end(colour));
    line("Created:", created);
    if (sandbox->status != NULL)
        print_status(sandbox->status);
    if (sandbox->spec != NULL)
        line("Restart policy:", sandbox_restart_policy_word(sandbox->spec->restart_policy));
    if (sandbox->metadata != NULL)
        print_metadata(sandbox->metadata);
    if (config != NULL) {
        char number[16];
        snprintf(number, sizeof(number), "%u", config->version);
        line("Policy revision:", number);
    }
}

/* The configuration is shown where the gateway has it to give; the status is shown in any case. */
static const Openshell__Sandbox__V1__GetSandboxConfigResponse *
get_config(struct connection *connection, const char *name)
{
    Openshell__Sandbox__V1__GetSandboxConfigRequest request =
        OPENSHELL__SANDBOX__V1__GET_SANDBOX_CONFIG_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.name = (char *)name;
    return connection_call(connection, &rpc_openshell_v1_OpenShell_GetSandboxConfig, &request.base,
                           NULL);
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
    Openshell__V1__GetSandboxRequest request = OPENSHELL__V1__GET_SANDBOX_REQUEST__INIT;
    request.workspace_scope = &connection.workspace;
    request.name = name;
    const Openshell__V1__SandboxResponse *response =
        connection_call(&connection, &rpc_openshell_v1_OpenShell_GetSandbox, &request.base, error);
    if (response == NULL || response->sandbox == NULL) {
        failure_about(error, name);
        return -1;
    }
    const Openshell__Sandbox__V1__GetSandboxConfigResponse *config = get_config(&connection, name);
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
                   "main process, and its conditions with their reasons. Without NAME it is the\n"
                   "sandbox that was used last.",
    .examples = "  openshell sandbox get demo\n"
                "  openshell sandbox get demo -o json",
    .options = options,
    .most_words = 1,
    .run = run,
};
