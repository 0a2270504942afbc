#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

bool file_read_descriptor(int descriptor, struct buffer *buffer, struct error *error)
{
    unsigned char chunk[16384];
    for (;;) {
        ssize_t got = read(descriptor, chunk, sizeof(chunk));
        if (got == 0)
            return true;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot read");
        bool fits = buffer_append(buffer, chunk, (size_t)got);
        memory_wipe(chunk, (size_t)got);
        if (!fits)
            return error_set(error, ERROR_RESOURCE_EXHAUSTED, "larger than %zu bytes",
                             buffer->maximum);
    }
}

bool file_read(const char *path, struct buffer *buffer, struct error *error)
{
    CLEANUP_CLOSE int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor < 0)
        return error_set_errno(error, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INTERNAL, errno,
                               "cannot open '%s'", path);
    if (!file_read_descriptor(descriptor, buffer, error)) {
        error_prefix(error, "'%s'", path);
        return false;
    }
    return true;
}

bool file_write_all(int descriptor, const void *data, size_t length, struct error *error)
{
    const unsigned char *bytes = data;
    while (length > 0) {
        ssize_t written = write(descriptor, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
            poll(&wait, 1, -1);
            continue;
        }
        if (written < 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot write");
        bytes += written;
        length -= (size_t)written;
    }
    return true;
}

bool file_write_atomic(const char *path, const void *data, size_t length, mode_t mode,
                       struct error *error)
{
    CLEANUP_FREE char *temporary = memory_printf("%s.XXXXXX", path);
    CLEANUP_CLOSE int descriptor = mkostemp(temporary, O_CLOEXEC);
    if (descriptor < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot create '%s'", temporary);
    bool written = file_write_all(descriptor, data, length, error);
    if (written &&
        (fchmod(descriptor, mode) != 0 || fsync(descriptor) != 0 || rename(temporary, path) != 0))
        written = error_set_errno(error, ERROR_INTERNAL, errno, "cannot write");
    if (!written) {
        unlink(temporary);
        error_prefix(error, "'%s'", path);
    }
    return written;
}

static bool check_private(const char *path, struct error *error)
{
    CLEANUP_CLOSE int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor < 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "'%s' is not a directory that can be used", path);
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot look at '%s'", path);
    if (status.st_uid != geteuid())
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "'%s' belongs to user %u, not to user %u; remove it or choose another "
                         "place",
                         path, status.st_uid, geteuid());
    if ((status.st_mode & 077) != 0 && fchmod(descriptor, 0700) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '%s' private", path);
    return true;
}

bool file_make_private_directory(const char *path, struct error *error)
{
    CLEANUP_FREE char *copy = memory_strdup(path);
    for (char *slash = strchr(copy + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL)
            *slash = '\0';
        if (mkdir(copy, 0700) != 0 && errno != EEXIST)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make directory '%s'",
                                   copy);
        if (slash == NULL)
            break;
        *slash = '/';
    }
    return check_private(path, error);
}

/* Levels of a tree that is removed which are open at once. Whoever filled the tree chose its depth.
 */
enum { REMOVE_DEPTH_MAX = 32 };

struct removal {
    int top;             /* the directory of the whole tree */
    const char *path;    /* its own */
    unsigned long names; /* tried at the top */
    bool moved;          /* something, in this pass */
    struct error first;  /* the first failure */
};

static void note_failure(struct removal *removal, const char *path, const char *name)
{
    if (removal->first.code == ERROR_OK)
        error_set_errno(&removal->first, ERROR_INTERNAL, errno, "cannot remove '%s/%s'", path,
                        name);
}

/* Opens a directory and sees to it that its entries can be removed. */
static int open_to_empty(int directory, const char *name)
{
    enum { FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };
    int child = openat(directory, name, FLAGS);
    if (child < 0 && errno == EACCES && fchmodat(directory, name, 0700, 0) == 0)
        child = openat(directory, name, FLAGS);
    if (child >= 0 && faccessat(child, ".", W_OK | X_OK, AT_EACCESS) != 0 &&
        fchmod(child, 0700) != 0) {
        close(child);
        return -1;
    }
    return child;
}

/* Where a tree is too deep its lower part becomes a directory at the top, which another pass
 * removes. The name may be taken by what was there before. */
static bool move_to_top(struct removal *removal, int directory, const char *name)
{
    for (int attempt = 0; attempt < 1000; attempt++) {
        char fresh[48];
        snprintf(fresh, sizeof(fresh), ".removed-%lu", ++removal->names);
        if (renameat(directory, name, removal->top, fresh) == 0) {
            removal->moved = true;
            return true;
        }
        if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
            return false;
    }
    return false;
}

static void remove_below(struct removal *removal, int directory, const char *path, unsigned depth);

