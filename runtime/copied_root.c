#include "runtime/copied_root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/namespaces.h"

enum {
    /* Each level holds two descriptors open. */
    DEPTH_MAX = 200,
    /* Hard-linked files that are remembered; further ones are copied separately. */
    LINKS_MAX = 1 << 20,
    OVERFLOW_ID = 65534,
};

/* Copied between two looks at the link. */
#define CHUNK ((size_t)64 * 1024 * 1024)

enum skipped { SKIPPED_SPECIAL, SKIPPED_UNREADABLE, SKIPPED_PSEUDO, SKIPPED_KINDS };

static const char *const SKIPPED_TEXTS[SKIPPED_KINDS] = {
    [SKIPPED_SPECIAL] = "devices, sockets and pipes were left out of the root",
    [SKIPPED_UNREADABLE] = "files or directories that cannot be read were left out of the root",
    [SKIPPED_PSEUDO] = "file systems of the kernel were left out of the root",
};

struct hard_link {
    dev_t device;
    ino_t inode;
    char *path; /* below the copy */
};

struct copy {
    const struct copied_root_request *request;
    struct error *error;
    int root; /* of the copy */
    dev_t state_device;
    ino_t state_inode; /* never copied into itself */
    bool can_clone;    /* until the file system says that it cannot share blocks */
    struct hard_link *links;
    size_t link_count, link_capacity;
    size_t skipped[SKIPPED_KINDS];
    char example[SKIPPED_KINDS][256];
};

static void skip(struct copy *copy, enum skipped kind, const char *path)
{
    if (copy->skipped[kind]++ == 0)
        text_escape(path, copy->example[kind], sizeof(copy->example[kind]));
}

static bool fail(struct copy *copy, const char *what, const char *path)
{
    int saved = errno;
    char shown[512];
    text_escape(path, shown, sizeof(shown));
    return error_set_errno(
        copy->error, saved == ENOSPC || saved == EDQUOT ? ERROR_RESOURCE_EXHAUSTED : ERROR_INTERNAL,
        saved, "cannot %s '/%s' of the root", what, shown);
}

