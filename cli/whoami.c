/* openshell whoami */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/document.h"
#include "client/settings.h"
#include "proto/method_table.h"
#include "proto/openshell.pb-c.h"

static const struct option options[] = {OPTION_OUTPUT, {0}};

static json_t *list_document(char **texts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, document_text(texts[i]));
    return list;
}

static void line(const char *name, const char *text)
{
    CLEANUP_FREE char *shown = text_escaped(text);
    printf("%-10s %s\n", name, shown[0] != '\0' ? shown : "-");
}

static void lines(const char *name, char **texts, size_t count)
{
    if (count == 0)
        line(name, "");
    for (size_t i = 0; i < count; i++)
        line(i == 0 ? name : "", texts[i]);
}

static int run(const struct invocation *invocation, struct error *error)
{
    (void)invocation;
    struct connection connection;
    if (!connection_open(&connection, CONNECTION_START, error))
        return -1;
    Openshell__V1__GetCurrentUserRequest request = OPENSHELL__V1__GET_CURRENT_USER_REQUEST__INIT;
    const Openshell__V1__GetCurrentUserResponse *user = connection_call(
        &connection, &rpc_openshell_v1_OpenShell_GetCurrentUser, &request.base, error);
    if (user == NULL)
        return -1;
    if (settings.output == OUTPUT_TABLE) {
        line("Subject:", user->subject);
        line("Name:", user->display_name);
        line("Provider:", user->identity_provider);
        lines("Roles:", user->roles, user->n_roles);
        lines("Scopes:", user->scopes, user->n_scopes);
        return EXIT_SUCCESS;
    }
    json_t *document = json_object();
    json_object_set_new(document, "subject", document_text(user->subject));
    json_object_set_new(document, "display_name", document_text(user->display_name));
    json_object_set_new(document, "roles", list_document(user->roles, user->n_roles));
    json_object_set_new(document, "scopes", list_document(user->scopes, user->n_scopes));
    json_object_set_new(document, "identity_provider", document_text(user->identity_provider));
    document_print(document, settings.output, stdout);
    return EXIT_SUCCESS;
}

const struct command command_whoami = {
    .usage = "[OPTIONS]",
    .description = "Says as whom the gateway knows you, and what you may do.",
    .examples = "  openshell whoami -o json",
    .options = options,
    .run = run,
};
