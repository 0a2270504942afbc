#include "client/gateway.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/paths.h"
#include "base/text.h"
#include "client/failure.h"
#include "client/gateway_store.h"
#include "client/report.h"
#include "client/settings.h"

enum {
    METADATA_MAX = 64 * 1024, /* bytes of a metadata.json */
    ACTIVE_MAX = 4096,        /* bytes of an active_gateway */
    GATEWAYS_MAX = 1024,      /* entries that are listed */
};

/* The two places with gateways: the user's, then the system's, which is read only. */
struct layer {
    char *directory; /* NULL: there is none */
    enum gateway_source source;
};
enum { LAYER_COUNT = 2 };

/* A path component, and harmless on a terminal. */
bool gateway_name_valid(const char *name)
{
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strchr(name, '/') != NULL || strlen(name) > 255)
        return false;
    CLEANUP_FREE char *escaped = text_escaped(name);
    return strcmp(escaped, name) == 0;
}

const char *gateway_unix_path(const char *endpoint)
{
    if (endpoint == NULL || !text_has_prefix(endpoint, "unix:"))
        return NULL;
    const char *path = endpoint + strlen("unix:");
    if (text_has_prefix(path, "//"))
        path += 2;
    return path[0] == '/' ? path : NULL;
}

void gateway_free(struct gateway *gateway)
{
    free(gateway->name);
    free(gateway->endpoint);
    free(gateway->socket);
    free(gateway->auth_mode);
    free(gateway->remote_host);
    free(gateway->resolved_host);
    *gateway = (struct gateway){0};
}

void gateway_list_free(struct gateway *gateways, size_t count)
{
    for (size_t i = 0; i < count; i++)
        gateway_free(&gateways[i]);
    free(gateways);
}

static void free_layers(struct layer *layers)
{
    for (size_t i = 0; i < LAYER_COUNT; i++)
        free(layers[i].directory);
}

/* A user's directory that exists is checked to be private: what it says is obeyed. */
static bool open_layers(struct layer *layers, struct error *error)
{
    layers[0] = (struct layer){.source = GATEWAY_SOURCE_USER};
    layers[1] = (struct layer){.source = GATEWAY_SOURCE_SYSTEM};
    char *user = paths_config_location(NULL);
    struct stat status;
    if (user != NULL && lstat(user, &status) == 0 && !file_make_private_directory(user, error)) {
        free(user);
        return false;
    }
    layers[0].directory = user;
    const char *system = getenv("OPENSHELL_SYSTEM_GATEWAY_DIR");
    if (system != NULL && system[0] != '\0' && system[0] != '/') {
        report_notice("OPENSHELL_SYSTEM_GATEWAY_DIR is not an absolute path and is ignored");
        system = NULL;
    }
    layers[1].directory =
        memory_strdup(system != NULL && system[0] != '\0' ? system : "/etc/openshell");
    return true;
}

/* The name in an active_gateway file, or NULL. */
static char *read_active(const struct layer *layer)
{
    if (layer->directory == NULL)
        return NULL;
    CLEANUP_FREE char *path = memory_printf("%s/active_gateway", layer->directory);
    struct buffer buffer = BUFFER_INIT(ACTIVE_MAX);
    if (!file_read(path, &buffer, NULL)) {
        buffer_free(&buffer);
        return NULL;
    }
    static const char space[] = " \t\r\n";
    const char *text = buffer_text(&buffer);
    text += strspn(text, space);
    size_t length = strlen(text);
    while (length > 0 && strchr(space, text[length - 1]) != NULL)
        length--;
    char *name = memory_printf("%.*s", (int)length, text);
    buffer_free(&buffer);
    if (!gateway_name_valid(name)) {
        if (name[0] != '\0')
            report_notice("'%s' names no valid gateway and is ignored", path);
        free(name);
        return NULL;
    }
    return name;
}

static char *read_active_of(const struct layer *layers)
{
    char *name = NULL;
    for (size_t i = 0; i < LAYER_COUNT && name == NULL; i++)
        name = read_active(&layers[i]);
    return name;
}

static char *member(const json_t *object, const char *key)
{
    return memory_strdup(json_string_value(json_object_get(object, key)));
}

