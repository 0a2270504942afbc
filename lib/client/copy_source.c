#include "client/copy_source.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "client/failure.h"
#include "client/git_list.h"

static bool open_input(struct copy_source *source, const char *dest, struct error *error)
{
    if (!archive_source_name(dest, source->name, error))
        return false;
    if (source->name[0] == '\0' || dest[strlen(dest) - 1] == '/')
        return failure_usage(error, "standard input has no name; DEST has to name a file");
    struct stat status;
    source->from = ARCHIVE_SOURCE_DESCRIPTOR;
    source->descriptor = STDIN_FILENO;
    if (fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode))
        source->total_bytes = (uint64_t)status.st_size;
    return true;
}

/* A directory that is in a work tree. */
static bool filter(struct copy_source *source, const char *path, struct error *error)
{
    int directory = openat(source->local.base, source->local.path,
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        return true; /* the sender says why */
    if (!git_list_applies(directory)) {
        close(directory);
        return true;
    }
    source->descriptor = git_list_open(directory, path, error);
    source->from = ARCHIVE_SOURCE_LIST;
    close(source->local.base);
    source->local.base = directory;
    return source->descriptor >= 0;
}

/* A missing file is no missing sandbox, which is what its code alone would say. */
static bool local_failure(const char *path, struct error *error)
{
    CLEANUP_FREE char *message = memory_strdup(error->message);
    return failure_set(error, CLIENT_REASON_COPY_FAILED, "cannot copy '%s': %s", path, message);
}

bool copy_source_open(struct copy_source *source, const char *path, const char *dest,
                      bool everything, struct error *error)
{
    *source = (struct copy_source){.from = ARCHIVE_SOURCE_PATH, .descriptor = -1};
    source->local.base = -1;
    if (strcmp(path, "-") == 0)
        return open_input(source, dest, error);
    struct stat status;
    if (!archive_local_source_open(path, &source->local, error))
        return local_failure(path, error);
    memcpy(source->name, source->local.name, sizeof(source->name));
    if (fstatat(source->local.base, source->local.path, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return true;
    if (S_ISREG(status.st_mode))
        source->total_bytes = (uint64_t)status.st_size;
    return !S_ISDIR(status.st_mode) || everything || filter(source, path, error);
}

static bool send_source(void *data, int stream, const struct archive_control *control,
                        struct archive_summary *summary, struct error *error)
{
    const struct copy_source *source = data;
    const struct archive_send_options options = {.from = source->from,
                                                 .base = source->local.base,
                                                 .path = source->local.path,
                                                 .descriptor = source->descriptor,
                                                 .name = source->name,
                                                 .control = *control};
    return archive_send(stream, &options, summary, error);
}

bool copy_source_start(struct copy_source *source, struct copy *copy, struct error *error)
{
    copy->total_bytes = source->total_bytes;
    return copy_child_start(&copy->child, send_source, source, error);
}
