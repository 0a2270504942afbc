/* The parts of destination.h that look at files. */
#include "archive/destination.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/beneath.h"
#include "archive/name.h"
#include "base/memory.h"
#include "base/text.h"

static bool path_error(struct error *error, const char *what, const char *path, int errnum)
{
    CLEANUP_FREE char *shown = text_escaped(path);
    enum error_code code = errnum == ENOENT                       ? ERROR_NOT_FOUND
                           : errnum == EACCES || errnum == EPERM  ? ERROR_PERMISSION_DENIED
                           : errnum == EROFS                      ? ERROR_PERMISSION_DENIED
                           : errnum == ENOSPC || errnum == EDQUOT ? ERROR_RESOURCE_EXHAUSTED
                           : errnum == ENOTDIR || errnum == ELOOP || errnum == EXDEV
                               ? ERROR_FAILED_PRECONDITION
                               : ERROR_INTERNAL;
    return error_set_errno(error, code, errnum, "cannot %s '%s'", what, shown);
}

/* Joins and cleans a path by its letters alone, which is exact where no link is followed: the
 * result is relative to the root, without "." and "..", "." for the root itself. */
static bool normalise(const char *working_directory, const char *path, char *buffer, size_t size,
                      struct error *error)
{
    CLEANUP_FREE char *joined =
        *path == '/' ? memory_strdup(path) : memory_printf("%s/%s", working_directory, path);
    size_t length = 0;
    for (const char *at = joined; *at != '\0';) {
        size_t step = strcspn(at, "/");
        if (step == 2 && at[0] == '.' && at[1] == '.') {
            while (length > 0 && buffer[--length] != '/')
                ;
        } else if (step > 0 && !(step == 1 && at[0] == '.')) {
            if (length + 1 + step + 1 > size)
                return error_set(error, ERROR_INVALID_ARGUMENT, "the path is too long");
            if (length > 0)
                buffer[length++] = '/';
            memcpy(buffer + length, at, step);
            length += step;
        }
        at += step;
        at += *at == '/';
    }
    if (length == 0)
        buffer[length++] = '.';
    buffer[length] = '\0';
    return true;
}