static bool parse_metadata(const char *path, const char *name, const char *text, size_t length,
                           struct gateway *gateway, struct error *error)
{
    json_error_t failure;
    json_t *object = json_loadb(text, length, JSON_REJECT_DUPLICATES, &failure);
    if (!json_is_object(object)) {
        json_decref(object);
        failure_set(error, CLIENT_REASON_GATEWAY_INVALID, "'%s' is not a JSON object (line %d: %s)",
                    path, failure.line, failure.text);
        failure_hint(error, "remove it, or write it again");
        return false;
    }
    gateway->name = memory_strdup(name);
    gateway->endpoint = member(object, "gateway_endpoint");
    gateway->socket = member(object, "local_socket");
    gateway->auth_mode = member(object, "auth_mode");
    gateway->remote_host = member(object, "remote_host");
    gateway->resolved_host = member(object, "resolved_host");
    gateway->is_remote = json_is_true(json_object_get(object, "is_remote"));
    json_decref(object);
    if (gateway->socket != NULL && gateway->socket[0] != '/') {
        free(gateway->socket);
        gateway->socket = NULL;
    }
    if (gateway->socket == NULL)
        gateway->socket = memory_strdup(gateway_unix_path(gateway->endpoint));
    if (gateway->endpoint == NULL && gateway->socket == NULL) {
        gateway_free(gateway);
        return failure_set(error, CLIENT_REASON_GATEWAY_INVALID,
                           "'%s' has neither gateway_endpoint nor local_socket", path);
    }
    if (gateway->endpoint == NULL)
        gateway->endpoint = memory_printf("unix:%s", gateway->socket);
    return true;
}

/* Reads a gateway's metadata; NOT_FOUND when there is none. */
static bool load_from(const struct layer *layer, const char *name, struct gateway *gateway,
                      struct error *error)
{
    if (layer->directory == NULL)
        return error_set(error, ERROR_NOT_FOUND, "no configuration");
    CLEANUP_FREE char *path = memory_printf("%s/gateways/%s/metadata.json", layer->directory, name);
    struct buffer buffer = BUFFER_INIT(METADATA_MAX);
    bool loaded = file_read(path, &buffer, error) &&
                  parse_metadata(path, name, buffer_text(&buffer), buffer.length, gateway, error);
    buffer_free(&buffer);
    if (!loaded)
        return false;
    gateway->source = layer->source;
    gateway->configured = true;
    gateway->local = layer->source == GATEWAY_SOURCE_USER && gateway->socket != NULL &&
                     strcmp(name, GATEWAY_LOCAL_NAME) == 0;
    return true;
}

static bool load(const struct layer *layers, const char *name, struct gateway *gateway,
                 struct error *error)
{
    for (size_t i = 0; i < LAYER_COUNT; i++) {
        error_clear(error);
        if (load_from(&layers[i], name, gateway, error))
            return true;
        if (error->code != ERROR_NOT_FOUND)
            return false;
    }
    return false;
}

static bool use_local(struct gateway *gateway, bool configured, struct error *error)
{
    CLEANUP_FREE char *directory = paths_run_directory(error);
    if (directory == NULL)
        return false;
    *gateway = (struct gateway){.name = memory_strdup(GATEWAY_LOCAL_NAME),
                                .socket = memory_printf("%s/gateway.sock", directory),
                                .local = true,
                                .configured = configured};
    gateway->endpoint = memory_printf("unix:%s", gateway->socket);
    return true;
}

static bool use_named(const struct layer *layers, const char *name, struct gateway *gateway,
                      struct error *error)
{
    if (!gateway_name_valid(name)) {
        CLEANUP_FREE char *shown = text_escaped(name);
        return failure_set(error, CLIENT_REASON_GATEWAY_UNKNOWN, "'%s' cannot be a gateway's name",
                           shown);
    }
    if (load(layers, name, gateway, error))
        return true;
    if (error->code != ERROR_NOT_FOUND)
        return false;
    if (strcmp(name, GATEWAY_LOCAL_NAME) == 0)
        return use_local(gateway, true, error);
    return failure_set(error, CLIENT_REASON_GATEWAY_UNKNOWN, "there is no gateway '%s'", name);
}

static bool same_endpoint(const char *left, const char *right)
{
    size_t left_length = strlen(left), right_length = strlen(right);
    while (left_length > 0 && left[left_length - 1] == '/')
        left_length--;
    while (right_length > 0 && right[right_length - 1] == '/')
        right_length--;
    return left_length == right_length && memcmp(left, right, left_length) == 0;
}

