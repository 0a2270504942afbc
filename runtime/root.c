#include "runtime/root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/etc_skeleton.h"
#include "runtime/landlock.h"
#include "runtime/mounts.h"
#include "runtime/syscalls.h"

/* The host's system directories: each a link into /usr, or a directory of its own. */
static const char *const SYSTEM[] = {"usr", "opt",   "bin",   "sbin",
                                     "lib", "lib32", "lib64", "libx32"};

static const char *const DEVICES[] = {"null", "zero", "full", "random", "urandom", "tty"};

static const struct {
    const char *name;
    const char *text;
} DEVICE_LINKS[] = {
    {"fd", "/proc/self/fd"},       {"stdin", "/proc/self/fd/0"}, {"stdout", "/proc/self/fd/1"},
    {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"},
};

#define WRITABLE_ATTRIBUTES (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define READ_ONLY_ATTRIBUTES (MOUNT_ATTR_RDONLY | WRITABLE_ATTRIBUTES)

static bool add_part(struct root *root, const char *target, bool directory, int mount,
                     struct error *error)
{
    if (mount < 0)
        return false;
    if (root->part_count == ROOT_PARTS_MAX) {
        close(mount);
        return error_set(error, ERROR_INTERNAL, "the root has more than %d parts", ROOT_PARTS_MAX);
    }
    struct root_part *part = &root->parts[root->part_count++];
    snprintf(part->target, sizeof(part->target), "%s", target);
    part->directory = directory;
    part->mount = mount;
    return true;
}

/* The first socket file below a place that may be bound plainly: it could be connected to. */
static void find_usr_socket(int host_sockets, char *buffer, size_t size)
{
    buffer[0] = '\0';
    int descriptor = fcntl(host_sockets, F_DUPFD_CLOEXEC, 0);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;
    if (file == NULL) {
        snprintf(buffer, size, "(unknown)");
        return;
    }
    rewind(file);
    char *line = NULL;
    size_t capacity = 0;
    while (buffer[0] == '\0' && getline(&line, &capacity, file) > 0) {
        const char *path = strchr(line, '/');
        if (path == NULL || (!text_has_prefix(path, "/usr/") && !text_has_prefix(path, "/opt/")))
            continue;
        snprintf(buffer, size, "%.*s", (int)strcspn(path, "\n"), path);
    }
    free(line);
    fclose(file);
}

/* /usr and its like: through an overlay, since a socket file cannot be connected to through one;
 * where the kernel refuses, by a plain bind, which is only safe when there is no such socket
 * (decision B6). */
static bool gather_read_only(struct root *root, const char *name, const struct places *places,
                             struct error *error)
{
    char path[40];
    snprintf(path, sizeof(path), "/%s", name);
    int mount = mounts_overlay(places->empty, path, NULL);
    if (mount < 0) {
        char socket[108];
        find_usr_socket(places->host_sockets, socket, sizeof(socket));
        if (socket[0] != '\0')
            return error_set(error, ERROR_FAILED_PRECONDITION,
                             "this kernel refuses an overlay of %s, and the socket '%s' could be "
                             "connected to without one; stop what listens on it",
                             path, socket);
        mount = mounts_clone(path, READ_ONLY_ATTRIBUTES, error);
        snprintf(root->facts.usr_mechanism, sizeof(root->facts.usr_mechanism), "bind");
    }
    return add_part(root, name, true, mount, error);
}

static bool gather_system(struct root *root, const struct places *places, struct error *error)
{
    snprintf(root->facts.usr_mechanism, sizeof(root->facts.usr_mechanism), "overlay");
    for (size_t i = 0; i < sizeof(SYSTEM) / sizeof(SYSTEM[0]); i++) {
        char path[32];
        struct stat status;
        snprintf(path, sizeof(path), "/%s", SYSTEM[i]);
        if (lstat(path, &status) != 0)
            continue;
        if (S_ISLNK(status.st_mode)) {
            struct root_link *link = &root->links[root->link_count++];
            snprintf(link->name, sizeof(link->name), "%s", SYSTEM[i]);
            ssize_t length = readlink(path, link->text, sizeof(link->text) - 1);
            link->text[length > 0 ? length : 0] = '\0';
        } else if (S_ISDIR(status.st_mode) && !gather_read_only(root, SYSTEM[i], places, error)) {
            return false;
        }
    }
    return true;
}

static bool is_directory(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static bool gather_etc_mounted(struct root *root, const struct places *places, struct error *error)
{
    for (size_t i = 0; i < ETC_SKELETON_MOUNTED_COUNT; i++) {
        const char *name = ETC_SKELETON_MOUNTED[i];
        CLEANUP_FREE char *host = memory_printf("/etc/%s", name);
        CLEANUP_FREE char *place = memory_printf("%s/%s", places->skeleton, name);
        if (is_directory(host) && is_directory(place) &&
            !gather_read_only(root, host + 1, places, error))
            return false;
    }
    return true;
}

/* The shared skeleton under the sandbox's own files. */
static bool gather_etc_base(struct root *root, const struct places *places, struct error *error)
{
    int mount = mounts_overlay(places->etc, places->skeleton, NULL);
    if (mount >= 0)
        return add_part(root, "etc", true, mount, error);
    if (!add_part(root, "etc", true, mounts_clone(places->skeleton, READ_ONLY_ATTRIBUTES, error),
                  error))
        return false;
    for (size_t i = 0; i < PLACES_ETC_FILES_COUNT; i++) {
        CLEANUP_FREE char *path = memory_printf("%s/%s", places->etc, PLACES_ETC_FILES[i]);
        char target[32];
        snprintf(target, sizeof(target), "etc/%s", PLACES_ETC_FILES[i]);
        if (!add_part(root, target, false, mounts_clone(path, READ_ONLY_ATTRIBUTES, error), error))
            return false;
    }
    return true;
}

static bool gather_etc(struct root *root, const struct places *places, struct error *error)
{
    return gather_etc_base(root, places, error) && gather_etc_mounted(root, places, error);
}

static bool gather_writable(struct root *root, const struct places *places, struct error *error)
{
    for (size_t i = 0; i < PLACES_WRITABLE_COUNT; i++) {
        CLEANUP_FREE char *path = memory_printf("%s/%s", places->state, PLACES_WRITABLE[i]);
        if (!add_part(root, PLACES_WRITABLE[i], true,
                      mounts_clone(path, WRITABLE_ATTRIBUTES, error), error))
            return false;
    }
    return true;
}

static bool gather_devices(struct root *root, struct error *error)
{
    for (size_t i = 0; i < sizeof(DEVICES) / sizeof(DEVICES[0]); i++) {
        char path[32];
        snprintf(path, sizeof(path), "/dev/%s", DEVICES[i]);
        if (!add_part(root, path + 1, false,
                      mounts_clone(path, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, error), error))
            return false;
    }
    return true;
}

bool root_gather(struct root *root, const struct places *places, struct error *error)
{
    *root =
        (struct root){.composed = places->rootfs == NULL, .place = -1, .top = -1, .devices = -1};
    snprintf(root->facts.root_kind, sizeof(root->facts.root_kind), "%s",
             root->composed ? "composed" : "copied");
    if (root->composed) {
        if (!gather_system(root, places, error) || !gather_etc(root, places, error) ||
            !gather_writable(root, places, error))
            return false;
    } else {
        snprintf(root->facts.usr_mechanism, sizeof(root->facts.usr_mechanism), "copy");
        root->top = mounts_clone(places->rootfs, WRITABLE_ATTRIBUTES, error);
        if (root->top < 0)
            return false;
    }
    if (!gather_devices(root, error))
        return false;
    root->place = open(places->state, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root->place >= 0 ||
           error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '%s'", places->state);
}

bool root_assemble(struct root *root, struct error *error)
{
    /* Everything in it is a mount point, a link or made by us: 64 KiB are plenty, and all of it is
     * read-only before anything runs. */
    const char *top_options[] = {"size", "64k",    "nr_inodes", "64", "mode",
                                 "0755", "source", "openshell", NULL};
    const char *device_options[] = {"size", "64k",    "nr_inodes", "64", "mode",
                                    "0755", "source", "openshell", NULL};
    /* Half of the memory, as elsewhere, unless something else limits it. */
    const char *shm_options[] = {"mode", "1777", "source", "openshell", NULL};
    /* Holds nothing; there to be refused. */
    const char *withheld_options[] = {"size", "4k",     "nr_inodes", "2", "mode",
                                      "0777", "source", "openshell", NULL};
    const char *pts_options[] = {"ptmxmode", "0666", "mode", "0620", "source", "openshell", NULL};

    if (root->composed)
        root->top = mounts_new("tmpfs", top_options, WRITABLE_ATTRIBUTES, error);
    if (root->top < 0)
        return false;
    root->devices =
        mounts_new("tmpfs", device_options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, error);
    if (root->devices < 0)
        return false;
    return add_part(root, LANDLOCK_WITHHELD + 1, true,
                    mounts_new("tmpfs", withheld_options, WRITABLE_ATTRIBUTES | MOUNT_ATTR_NOEXEC,
                               error),
                    error) &&
           add_part(root, "dev/pts", true,
                    mounts_new("devpts", pts_options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, error),
                    error) &&
           add_part(root, "dev/shm", true,
                    mounts_new("tmpfs", shm_options, WRITABLE_ATTRIBUTES, error), error) &&
           /* Needs the host's proc to be visible still. */
           add_part(root, "proc", true,
                    mounts_new("proc", NULL, WRITABLE_ATTRIBUTES | MOUNT_ATTR_NOEXEC, error),
                    error);
}

/* Makes the new root "/" and leaves nothing of the host's tree behind. */
static bool pivot(struct root *root, struct error *error)
{
    if (!mounts_attach(root->top, root->place, "", error))
        return false;
    if (fchdir(root->top) != 0 || syscall_pivot_root(".", ".") != 0 ||
        umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot enter the new root");
    return true;
}

/* Sees to it that `target` exists and is what a mount needs. In a copied root something else may
 * lie there: the workload's own doing, so it goes. */
static bool make_target(const char *target, bool directory, struct error *error)
{
    struct stat status;
    char path[40];
    snprintf(path, sizeof(path), "/%s", target);
    if (lstat(path, &status) == 0) {
        if (directory ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode))
            return true;
        unlink(path);
    }
    int file = -1;
    bool made =
        directory
            ? mkdir(path, 0755) == 0
            : (file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644)) >= 0;
    if (file >= 0)
        close(file);
    return made ||
           error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '%s' in the root", path);
}

static bool make_links(const struct root *root, struct error *error)
{
    for (size_t i = 0; i < root->link_count; i++)
        if (symlinkat(root->links[i].text, AT_FDCWD, root->links[i].name) != 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot link '/%s'",
                                   root->links[i].name);
    for (size_t i = 0; i < sizeof(DEVICE_LINKS) / sizeof(DEVICE_LINKS[0]); i++) {
        char path[32];
        snprintf(path, sizeof(path), "/dev/%s", DEVICE_LINKS[i].name);
        if (symlink(DEVICE_LINKS[i].text, path) != 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot link '%s'", path);
    }
    return true;
}

/* Directories that programs expect and that are no mount of their own. */
static bool make_customary(const struct root *root, struct error *error)
{
    static const char *const COMPOSED[] = {"root", "mnt", "srv", "media", "sys"};
    static const struct {
        const char *path;
        mode_t mode;
    } COPIED[] = {{"tmp", 01777}, {"run", 0755}, {"var", 0755}, {"var/tmp", 01777}};
    for (size_t i = 0; root->composed && i < sizeof(COMPOSED) / sizeof(COMPOSED[0]); i++)
        if (!make_target(COMPOSED[i], true, error))
            return false;
    for (size_t i = 0; !root->composed && i < sizeof(COPIED) / sizeof(COPIED[0]); i++)
        if (mkdirat(AT_FDCWD, COPIED[i].path, 0755) == 0 &&
            fchmodat(AT_FDCWD, COPIED[i].path, COPIED[i].mode, 0) != 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '/%s'",
                                   COPIED[i].path);
    return true;
}

bool root_enter(struct root *root, struct error *error)
{
    if (!pivot(root, error))
        return false;
    mode_t mask = umask(0);
    CLEANUP_CLOSE int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool entered = make_customary(root, error) && make_target("dev", true, error) &&
                   mounts_attach(root->devices, top, "dev", error);
    for (size_t i = 0; entered && i < root->part_count; i++) {
        const struct root_part *part = &root->parts[i];
        entered = make_target(part->target, part->directory, error) &&
                  mounts_attach(part->mount, top, part->target, error);
    }
    entered = entered && make_links(root, error);
    umask(mask);
    /* Read-only last: its mount points had to be made first. Devices stay writable: they are mounts
     * of their own. */
    struct mount_attr attribute = {.attr_set = MOUNT_ATTR_RDONLY};
    if (entered &&
        ((root->composed &&
          mount_setattr(root->top, "", AT_EMPTY_PATH, &attribute, sizeof(attribute)) != 0) ||
         mount_setattr(root->devices, "", AT_EMPTY_PATH, &attribute, sizeof(attribute)) != 0))
        entered = error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                                  "cannot make the root read-only");
    for (size_t i = 0; i < root->part_count; i++)
        close(root->parts[i].mount);
    close(root->place);
    close(root->devices);
    close(root->top);
    return entered;
}

static bool write_file(int directory, const char *name, const char *text, struct error *error)
{
    CLEANUP_CLOSE int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0 || !file_write_all(file, text, strlen(text), NULL) || fchmod(file, 0644) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot write '%s'", name);
    return true;
}

static bool cover(const char *file, int top, const char *target, struct error *error)
{
    CLEANUP_CLOSE int mount = mounts_clone(file, READ_ONLY_ATTRIBUTES, error);
    return mount >= 0 && mounts_attach(mount, top, target, error);
}

bool root_replace_accounts(const char *passwd, const char *group, struct error *error)
{
    const char *options[] = {"size", "16k",    "nr_inodes", "8", "mode",
                             "0755", "source", "openshell", NULL};
    CLEANUP_CLOSE int top = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_CLOSE int files = mounts_new("tmpfs", options, WRITABLE_ATTRIBUTES, error);
    if (files < 0 || !write_file(files, "passwd", passwd, error) ||
        !write_file(files, "group", group, error))
        return false;
    /* Only what is attached somewhere can be bound; /root is empty and nobody's. */
    if (!mounts_attach(files, top, "root", error))
        return false;
    bool covered = cover("/root/passwd", top, "etc/passwd", error) &&
                   cover("/root/group", top, "etc/group", error);
    umount2("/root", MNT_DETACH);
    return covered;
}
