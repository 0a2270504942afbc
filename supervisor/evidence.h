/* Whether what the runtime measured is enough to start a workload (isolation IB-26, IB-44, decision
 * B9): every control in force, and of this launch. */
#ifndef SUPERVISOR_EVIDENCE_H
#define SUPERVISOR_EVIDENCE_H

#include <stdbool.h>

#include "base/error.h"
#include "boundary/protocol.h"

struct evidence_expectation {
    const char *generation;
    const char *session_id;
    bool landlock_required; /* the policy's landlock.compatibility is hard_requirement */
};

/* A failure of kind Denied names the first thing that does not hold. `warn` is told what is weaker
 * than it could be: no Landlock where the policy takes best effort, no limit of processes, groups
 * that could not be dropped. */
bool evidence_check(const Openshell__Sandbox__Protocol__V1__Confirmed *confirmed,
                    const struct evidence_expectation *expected,
                    void (*warn)(const char *text, void *user), void *user, struct error *error);

#endif
