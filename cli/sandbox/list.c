/* openshell sandbox list */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/document.h"
#include "client/report.h"
#include "client/sandbox.h"
#include "client/settings.h"
#include "client/text_table.h"
#include "proto/method_table.h"

static struct {
    bool ids;
    bool names;
    bool all_workspaces;
    const char *selector;
    const char *page_token;
    long long page_size;
} given = {.page_size = 100};

static const struct option options[] = {
    {.type = OPTION_TEXT,
     .letter = 'l',
     .name = "selector",
     .value = &given.selector,
     .metavar = "KEY=VALUE,...",
     .help = "Only sandboxes with these labels",
     .may_be_empty = true},
    {.type = OPTION_FLAG,
     .name = "ids",
     .value = &given.ids,
     .help = "Print the ids alone, one a line",
     .conflicts = "names output"},
    {.type = OPTION_FLAG,
     .name = "names",
     .value = &given.names,
     .help = "Print the names alone, one a line",
     .conflicts = "ids output"},
    {.type = OPTION_FLAG,
     .name = "all-workspaces",
     .value = &given.all_workspaces,
     .help = "Those of every workspace"},
    {.type = OPTION_NUMBER,
     .name = "page-size",
     .value = &given.page_size,
     .metavar = "N",
     .help = "How many to list at once",
     .fallback = "100",
     .minimum = 1,
     .maximum = 1000},
    {.type = OPTION_TEXT,
     .name = "page-token",
     .value = &given.page_token,
     .metavar = "TOKEN",
     .help = "Go on where a list ended that had more",
     .may_be_empty = true},
    OPTION_OUTPUT,
    {0},
};

static const Openshell__Datamodel__V1__ObjectMeta *
metadata_of(const Openshell__V1__Sandbox *sandbox)
{
    static const Openshell__Datamodel__V1__ObjectMeta none =
        OPENSHELL__DATAMODEL__V1__OBJECT_META__INIT;
    return sandbox->metadata != NULL ? sandbox->metadata : &none;
}

static void print_words(const Openshell__V1__ListSandboxesResponse *response)
{
    for (size_t i = 0; i < response->n_sandboxes; i++) {
        const Openshell__Datamodel__V1__ObjectMeta *metadata = metadata_of(response->sandboxes[i]);
        CLEANUP_FREE char *text = given.ids ? memory_strdup(metadata->id)
                                  : given.all_workspaces
                                      ? memory_printf("%s/%s", metadata->workspace, metadata->name)
                                      : memory_strdup(metadata->name);
        CLEANUP_FREE char *shown = text_escaped(text);
        printf("%s\n", shown);
    }
}

static void print_table(const Openshell__V1__ListSandboxesResponse *response)
{
    static const char *const headings[] = {"WORKSPACE", "NAME", "CREATED", "PHASE", NULL};
    if (response->n_sandboxes == 0) {
        printf("No sandboxes.\n");
        return;
    }
    struct text_table *table = text_table_new(given.all_workspaces ? headings : headings + 1);
    for (size_t i = 0; i < response->n_sandboxes; i++) {
        const Openshell__V1__Sandbox *sandbox = response->sandboxes[i];
        const Openshell__Datamodel__V1__ObjectMeta *metadata = metadata_of(sandbox);
        Openshell__V1__SandboxPhase phase = sandbox->status != NULL ? sandbox->status->phase : 0;
        CLEANUP_FREE char *created = sandbox_created(sandbox);
        if (given.all_workspaces)
            text_table_add(table, metadata->workspace);
        text_table_add(table, metadata->name);
        text_table_add(table, created);
        text_table_add_coloured(table, sandbox_phase_colour(phase), sandbox_phase_word(phase));
    }
    text_table_print(table, stdout, terminal_table_colours());
    text_table_free(table);
}

static void print_document(const Openshell__V1__ListSandboxesResponse *response)
{
    json_t *document = json_object(), *sandboxes = json_array();
    for (size_t i = 0; i < response->n_sandboxes; i++)
        json_array_append_new(sandboxes, sandbox_document(response->sandboxes[i]));
    json_object_set_new(document, "sandboxes", sandboxes);
    json_object_set_new(document, "next_page_token", document_text(response->next_page_token));
    document_print(document, settings.output, stdout);
}

static int run(const struct invocation *invocation, struct error *error)
{
    (void)invocation;
    struct connection connection;
    if (!connection_open(&connection, CONNECTION_START, error))
        return -1;
    Openshell__Datamodel__V1__AllWorkspaces all = OPENSHELL__DATAMODEL__V1__ALL_WORKSPACES__INIT;
    if (given.all_workspaces) {
        connection.workspace.selection_case =
            OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__SELECTION_ALL_WORKSPACES;
        connection.workspace.all_workspaces = &all;
    }
    Openshell__V1__ListSandboxesRequest request = OPENSHELL__V1__LIST_SANDBOXES_REQUEST__INIT;
    request.workspace_scope = &connection.workspace;
    request.page_size = (int32_t)given.page_size;
    if (given.selector != NULL)
        request.label_selector = (char *)given.selector;
    if (given.page_token != NULL)
        request.page_token = (char *)given.page_token;
    const Openshell__V1__ListSandboxesResponse *response = connection_call(
        &connection, &rpc_openshell_v1_OpenShell_ListSandboxes, &request.base, error);
    if (response == NULL)
        return -1;
    if (settings.output != OUTPUT_TABLE) {
        print_document(response);
        return EXIT_SUCCESS;
    }
    if (response->next_page_token[0] != '\0')
        report_notice("there are more; go on with: --page-token %s", response->next_page_token);
    if (given.ids || given.names)
        print_words(response);
    else
        print_table(response);
    return EXIT_SUCCESS;
}

const struct command command_sandbox_list = {
    .usage = "[OPTIONS]",
    .description = "Lists sandboxes by name.",
    .examples = "  openshell sandbox list\n"
                "  openshell sandbox list --selector team=red -o json\n"
                "  openshell sandbox list --names | xargs openshell sandbox delete",
    .options = options,
    .run = run,
};
