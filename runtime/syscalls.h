/* System calls that the C library has no function for. Each returns what the kernel returns: -1
 * with errno, or the result. */
#ifndef RUNTIME_SYSCALLS_H
#define RUNTIME_SYSCALLS_H

#include <linux/filter.h>
#include <stdint.h>
#include <sys/types.h>

/* fork() with CLONE_NEW* flags; `ret_pidfd` receives a close-on-exec pidfd in the parent. Only in a
 * process with one thread: the C library's fork handlers do not run. */
pid_t syscall_clone(uint64_t flags, int *ret_pidfd);
/* fork() without the handlers that libraries registered for it: they belong to the runtime that
 * the process-maker was copied from, and act on descriptors that mean something else by now. Only
 * in a process with one thread. */
pid_t syscall_fork(void);
int syscall_pivot_root(const char *new_root, const char *put_old);
/* `resolve` is a mask of RESOLVE_*; the descriptor is close-on-exec. */
int syscall_openat2(int directory, const char *path, uint64_t flags, uint64_t mode,
                    uint64_t resolve);
int syscall_pidfd_open(pid_t process);
int syscall_pidfd_send_signal(int pidfd, int number);

/* All signals to their default action, the two that the C library keeps to itself too: it leaves
 * those ignored in what posix_spawn starts, and so would every program in a sandbox have them. */
void syscall_reset_signals(void);

/* Replaces the thread's session keyring by a new, empty one. */
int syscall_join_session_keyring(void);

/* Permitted and effective become `mask`; inheritable becomes empty. */
int syscall_set_capabilities(uint64_t mask);

int syscall_seccomp_install(const struct sock_fprog *program);

/* Landlock's attribute, with fields that older headers lack. */
struct landlock_ruleset {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};
/* The ABI version, or -1. */
int syscall_landlock_abi(void);
int syscall_landlock_create(const struct landlock_ruleset *attribute, size_t size);
int syscall_landlock_add_path(int ruleset, uint64_t allowed_access, int path);
int syscall_landlock_restrict_self(int ruleset);

#endif
