#include "gateway/metadata.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/file.h"
#include "base/memory.h"
#include "gateway/gateway.h"

static bool write_document(const char *path, const char *socket_path, struct error *error)
{
    CLEANUP_FREE char *endpoint = memory_printf("unix:%s", socket_path);
    json_t *document = json_pack("{s:s, s:s, s:s, s:b, s:i, s:s}", "name", GATEWAY_NAME,
                                 "gateway_endpoint", endpoint, "local_socket", socket_path,
                                 "is_remote", 0, "gateway_port", 0, "auth_mode", "plaintext");
    char *text = document != NULL ? json_dumps(document, JSON_INDENT(2)) : NULL;
    json_decref(document);
    if (text == NULL)
        return error_set(error, ERROR_INTERNAL, "'%s' cannot be written as JSON", socket_path);
    CLEANUP_FREE char *lines = memory_printf("%s\n", text);
    free(text);
    struct buffer present = BUFFER_INIT(65536);
    bool same = file_read(path, &present, NULL) && strcmp(buffer_text(&present), lines) == 0;
    buffer_free(&present);
    return same || file_write_atomic(path, lines, strlen(lines), 0600, error);
}

bool metadata_write(const char *config_directory, const char *socket_path, struct error *error)
{
    CLEANUP_FREE char *directory = memory_printf("%s/gateways/%s", config_directory, GATEWAY_NAME);
    CLEANUP_FREE char *path = memory_printf("%s/metadata.json", directory);
    CLEANUP_FREE char *active = memory_printf("%s/active_gateway", config_directory);
    if (!file_make_private_directory(directory, error) || !write_document(path, socket_path, error))
        return false;
    static const char name[] = GATEWAY_NAME "\n";
    return access(active, F_OK) == 0 ||
           file_write_atomic(active, name, sizeof(name) - 1, 0600, error);
}
