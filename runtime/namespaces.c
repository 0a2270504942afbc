#include "runtime/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "runtime/syscalls.h"

static const char *const NAMES[NAMESPACE_KINDS] = {
    [NAMESPACE_USER] = "user",     [NAMESPACE_MOUNT] = "mnt", [NAMESPACE_PID] = "pid",
    [NAMESPACE_NETWORK] = "net",   [NAMESPACE_IPC] = "ipc",   [NAMESPACE_UTS] = "uts",
    [NAMESPACE_CGROUP] = "cgroup",
};

/* The first byte of a file that holds a number, or '\0'. */
static char first_byte(const char *path)
{
    char byte = '\0';
    CLEANUP_CLOSE int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || read(descriptor, &byte, 1) != 1)
        return '\0';
    return byte;
}

const char *namespaces_advice(void)
{
    if (first_byte("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == '1')
        return "; AppArmor restricts user namespaces here: run "
               "'sysctl -w kernel.apparmor_restrict_unprivileged_userns=0', or run as root";
    if (first_byte("/proc/sys/kernel/unprivileged_userns_clone") == '0')
        return "; run 'sysctl -w kernel.unprivileged_userns_clone=1', or run as root";
    if (first_byte("/proc/sys/user/max_user_namespaces") == '0')
        return "; run 'sysctl -w user.max_user_namespaces=10000'";
    return "";
}

pid_t namespaces_clone(int *ret_pidfd, struct error *error)
{
    uint64_t flags =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
    pid_t child = syscall_clone(flags, ret_pidfd);
    if (child >= 0)
        return child;
    int saved = errno;
    error_set(error, ERROR_FAILED_PRECONDITION,
              "this kernel or container forbids new namespaces, which every sandbox needs: %s%s",
              strerror(saved), namespaces_advice());
    return -1;
}

static bool write_process_file(pid_t process, const char *name, const char *text,
                               struct error *error)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/%s", process, name);
    CLEANUP_CLOSE int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t length = (ssize_t)strlen(text);
    /* One write: the kernel takes a map whole. */
    if (descriptor < 0 || write(descriptor, text, (size_t)length) != length)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot write '%s' to the sandbox's %s%s", text, name,
                               namespaces_advice());
    return true;
}

bool namespaces_map_ids(pid_t process, uid_t host_id_base, struct error *error)
{
    char map[64];
    if (host_id_base != 0) {
        snprintf(map, sizeof(map), "0 %u %d", host_id_base, NAMESPACE_IDS);
        return write_process_file(process, "uid_map", map, error) &&
               write_process_file(process, "gid_map", map, error);
    }
    if (!write_process_file(process, "setgroups", "deny", error))
        return false;
    snprintf(map, sizeof(map), "%d %u 1", NAMESPACE_WORKLOAD_ID, geteuid());
    if (!write_process_file(process, "uid_map", map, error))
        return false;
    snprintf(map, sizeof(map), "%d %u 1", NAMESPACE_WORKLOAD_ID, getegid());
    return write_process_file(process, "gid_map", map, error);
}

bool namespaces_separate(struct error *error)
{
    if (unshare(CLONE_NEWCGROUP) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "this kernel forbids a new cgroup namespace");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "cannot separate the sandbox's mounts from the host's: %s%s",
                         strerror(errno), namespaces_advice());
    return true;
}

bool namespaces_set_host_name(const char *name, struct error *error)
{
    if (sethostname(name, strlen(name)) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot set the host name '%s'", name);
    return true;
}

bool namespaces_raise_loopback(struct error *error)
{
    CLEANUP_CLOSE int handle = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo"};
    if (handle < 0 || ioctl(handle, SIOCGIFFLAGS, &request) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot find the loopback interface");
    request.ifr_flags |= IFF_UP;
    if (ioctl(handle, SIOCSIFFLAGS, &request) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot raise the loopback interface");
    return true;
}

bool namespaces_identify(struct namespace_identities *ret_identities)
{
    for (size_t i = 0; i < NAMESPACE_KINDS; i++) {
        char path[64];
        struct stat status;
        snprintf(path, sizeof(path), "/proc/self/ns/%s", NAMES[i]);
        if (stat(path, &status) != 0)
            return false;
        ret_identities->inode[i] = status.st_ino;
    }
    return true;
}

bool namespaces_only_loopback(void)
{
    struct if_nameindex *interfaces = if_nameindex();
    if (interfaces == NULL)
        return false;
    bool only = interfaces[0].if_index != 0;
    for (size_t i = 0; interfaces[i].if_index != 0; i++)
        only = only && strcmp(interfaces[i].if_name, "lo") == 0;
    if_freenameindex(interfaces);
    return only;
}