/* The stored name of an endpoint: the active gateway's, or any other's. */
static char *name_of_endpoint(const struct layer *layers, const char *endpoint)
{
    char *name = NULL;
    CLEANUP_FREE char *active = read_active_of(layers);
    struct gateway gateway = {0};
    struct error error = {0};
    if (active != NULL && load(layers, active, &gateway, &error) &&
        same_endpoint(gateway.endpoint, endpoint))
        name = memory_strdup(active);
    gateway_free(&gateway);
    error_clear(&error);
    struct gateway *gateways = NULL;
    size_t count = 0;
    if (name == NULL && gateway_list(&gateways, &count, NULL))
        for (size_t i = 0; i < count && name == NULL; i++)
            if (same_endpoint(gateways[i].endpoint, endpoint))
                name = memory_strdup(gateways[i].name);
    gateway_list_free(gateways, count);
    return name != NULL ? name : memory_strdup(endpoint);
}

static void use_endpoint(const struct layer *layers, struct gateway *gateway)
{
    const char *endpoint = settings.gateway_endpoint;
    *gateway = (struct gateway){
        .name = settings.gateway != NULL ? memory_strdup(settings.gateway)
                                         : name_of_endpoint(layers, endpoint),
        .endpoint = memory_strdup(endpoint),
        .socket = memory_strdup(gateway_unix_path(endpoint)),
        .configured = true,
    };
}

static bool select_with(const struct layer *layers, struct gateway *gateway, struct error *error)
{
    if (settings.gateway_endpoint != NULL) {
        use_endpoint(layers, gateway);
        return true;
    }
    if (settings.gateway != NULL)
        return use_named(layers, settings.gateway, gateway, error);
    CLEANUP_FREE char *active = read_active_of(layers);
    if (active != NULL)
        return use_named(layers, active, gateway, error);
    struct error absent = {0};
    if (load(layers, GATEWAY_LOCAL_NAME, gateway, &absent))
        return true;
    if (absent.code != ERROR_NOT_FOUND) {
        error_copy(error, &absent);
        error_clear(&absent);
        return false;
    }
    error_clear(&absent);
    return use_local(gateway, false, error);
}

bool gateway_select(struct gateway *ret_gateway, struct error *error)
{
    struct error own = {0};
    struct layer layers[LAYER_COUNT];
    if (!open_layers(layers, &own)) {
        error_copy(error, &own);
        error_clear(&own);
        return false;
    }
    bool selected = select_with(layers, ret_gateway, &own);
    free_layers(layers);
    if (!selected)
        error_copy(error, &own);
    error_clear(&own);
    return selected;
}

bool gateway_local(struct gateway *ret_gateway, struct error *error)
{
    return use_local(ret_gateway, false, error);
}

static int compare_names(const void *left, const void *right)
{
    const struct gateway *first = left, *second = right;
    return strcmp(first->name, second->name);
}

static bool is_listed(const struct gateway *gateways, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(gateways[i].name, name) == 0)
            return true;
    return false;
}

static void list_layer(const struct layer *layer, const char *active, struct gateway **gateways,
                       size_t *count)
{
    if (layer->directory == NULL)
        return;
    CLEANUP_FREE char *path = memory_printf("%s/gateways", layer->directory);
    DIR *stream = opendir(path);
    if (stream == NULL)
        return;
    struct dirent *entry;
    while ((entry = readdir(stream)) != NULL && *count < GATEWAYS_MAX) {
        struct gateway gateway = {0};
        struct error error = {0};
        if (!gateway_name_valid(entry->d_name) || is_listed(*gateways, *count, entry->d_name))
            continue;
        if (!load_from(layer, entry->d_name, &gateway, &error)) {
            if (error.code != ERROR_NOT_FOUND)
                report_notice("%s", error.message);
            error_clear(&error);
            continue;
        }
        gateway.active = strcmp(active != NULL ? active : GATEWAY_LOCAL_NAME, gateway.name) == 0;
        *gateways = memory_resize(*gateways, (*count + 1) * sizeof(**gateways));
        (*gateways)[(*count)++] = gateway;
    }
    closedir(stream);
}

bool gateway_list(struct gateway **ret_gateways, size_t *ret_count, struct error *error)
{
    struct layer layers[LAYER_COUNT];
    if (!open_layers(layers, error))
        return false;
    CLEANUP_FREE char *active = read_active_of(layers);
    *ret_gateways = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < LAYER_COUNT; i++)
        list_layer(&layers[i], active, ret_gateways, ret_count);
    free_layers(layers);
    if (*ret_count > 0)
        qsort(*ret_gateways, *ret_count, sizeof(**ret_gateways), compare_names);
    return true;
}

char *gateway_store_active(void)
{
    struct layer layers[LAYER_COUNT];
    if (!open_layers(layers, NULL))
        return NULL;
    char *active = read_active_of(layers);
    free_layers(layers);
    return active;
}
