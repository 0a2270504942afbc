#include "archive/transfer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/beneath.h"
#include "archive/locale.h"
#include "archive/name.h"
#include "archive/sender.h"
#include "archive/spool.h"
#include "base/memory.h"
#include "base/text.h"

/* A directory being read, and how long the name was there. */
struct level {
    DIR *stream;
    size_t name_length;
    unsigned depth;
};

/* Below a directory, which is closed at the end: depth first, one descriptor a level, in the order
 * in which the file system gives names, so memory does not grow with the tree. */
static bool send_below(struct sender *sender, int directory)
{
    struct level levels[ARCHIVE_DEPTH_MAX + 1];
    unsigned top = 0;
    bool good = true;
    levels[0] = (struct level){fdopendir(directory), sender->name_length, sender->depth};
    if (levels[0].stream == NULL) {
        close(directory);
        return error_set_errno(sender->error, ERROR_INTERNAL, errno, "cannot read a directory");
    }
    for (;;) {
        struct level *level = &levels[top];
        sender_pop_name(sender, level->name_length, level->depth);
        errno = 0;
        struct dirent *entry = good ? readdir(level->stream) : NULL;
        if (entry == NULL) {
            if (good && errno != 0)
                sender_note_errno(sender, ARCHIVE_ISSUE_UNREADABLE, errno);
            closedir(level->stream);
            if (top == 0)
                return good;
            top--;
            continue;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            !sender_push_name(sender, entry->d_name))
            continue;
        int below;
        good = sender_put(sender, dirfd(level->stream), entry->d_name, entry->d_type, &below);
        DIR *stream = below >= 0 ? fdopendir(below) : NULL;
        if (stream != NULL)
            levels[++top] = (struct level){stream, sender->name_length, sender->depth};
        else if (below >= 0) {
            sender_note_errno(sender, ARCHIVE_ISSUE_UNREADABLE, errno);
            close(below);
        }
    }
}

static bool source_error(struct error *error, const char *source, int errnum)
{
    CLEANUP_FREE char *shown = text_escaped(source);
    if (errnum == ENOENT)
        return error_set(error, ERROR_NOT_FOUND, "'%s' does not exist", shown);
    if (errnum == ELOOP || errnum == ENOTDIR || errnum == EXDEV)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "'%s' is reached through a link or a file; name the real path", shown);
    return error_set_errno(
        error, errnum == EACCES || errnum == EPERM ? ERROR_PERMISSION_DENIED : ERROR_INTERNAL,
        errnum, "cannot read '%s'", shown);
}

