#include "client/gateway_store.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/paths.h"
#include "client/failure.h"

enum { BUNDLE_FILE_MAX = 256 * 1024 /* bytes of a PEM file */ };

static char *entry_directory(const char *name, struct error *error)
{
    CLEANUP_FREE char *config = paths_config_directory(error);
    return config != NULL ? memory_printf("%s/gateways/%s", config, name) : NULL;
}

enum gateway_source gateway_find(const char *name)
{
    struct gateway *gateways = NULL;
    size_t count = 0;
    enum gateway_source source = GATEWAY_SOURCE_NONE;
    if (!gateway_list(&gateways, &count, NULL))
        return source;
    for (size_t i = 0; i < count; i++)
        if (strcmp(gateways[i].name, name) == 0)
            source = gateways[i].source;
    gateway_list_free(gateways, count);
    return source;
}

/* ---- adding ---- */

static void put(json_t *document, const char *key, const char *text)
{
    if (text != NULL)
        json_object_set_new(document, key, json_string(text));
}

/* Owned by the caller. */
static char *metadata_text(const struct gateway_entry *entry)
{
    const char *socket = gateway_unix_path(entry->endpoint);
    json_t *document = json_object();
    put(document, "name", entry->name);
    put(document, "gateway_endpoint", entry->endpoint);
    put(document, "local_socket", socket);
    json_object_set_new(document, "is_remote", json_boolean(entry->is_remote));
    json_object_set_new(document, "gateway_port", json_integer(entry->port));
    put(document, "remote_host", entry->remote_host);
    put(document, "resolved_host", entry->resolved_host);
    put(document, "auth_mode", entry->auth_mode);
    put(document, "oidc_issuer", entry->oidc_issuer);
    put(document, "oidc_client_id", entry->oidc_client_id);
    put(document, "oidc_audience", entry->oidc_audience);
    put(document, "oidc_scopes", entry->oidc_scopes);
    char *text = json_dumps(document, JSON_INDENT(2));
    json_decref(document);
    if (text == NULL)
        memory_exhausted();
    char *lines = memory_printf("%s\n", text);
    free(text);
    return lines;
}

bool gateway_store_add(const struct gateway_entry *entry, struct error *error)
{
    CLEANUP_FREE char *directory = entry_directory(entry->name, error);
    if (directory == NULL || !file_make_private_directory(directory, error))
        return false;
    CLEANUP_FREE char *path = memory_printf("%s/metadata.json", directory);
    if (access(path, F_OK) == 0) {
        failure_set(error, CLIENT_REASON_GATEWAY_EXISTS, "there is a gateway '%s' already",
                    entry->name);
        failure_hint(error, "choose another --name, or remove it with: openshell gateway remove %s",
                     entry->name);
        return false;
    }
    CLEANUP_FREE char *text = metadata_text(entry);
    return file_write_atomic(path, text, strlen(text), 0600, error);
}

bool gateway_store_activate(const char *name, struct error *error)
{
    CLEANUP_FREE char *config = paths_config_directory(error);
    if (config == NULL)
        return false;
    CLEANUP_FREE char *path = memory_printf("%s/active_gateway", config);
    CLEANUP_FREE char *text = memory_printf("%s\n", name);
    return file_write_atomic(path, text, strlen(text), 0600, error);
}

bool gateway_store_remove(const char *name, struct error *error)
{
    CLEANUP_FREE char *config = paths_config_directory(error);
    if (config == NULL)
        return false;
    CLEANUP_FREE char *directory = memory_printf("%s/gateways/%s", config, name);
    CLEANUP_FREE char *path = memory_printf("%s/active_gateway", config);
    struct buffer active = BUFFER_INIT(4096);
    if (file_read(path, &active, NULL)) {
        const char *text = buffer_text(&active);
        text += strspn(text, " \t\r\n");
        if (strcspn(text, " \t\r\n") == strlen(name) && strncmp(text, name, strlen(name)) == 0)
            unlink(path);
    }
    buffer_free(&active);
    return file_remove_tree(directory, error);
}

/* ---- certificates ---- */

static bool copy_file(const char *from, const char *to, struct error *error)
{
    struct buffer text = BUFFER_INIT(BUNDLE_FILE_MAX);
    bool copied = file_read(from, &text, error) &&
                  file_write_atomic(to, buffer_text(&text), text.length, 0600, error);
    buffer_wipe(&text);
    return copied;
}

/* Where an installation on this machine left its bundle. Owned by the caller; NULL: nowhere. */
static char *packaged_bundle(void)
{
    const char *chosen = getenv("OPENSHELL_LOCAL_TLS_DIR");
    if (chosen != NULL && chosen[0] != '\0')
        return memory_strdup(chosen);
    CLEANUP_FREE char *state = paths_state_directory(NULL);
    return state != NULL ? memory_printf("%s/tls", state) : NULL;
}

bool gateway_store_check_bundle(const char *name, bool import, struct error *error)
{
    static const struct {
        const char *name;
        const char *packaged;
    } files[] = {
        {"ca.crt", "ca.crt"}, {"tls.crt", "client/tls.crt"}, {"tls.key", "client/tls.key"}};
    CLEANUP_FREE char *directory = entry_directory(name, error);
    if (directory == NULL)
        return false;
    CLEANUP_FREE char *bundle = memory_printf("%s/mtls", directory);
    CLEANUP_FREE char *packaged = import ? packaged_bundle() : NULL;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        CLEANUP_FREE char *path = memory_printf("%s/%s", bundle, files[i].name);
        if (access(path, F_OK) == 0)
            continue;
        CLEANUP_FREE char *from =
            packaged != NULL ? memory_printf("%s/%s", packaged, files[i].packaged) : NULL;
        if (from != NULL && access(from, F_OK) == 0) {
            if (!file_make_private_directory(bundle, error) || !copy_file(from, path, error))
                return false;
            continue;
        }
        failure_set(error, CLIENT_REASON_GATEWAY_INVALID,
                    "gateway '%s' needs the client certificate file '%s', which is missing", name,
                    path);
        failure_hint(error, "put ca.crt, tls.crt and tls.key into '%s'", bundle);
        return false;
    }
    return true;
}
