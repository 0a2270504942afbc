/* openshell gateway info */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/document.h"
#include "client/settings.h"
#include "client/terminal.h"
#include "proto/method_table.h"
#include "proto/openshell.pb-c.h"

static const struct option options[] = {OPTION_OUTPUT, {0}};

typedef Openshell__V1__GetGatewayInfoResponse gateway_info;
typedef Openshell__V1__NegotiatedExtensionInfo extension_info;

static const char *status_word(Openshell__V1__ServiceStatus status)
{
    static const char *const words[] = {"unknown", "healthy", "degraded", "unhealthy"};
    return words[(size_t)status < sizeof(words) / sizeof(words[0]) ? (size_t)status : 0];
}

static const char *kind_word(Openshell__V1__ExtensionKind kind)
{
    static const char *const words[] = {"unspecified", "compute-driver", "credential-driver",
                                        "gateway-interceptor", "supervisor-middleware"};
    return words[(size_t)kind < sizeof(words) / sizeof(words[0]) ? (size_t)kind : 0];
}

/* Only a token makes a bearer of a caller; a socket's caller is known by its process. */
static const char *auth_word(const struct gateway *gateway)
{
    return gateway->auth_mode != NULL && (strcmp(gateway->auth_mode, "oidc") == 0 ||
                                          strcmp(gateway->auth_mode, "cloudflare_jwt") == 0)
               ? "bearer"
               : NULL;
}

/* ---- the document ---- */

static json_t *texts_document(char **texts, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, document_text(texts[i]));
    return list;
}

static json_t *driver_document(const Openshell__V1__ComputeDriverInfo *driver)
{
    json_t *entry = json_object(), *capabilities = json_object();
    json_object_set_new(entry, "name", document_text(driver->name));
    if (driver->capabilities != NULL) {
        json_object_set_new(capabilities, "driver_name",
                            document_text(driver->capabilities->driver_name));
        json_object_set_new(capabilities, "driver_version",
                            document_text(driver->capabilities->driver_version));
    }
    json_object_set_new(entry, "capabilities", capabilities);
    return entry;
}

static json_t *extension_document(const extension_info *extension)
{
    json_t *entry = json_object();
    CLEANUP_FREE char *version =
        memory_printf("%u.%u", extension->protocol_major, extension->protocol_minor);
    json_object_set_new(entry, "kind", document_text(kind_word(extension->kind)));
    json_object_set_new(entry, "configured_name", document_text(extension->configured_name));
    json_object_set_new(entry, "implementation_name",
                        document_text(extension->implementation_name));
    json_object_set_new(entry, "implementation_version",
                        document_text(extension->implementation_version));
    json_object_set_new(entry, "protocol_version", document_text(version));
    json_object_set_new(
        entry, "supported_capabilities",
        texts_document(extension->supported_capabilities, extension->n_supported_capabilities));
    json_object_set_new(
        entry, "required_capabilities",
        texts_document(extension->required_capabilities, extension->n_required_capabilities));
    return entry;
}

static void print_document(const struct gateway *gateway, const gateway_info *info)
{
    json_t *document = json_object(), *drivers = json_array(), *extensions = json_array();
    for (size_t i = 0; i < info->n_compute_drivers; i++)
        json_array_append_new(drivers, driver_document(info->compute_drivers[i]));
    for (size_t i = 0; i < info->n_extensions; i++)
        json_array_append_new(extensions, extension_document(info->extensions[i]));
    json_object_set_new(document, "gateway", document_text(gateway->name));
    json_object_set_new(document, "server", document_text(gateway->endpoint));
    json_object_set_new(document, "auth", document_text(auth_word(gateway)));
    json_object_set_new(document, "status", document_text(status_word(info->status)));
    json_object_set_new(document, "version", document_text(info->gateway_version));
    json_object_set_new(document, "compute_drivers", drivers);
    json_object_set_new(document, "extensions", extensions);
    document_print(document, settings.output, stdout);
}

/* ---- the block for people ---- */

static void line(const char *name, const char *text)
{
    CLEANUP_FREE char *shown = text_escaped(text);
    printf("%-12s %s\n", name, shown[0] != '\0' ? shown : "-");
}

static void print_block(const struct gateway *gateway, const gateway_info *info)
{
    const char *auth = auth_word(gateway);
    bool healthy = info->status == OPENSHELL__V1__SERVICE_STATUS__SERVICE_STATUS_HEALTHY;
    enum colour colour = !terminal_table_colours() ? COLOUR_NONE
                         : healthy                 ? COLOUR_GREEN
                                                   : COLOUR_RED;
    line("Gateway:", gateway->name);
    line("Server:", gateway->endpoint);
    line("Auth:", auth != NULL ? auth : "");
    printf("%-12s %s%s%s\n", "Status:", terminal_begin(colour), status_word(info->status),
           terminal_end(colour));
    line("Version:", info->gateway_version);
    for (size_t i = 0; i < info->n_compute_drivers; i++) {
        const Openshell__V1__ComputeDriverInfo *driver = info->compute_drivers[i];
        CLEANUP_FREE char *text =
            memory_printf("%s %s", driver->name,
                          driver->capabilities != NULL ? driver->capabilities->driver_version : "");
        line("Driver:", text);
    }
    for (size_t i = 0; i < info->n_extensions; i++) {
        CLEANUP_FREE char *text = memory_printf(
            "%s %s (%s %s)", kind_word(info->extensions[i]->kind),
            info->extensions[i]->configured_name, info->extensions[i]->implementation_name,
            info->extensions[i]->implementation_version);
        line("Extension:", text);
    }
}

static int run(const struct invocation *invocation, struct error *error)
{
    (void)invocation;
    struct connection connection;
    if (!connection_open(&connection, CONNECTION_NO_START, error))
        return -1;
    Openshell__V1__GetGatewayInfoRequest request = OPENSHELL__V1__GET_GATEWAY_INFO_REQUEST__INIT;
    const gateway_info *info = connection_call(
        &connection, &rpc_openshell_v1_OpenShell_GetGatewayInfo, &request.base, error);
    if (info == NULL)
        return -1;
    if (settings.output == OUTPUT_TABLE)
        print_block(&connection.gateway, info);
    else
        print_document(&connection.gateway, info);
    return EXIT_SUCCESS;
}

const struct command command_gateway_info = {
    .usage = "[OPTIONS]",
    .description = "Says what the gateway in use is: its state, its version, what runs its "
                   "sandboxes and\nwhat extends it. Starts nothing.",
    .examples = "  openshell gateway info -o json",
    .options = options,
    .run = run,
};
