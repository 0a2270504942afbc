/* openshell status */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/document.h"
#include "client/explain.h"
#include "client/failure.h"
#include "client/settings.h"
#include "client/terminal.h"
#include "proto/method_table.h"
#include "proto/openshell.pb-c.h"

static const struct option options[] = {OPTION_OUTPUT, {0}};

enum { PROBE_DEADLINE = 5 * 1000 }; /* milliseconds */

/* What is found out; texts are "" where there is nothing to say. */
struct findings {
    const char *status; /* "connected", "disconnected", "error" */
    char version[64];
    char error[ERROR_MESSAGE_MAX * 2];
    const char *authentication; /* "authenticated", "failed", "unverified" */
    char authentication_error[ERROR_MESSAGE_MAX * 2];
};

struct probe {
    bool health_done;
    bool access_done;
    struct error health;
    struct error access;
    char version[64];
};

static void on_health(const ProtobufCMessage *message, const struct error *error, void *user)
{
    struct probe *probe = user;
    const Openshell__V1__HealthResponse *response = (const Openshell__V1__HealthResponse *)message;
    probe->health_done = true;
    if (response != NULL)
        text_escape(response->version, probe->version, sizeof(probe->version));
    else
        error_copy(&probe->health, error);
}

static void on_access(const ProtobufCMessage *message, const struct error *error, void *user)
{
    struct probe *probe = user;
    probe->access_done = true;
    if (message == NULL)
        error_copy(&probe->access, error);
}

static void put_words(const struct error *error, char *text, size_t size)
{
    struct explanation explanation;
    explain(error, &explanation);
    snprintf(text, size, "%s", explanation.message);
}

/* Health says that it is there; GetGatewayInfo whether it knows who asks. */
static void probe_gateway(struct connection *connection, struct findings *findings)
{
    struct probe probe = {0};
    const struct rpc_call_options limit = {.deadline = PROBE_DEADLINE};
    Openshell__V1__HealthRequest health = OPENSHELL__V1__HEALTH_REQUEST__INIT;
    Openshell__V1__GetGatewayInfoRequest info = OPENSHELL__V1__GET_GATEWAY_INFO_REQUEST__INIT;
    rpc_unary(connection->channel, &rpc_openshell_v1_OpenShell_Health, &limit, &health.base,
              on_health, &probe);
    rpc_unary(connection->channel, &rpc_openshell_v1_OpenShell_GetGatewayInfo, &limit, &info.base,
              on_access, &probe);
    while (!probe.health_done || !probe.access_done)
        reactor_run_once(connection->reactor);

    connection_check(connection, &probe.health);
    connection_check(connection, &probe.access);
    bool answers = probe.health.code == ERROR_OK;
    findings->status = answers ? "connected" : "error";
    if (!answers)
        put_words(&probe.health, findings->error, sizeof(findings->error));
    memcpy(findings->version, probe.version, sizeof(probe.version));
    /* Who may not ask this has been recognised all the same. */
    if (probe.access.code == ERROR_OK || probe.access.code == ERROR_PERMISSION_DENIED) {
        findings->authentication = "authenticated";
    } else {
        findings->authentication =
            probe.access.code == ERROR_UNAUTHENTICATED ? "failed" : "unverified";
        put_words(&probe.access, findings->authentication_error,
                  sizeof(findings->authentication_error));
    }
    error_clear(&probe.health);
    error_clear(&probe.access);
}

static void print_document(const struct gateway *gateway, const struct findings *findings)
{
    json_t *document = json_object(), *authentication = json_object();
    json_object_set_new(document, "gateway", document_text(gateway->name));
    json_object_set_new(document, "server", document_text(gateway->endpoint));
    json_object_set_new(document, "status", document_text(findings->status));
    json_object_set_new(authentication, "status", document_text(findings->authentication));
    if (findings->authentication_error[0] != '\0')
        json_object_set_new(authentication, "error", document_text(findings->authentication_error));
    else if (strcmp(findings->authentication, "authenticated") == 0)
        json_object_set_new(authentication, "mode", document_text("peer"));
    json_object_set_new(document, "authentication", authentication);
    if (findings->version[0] != '\0')
        json_object_set_new(document, "version", document_text(findings->version));
    if (findings->error[0] != '\0')
        json_object_set_new(document, "error", document_text(findings->error));
    document_print(document, settings.output, stdout);
}

static void print_block(const struct gateway *gateway, const struct findings *findings)
{
    CLEANUP_FREE char *endpoint = text_escaped(gateway->endpoint);
    CLEANUP_FREE char *name = text_escaped(gateway->name);
    bool connected = strcmp(findings->status, "connected") == 0;
    enum colour colour = !terminal_table_colours() ? COLOUR_NONE
                         : connected               ? COLOUR_GREEN
                                                   : COLOUR_RED;
    printf("Gateway:         %s\nServer:          %s\n", name, endpoint);
    printf("Status:          %s%s%s%s%s\n", terminal_begin(colour), findings->status,
           terminal_end(colour), findings->error[0] != '\0' ? ": " : "", findings->error);
    printf("Authentication:  %s%s%s\n", findings->authentication,
           findings->authentication_error[0] != '\0' ? ": " : "", findings->authentication_error);
    if (findings->version[0] != '\0')
        printf("Version:         %s\n", findings->version);
}

static void print_not_configured(void)
{
    if (settings.output == OUTPUT_TABLE) {
        printf("No gateway is configured; the first command that needs one starts a local one.\n");
        return;
    }
    json_t *document = json_object();
    json_object_set_new(document, "status", document_text("not_configured"));
    document_print(document, settings.output, stdout);
}

static int run(const struct invocation *invocation, struct error *error)
{
    (void)invocation;
    struct gateway gateway = {0};
    struct connection connection;
    struct findings findings = {.status = "disconnected", .authentication = "unverified"};
    if (!gateway_select(&gateway, error))
        return -1;
    struct error down = {0};
    if (connection_open_to(&connection, &gateway, CONNECTION_NO_START, &down)) {
        probe_gateway(&connection, &findings);
    } else if (failure_is(&down, CLIENT_REASON_GATEWAY_NOT_RUNNING) && !gateway.configured) {
        print_not_configured();
        return EXIT_SUCCESS;
    } else {
        put_words(&down, findings.error, sizeof(findings.error));
    }
    error_clear(&down);
    if (settings.output == OUTPUT_TABLE)
        print_block(&gateway, &findings);
    else
        print_document(&gateway, &findings);
    return EXIT_SUCCESS;
}

const struct command command_status = {
    .usage = "[OPTIONS]",
    .description = "Says which gateway is used, whether it answers, and whether it knows you. "
                   "Starts\nnothing, and ends with 0 whatever it finds.",
    .examples = "  openshell status -o json",
    .options = options,
    .run = run,
};