bool archive_local_source_open(const char *path, struct archive_local_source *ret_source,
                               struct error *error)
{
    if (!archive_source_name(path, ret_source->name, error))
        return false;
    size_t length = strlen(path);
    const char *last = strrchr(path, '/');
    last = last != NULL ? last + 1 : path;
    CLEANUP_FREE char *directory = NULL;
    if (ret_source->name[0] == '\0' || path[length - 1] == '/') {
        directory = memory_strdup(path);
        memcpy(ret_source->path, ".", 2);
    } else {
        directory =
            last == path ? memory_strdup(".") : memory_printf("%.*s", (int)(last - path), path);
        memcpy(ret_source->path, last, strlen(last) + 1);
    }
    ret_source->base = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat status;
    if (ret_source->base >= 0 &&
        fstatat(ret_source->base, ret_source->path, &status, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    int saved = errno;
    if (ret_source->base >= 0)
        close(ret_source->base);
    ret_source->base = -1;
    return path_error(error, "read", path, saved);
}

/* Opens the root, without following anything. */
static int open_root(void)
{
    return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool archive_inner_source_open(const char *working_directory, const char *path,
                               struct archive_inner_source *ret_source, struct error *error)
{
    char inside[ARCHIVE_NAME_BYTES_MAX + 1], whole[ARCHIVE_NAME_BYTES_MAX + 1];
    ret_source->base = -1;
    if (!normalise("/", working_directory, inside, sizeof(inside), error) ||
        !normalise(working_directory, path, whole, sizeof(whole), error))
        return false;
    size_t length = strcmp(inside, ".") == 0 ? 0 : strlen(inside);
    bool is_inside = strncmp(whole, inside, length) == 0 &&
                     (length == 0 || whole[length] == '/' || whole[length] == '\0');
    if (*path == '\0' || !is_inside) {
        CLEANUP_FREE char *shown = text_escaped(path);
        return error_set(error, ERROR_PERMISSION_DENIED, "'%s' is outside of '%s'", shown,
                         working_directory);
    }
    const char *rest = whole + length;
    rest += *rest == '/';
    bool slash = path[strlen(path) - 1] == '/';
    snprintf(ret_source->path, sizeof(ret_source->path), "%s%s", *rest != '\0' ? rest : ".",
             slash && *rest != '\0' ? "/" : "");
    CLEANUP_CLOSE int root = open_root();
    ret_source->base = root < 0 ? -1 : beneath_open(root, inside, O_PATH | O_DIRECTORY, 0);
    if (ret_source->base < 0)
        return path_error(error, "open", working_directory, errno);
    CLEANUP_CLOSE int handle = beneath_open(ret_source->base, ret_source->path, O_PATH, 0);
    struct stat status;
    if (handle < 0 || fstat(handle, &status) != 0) {
        int saved = errno;
        close(ret_source->base);
        ret_source->base = -1;
        return path_error(error, "read", path, saved);
    }
    const char *last = strrchr(whole, '/');
    last = last != NULL ? last + 1 : whole;
    snprintf(ret_source->name, sizeof(ret_source->name), "%.*s", ARCHIVE_COMPONENT_BYTES_MAX,
             S_ISDIR(status.st_mode) ? "" : last);
    return true;
}

/* Looks at a path of the destination, opens it, or makes it: by the user's word, or strictly. */
static int open_at(const struct archive_chooser *chooser, int root, const char *path, int flags)
{
    return chooser->working_directory == NULL ? open(path, flags | O_CLOEXEC)
                                              : beneath_open(root, path, flags, 0);
}

static int make_at(const struct archive_chooser *chooser, int root, const char *path)
{
    if (chooser->working_directory == NULL)
        return mkdir(path, 0777);
    const char *last = strrchr(path, '/');
    CLEANUP_FREE char *above =
        last != NULL ? memory_printf("%.*s", (int)(last - path), path) : memory_strdup(".");
    CLEANUP_CLOSE int directory = beneath_open(root, above, O_PATH | O_DIRECTORY, 0);
    return directory < 0 ? -1 : mkdirat(directory, last != NULL ? last + 1 : path, 0777);
}

/* Opens the directory, making it and what is missing above it. `*ret_made` counts. */
static int open_or_make(const struct archive_chooser *chooser, int root, const char *path,
                        size_t *ret_made)
{
    *ret_made = 0;
    int opened = open_at(chooser, root, path, O_RDONLY | O_DIRECTORY);
    if (opened >= 0 || errno != ENOENT)
        return opened;
    CLEANUP_FREE char *copy = memory_strdup(path);
    size_t length = strlen(copy);
    for (size_t at = 1; at <= length; at++) {
        if ((copy[at] != '/' && copy[at] != '\0') || copy[at - 1] == '/')
            continue;
        char saved = copy[at];
        copy[at] = '\0';
        if (make_at(chooser, root, copy) == 0)
            (*ret_made)++;
        else if (errno != EEXIST && errno != EISDIR && errno != EROFS && errno != EACCES)
            return -1;
        copy[at] = saved;
    }
    return open_at(chooser, root, path, O_RDONLY | O_DIRECTORY);
}

static enum archive_found find(const struct archive_chooser *chooser, int root, const char *path)
{
    struct stat status;
    if (chooser->working_directory == NULL) {
        if (stat(path, &status) == 0)
            return S_ISDIR(status.st_mode) ? ARCHIVE_FOUND_DIRECTORY : ARCHIVE_FOUND_OTHER;
        return lstat(path, &status) == 0 ? ARCHIVE_FOUND_OTHER : ARCHIVE_FOUND_NOTHING;
    }
    CLEANUP_CLOSE int handle = beneath_open(root, path, O_PATH | O_NOFOLLOW, 0);
    if (handle < 0 || fstat(handle, &status) != 0)
        return ARCHIVE_FOUND_NOTHING;
    return S_ISDIR(status.st_mode) ? ARCHIVE_FOUND_DIRECTORY : ARCHIVE_FOUND_OTHER;
}

/* The path that is used: DEST as it stands, or strictly cleaned with its meaning kept. */
static bool destination_path(const struct archive_chooser *chooser, char *buffer, size_t size,
                             struct error *error)
{
    size_t length = strlen(chooser->dest);
    if (length == 0 || length >= size)
        return error_set(error, ERROR_INVALID_ARGUMENT,
                         length == 0 ? "the path of the destination is empty"
                                     : "the path of the destination is too long");
    memcpy(buffer, chooser->dest, length + 1);
    return true;
}

/* Where DEST points inside of the sandbox, relative to its root. */
static bool inner_path(const struct archive_chooser *chooser, const char *path, char *buffer,
                       size_t size, struct error *error)
{
    if (chooser->working_directory != NULL)
        return normalise(chooser->working_directory, path, buffer, size, error);
    snprintf(buffer, size, "%s", path);
    return true;
}

bool archive_chooser_place(void *data, enum archive_kind kind, const char *name,
                           struct archive_place *ret_place, struct error *error)
{
    struct archive_chooser *chooser = data;
    char dest[ARCHIVE_NAME_BYTES_MAX + 1], path[ARCHIVE_NAME_BYTES_MAX + 1];
    *ret_place = (struct archive_place){.directory = -1, .output = chooser->output};
    if (chooser->output >= 0) {
        if (kind == ARCHIVE_KIND_FILE)
            return true;
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "only one regular file can be written to standard output");
    }
    CLEANUP_CLOSE int root = open_root();
    if (!destination_path(chooser, dest, sizeof(dest), error) ||
        !inner_path(chooser, dest, path, sizeof(path), error))
        return false;
    enum archive_found found = find(chooser, root, path);
    if (!archive_destination_decide(chooser->direction, kind, name, dest, found, &chooser->chosen,
                                    error) ||
        !inner_path(chooser, chooser->chosen.directory, path, sizeof(path), error))
        return false;
    memcpy(chooser->chosen.directory, path, strlen(path) + 1);
    memcpy(ret_place->final_name, chooser->chosen.final_name, sizeof(ret_place->final_name));
    ret_place->directory = open_or_make(chooser, root, path, &chooser->made);
    ret_place->close_directory = true;
    ret_place->created = chooser->made > 0;
    if (ret_place->directory < 0) {
        int saved = errno;
        archive_chooser_undo(chooser);
        return path_error(error, "use the destination directory", path, saved);
    }
    return true;
}

void archive_chooser_undo(const struct archive_chooser *chooser)
{
    char path[ARCHIVE_NAME_BYTES_MAX + 1];
    CLEANUP_CLOSE int root = open_root();
    memcpy(path, chooser->chosen.directory, sizeof(path));
    for (size_t i = 0; i < chooser->made; i++) {
        size_t length = strlen(path);
        while (length > 1 && path[length - 1] == '/')
            path[--length] = '\0';
        char *last = strrchr(path, '/');
        if (chooser->working_directory == NULL) {
            (void)rmdir(path);
        } else {
            CLEANUP_FREE char *above =
                last != NULL ? memory_printf("%.*s", (int)(last - path), path) : memory_strdup(".");
            CLEANUP_CLOSE int directory = beneath_open(root, above, O_PATH | O_DIRECTORY, 0);
            if (directory >= 0)
                (void)unlinkat(directory, last != NULL ? last + 1 : path, AT_REMOVEDIR);
        }
        if (last == NULL || last == path)
            return;
        *last = '\0';
    }
}
