#include "archive/staging.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/remove.h"
#include "base/memory.h"
#include "base/text.h"

bool staging_random_name(const char *prefix, char *buffer, struct error *error)
{
    uint64_t random[2];
    ssize_t got;
    do
        got = getrandom(random, sizeof(random), 0);
    while (got < 0 && errno == EINTR);
    if (got != (ssize_t)sizeof(random))
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot get random bytes");
    snprintf(buffer, STAGING_NAME_BYTES, "%s%016" PRIx64 "%016" PRIx64, prefix, random[0],
             random[1]);
    return true;
}

/* Opens and locks a staging directory of ours; -1 when it is not ours or somebody works in it. */
static int open_locked(int parent, const char *name)
{
    int opened = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (opened >= 0 && fstat(opened, &status) == 0 && status.st_uid == geteuid() &&
        flock(opened, LOCK_EX | LOCK_NB) == 0)
        return opened;
    if (opened >= 0)
        close(opened);
    return -1;
}

/* A transfer that was killed could not remove its directory; nobody holds its lock any more. */
static void sweep(int parent)
{
    int opened = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = opened >= 0 ? fdopendir(opened) : NULL;
    if (stream == NULL) {
        if (opened >= 0)
            close(opened);
        return;
    }
    struct dirent *entry;
    for (int i = 0; i < STAGING_SWEEP_MAX && (entry = readdir(stream)) != NULL; i++) {
        if (!text_has_prefix(entry->d_name, STAGING_PREFIX))
            continue;
        int left = open_locked(parent, entry->d_name);
        if (left < 0)
            continue;
        (void)remove_below(left);
        (void)unlinkat(parent, entry->d_name, AT_REMOVEDIR);
        close(left);
    }
    closedir(stream);
}

static bool make_error(struct error *error, int errnum)
{
    enum error_code code = errnum == EACCES || errnum == EPERM || errnum == EROFS
                               ? ERROR_PERMISSION_DENIED
                           : errnum == ENOSPC || errnum == EDQUOT ? ERROR_RESOURCE_EXHAUSTED
                                                                  : ERROR_INTERNAL;
    return error_set_errno(error, code, errnum, "cannot write to the destination directory");
}

bool staging_open(struct staging *staging, int parent, struct error *error)
{
    staging->parent = parent;
    staging->directory = -1;
    sweep(parent);
    for (int attempt = 0; attempt < 10; attempt++) {
        if (!staging_random_name(STAGING_PREFIX, staging->name, error))
            return false;
        if (mkdirat(parent, staging->name, 0700) != 0)
            return make_error(error, errno);
        /* Between these two calls another transfer may take it for one that was left behind. */
        staging->directory = open_locked(parent, staging->name);
        struct stat status;
        if (staging->directory < 0)
            continue;
        if (fstat(staging->directory, &status) == 0 && status.st_nlink > 0 &&
            fchmod(staging->directory, 0700) == 0)
            return true;
        close(staging->directory);
        staging->directory = -1;
    }
    return error_set(error, ERROR_INTERNAL, "cannot make a private directory in the destination");
}

void staging_remove(struct staging *staging)
{
    if (staging->directory < 0)
        return;
    struct stat ours, named;
    (void)remove_below(staging->directory);
    if (fstat(staging->directory, &ours) == 0 &&
        fstatat(staging->parent, staging->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
        ours.st_ino == named.st_ino && ours.st_dev == named.st_dev)
        (void)unlinkat(staging->parent, staging->name, AT_REMOVEDIR);
    close(staging->directory);
    staging->directory = -1;
}
