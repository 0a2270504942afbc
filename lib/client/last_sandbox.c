#include "client/last_sandbox.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/paths.h"
#include "client/failure.h"
#include "client/report.h"
#include "client/settings.h"

enum { RECORD_MAX = 1024 };

/* NULL for a gateway whose name is an address: nothing is kept about it. */
static char *record_directory(const char *gateway)
{
    if (strchr(gateway, '/') != NULL)
        return NULL;
    CLEANUP_FREE char *config = paths_config_location(NULL);
    return config != NULL ? memory_printf("%s/gateways/%s", config, gateway) : NULL;
}

/* The sandbox in the record of this workspace, or NULL. */
static char *read_record(const char *path)
{
    struct buffer buffer = BUFFER_INIT(RECORD_MAX);
    char *sandbox = NULL;
    if (file_read(path, &buffer, NULL)) {
        const char *text = buffer_text(&buffer);
        size_t length = strcspn(text, "\n");
        if (length == strlen(settings.workspace) && memcmp(text, settings.workspace, length) == 0 &&
            text[length] == '\n') {
            const char *name = text + length + 1;
            sandbox = memory_printf("%.*s", (int)strcspn(name, "\n"), name);
        }
    }
    buffer_free(&buffer);
    if (sandbox != NULL && sandbox[0] == '\0') {
        free(sandbox);
        return NULL;
    }
    return sandbox;
}

void last_sandbox_note(const char *gateway, const char *sandbox)
{
    CLEANUP_FREE char *directory = record_directory(gateway);
    if (directory == NULL)
        return;
    CLEANUP_FREE char *path = memory_printf("%s/last_sandbox", directory);
    CLEANUP_FREE char *recorded = read_record(path);
    if (recorded != NULL && strcmp(recorded, sandbox) == 0)
        return;
    if (!file_make_private_directory(directory, NULL))
        return;
    /* Whole or old, but not worth waiting for the disk. */
    CLEANUP_FREE char *temporary = memory_printf("%s.XXXXXX", path);
    CLEANUP_CLOSE int descriptor = mkostemp(temporary, O_CLOEXEC);
    if (descriptor < 0)
        return;
    CLEANUP_FREE char *text = memory_printf("%s\n%s\n", settings.workspace, sandbox);
    if (!file_write_all(descriptor, text, strlen(text), NULL) || rename(temporary, path) != 0)
        unlink(temporary);
}

void last_sandbox_forget(const char *gateway, const char *sandbox)
{
    CLEANUP_FREE char *directory = record_directory(gateway);
    if (directory == NULL)
        return;
    CLEANUP_FREE char *path = memory_printf("%s/last_sandbox", directory);
    CLEANUP_FREE char *recorded = read_record(path);
    if (recorded != NULL && strcmp(recorded, sandbox) == 0)
        unlink(path);
}

char *last_sandbox_or(const char *given, const char *gateway, struct error *error)
{
    if (given != NULL)
        return memory_strdup(given);
    CLEANUP_FREE char *directory = record_directory(gateway);
    CLEANUP_FREE char *path =
        directory != NULL ? memory_printf("%s/last_sandbox", directory) : NULL;
    char *recorded = path != NULL ? read_record(path) : NULL;
    if (recorded == NULL) {
        failure_set(error, CLIENT_REASON_NO_SANDBOX_NAMED,
                    "no sandbox is named, and none was used before");
        failure_hint(error, "see which there are with: openshell sandbox list");
        return NULL;
    }
    report_notice("using the last sandbox, '%s'", recorded);
    return recorded;
}
