/* openshell gateway list */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/gateway/describe.h"
#include "client/command.h"
#include "client/document.h"
#include "client/gateway.h"
#include "client/settings.h"
#include "client/text_table.h"

static const struct option options[] = {OPTION_OUTPUT, {0}};

static void print_table(const struct gateway *gateways, size_t count)
{
    static const char *const all[] = {"  NAME", "ENDPOINT", "TYPE", "SOURCE",
                                      "AUTH",   "REMOTE",   NULL};
    static const char *const most[] = {"  NAME", "ENDPOINT", "TYPE", "SOURCE", "AUTH", NULL};
    bool remote = false;
    for (size_t i = 0; i < count; i++)
        remote |= gateways[i].remote_host != NULL;
    struct text_table *table = text_table_new(remote ? all : most);
    for (size_t i = 0; i < count; i++) {
        CLEANUP_FREE char *name =
            memory_printf("%s %s", gateways[i].active ? "*" : " ", gateways[i].name);
        text_table_add(table, name);
        text_table_add(table, gateways[i].endpoint);
        text_table_add(table, describe_type(&gateways[i]));
        text_table_add(table, describe_source(&gateways[i]));
        text_table_add(table, describe_auth(&gateways[i]));
        if (remote)
            text_table_add(table, gateways[i].remote_host);
    }
    text_table_print(table, stdout, terminal_table_colours());
    text_table_free(table);
}

static void print_document(const struct gateway *gateways, size_t count)
{
    json_t *document = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_object();
        json_object_set_new(entry, "name", document_text(gateways[i].name));
        json_object_set_new(entry, "endpoint", document_text(gateways[i].endpoint));
        json_object_set_new(entry, "type", document_text(describe_type(&gateways[i])));
        json_object_set_new(entry, "source", document_text(describe_source(&gateways[i])));
        json_object_set_new(entry, "auth", document_text(describe_auth(&gateways[i])));
        json_object_set_new(entry, "active", json_boolean(gateways[i].active));
        json_object_set_new(entry, "is_remote", json_boolean(gateways[i].is_remote));
        json_object_set_new(entry, "remote_host", document_text(gateways[i].remote_host));
        json_object_set_new(entry, "resolved_host", document_text(gateways[i].resolved_host));
        json_array_append_new(document, entry);
    }
    document_print(document, settings.output, stdout);
}

static int run(const struct invocation *invocation, struct error *error)
{
    (void)invocation;
    struct gateway *gateways;
    size_t count;
    if (!gateway_list(&gateways, &count, error))
        return -1;
    if (settings.output != OUTPUT_TABLE)
        print_document(gateways, count);
    else if (count == 0)
        printf("No gateway is configured; the first command that needs one starts a local one.\n");
    else
        print_table(gateways, count);
    gateway_list_free(gateways, count);
    return EXIT_SUCCESS;
}

const struct command command_gateway_list = {
    .usage = "[OPTIONS]",
    .description = "Lists the gateways that this user's configuration and the system's name. The "
                   "one\nwith a star is used where no other is chosen.",
    .examples = "  openshell gateway list -o json",
    .options = options,
    .run = run,
};
