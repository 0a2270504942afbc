/* Where a sandbox's own files are on the host, made by the runtime before the process-maker is
 * forked: the only time anything outside the boundary writes there. */
#ifndef RUNTIME_PLACES_H
#define RUNTIME_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "runtime/maker.h"

/* The writable places of a composed root (decision B6), directories below the state directory and
 * in the root by the same names. */
extern const char *const PLACES_WRITABLE[];
extern const size_t PLACES_WRITABLE_COUNT;

/* Files of a sandbox's own below its /etc; the skeleton holds an empty file for each. */
extern const char *const PLACES_ETC_FILES[];
extern const size_t PLACES_ETC_FILES_COUNT;

struct places {
    char *state;       /* the state directory */
    char *etc;         /* what lies over the skeleton */
    char *empty;       /* an empty directory */
    char *skeleton;    /* composed root only */
    char *rootfs;      /* copied root only: what becomes "/" */
    int skeleton_lock; /* keeps the skeleton from being removed; -1 without one */
    int host_sockets;  /* /proc/net/unix of the host, read only when it is needed; or -1 */
};

/* The content of a sandbox's /etc/passwd and /etc/group for a workload with these ids; newly
 * allocated. */
char *places_passwd(uid_t user_id, gid_t group_id);
char *places_group(gid_t group_id);

/* Makes what is missing. Directories that the workload writes to are only made, never looked into:
 * what is below them is the workload's. */
bool places_prepare(const struct maker_config *config, struct places *ret_places,
                    struct error *error);
void places_release(struct places *places);

#endif
