/* Opens a path of the policy without trusting what the workload left behind. */
#ifndef RUNTIME_POLICY_PATH_H
#define RUNTIME_POLICY_PATH_H

#include <stdbool.h>

/* Opens `path`, absolute, with O_PATH in the root of this process. Links are followed, but none
 * that lies in a directory for which `is_writable(path of the directory, user)` holds: the
 * workload could have made it, in an earlier run, to lead a rule to another place. Returns a
 * close-on-exec descriptor, or -1 with errno; ELOOP for such a link. */
int policy_path_open(const char *path, bool (*is_writable)(const char *directory, void *user),
                     void *user);

#endif
