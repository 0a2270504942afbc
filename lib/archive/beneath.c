#include "archive/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "archive/transfer.h"

static int call_openat2(int directory, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | ((flags & O_PATH) != 0 ? 0 : O_NOCTTY)),
        .mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode : 0,
        .resolve = resolve,
    };
    int descriptor;
    /* EAGAIN: something was renamed while the kernel looked; a workload can do that for ever. */
    int attempts = 0;
    do
        descriptor = (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
    while (descriptor < 0 && (errno == EINTR || errno == EAGAIN) && ++attempts < 32);
    return descriptor;
}

int beneath_open_steps(int directory, const char *path, int flags, mode_t mode)
{
    int current = directory, next = -1;
    if (*path == '/') {
        errno = EXDEV;
        return -1;
    }
    for (;;) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        const char *rest = path + length + strspn(path + length, "/");
        char component[ARCHIVE_COMPONENT_BYTES_MAX + 1] = ".";
        if (length >= sizeof(component)) {
            errno = ENAMETOOLONG;
            break;
        }
        if (length > 0)
            memcpy(component, path, length + 1);
        component[length > 0 ? length : 1] = '\0';
        if (strcmp(component, "..") == 0) {
            errno = EXDEV;
            break;
        }
        bool last = *rest == '\0';
        int step = last ? flags | (path[length] == '/' ? O_DIRECTORY : 0) : O_PATH | O_DIRECTORY;
        next = openat(current, component,
                      step | O_NOFOLLOW | O_CLOEXEC | ((step & O_PATH) != 0 ? 0 : O_NOCTTY), mode);
        if (current != directory) {
            int saved = errno;
            close(current);
            errno = saved;
        }
        if (next < 0 || last)
            return next;
        current = next;
        path = rest;
    }
    int saved = errno;
    if (current != directory)
        close(current);
    errno = saved;
    return -1;
}

int beneath_open(int directory, const char *path, int flags, mode_t mode)
{
    static atomic_bool missing;
    if (*path == '\0')
        path = ".";
    if (!atomic_load(&missing)) {
        int descriptor =
            call_openat2(directory, path, flags | O_NOFOLLOW, mode,
                         RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        /* Old container filters answer EPERM for calls that they do not know. */
        if (descriptor >= 0 || (errno != ENOSYS && errno != EPERM))
            return descriptor;
        if (errno == ENOSYS)
            atomic_store(&missing, true);
    }
    return beneath_open_steps(directory, path, flags, mode);
}

int beneath_open_in_root(int directory, const char *path, int flags, mode_t mode)
{
    return call_openat2(directory, *path == '\0' ? "." : path, flags, mode,
                        RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);
}

int beneath_force_open_directory(int directory, const char *name, mode_t *ret_mode)
{
    int handle = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (handle < 0)
        return -1;
    struct stat status;
    char path[64];
    int opened = -1;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
    /* fchmod() does not take an O_PATH descriptor; by its name the directory might be another. */
    if (fstat(handle, &status) == 0 &&
        ((status.st_mode & 0700) == 0700 || chmod(path, (status.st_mode & 0777) | 0700) == 0)) {
        *ret_mode = status.st_mode & 07777;
        opened = openat(handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    int saved = errno;
    close(handle);
    errno = saved;
    return opened;
}
