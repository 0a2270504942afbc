/* Namespaces, mounts, identities, capabilities. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attempts.h"

static int try_unshare(int flags)
{
    return attempt_outcome(unshare(flags));
}

static int new_user_namespace(void)
{
    return try_unshare(CLONE_NEWUSER);
}

static int new_mount_namespace(void)
{
    return try_unshare(CLONE_NEWNS);
}

static int new_network_namespace(void)
{
    return try_unshare(CLONE_NEWNET);
}

static int new_pid_namespace(void)
{
    return try_unshare(CLONE_NEWPID);
}

static int new_time_namespace(void)
{
    return try_unshare(CLONE_NEWTIME);
}

static int clone_user_namespace(void)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        _exit(0);
    return attempt_outcome(child);
}

static int clone3_call(void)
{
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &arguments, sizeof(arguments));
    if (child == 0)
        _exit(0);
    return attempt_outcome(child);
}

static int enter_namespace_of_1(void)
{
    int space = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    return attempt_outcome(setns(space, CLONE_NEWNS));
}

static int mount_call(void)
{
    return attempt_outcome(mount("none", "/tmp", "tmpfs", 0, NULL));
}

static int mount_control_groups(void)
{
    return attempt_outcome(mount("none", "/tmp", "cgroup2", 0, NULL));
}

static int remount_usr(void)
{
    return attempt_outcome(mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static int unmount_proc(void)
{
    return attempt_outcome(umount2("/proc", MNT_DETACH));
}

static int new_file_system(void)
{
    return attempt_outcome(fsopen("tmpfs", 0));
}

static int copy_mount(void)
{
    return attempt_outcome(open_tree(AT_FDCWD, "/tmp", OPEN_TREE_CLONE));
}

static int move_a_mount(void)
{
    return attempt_outcome(move_mount(AT_FDCWD, "/tmp", AT_FDCWD, "/run", 0));
}

static int change_a_mount(void)
{
    struct mount_attr attribute = {.attr_clr = MOUNT_ATTR_RDONLY};
    return attempt_outcome(mount_setattr(AT_FDCWD, "/usr", 0, &attribute, sizeof(attribute)));
}

static int change_root(void)
{
    return attempt_outcome(chroot("/tmp"));
}

static int pivot_root_call(void)
{
    return attempt_outcome(syscall(SYS_pivot_root, "/tmp", "/tmp"));
}

static int set_user_0(void)
{
    return attempt_outcome(setresuid(0, 0, 0));
}

static int set_groups(void)
{
    gid_t group = 0;
    return attempt_outcome(syscall(SYS_setgroups, 1, &group));
}

/* The capabilities that are there, and then asking for one. */
static int gain_capability(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    if (syscall(SYS_capget, &header, data) != 0 || data[0].permitted != 0 || data[1].permitted != 0)
        return 0;
    data[0].effective = data[0].permitted = 1U << CAP_SYS_ADMIN;
    return attempt_outcome(syscall(SYS_capset, &header, data));
}

static int bounding_set(void)
{
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        if (prctl(PR_CAPBSET_READ, capability) != 0)
            return 0;
    return EPERM;
}

static int new_privileges(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}

/* No mount lets a set-user-id bit or a device node act, but for the devices given. */
static int set_user_id_mounts(void)
{
    char line[4096];
    FILE *file = fopen("/proc/self/mountinfo", "re");
    if (file == NULL)
        return 0;
    while (fgets(line, sizeof(line), file) != NULL)
        if (strstr(line, "nosuid") == NULL ||
            (strstr(line, "nodev") == NULL && strstr(line, " /dev") == NULL)) {
            fputs(line, stderr);
            return 0;
        }
    fclose(file);
    return EPERM;
}

static int host_name(void)
{
    return attempt_outcome(sethostname("other", 5));
}

static int core_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_cur != 0 || limit.rlim_max != 0)
        return 0;
    limit.rlim_cur = limit.rlim_max = 1 << 20;
    return attempt_outcome(setrlimit(RLIMIT_CORE, &limit));
}

const struct attempt ATTEMPTS_RIGHTS[] = {
    {"new-user-namespace", new_user_namespace, EPERM, 0, CONTROL},
    {"new-mount-namespace", new_mount_namespace, EPERM, 0, CONTROL},
    {"new-network-namespace", new_network_namespace, EPERM, 0, CONTROL},
    {"new-pid-namespace", new_pid_namespace, EPERM, 0, CONTROL},
    {"new-time-namespace", new_time_namespace, EPERM, 0, CONTROL},
    {"clone-user-namespace", clone_user_namespace, EPERM, 0, CONTROL},
    {"clone3", clone3_call, ENOSYS, 0, CONTROL},
    {"enter-namespace", enter_namespace_of_1, EPERM, 0, CONTROL},
    {"mount", mount_call, EPERM, 0, CONTROL},
    {"mount-control-groups", mount_control_groups, EPERM, 0, 0},
    {"remount-usr", remount_usr, EPERM, 0, 0},
    {"unmount-proc", unmount_proc, EPERM, 0, 0},
    {"new-file-system", new_file_system, EPERM, 0, CONTROL},
    {"copy-mount", copy_mount, EPERM, 0, CONTROL},
    {"move-mount", move_a_mount, EPERM, 0, 0},
    {"change-mount", change_a_mount, EPERM, 0, 0},
    {"change-root", change_root, EPERM, 0, CONTROL},
    {"pivot-root", pivot_root_call, EPERM, 0, 0},
    {"set-user-0", set_user_0, EPERM, EINVAL, CONTROL},
    {"set-groups", set_groups, EPERM, 0, CONTROL},
    {"gain-capability", gain_capability, EPERM, 0, CONTROL},
    {"bounding-set", bounding_set, EPERM, 0, CONTROL},
    {"new-privileges", new_privileges, EPERM, 0, CONTROL},
    {"set-user-id-mounts", set_user_id_mounts, EPERM, 0, CONTROL},
    {"host-name", host_name, EPERM, 0, CONTROL},
    {"core-limit", core_limit, EPERM, 0, CONTROL},
    {NULL, NULL, 0, 0, 0},
};