static bool check_link(struct copy *copy)
{
    struct pollfd polled = {.fd = copy->request->link, .events = POLLIN};
    char byte;
    if (poll(&polled, 1, 0) == 0 ||
        recv(copy->request->link, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
        return true;
    return error_set(copy->error, ERROR_CANCELLED, "copying the root was given up");
}

/* ---- hard links: a hash table with open addressing ---- */

static struct hard_link *find_slot(struct copy *copy, const struct stat *status)
{
    size_t mask = copy->link_capacity - 1;
    size_t index = (size_t)(status->st_ino * 0x9E3779B97F4A7C15ULL ^ status->st_dev) & mask;
    while (copy->links[index].path != NULL && (copy->links[index].inode != status->st_ino ||
                                               copy->links[index].device != status->st_dev))
        index = (index + 1) & mask;
    return &copy->links[index];
}

static void grow_links(struct copy *copy)
{
    struct hard_link *old = copy->links;
    size_t old_capacity = copy->link_capacity;
    copy->link_capacity = old_capacity != 0 ? old_capacity * 2 : 1024;
    copy->links = memory_new(copy->link_capacity * sizeof(*old));
    for (size_t i = 0; i < old_capacity; i++)
        if (old[i].path != NULL) {
            struct stat status = {.st_ino = old[i].inode, .st_dev = old[i].device};
            *find_slot(copy, &status) = old[i];
        }
    free(old);
}

/* Links `path` to the copy of the same file, when there is one; remembers it otherwise. */
static bool link_known(struct copy *copy, const struct stat *status, const char *path)
{
    if (status->st_nlink < 2)
        return false;
    if (copy->link_count * 2 >= copy->link_capacity)
        grow_links(copy);
    struct hard_link *slot = find_slot(copy, status);
    if (slot->path != NULL)
        return linkat(copy->root, slot->path, copy->root, path, 0) == 0;
    if (copy->link_count < LINKS_MAX) {
        *slot = (struct hard_link){status->st_dev, status->st_ino, memory_strdup(path)};
        copy->link_count++;
    }
    return false;
}

static void free_links(struct copy *copy)
{
    for (size_t i = 0; i < copy->link_capacity; i++)
        free(copy->links[i].path);
    free(copy->links);
}

/* ---- one entry ---- */

static bool give_away(struct copy *copy, int descriptor, const struct stat *status)
{
    uid_t base = copy->request->host_id_base;
    if (base == 0)
        return true;
    uid_t user = status->st_uid < NAMESPACE_IDS ? status->st_uid : OVERFLOW_ID;
    gid_t group = status->st_gid < NAMESPACE_IDS ? status->st_gid : OVERFLOW_ID;
    return fchown(descriptor, base + user, base + group) == 0;
}

static bool finish_entry(struct copy *copy, int descriptor, const struct stat *status, mode_t mode,
                         const char *path)
{
    struct timespec times[2] = {status->st_atim, status->st_mtim};
    if (!give_away(copy, descriptor, status) || fchmod(descriptor, mode) != 0 ||
        futimens(descriptor, times) != 0)
        return fail(copy, "set the attributes of", path);
    return true;
}

static bool copy_by_reading(int from, int to, off_t offset, size_t length)
{
    static char bytes[256 * 1024];
    while (length > 0) {
        ssize_t got = pread(from, bytes, length < sizeof(bytes) ? length : sizeof(bytes), offset);
        if (got == 0)
            return true; /* it became shorter meanwhile */
        if (got < 0 || pwrite(to, bytes, (size_t)got, offset) != got)
            return false;
        offset += got;
        length -= (size_t)got;
    }
    return true;
}

static bool copy_range(struct copy *copy, int from, int to, off_t offset, off_t end)
{
    while (offset < end) {
        size_t length = (uint64_t)(end - offset) < CHUNK ? (size_t)(end - offset) : CHUNK;
        off_t source = offset, target = offset;
        ssize_t copied = copy_file_range(from, &source, to, &target, length, 0);
        if (copied < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS ||
                           errno == EOPNOTSUPP || errno == EPERM)) {
            if (!copy_by_reading(from, to, offset, length))
                return false;
            copied = (ssize_t)length;
        }
        if (copied < 0)
            return false;
        if (copied == 0)
            return true;
        offset += copied;
        if (!check_link(copy)) {
            errno = ECANCELED;
            return false;
        }
    }
    return true;
}

/* The parts that hold data; the rest stays a hole. */
static bool copy_content(struct copy *copy, int from, int to, off_t size)
{
    if (copy->can_clone && ioctl(to, FICLONE, from) == 0)
        return true;
    copy->can_clone = false;
    off_t offset = 0;
    while (offset < size) {
        off_t data = lseek(from, offset, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break;
        if (data < 0)
            data = offset;
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole < 0 || hole > size)
            hole = size;
        if (!copy_range(copy, from, to, data, hole))
            return false;
        offset = hole;
    }
    return ftruncate(to, size) == 0;
}

static bool copy_file(struct copy *copy, int from_directory, const char *name, const char *path,
                      const struct stat *seen)
{
    if (link_known(copy, seen, path))
        return true;
    CLEANUP_CLOSE int from =
        openat(from_directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (from < 0 || fstat(from, &status) != 0 || !S_ISREG(status.st_mode)) {
        skip(copy, SKIPPED_UNREADABLE, path);
        return true;
    }
    CLEANUP_CLOSE int to = openat(copy->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (to < 0)
        return fail(copy, "make", path);
    if (!copy_content(copy, from, to, status.st_size))
        return fail(copy, "copy", path);
    return finish_entry(copy, to, &status, status.st_mode & 0777, path);
}

static bool copy_link(struct copy *copy, int from_directory, const char *name, const char *path,
                      const struct stat *status)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(from_directory, name, target, sizeof(target) - 1);
    if (length < 0) {
        skip(copy, SKIPPED_UNREADABLE, path);
        return true;
    }
    target[length] = '\0';
    uid_t base = copy->request->host_id_base;
    if (symlinkat(target, copy->root, path) != 0 ||
        (base != 0 &&
         fchownat(copy->root, path, base + (status->st_uid < NAMESPACE_IDS ? status->st_uid : 0),
                  base + (status->st_gid < NAMESPACE_IDS ? status->st_gid : 0),
                  AT_SYMLINK_NOFOLLOW) != 0))
        return fail(copy, "make the link", path);
    return true;
}

static bool is_pseudo(int directory)
{
    static const unsigned long KINDS[] = {
        PROC_SUPER_MAGIC,    SYSFS_MAGIC,    DEVPTS_SUPER_MAGIC, CGROUP_SUPER_MAGIC,
        CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,  TRACEFS_MAGIC,      SECURITYFS_MAGIC,
        BPF_FS_MAGIC,        BINFMTFS_MAGIC, PSTOREFS_MAGIC,
    };
    struct statfs status;
    if (fstatfs(directory, &status) != 0)
        return false;
    for (size_t i = 0; i < sizeof(KINDS) / sizeof(KINDS[0]); i++)
        if ((unsigned long)status.f_type == KINDS[i])
            return true;
    return false;
}

static bool copy_below(struct copy *copy, int from, const char *path, const struct stat *status,
                       unsigned depth);

static bool copy_directory(struct copy *copy, int from_directory, const char *name,
                           const char *path, unsigned depth)
{
    struct stat status;
    int from = openat(from_directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 || fstat(from, &status) != 0) {
        skip(copy, SKIPPED_UNREADABLE, path);
        if (from >= 0)
            close(from);
        return true;
    }
    if ((status.st_dev == copy->state_device && status.st_ino == copy->state_inode) ||
        is_pseudo(from)) {
        skip(copy, SKIPPED_PSEUDO, path);
        close(from);
        return true;
    }
    if (mkdirat(copy->root, path, 0700) != 0) {
        close(from);
        return fail(copy, "make", path);
    }
    return copy_below(copy, from, path, &status, depth + 1);
}

static bool copy_entry(struct copy *copy, int from_directory, const char *name, const char *path,
                       unsigned depth)
{
    struct stat status;
    if (fstatat(from_directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return true; /* gone meanwhile */
    if (S_ISDIR(status.st_mode))
        return copy_directory(copy, from_directory, name, path, depth);
    if (S_ISREG(status.st_mode))
        return copy_file(copy, from_directory, name, path, &status);
    if (S_ISLNK(status.st_mode))
        return copy_link(copy, from_directory, name, path, &status);
    skip(copy, SKIPPED_SPECIAL, path);
    return true;
}

/* Copies what is in `from`, which it closes, to the directory `path` of the copy. Attributes come
 * last: a directory may forbid writing. */
static bool copy_below(struct copy *copy, int from, const char *path, const struct stat *status,
                       unsigned depth)
{
    DIR *stream = fdopendir(from);
    if (stream == NULL) {
        close(from);
        return fail(copy, "list", path);
    }
    bool copied = depth <= DEPTH_MAX;
    if (!copied)
        error_set(copy->error, ERROR_INVALID_ARGUMENT,
                  "the root has directories more than %d levels deep", DEPTH_MAX);
    struct dirent *entry;
    while (copied && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        CLEANUP_FREE char *child =
            memory_printf("%s%s%s", path, depth > 0 ? "/" : "", entry->d_name);
        copied = check_link(copy) && copy_entry(copy, dirfd(stream), entry->d_name, child, depth);
    }
    closedir(stream);
    if (!copied)
        return false;
    CLEANUP_CLOSE int to =
        openat(copy->root, depth > 0 ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return fail(copy, "open", path);
    /* Without the set-group-id bit; with the sticky one, which /tmp needs. */
    return finish_entry(copy, to, status, (status->st_mode & 01777) | 0700, path);
}

/* Roots made for containers come with empty files here, and without the name localhost. */
static void complete_file(struct copy *copy, const char *path, const char *text)
{
    struct stat status;
    if (fstatat(copy->root, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        (!S_ISREG(status.st_mode) || status.st_size > 0))
        return;
    CLEANUP_CLOSE int file =
        openat(copy->root, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (file >= 0 && file_write_all(file, text, strlen(text), NULL) && fchmod(file, 0644) == 0 &&
        copy->request->host_id_base != 0 &&
        fchown(file, copy->request->host_id_base, copy->request->host_id_base) != 0)
        unlinkat(copy->root, path, 0);
}

static void complete(struct copy *copy)
{
    struct stat status;
    if (fstatat(copy->root, "etc", &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(status.st_mode))
        return;
    CLEANUP_FREE char *host_name = memory_printf("%s\n", copy->request->sandbox_name);
    CLEANUP_FREE char *hosts = memory_printf(
        "127.0.0.1\tlocalhost\n::1\tlocalhost\n127.0.1.1\t%s\n", copy->request->sandbox_name);
    complete_file(copy, "etc/hosts", hosts);
    complete_file(copy, "etc/hostname", host_name);
}

static bool copy_all(struct copy *copy, const char *partial)
{
    const struct copied_root_request *request = copy->request;
    struct stat status;
    int from = open(request->from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0)
        return error_set_errno(copy->error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot open the root '%s'", request->from);
    if (fstat(from, &status) != 0 || mkdir(partial, 0700) != 0 ||
        (copy->root = open(partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0) {
        int saved = errno;
        close(from);
        return error_set_errno(copy->error, ERROR_INTERNAL, saved, "cannot make '%s'", partial);
    }
    return copy_below(copy, from, "", &status, 0);
}

static void warn_of_skipped(const struct copy *copy,
                            void (*on_warning)(const char *text, void *user), void *user)
{
    for (int kind = 0; kind < SKIPPED_KINDS; kind++) {
        if (copy->skipped[kind] == 0)
            continue;
        CLEANUP_FREE char *text = memory_printf("%zu %s, among them '/%s'", copy->skipped[kind],
                                                SKIPPED_TEXTS[kind], copy->example[kind]);
        on_warning(text, user);
    }
}

bool copied_root_exists(const char *state)
{
    CLEANUP_FREE char *path = memory_printf("%s/rootfs", state);
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool copied_root_make(const struct copied_root_request *request,
                      void (*on_warning)(const char *text, void *user), void *user,
                      struct error *error)
{
    CLEANUP_FREE char *partial = memory_printf("%s/rootfs.partial", request->state);
    CLEANUP_FREE char *final = memory_printf("%s/rootfs", request->state);
    struct stat status;
    if (stat(request->state, &status) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot look at '%s'", request->state);
    if (!file_remove_tree(partial, error))
        return false;
    struct copy copy = {
        .request = request,
        .error = error,
        .root = -1,
        .state_device = status.st_dev,
        .state_inode = status.st_ino,
        .can_clone = true,
    };
    mode_t mask = umask(022);
    bool made = copy_all(&copy, partial);
    if (made) {
        complete(&copy);
        made = rename(partial, final) == 0 ||
               error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '%s'", final);
    }
    umask(mask);
    if (made)
        warn_of_skipped(&copy, on_warning, user);
    else
        file_remove_tree(partial, NULL);
    free_links(&copy);
    if (copy.root >= 0)
        close(copy.root);
    return made;
}
