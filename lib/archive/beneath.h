/* Opening below a directory without ever passing through a link or out of it. */
#ifndef ARCHIVE_BENEATH_H
#define ARCHIVE_BENEATH_H

#include <sys/types.h>

/* Opens `path` (relative, any number of components; empty or ".": `directory` itself) with openat2
 * and RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_MAGICLINKS; where the kernel or a filter
 * does not have openat2, step by step with O_NOFOLLOW, ".." refused. O_CLOEXEC and O_NOCTTY are
 * added. Returns a descriptor, or -1 with errno: ELOOP or ENOTDIR for a link on the way, EXDEV for
 * a step out. */
int beneath_open(int directory, const char *path, int flags, mode_t mode);

/* As beneath_open, but links are followed as if `directory` were the root of the file system
 * (RESOLVE_IN_ROOT). There is no way around openat2 here: ENOSYS without it. */
int beneath_open_in_root(int directory, const char *path, int flags, mode_t mode);

/* Only the way step by step, for tests of it. */
int beneath_open_steps(int directory, const char *path, int flags, mode_t mode);

/* A directory's descriptor to work with, from one that may be unreadable to its owner (O_PATH):
 * gives the owner all permissions first. `ret_mode` gets the permissions it had. -1 with errno. */
int beneath_force_open_directory(int directory, const char *name, mode_t *ret_mode);

#endif
