#include "archive/merge.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/beneath.h"
#include "archive/remove.h"
#include "archive/staging.h"
#include "archive/transfer.h"
#include "base/memory.h"

struct merge {
    struct archive_summary *summary;
    char path[ARCHIVE_NAME_BYTES_MAX + ARCHIVE_COMPONENT_BYTES_MAX + 2];
    size_t length;
};

static void merge_below(struct merge *merge, int from, int to);

/* Notes why the current entry stays out. */
static void note(struct merge *merge, const char *reason)
{
    archive_summary_add(merge->summary, ARCHIVE_ISSUE_CONFLICT, merge->path, "%s", reason);
}

/* Copies a file's data; false with errno. */
static bool copy_data(int from, int to)
{
    char chunk[65536];
    for (;;) {
        ssize_t got = read(from, chunk, sizeof(chunk));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got == 0;
        for (ssize_t at = 0; at < got;) {
            ssize_t written = write(to, chunk + at, (size_t)(got - at));
            if (written < 0 && errno != EINTR)
                return false;
            at += written > 0 ? written : 0;
        }
    }
}

/* Makes `temporary` in `to` a copy of the file or link `name` in `from`; false with errno. */
static bool copy_entry(int from, const char *name, int to, const char *temporary,
                       const struct stat *status)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, status->st_mtim};
    if (S_ISLNK(status->st_mode)) {
        char target[4097];
        ssize_t length = readlinkat(from, name, target, sizeof(target) - 1);
        if (length < 0)
            return false;
        target[length] = '\0';
        return symlinkat(target, to, temporary) == 0 &&
               (utimensat(to, temporary, times, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT);
    }
    CLEANUP_CLOSE int source =
        openat(from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    CLEANUP_CLOSE int copy =
        source < 0 ? -1
                   : openat(to, temporary,
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0600);
    return copy >= 0 && copy_data(source, copy) && fchmod(copy, status->st_mode & 0777) == 0 &&
           futimens(copy, times) == 0;
}

/* Moves a file or link to another file system: a copy under a temporary name, then a rename. */
static int move_across(int from, const char *name, int to, const struct stat *status)
{
    char temporary[STAGING_NAME_BYTES];
    struct error ignored = {0};
    if (!staging_random_name(".openshell-copy-", temporary, &ignored))
        return EIO;
    if (copy_entry(from, name, to, temporary, status) && renameat(to, temporary, to, name) == 0) {
        (void)unlinkat(from, name, 0);
        return 0;
    }
    int saved = errno;
    (void)unlinkat(to, temporary, 0);
    return saved;
}

static void move_file(struct merge *merge, int from, int to, const char *name,
                      const struct stat *status)
{
    int errnum = renameat(from, name, to, name) == 0 ? 0 : errno;
    if (errnum == EXDEV)
        errnum = move_across(from, name, to, status);
    if (errnum == EISDIR || errnum == ENOTEMPTY || errnum == EEXIST)
        note(merge, "a directory of this name stands at the destination");
    else if (errnum != 0)
        note(merge, strerror(errnum));
    /* Two names of one file are left as they are by a rename. */
    (void)unlinkat(from, name, 0);
}

/* Merges into the existing directory, or into the one just made (`made` tells its final state). */
static void merge_directory(struct merge *merge, int from, int to, const char *name,
                            const struct stat *made)
{
    CLEANUP_CLOSE int target = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (target < 0 && errno == EACCES) /* may be searched and written without being readable */
        target = openat(to, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (target < 0) {
        note(merge, errno == ENOTDIR || errno == ELOOP
                        ? "a file or link of this name stands at the destination"
                        : strerror(errno));
        return;
    }
    mode_t mode;
    int source = beneath_force_open_directory(from, name, &mode);
    if (source < 0) {
        note(merge, strerror(errno));
        return;
    }
    merge_below(merge, source, target);
    if (made != NULL) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, made->st_mtim};
        (void)fchmod(target, made->st_mode & 0777);
        (void)futimens(target, times);
    }
}

/* Renames a whole directory; one that its owner may not write to is made writable on the way,
 * since ".." changes in it. Returns 0 or an error number. */
static int rename_directory(int from, int to, const char *name, const struct stat *status)
{
    CLEANUP_CLOSE int opened = -1;
    mode_t mode = status->st_mode & 0777;
    if ((mode & 0300) != 0300) {
        opened = beneath_force_open_directory(from, name, &mode);
        if (opened < 0)
            return errno;
    }
    int errnum = renameat2(from, name, to, name, RENAME_NOREPLACE) == 0 ? 0 : errno;
    if (opened >= 0)
        (void)fchmod(opened, mode);
    return errnum;
}

static void move_directory(struct merge *merge, int from, int to, const char *name,
                           const struct stat *status)
{
    int errnum = rename_directory(from, to, name, status);
    if (errnum == EXDEV || errnum == EINVAL || errnum == ENOSYS) { /* not in one step here */
        if (mkdirat(to, name, 0700) == 0)
            merge_directory(merge, from, to, name, status);
        else
            errnum = errno;
    }
    if (errnum == EEXIST || errnum == ENOTEMPTY)
        merge_directory(merge, from, to, name, NULL);
    else if (errnum != 0 && errnum != EXDEV && errnum != EINVAL && errnum != ENOSYS)
        note(merge, strerror(errnum));
    (void)remove_tree_at(from, name);
}

static void move_entry(struct merge *merge, int from, int to, const char *name)
{
    size_t length = merge->length;
    int added = snprintf(merge->path + length, sizeof(merge->path) - length, "%s%s",
                         length > 0 ? "/" : "", name);
    merge->length += (size_t)added;
    struct stat status;
    if (merge->length >= sizeof(merge->path) || /* deeper than any archive may be */
        fstatat(from, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        (void)remove_tree_at(from, name);
    else if (S_ISDIR(status.st_mode))
        move_directory(merge, from, to, name, &status);
    else
        move_file(merge, from, to, name, &status);
    merge->length = length;
    merge->path[length] = '\0';
}

/* Empties and closes `from`. Every entry leaves it, moved or removed; so reading again until
 * nothing is found sees also what a directory that changes while it is read did not show. */
static void merge_below(struct merge *merge, int from, int to)
{
    DIR *stream = fdopendir(from);
    if (stream == NULL) {
        note(merge, strerror(errno));
        close(from);
        return;
    }
    for (int pass = 0; pass < 1000; pass++) {
        bool found = false;
        rewinddir(stream);
        struct dirent *entry;
        while ((entry = readdir(stream)) != NULL) {
            if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
                continue;
            found = true;
            move_entry(merge, from, to, entry->d_name);
        }
        if (!found)
            break;
    }
    closedir(stream);
}

void merge_into(int from, int to, struct archive_summary *summary)
{
    struct merge *merge = memory_new_of(struct merge);
    merge->summary = summary;
    int copy = openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (copy >= 0)
        merge_below(merge, copy, to);
    else
        archive_summary_add(summary, ARCHIVE_ISSUE_CONFLICT, ".", "%s", strerror(errno));
    free(merge);
}
