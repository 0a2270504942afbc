/* Who the workload is (decision B15), and how a process becomes it, or less. */
#ifndef RUNTIME_IDENTITY_H
#define RUNTIME_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct identity {
    uid_t user_id; /* inside the sandbox */
    gid_t group_id;
    char name[64];
    char home[256]; /* absolute */
    /* True: more than one id is mapped, and this process may choose. False: it is what it is. */
    bool can_switch;
};

/* Finds who a policy asks for: "" is the default id, "sandbox" the account of that name in the
 * root's own passwd and group, or the default id when there is none. Name and home come from the
 * root's passwd where it has the id. Reads the files of the root that the process is in; a hostile
 * one yields nothing worse than another name. FAILED_PRECONDITION when the id cannot be had. */
bool identity_find(const char *run_as_user, const char *run_as_group, bool can_switch,
                   struct identity *ret_identity, struct error *error);

/* Makes the ids available: where they are none that own the root's files, by a user namespace
 * below the sandbox's own, in which they stand for the default id. Call before any process is
 * forked that shall have them. */
bool identity_map(struct identity *identity, bool composed, struct error *error);

/* Process-maker: becomes the sandbox's root, when there is one, keeping its capabilities. */
bool identity_become_inner_root(bool can_switch, struct error *error);

/* Process-maker and reapers: gives up what they never need. */
enum identity_duty { IDENTITY_BUILDER, IDENTITY_STARTER, IDENTITY_REAPER };
bool identity_reduce(enum identity_duty duty, struct error *error);

/* Becomes the workload, for good: groups, gid, bounding set, uid, no capability of any kind; each
 * is read back (policy reference 2.2). */
bool identity_become_workload(const struct identity *identity, struct error *error);

#endif
