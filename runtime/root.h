/* The root of a sandbox. Built in three steps, in this order, by the process-maker:
 *   gather    as the caller, whose files the sources are;
 *   assemble  as the sandbox's own root, whose the new file systems are;
 *   enter     pivot_root, then everything is put into place; the host's tree is gone before. */
#ifndef RUNTIME_ROOT_H
#define RUNTIME_ROOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "runtime/maker.h"
#include "runtime/maker_protocol.h"
#include "runtime/places.h"

enum { ROOT_PARTS_MAX = 40, ROOT_LINKS_MAX = 8 };

struct root_part {
    char target[32]; /* below the root, without a leading slash */
    int mount;       /* detached */
    bool directory;  /* what the target has to be */
};

struct root_link {
    char name[16];
    char text[64];
};

struct root {
    bool composed;
    int place; /* O_PATH: where the new root is attached until it is pivoted to */
    int top;   /* the mount that becomes "/" */
    int devices;
    struct root_part parts[ROOT_PARTS_MAX];
    size_t part_count;
    struct root_link links[ROOT_LINKS_MAX];
    size_t link_count;
    struct root_facts facts;
};

bool root_gather(struct root *root, const struct places *places, struct error *error);
bool root_assemble(struct root *root, struct error *error);
bool root_enter(struct root *root, struct error *error);

/* Composed root: other content for /etc/passwd and /etc/group, which are read-only. Needs
 * CAP_SYS_ADMIN in the sandbox. */
bool root_replace_accounts(const char *passwd, const char *group, struct error *error);

#endif
