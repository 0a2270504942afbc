/* openshell gateway stop */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/failure.h"
#include "client/local_gateway.h"
#include "client/report.h"
#include "client/sandbox_calls.h"
#include "proto/method_table.h"

static struct {
    bool stop_sandboxes;
} given;

static const struct option options[] = {
    {.type = OPTION_FLAG,
     .name = "stop-sandboxes",
     .value = &given.stop_sandboxes,
     .help = "Stop the sandboxes first; they go on running otherwise"},
    {0},
};

/* All are told to stop before the first is waited for: they stop at the same time. What cannot be
 * stopped is named and counted. */
static size_t stop_page(struct connection *connection,
                        const Openshell__V1__ListSandboxesResponse *page)
{
    size_t failed = 0;
    bool *begun = memory_new(page->n_sandboxes + 1);
    for (int waiting = 0; waiting <= 1; waiting++) {
        for (size_t i = 0; i < page->n_sandboxes; i++) {
            struct error error = {0};
            const Openshell__V1__Sandbox *sandbox = page->sandboxes[i];
            const char *name = sandbox_name(sandbox);
            if (sandbox->metadata != NULL)
                connection->workspace.workspace = sandbox->metadata->workspace;
            if (!waiting)
                begun[i] = sandbox_begin_stop(connection, name, &error);
            else if (begun[i])
                sandbox_await(connection, name, &error);
            if (error.code != ERROR_OK) {
                report_error(&error);
                failed++;
            }
            error_clear(&error);
        }
    }
    free(begun);
    return failed;
}

static bool stop_sandboxes(size_t *ret_failed, struct error *error)
{
    struct connection connection;
    struct gateway gateway = {0};
    if (!gateway_local(&gateway, error) ||
        !connection_open_to(&connection, &gateway, CONNECTION_NO_START, error))
        return false;
    Openshell__Datamodel__V1__WorkspaceSelector everywhere = connection.workspace;
    Openshell__Datamodel__V1__AllWorkspaces all = OPENSHELL__DATAMODEL__V1__ALL_WORKSPACES__INIT;
    everywhere.selection_case =
        OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__SELECTION_ALL_WORKSPACES;
    everywhere.all_workspaces = &all;
    Openshell__V1__ListSandboxesRequest request = OPENSHELL__V1__LIST_SANDBOXES_REQUEST__INIT;
    request.workspace_scope = &everywhere;
    request.page_size = 1000;
    *ret_failed = 0;
    do {
        const Openshell__V1__ListSandboxesResponse *page = connection_call(
            &connection, &rpc_openshell_v1_OpenShell_ListSandboxes, &request.base, error);
        if (page == NULL)
            return false;
        *ret_failed += stop_page(&connection, page);
        request.page_token = page->next_page_token;
    } while (request.page_token[0] != '\0');
    return true;
}

static int run(const struct invocation *invocation, struct error *error)
{
    (void)invocation;
    pid_t process;
    int descriptor = local_gateway_find(&process, error);
    if (descriptor < 0 && error->code != ERROR_OK)
        return -1;
    if (descriptor < 0) {
        printf("The gateway does not run.\n");
        return EXIT_SUCCESS;
    }
    size_t failed = 0;
    if (given.stop_sandboxes && !stop_sandboxes(&failed, error))
        return -1;
    if (!local_gateway_stop(descriptor, error))
        return -1;
    close(descriptor);
    printf("The gateway is stopped.\n");
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

const struct command command_gateway_stop = {
    .usage = "[OPTIONS]",
    .description = "Stops the gateway of this user on this machine. Its sandboxes go on running, "
                   "and\nthe next gateway takes them over.",
    .examples = "  openshell gateway stop\n"
                "  openshell gateway stop --stop-sandboxes",
    .options = options,
    .run = run,
};
