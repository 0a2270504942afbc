#include "base/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

bool daemon_prepare(int last_kept, struct error *error)
{
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot open /dev/null");
    if (dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot use /dev/null");
    if (fcntl(STDERR_FILENO, F_GETFD) < 0 && dup2(nothing, STDERR_FILENO) < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot use /dev/null");
    if (close_range((unsigned)last_kept + 1, ~0u, 0) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot close inherited descriptors");
    for (int kept = STDERR_FILENO + 1; kept <= last_kept; kept++)
        fcntl(kept, F_SETFD, FD_CLOEXEC);

    signal(SIGPIPE, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot forbid core files");
    return true;
}

bool daemon_protect_memory(struct error *error)
{
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno,
                               "cannot protect this process's memory");
    return true;
}
