/* The file-system rules of a policy as a Landlock ruleset (policy reference 2.1, decision B13). */
#ifndef RUNTIME_LANDLOCK_H
#define RUNTIME_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct landlock_request {
    const char *const *read_only;
    size_t read_only_count;
    const char *const *read_write;
    size_t read_write_count;
    bool include_workdir;
    bool required;       /* hard_requirement: whatever cannot be enforced is an error */
    bool has_filesystem; /* false: the default policy (policy reference 1.11) */
    const char *home;    /* home and working directory of the workload */
};

/* Builds the ruleset inside the sandbox's root. `ret_ruleset` is a close-on-exec descriptor, or -1
 * when none is installed, which best_effort allows where the kernel has no Landlock and where the
 * policy names no path at all. `ret_abi` is the kernel's version, 0 without one. `on_warning` gets
 * a text for each thing that is weaker than the policy asks for. */
bool landlock_build(const struct landlock_request *request,
                    void (*on_warning)(const char *text, void *user), void *user, int *ret_ruleset,
                    int *ret_abi, struct error *error);

/* Puts this process, for good, into the ruleset. Needs no_new_privs. */
bool landlock_enforce(int ruleset, struct error *error);

/* A writable directory that no policy grants: what is refused there, Landlock refuses. */
#define LANDLOCK_WITHHELD "/.openshell"

/* Whether an operation that every policy withholds is refused by Landlock here. */
bool landlock_probe(void);

#endif