static void remove_entry(struct removal *removal, int directory, const char *path, const char *name,
                         unsigned depth)
{
    if (unlinkat(directory, name, 0) == 0)
        return;
    int child = open_to_empty(directory, name);
    if (child >= 0 && depth == REMOVE_DEPTH_MAX) {
        close(child);
        if (!move_to_top(removal, directory, name))
            note_failure(removal, path, name);
        return;
    }
    if (child >= 0) {
        CLEANUP_FREE char *child_path = memory_printf("%s/%s", path, name);
        remove_below(removal, child, child_path, depth + 1);
    }
    if (unlinkat(directory, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
        note_failure(removal, path, name);
}

/* Removes what is below `directory`, which is closed. */
static void remove_below(struct removal *removal, int directory, const char *path, unsigned depth)
{
    DIR *stream = fdopendir(directory);
    if (stream == NULL) {
        close(directory);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(stream)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            remove_entry(removal, dirfd(stream), path, entry->d_name, depth);
    closedir(stream);
}

/* Each pass that moves something to the top makes the tree less deep, so this ends. */
static void remove_all(struct removal *removal)
{
    do {
        removal->moved = false;
        int directory = openat(removal->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0) {
            note_failure(removal, removal->path, ".");
            return;
        }
        remove_below(removal, directory, removal->path, 0);
    } while (removal->moved);
}

bool file_remove_tree(const char *path, struct error *error)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return true;
    CLEANUP_CLOSE int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0 && errno == EACCES && chmod(path, 0700) == 0)
        directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0)
        return errno == ENOENT ||
               error_set_errno(error, ERROR_INTERNAL, errno, "cannot remove '%s'", path);
    if (fchmod(directory, 0700) != 0 && errno != EPERM)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot remove '%s'", path);
    struct removal removal = {.top = directory, .path = path};
    remove_all(&removal);
    if (rmdir(path) != 0 && errno != ENOENT && removal.first.code == ERROR_OK)
        error_set_errno(&removal.first, ERROR_INTERNAL, errno, "cannot remove '%s'", path);
    bool removed = removal.first.code == ERROR_OK;
    if (!removed)
        error_copy(error, &removal.first);
    error_clear(&removal.first);
    return removed;
}

/* Fills `address`; a long path goes through a descriptor of its directory, returned in
 * `ret_directory`, which must stay open until the address was used. */
static bool fill_address(const char *path, struct sockaddr_un *address, int *ret_directory,
                         struct error *error)
{
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *ret_directory = -1;
    if (strlen(path) < sizeof(address->sun_path)) {
        memcpy(address->sun_path, path, strlen(path) + 1);
        return true;
    }
    CLEANUP_FREE char *for_directory = memory_strdup(path);
    CLEANUP_FREE char *for_name = memory_strdup(path);
    int directory = open(dirname(for_directory), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return error_set_errno(error, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INTERNAL, errno,
                               "cannot open the directory of '%s'", path);
    int length = snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/%s",
                          directory, basename(for_name));
    if (length < 0 || (size_t)length >= sizeof(address->sun_path)) {
        close(directory);
        return error_set(error, ERROR_INVALID_ARGUMENT, "the name of socket '%s' is too long",
                         path);
    }
    *ret_directory = directory;
    return true;
}

int file_unix_connect(const char *path, struct error *error)
{
    struct sockaddr_un address;
    CLEANUP_CLOSE int directory = -1;
    if (!fill_address(path, &address, &directory, error))
        return -1;
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) {
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot make a socket");
        return -1;
    }
    int result;
    do
        result = connect(descriptor, (struct sockaddr *)&address, sizeof(address));
    while (result != 0 && errno == EINTR);
    if (result != 0 || fcntl(descriptor, F_SETFL, O_NONBLOCK) != 0) {
        int saved = errno;
        close(descriptor);
        error_set_errno(error, saved == ENOENT ? ERROR_NOT_FOUND : ERROR_UNAVAILABLE, saved,
                        "cannot connect to '%s'", path);
        return -1;
    }
    return descriptor;
}

int file_unix_listen(const char *path, mode_t mode, int backlog, struct error *error)
{
    struct sockaddr_un address;
    CLEANUP_CLOSE int directory = -1;
    if (!fill_address(path, &address, &directory, error))
        return -1;
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISSOCK(status.st_mode))
        unlink(path);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) {
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot make a socket");
        return -1;
    }
    /* On Linux bind() makes the file with the socket's own mode, so it is never wider. */
    if (fchmod(descriptor, mode) != 0 ||
        bind(descriptor, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        chmod(path, mode) != 0 || listen(descriptor, backlog) != 0) {
        int saved = errno;
        close(descriptor);
        error_set_errno(error, ERROR_INTERNAL, saved, "cannot listen on '%s'", path);
        return -1;
    }
    return descriptor;
}

int file_lock(const char *path, int milliseconds, struct error *error)
{
    int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (descriptor < 0) {
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '%s'", path);
        return -1;
    }
    int64_t until = clock_monotonic_milliseconds() + milliseconds;
    while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            error_set_errno(error, ERROR_INTERNAL, errno, "cannot lock '%s'", path);
            close(descriptor);
            return -1;
        }
        if (clock_monotonic_milliseconds() >= until) {
            error_set(error, ERROR_ABORTED, "'%s' is locked by another process", path);
            close(descriptor);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 5 * 1000 * 1000}, NULL);
    }
    return descriptor;
}
