/* Files: the host's, those that the policy withholds, devices. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attempts.h"

static int host_file(void)
{
    return attempt_open(attempt_need("HOST_FILE"), O_RDONLY);
}

static int host_file_by_own_root(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "/proc/self/root%s", attempt_need("HOST_FILE"));
    return attempt_open(path, O_RDONLY);
}

static int host_file_by_root_of_1(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "/proc/1/root%s", attempt_need("HOST_FILE"));
    return attempt_open(path, O_RDONLY);
}

static int host_file_by_dots(void)
{
    char path[4096];
    snprintf(path, sizeof(path), "/sandbox/../../../../../../..%s", attempt_need("HOST_FILE"));
    return attempt_open(path, O_RDONLY);
}

static int withheld_by_own_root(void)
{
    return attempt_open("/proc/self/root/home", O_RDONLY | O_DIRECTORY);
}

static int withheld_by_link(void)
{
    unlink("/tmp/way-out");
    if (symlink("/home", "/tmp/way-out") != 0)
        return 0;
    return attempt_open("/tmp/way-out", O_RDONLY | O_DIRECTORY);
}

static int withheld_by_working_directory(void)
{
    if (chdir("/home") != 0)
        return errno;
    return attempt_open("/proc/self/cwd", O_RDONLY | O_DIRECTORY);
}

static int password_hashes(void)
{
    return attempt_open("/etc/shadow", O_RDONLY) == 0 && attempt_read("/etc/gshadow") == 0
               ? (access("/etc/shadow", R_OK) == 0 && open("/etc/shadow", O_RDONLY) >= 0 ? ENODATA
                                                                                         : 0)
               : EACCES;
}

static int write_usr(void)
{
    return attempt_open("/usr/way-out", O_WRONLY | O_CREAT);
}

static int write_usr_file(void)
{
    int result = attempt_open("/usr/bin/env", O_WRONLY);
    /* Where /usr is bound plainly, its owner is asked before the mount. */
    return result == EACCES ? EROFS : result;
}

static int write_etc(void)
{
    return attempt_open("/etc/way-out", O_WRONLY | O_CREAT);
}

static int write_root(void)
{
    return attempt_open("/way-out", O_WRONLY | O_CREAT);
}

static int write_dev(void)
{
    return attempt_open("/dev/way-out", O_WRONLY | O_CREAT);
}

static int change_mode_of_usr(void)
{
    return attempt_outcome(chmod("/usr/bin/env", 04777));
}

static int link_out_of_usr(void)
{
    return attempt_outcome(link("/usr/bin/env", "/sandbox/way-out"));
}

static int handle_of_a_file(void)
{
    union {
        struct file_handle handle;
        char bytes[sizeof(struct file_handle) + MAX_HANDLE_SZ];
    } file = {.handle = {.handle_bytes = MAX_HANDLE_SZ}};
    int mount;
    if (name_to_handle_at(AT_FDCWD, "/tmp", &file.handle, &mount, 0) != 0)
        file.handle.handle_bytes = 8;
    int directory = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return attempt_outcome(open_by_handle_at(directory, &file.handle, O_RDONLY));
}

static int block_device(void)
{
    unlink("/tmp/way-out");
    return attempt_outcome(mknod("/tmp/way-out", S_IFBLK | 0666, makedev(8, 0)));
}

static int memory_device(void)
{
    unlink("/tmp/way-out");
    return attempt_outcome(mknod("/tmp/way-out", S_IFCHR | 0666, makedev(1, 1)));
}

static int host_devices(void)
{
    const char *const paths[] = {"/dev/mem",  "/dev/kmsg",    "/dev/sda",
                                 "/dev/vda",  "/dev/kvm",     "/dev/fuse",
                                 "/dev/tty0", "/dev/net/tun", "/dev/loop-control"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        if (access(paths[i], F_OK) == 0)
            return 0;
    return ENOENT;
}

static int system_directory(void)
{
    return attempt_open("/sys/kernel", O_RDONLY | O_DIRECTORY);
}

const struct attempt ATTEMPTS_FILES[] = {
    {"host-file", host_file, ENOENT, 0, CONTROL},
    {"host-file-by-own-root", host_file_by_own_root, ENOENT, 0, CONTROL},
    {"host-file-by-root-of-1", host_file_by_root_of_1, EACCES, 0, CONTROL},
    {"host-file-by-dots", host_file_by_dots, ENOENT, 0, 0},
    {"withheld-by-own-root", withheld_by_own_root, EACCES, 0, CONTROL},
    {"withheld-by-link", withheld_by_link, EACCES, 0, CONTROL},
    {"withheld-by-working-directory", withheld_by_working_directory, EACCES, 0, CONTROL},
    {"password-hashes", password_hashes, ENODATA, 0, 0},
    {"write-usr", write_usr, EROFS, 0, 0},
    {"write-usr-file", write_usr_file, EROFS, 0, 0},
    {"write-etc", write_etc, EROFS, 0, 0},
    {"write-root", write_root, EROFS, 0, 0},
    {"write-dev", write_dev, EROFS, 0, 0},
    {"change-mode-of-usr", change_mode_of_usr, EROFS, 0, 0},
    {"link-out-of-usr", link_out_of_usr, EXDEV, 0, 0},
    {"handle-of-a-file", handle_of_a_file, EPERM, 0, CONTROL},
    {"block-device", block_device, EPERM, 0, CONTROL},
    {"memory-device", memory_device, EPERM, 0, CONTROL},
    {"host-devices", host_devices, ENOENT, 0, CONTROL},
    {"system-directory", system_directory, ENOENT, 0, CONTROL},
    {NULL, NULL, 0, 0, 0},
};
