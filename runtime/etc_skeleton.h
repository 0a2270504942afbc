/* The read-only /etc that all composed roots of one owner share (decision B6): what programs under
 * /usr look for, copied from the host's /etc; and nothing that tells about the host's users,
 * services or secrets. */
#ifndef RUNTIME_ETC_SKELETON_H
#define RUNTIME_ETC_SKELETON_H

#include <stddef.h>

#include "base/error.h"

/* Directories below /etc with hundreds of links, which are not copied but mounted from the host,
 * as /usr is, where the host and the skeleton have a directory of that name. */
extern const char *const ETC_SKELETON_MOUNTED[];
extern const size_t ETC_SKELETON_MOUNTED_COUNT;

/* The path of a current skeleton below the cache directory, newly allocated; built when there is
 * none or when one of its sources changed. `ret_lock` receives a close-on-exec descriptor: the
 * skeleton is not removed as long as that is open. Safe in several processes at once; waits up to
 * 30 s for another one that builds. */
char *etc_skeleton_acquire(const char *cache_directory, int *ret_lock, struct error *error);

#endif