/* Whether the source, alone, may be sent. */
static bool check_source(int parent, const char *leaf, bool slash, const char *source,
                         struct error *error)
{
    CLEANUP_FREE char *shown = text_escaped(source);
    struct stat status;
    if (fstatat(parent, leaf, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return source_error(error, source, errno);
    if (slash && !S_ISDIR(status.st_mode))
        return source_error(error, source, ENOTDIR);
    if (S_ISDIR(status.st_mode) || S_ISLNK(status.st_mode))
        return true;
    if (!S_ISREG(status.st_mode))
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "'%s' is a special file (fifo, socket or device)", shown);
    return faccessat(parent, leaf, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0 ||
           source_error(error, source, errno);
}

static bool send_path(struct sender *sender, const struct archive_send_options *options)
{
    struct archive_name name;
    const char *reason = archive_name_parse(options->path, &name);
    if (reason != NULL) {
        CLEANUP_FREE char *shown = text_escaped(options->path);
        return error_set(sender->error, ERROR_INVALID_ARGUMENT, "'%s': %s", shown, reason);
    }
    char leaf[ARCHIVE_COMPONENT_BYTES_MAX + 1] = ".";
    if (name.length > 0)
        memcpy(leaf, name.path + name.leaf, name.length - name.leaf + 1);
    name.path[name.leaf] = '\0'; /* what is left is the directory above */
    CLEANUP_CLOSE int parent = beneath_open(options->base, name.path, O_PATH | O_DIRECTORY, 0);
    if (parent < 0)
        return source_error(sender->error, options->path, errno);
    if (!check_source(parent, leaf, name.slash, options->path, sender->error))
        return false;
    int below;
    uint64_t issues = sender->summary->issue_count;
    if (!sender_put(sender, parent, leaf, DT_UNKNOWN, &below))
        return false;
    if (sender->summary->issue_count > issues && sender->summary->entries == 0)
        return source_error(sender->error, options->path, EACCES);
    return below < 0 || send_below(sender, below);
}

/* The directories above the path of a list that was sent last. */
struct above {
    int descriptors[ARCHIVE_DEPTH_MAX + 1]; /* [0] is the base */
    size_t lengths[ARCHIVE_DEPTH_MAX + 1];  /* of the path so far */
    unsigned depth;
    char path[ARCHIVE_NAME_BYTES_MAX + 1];
};

static void leave_directory(struct above *above)
{
    close(above->descriptors[above->depth--]);
    above->path[above->lengths[above->depth]] = '\0';
}

static void note_path(struct sender *sender, const char *path, int errnum)
{
    if (errnum == ENOENT)
        sender->summary->absent++;
    else if (errnum == ELOOP || errnum == ENOTDIR)
        archive_summary_add(sender->summary, ARCHIVE_ISSUE_REFUSED, path,
                            "is reached through a link or a file");
    else
        archive_summary_add(sender->summary, ARCHIVE_ISSUE_UNREADABLE, path, "%s",
                            strerror(errnum));
}

/* Opens one directory more on the way to a path and sends an entry for it. */
static bool enter_directory(struct sender *sender, struct above *above, const char *component,
                            size_t length, const char *whole, bool *ret_entered)
{
    *ret_entered = false;
    char *end = above->path + above->lengths[above->depth];
    char *name = end + (above->depth > 0 ? 1 : 0);
    if (above->depth > 0)
        *end = '/';
    memcpy(name, component, length);
    name[length] = '\0';
    int opened = openat(above->descriptors[above->depth], name,
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0)
        note_path(sender, whole, errno);
    size_t name_length = sender->name_length;
    unsigned depth = sender->depth;
    struct stat status;
    if (opened < 0 || fstat(opened, &status) != 0 || !sender_push_name(sender, above->path)) {
        *end = '\0';
        if (opened >= 0)
            close(opened);
        return true;
    }
    above->depth++;
    above->descriptors[above->depth] = opened;
    above->lengths[above->depth] = (size_t)(name + length - above->path);
    bool sent = sender_put_directory(sender, &status);
    sender_pop_name(sender, name_length, depth);
    *ret_entered = sent;
    return sent;
}

static bool send_listed(struct sender *sender, struct above *above, const char *path)
{
    struct archive_name name;
    const char *reason = archive_name_parse(path, &name);
    if (reason != NULL || name.length == 0) {
        archive_summary_add(sender->summary, ARCHIVE_ISSUE_REFUSED, path, "%s",
                            reason != NULL ? reason : "the name is empty");
        return true;
    }
    while (above->depth > 0 &&
           (strncmp(name.path, above->path, above->lengths[above->depth]) != 0 ||
            name.path[above->lengths[above->depth]] != '/'))
        leave_directory(above);
    for (;;) {
        size_t at = above->lengths[above->depth] + (above->depth > 0 ? 1 : 0);
        if (at >= name.leaf)
            break;
        bool entered;
        if (!enter_directory(sender, above, name.path + at, strcspn(name.path + at, "/"), path,
                             &entered))
            return false;
        if (!entered)
            return true;
    }
    int directory = above->descriptors[above->depth], below = -1;
    struct stat status;
    if (fstatat(directory, name.path + name.leaf, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        note_path(sender, path, errno);
        return true;
    }
    size_t name_length = sender->name_length;
    unsigned depth = sender->depth;
    bool good = !sender_push_name(sender, name.path) ||
                sender_put(sender, directory, name.path + name.leaf, DT_UNKNOWN, &below);
    sender_pop_name(sender, name_length, depth);
    if (below >= 0)
        close(below);
    return good;
}

/* Calls send_listed for each path that the descriptor yields. */
static bool send_paths(struct sender *sender, int list, struct above *above)
{
    char buffer[2 * (ARCHIVE_NAME_BYTES_MAX + 1)];
    size_t length = 0;
    for (;;) {
        ssize_t got = read(list, buffer + length, sizeof(buffer) - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(sender->error, ERROR_INTERNAL, errno,
                                   "cannot read the list of files");
        length += (size_t)got;
        size_t at = 0;
        char *end;
        while ((end = memchr(buffer + at, '\0', length - at)) != NULL) {
            if (end != buffer + at && !send_listed(sender, above, buffer + at))
                return false;
            at = (size_t)(end + 1 - buffer);
        }
        memmove(buffer, buffer + at, length - at);
        length -= at;
        if (length == sizeof(buffer) || (got == 0 && length > 0))
            return error_set(sender->error, ERROR_INVALID_ARGUMENT,
                             "the list of files holds a name without an end");
        if (got == 0)
            return true;
    }
}

static bool send_list(struct sender *sender, const struct archive_send_options *options)
{
    struct above *above = memory_new_of(struct above);
    struct stat status;
    above->descriptors[0] = openat(options->base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good;
    if (above->descriptors[0] < 0 || fstat(above->descriptors[0], &status) != 0)
        good = source_error(sender->error, ".", errno);
    else
        good =
            sender_put_directory(sender, &status) && send_paths(sender, options->descriptor, above);
    while (above->depth > 0)
        leave_directory(above);
    if (above->descriptors[0] >= 0)
        close(above->descriptors[0]);
    free(above);
    return good;
}

static bool send_descriptor(struct sender *sender, const struct archive_send_options *options)
{
    struct stat status;
    if (fstat(options->descriptor, &status) != 0)
        return error_set_errno(sender->error, ERROR_INTERNAL, errno, "cannot read the input");
    if (S_ISDIR(status.st_mode))
        return error_set(sender->error, ERROR_FAILED_PRECONDITION, "the input is a directory");
    if (S_ISREG(status.st_mode) && lseek(options->descriptor, 0, SEEK_CUR) == 0)
        return sender_put_open_file(sender, options->descriptor, &status);
    CLEANUP_CLOSE int spool =
        spool_input(options->descriptor, &options->control, sender->summary, sender->error);
    if (spool < 0)
        return false;
    if (fstat(spool, &status) != 0)
        return error_set_errno(sender->error, ERROR_INTERNAL, errno, "cannot read the input");
    status.st_mode = S_IFREG | 0644;
    return sender_put_open_file(sender, spool, &status);
}

bool archive_send(int output, const struct archive_send_options *options,
                  struct archive_summary *ret_summary, struct error *error)
{
    struct sender *sender = memory_new_of(struct sender);
    struct error ignored = {0};
    *ret_summary = (struct archive_summary){0};
    locale_t before = archive_locale_enter();
    bool good =
        sender_open(sender, output, &options->control, ret_summary, error ? error : &ignored);
    if (good && options->name != NULL && options->name[0] != '\0')
        good = sender_push_name(sender, options->name) ||
               error_set(error, ERROR_INVALID_ARGUMENT, "the name of the source is too long");
    good = good && (options->from == ARCHIVE_SOURCE_PATH   ? send_path(sender, options)
                    : options->from == ARCHIVE_SOURCE_LIST ? send_list(sender, options)
                                                           : send_descriptor(sender, options));
    sender_pop_name(sender, 0, 0);
    good = good && sender_finish(sender);
    sender_close(sender);
    archive_locale_leave(before);
    free(sender);
    error_clear(&ignored);
    return good;
}
