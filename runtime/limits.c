#include "runtime/limits.h"

#include <errno.h>
#include <sys/resource.h>

unsigned limits_possible(unsigned process_limit)
{
    struct rlimit own;
    if (getrlimit(RLIMIT_NPROC, &own) == 0 && own.rlim_max < process_limit)
        return (unsigned)own.rlim_max;
    return process_limit;
}

bool limits_enforce(unsigned process_limit, struct error *error)
{
    struct rlimit limit = {.rlim_cur = process_limit, .rlim_max = process_limit};
    return setrlimit(RLIMIT_NPROC, &limit) == 0 ||
           error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                           "cannot limit the number of processes");
}
