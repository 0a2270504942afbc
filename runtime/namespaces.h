/* The namespaces of a sandbox: made, mapped, named, compared. */
#ifndef RUNTIME_NAMESPACES_H
#define RUNTIME_NAMESPACES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

enum {
    /* Ids of a sandbox that root runs (decision B15). */
    NAMESPACE_IDS = 65536,
    /* Who the workload is unless the policy says otherwise (decision B15). */
    NAMESPACE_WORKLOAD_ID = 1000,
};

enum namespace_kind {
    NAMESPACE_USER,
    NAMESPACE_MOUNT,
    NAMESPACE_PID,
    NAMESPACE_NETWORK,
    NAMESPACE_IPC,
    NAMESPACE_UTS,
    NAMESPACE_CGROUP,
    NAMESPACE_KINDS
};

struct namespace_identities {
    uint64_t inode[NAMESPACE_KINDS];
};

/* Forks into new user, mount, pid, network, ipc and uts namespaces. The child returns 0 and must
 * wait until its ids are mapped; the parent gets the child's number and a pidfd. -1 on error, with
 * a message that names what the kernel forbids. */
pid_t namespaces_clone(int *ret_pidfd, struct error *error);

/* Parent side. With a host id base: ids 0 to 65535 onto the range there. Without: id 1000 onto the
 * caller, and setgroups denied, since a user may not drop groups that deny something. */
bool namespaces_map_ids(pid_t process, uid_t host_id_base, struct error *error);

/* Child side: the cgroup namespace, and mounts that no longer propagate. */
bool namespaces_separate(struct error *error);
bool namespaces_set_host_name(const char *name, struct error *error);
bool namespaces_raise_loopback(struct error *error);

/* Reads which namespaces this process is in. */
bool namespaces_identify(struct namespace_identities *ret_identities);

/* Whether `lo` is the only interface here. */
bool namespaces_only_loopback(void);

/* What to do when a step that needs a user namespace was refused, or "". */
const char *namespaces_advice(void);

#endif
