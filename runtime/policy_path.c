#include "runtime/policy_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/syscalls.h"

enum { LINKS_MAX = 40 };

struct walk {
    bool (*is_writable)(const char *directory, void *user);
    void *user;
    int directory; /* where the walk is */
    unsigned links;
    char rest[PATH_MAX]; /* what is still to be walked */
};

/* The real path of an open directory. */
static bool name_of(int directory, char *buffer, size_t size)
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
    ssize_t length = readlink(link, buffer, size - 1);
    if (length < 0)
        return false;
    buffer[length] = '\0';
    return true;
}

static bool move_to(struct walk *walk, int directory)
{
    if (directory < 0)
        return false;
    close(walk->directory);
    walk->directory = directory;
    return true;
}

/* Puts what a link says in front of what is left. */
static bool follow(struct walk *walk, const char *name)
{
    char where[PATH_MAX], target[PATH_MAX], rest[PATH_MAX];
    if (!name_of(walk->directory, where, sizeof(where)))
        return false;
    if (++walk->links > LINKS_MAX || walk->is_writable(where, walk->user)) {
        errno = ELOOP;
        return false;
    }
    ssize_t length = readlinkat(walk->directory, name, target, sizeof(target) - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    int written = snprintf(rest, sizeof(rest), "%s/%s", target, walk->rest);
    if (written < 0 || (size_t)written >= sizeof(rest)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(walk->rest, rest, (size_t)written + 1);
    return target[0] != '/' || move_to(walk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
}

/* Takes one component off and goes there. */
static bool step(struct walk *walk)
{
    char name[NAME_MAX + 1];
    char *start = walk->rest + strspn(walk->rest, "/");
    size_t length = strcspn(start, "/");
    if (length == 0) {
        walk->rest[0] = '\0';
        return true;
    }
    if (length > NAME_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(name, start, length);
    name[length] = '\0';
    memmove(walk->rest, start + length, strlen(start + length) + 1);
    int next = openat(walk->directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    if (next < 0 || fstat(next, &status) != 0)
        return false;
    if (!S_ISLNK(status.st_mode))
        return move_to(walk, next);
    close(next);
    return follow(walk, name);
}

int policy_path_open(const char *path, bool (*is_writable)(const char *directory, void *user),
                     void *user)
{
    int direct = syscall_openat2(AT_FDCWD, path, O_PATH, 0, RESOLVE_NO_SYMLINKS);
    if (direct >= 0 || errno != ELOOP)
        return direct;
    struct walk walk = {.is_writable = is_writable, .user = user};
    if (strlen(path) >= sizeof(walk.rest)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(walk.rest, path, strlen(path) + 1);
    walk.directory = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (walk.directory >= 0 && walk.rest[0] != '\0')
        if (!step(&walk)) {
            int saved = errno;
            close(walk.directory);
            errno = saved;
            return -1;
        }
    return walk.directory;
}
