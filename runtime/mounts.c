#include "runtime/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/memory.h"
#include "runtime/namespaces.h"
#include "runtime/syscalls.h"

bool mounts_restrict(int mount, uint64_t attributes, struct error *error)
{
    struct mount_attr attribute = {.attr_set = attributes};
    if (mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &attribute, sizeof(attribute)) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno, "cannot restrict a mount");
    return true;
}

int mounts_clone(const char *path, uint64_t attributes, struct error *error)
{
    int mount = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
    if (mount < 0) {
        error_set_errno(error, ERROR_FAILED_PRECONDITION, errno, "cannot bind '%s'", path);
        return -1;
    }
    if (!mounts_restrict(mount, attributes, error)) {
        error_prefix(error, "'%s'", path);
        close(mount);
        return -1;
    }
    return mount;
}

int mounts_new(const char *type, const char *const *options, uint64_t attributes,
               struct error *error)
{
    CLEANUP_CLOSE int context = fsopen(type, FSOPEN_CLOEXEC);
    if (context < 0) {
        error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                        "this kernel or container forbids a new %s%s", type, namespaces_advice());
        return -1;
    }
    for (const char *const *option = options; option != NULL && option[0] != NULL; option += 2)
        if (fsconfig(context, option[1] != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG,
                     option[0], option[1], 0) != 0) {
            error_set_errno(error, ERROR_FAILED_PRECONDITION, errno, "%s refuses the option %s",
                            type, option[0]);
            return -1;
        }
    const char *advice = strcmp(type, "proc") != 0
                             ? namespaces_advice()
                             : "; a container that hides parts of /proc does: start it with "
                               "--security-opt unmask=ALL, or run outside of it";
    int mount = -1;
    if (fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        mount = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)attributes);
    if (mount < 0)
        error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                        "this kernel or container forbids a new %s%s", type, advice);
    return mount;
}

int mounts_overlay(const char *upper, const char *lower, struct error *error)
{
    /* Through descriptors: a path may hold the colon that separates layers, and an option is at
     * most 255 bytes long. */
    CLEANUP_CLOSE int upper_directory = open(upper, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_CLOSE int lower_directory = open(lower, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (upper_directory < 0 || lower_directory < 0) {
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '%s'",
                        upper_directory < 0 ? upper : lower);
        return -1;
    }
    char layers[64];
    snprintf(layers, sizeof(layers), "/proc/self/fd/%d:/proc/self/fd/%d", upper_directory,
             lower_directory);
    const char *options[] = {"lowerdir", layers, "userxattr", NULL, "source", "openshell", NULL};
    return mounts_new("overlay", options, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
                      error);
}

bool mounts_attach(int mount, int directory, const char *target, struct error *error)
{
    CLEANUP_CLOSE int place = -1;
    if (target[0] != '\0') {
        place = syscall_openat2(directory, target, O_PATH, 0,
                                RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
        if (place < 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '/%s' in the root",
                                   target);
    }
    if (move_mount(mount, "", place >= 0 ? place : directory, "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno, "cannot mount on '/%s'",
                               target);
    return true;
}
