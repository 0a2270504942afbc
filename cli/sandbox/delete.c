/* openshell sandbox delete */
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/failure.h"
#include "client/last_sandbox.h"
#include "client/report.h"
#include "client/sandbox_calls.h"
#include "client/settings.h"
#include "proto/method_table.h"

enum { FAILED_NAMES_MAX = 512 }; /* bytes of names in the last message */

static struct {
    bool all;
} given;

static const struct option options[] = {
    {.type = OPTION_FLAG,
     .name = "all",
     .value = &given.all,
     .help = "Delete every sandbox of the workspace"},
    {0},
};

/* The names that could not be deleted, for the last message. */
struct failures {
    size_t count;
    struct buffer names;
};

static void delete_one(struct connection *connection, const char *name, struct failures *failures)
{
    struct error error = {0};
    Openshell__V1__DeletionOutcome outcome;
    CLEANUP_FREE char *shown = text_escaped(name);
    if (!sandbox_delete(connection, name, &outcome, &error)) {
        report_error(&error);
        error_clear(&error);
        failures->count++;
        buffer_printf(&failures->names, "%s%s", failures->count > 1 ? ", " : "", shown);
        return;
    }
    last_sandbox_forget(connection->gateway.name, name);
    if (outcome == OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_ALREADY_ABSENT)
        printf("Sandbox '%s' is deleted already.\n", shown);
    else if (outcome == OPENSHELL__V1__DELETION_OUTCOME__DELETION_OUTCOME_ACCEPTED)
        printf("Sandbox '%s' is being deleted; cleaning up goes on.\n", shown);
    else
        printf("Sandbox '%s' is deleted.\n", shown);
}

/* Names are collected before the first is deleted: pages would shift otherwise. */
static bool list_all(struct connection *connection, char ***ret_names, size_t *ret_count,
                     struct error *error)
{
    Openshell__V1__ListSandboxesRequest request = OPENSHELL__V1__LIST_SANDBOXES_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.page_size = 1000;
    *ret_names = NULL;
    *ret_count = 0;
    do {
        const Openshell__V1__ListSandboxesResponse *response = connection_call(
            connection, &rpc_openshell_v1_OpenShell_ListSandboxes, &request.base, error);
        if (response == NULL)
            return false;
        *ret_names =
            memory_resize(*ret_names, (*ret_count + response->n_sandboxes + 1) * sizeof(char *));
        for (size_t i = 0; i < response->n_sandboxes; i++)
            (*ret_names)[(*ret_count)++] = (char *)sandbox_name(response->sandboxes[i]);
        request.page_token = response->next_page_token;
    } while (request.page_token[0] != '\0');
    return true;
}

static int run(const struct invocation *invocation, struct error *error)
{
    struct connection connection;
    const char *const *names = invocation->words;
    size_t count = invocation->word_count;
    if (given.all == (count > 0)) {
        failure_usage(error, "%s",
                      given.all ? "option '--all' and names exclude each other"
                                : "no sandbox is named");
        failure_hint(error, "name what to delete, or give --all");
        return -1;
    }
    if (!connection_open(&connection, CONNECTION_START, error))
        return -1;
    char **listed = NULL;
    if (given.all) {
        if (!list_all(&connection, &listed, &count, error))
            return -1;
        names = (const char *const *)listed;
        if (count == 0)
            printf("There is no sandbox to delete.\n");
    }
    struct failures failures = {.names = BUFFER_INIT(FAILED_NAMES_MAX)};
    for (size_t i = 0; i < count; i++)
        delete_one(&connection, names[i], &failures);
    free(listed);
    if (failures.count == 0)
        return EXIT_SUCCESS;
    if (count > 1)
        report_notice("%zu of %zu could not be deleted: %s", failures.count, count,
                      buffer_text(&failures.names));
    return EXIT_FAILURE;
}

const struct command command_sandbox_delete = {
    .usage = "[OPTIONS] NAME...",
    .description = "Ends everything that runs in the sandboxes and removes them with their files.\n"
                   "One that is not there counts as deleted.",
    .examples = "  openshell sandbox delete demo\n"
                "  openshell sandbox delete --all",
    .options = options,
    .most_words = WORDS_ANY,
    .run = run,
};
