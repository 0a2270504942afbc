#include "runtime/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t syscall_clone(uint64_t flags, int *ret_pidfd)
{
    struct clone_args arguments = {
        .flags = flags | (ret_pidfd != NULL ? CLONE_PIDFD : 0),
        .pidfd = (uint64_t)(uintptr_t)ret_pidfd,
        .exit_signal = SIGCHLD,
    };
    long result = syscall(SYS_clone3, &arguments, sizeof(arguments));
    if (result >= 0 || errno != ENOSYS)
        return (pid_t)result;
    /* A filter around us may refuse clone3. */
    return (pid_t)syscall(SYS_clone, (unsigned long)arguments.flags | SIGCHLD, NULL, ret_pidfd,
                          NULL, NULL);
}

pid_t syscall_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

int syscall_pivot_root(const char *new_root, const char *put_old)
{
    return (int)syscall(SYS_pivot_root, new_root, put_old);
}

int syscall_openat2(int directory, const char *path, uint64_t flags, uint64_t mode,
                    uint64_t resolve)
{
    struct open_how how = {.flags = flags, .mode = mode, .resolve = resolve};
    how.flags |= O_CLOEXEC;
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
}

int syscall_pidfd_open(pid_t process)
{
    return (int)syscall(SYS_pidfd_open, process, 0);
}

int syscall_pidfd_send_signal(int pidfd, int number)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, number, NULL, 0);
}

void syscall_reset_signals(void)
{
    /* The kernel's form of struct sigaction: handler, flags, restorer, mask; all 0 is SIG_DFL. */
    static const uint64_t PLAIN[4];
    for (int number = 1; number <= 64; number++)
        syscall(SYS_rt_sigaction, number, PLAIN, NULL, sizeof(uint64_t));
}

int syscall_join_session_keyring(void)
{
    return (int)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0);
}

int syscall_set_capabilities(uint64_t mask)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)mask, .permitted = (uint32_t)mask},
        {.effective = (uint32_t)(mask >> 32), .permitted = (uint32_t)(mask >> 32)},
    };
    return (int)syscall(SYS_capset, &header, data);
}

int syscall_seccomp_install(const struct sock_fprog *program)
{
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program);
}

int syscall_landlock_abi(void)
{
    return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

int syscall_landlock_create(const struct landlock_ruleset *attribute, size_t size)
{
    return (int)syscall(SYS_landlock_create_ruleset, attribute, size, 0);
}

int syscall_landlock_add_path(int ruleset, uint64_t allowed_access, int path)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = allowed_access, .parent_fd = path};
    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

int syscall_landlock_restrict_self(int ruleset)
{
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}
