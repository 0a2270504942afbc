#include "archive/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/beneath.h"
#include "archive/remove.h"
#include "base/memory.h"

static enum tree_result refuse(struct tree *tree, const char *reason)
{
    snprintf(tree->reason, sizeof(tree->reason), "%s", reason);
    return TREE_REFUSED;
}

enum tree_result tree_errno(struct tree *tree, int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
        error_set_errno(tree->error, ERROR_RESOURCE_EXHAUSTED, errnum, "cannot write");
        return TREE_FAILED;
    case EIO:
    case EROFS:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
        error_set_errno(tree->error, ERROR_INTERNAL, errnum, "cannot write");
        return TREE_FAILED;
    case ELOOP:
    case ENOTDIR:
        return refuse(tree, "lies below a link or a file of the archive");
    default:
        return refuse(tree, strerror(errnum));
    }
}

static mode_t kept_mode(const struct tree *tree, mode_t mode)
{
    return mode & (tree->root ? 07777 : 0777);
}

void tree_open(struct tree *tree, int top, bool root, struct error *error)
{
    memset(tree, 0, sizeof(*tree));
    tree->levels[0].descriptor = top;
    tree->root = root;
    tree->error = error;
}

static void leave(struct tree *tree)
{
    struct tree_level *level = &tree->levels[tree->depth--];
    if (level->set_mode)
        (void)fchmod(level->descriptor, level->mode);
    if (level->set_time && level->touched) {
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, level->time};
        (void)futimens(level->descriptor, times);
    }
    close(level->descriptor);
    tree->path[tree->levels[tree->depth].path_length] = '\0';
}

void tree_close(struct tree *tree)
{
    while (tree->depth > 0)
        leave(tree);
}

/* Takes the directory `name` (a component) below the last level as a further level. */
static void add_level(struct tree *tree, int descriptor, const char *name, size_t length)
{
    struct tree_level *above = &tree->levels[tree->depth];
    size_t slash = tree->depth > 0 ? 1 : 0;
    if (slash != 0)
        tree->path[above->path_length] = '/';
    memcpy(tree->path + above->path_length + slash, name, length);
    tree->path[above->path_length + slash + length] = '\0';
    tree->levels[++tree->depth] = (struct tree_level){
        .descriptor = descriptor,
        .path_length = above->path_length + slash + length,
    };
}

/* Follows a link in an image's root, with the top as the root of everything. */
static int open_through_links(struct tree *tree, const char *name)
{
    char path[ARCHIVE_NAME_BYTES_MAX + ARCHIVE_COMPONENT_BYTES_MAX + 2];
    snprintf(path, sizeof(path), "%s/%s", tree->depth > 0 ? tree->path : ".", name);
    return beneath_open_in_root(tree->levels[0].descriptor, path, O_RDONLY | O_DIRECTORY, 0);
}

/* Opens a directory that exists below the last level; -1 with errno. */
static int open_existing(struct tree *tree, const char *name, bool *ret_forced, mode_t *ret_mode)
{
    int parent = tree->levels[tree->depth].descriptor;
    int opened = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    *ret_forced = false;
    if (opened < 0 && (errno == ELOOP || errno == ENOTDIR) && tree->root)
        opened = open_through_links(tree, name);
    if (opened < 0 && errno == EACCES) {
        opened = beneath_force_open_directory(parent, name, ret_mode);
        *ret_forced = opened >= 0;
    }
    return opened;
}

/* Enters a directory on the way to an entry, making it when it is missing. */
static enum tree_result enter(struct tree *tree, const char *component, size_t length)
{
    char name[ARCHIVE_COMPONENT_BYTES_MAX + 1];
    memcpy(name, component, length);
    name[length] = '\0';
    struct tree_level *above = &tree->levels[tree->depth];
    bool forced = false, made = false;
    mode_t mode = 0755;
    int opened = open_existing(tree, name, &forced, &mode);
    if (opened < 0 && errno == ENOENT) {
        if (mkdirat(above->descriptor, name, 0700) != 0 && errno != EEXIST)
            return tree_errno(tree, errno);
        above->touched = made = true;
        opened = open_existing(tree, name, &forced, &mode);
    }
    struct stat status;
    if (opened < 0 || fstat(opened, &status) != 0) {
        int saved = errno;
        if (opened >= 0)
            close(opened);
        return tree_errno(tree, saved);
    }
    add_level(tree, opened, name, length);
    struct tree_level *level = &tree->levels[tree->depth];
    level->set_time = !made;
    level->time = status.st_mtim;
    level->set_mode = made || forced;
    level->mode = forced ? mode : 0755;
    if (!made && !forced && (status.st_mode & 0300) != 0300) {
        level->set_mode = fchmod(opened, (status.st_mode & 07777) | 0700) == 0;
        level->mode = status.st_mode & 07777;
    }
    return TREE_DONE;
}

/* Makes the last level the directory that holds `name`'s last component. */
static enum tree_result enter_parent(struct tree *tree, const struct archive_name *name)
{
    while (tree->depth > 0) {
        size_t length = tree->levels[tree->depth].path_length;
        if (length < name->leaf && memcmp(tree->path, name->path, length) == 0 &&
            name->path[length] == '/')
            break;
        leave(tree);
    }
    for (;;) {
        size_t at = tree->levels[tree->depth].path_length + (tree->depth > 0 ? 1 : 0);
        if (at >= name->leaf)
            return TREE_DONE;
        enum tree_result result = enter(tree, name->path + at, strcspn(name->path + at, "/"));
        if (result != TREE_DONE)
            return result;
    }
}

static int parent_of(struct tree *tree)
{
    return tree->levels[tree->depth].descriptor;
}

static const char *leaf_of(const struct archive_name *name)
{
    return name->path + name->leaf;
}

/* Owners of an image are set where the user namespace allows it; a single mapped id cannot. */
static void set_owner(struct tree *tree, int descriptor, const char *leaf,
                      const struct tree_attributes *attributes)
{
    if (!tree->root || tree->owners_refused)
        return;
    if (fchownat(descriptor, leaf, (uid_t)attributes->user, (gid_t)attributes->group,
                 AT_SYMLINK_NOFOLLOW | (*leaf == '\0' ? AT_EMPTY_PATH : 0)) != 0 &&
        (errno == EPERM || errno == EINVAL))
        tree->owners_refused = true;
}

/* Whether something stands at the leaf that a further entry may replace: in a root everything, in a
 * copy a regular file by a regular file. Removes it. */
static enum tree_result clear_way(struct tree *tree, const char *leaf, bool is_file)
{
    if (tree->root)
        return remove_tree_at(parent_of(tree), leaf) ? TREE_DONE : tree_errno(tree, errno);
    struct stat status;
    if (fstatat(parent_of(tree), leaf, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return tree_errno(tree, errno);
    if (!is_file || !S_ISREG(status.st_mode))
        return refuse(tree, "the archive holds another entry of this name");
    return unlinkat(parent_of(tree), leaf, 0) == 0 ? TREE_DONE : tree_errno(tree, errno);
}

static void describe_top(struct tree *tree, const struct tree_attributes *attributes)
{
    tree->top_described = true;
    tree->top_mode = kept_mode(tree, attributes->mode);
    tree->top_has_time = attributes->has_time;
    tree->top_time = attributes->time;
}

/* Opens a directory that is new, or was there; its owner may do everything with it for now. */
static int make_directory(int parent, const char *leaf)
{
    bool made = mkdirat(parent, leaf, 0700) == 0;
    if (!made && errno != EEXIST)
        return -1;
    if (made)
        return openat(parent, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    mode_t mode;
    return beneath_force_open_directory(parent, leaf, &mode);
}

enum tree_result tree_directory(struct tree *tree, const struct archive_name *name,
                                const struct tree_attributes *attributes)
{
    if (name->length == 0) {
        describe_top(tree, attributes);
        return TREE_DONE;
    }
    enum tree_result result = enter_parent(tree, name);
    if (result != TREE_DONE)
        return result;
    const char *leaf = leaf_of(name);
    int parent = parent_of(tree);
    tree->levels[tree->depth].touched = true;
    int opened = make_directory(parent, leaf);
    if (opened < 0 && (errno == ENOTDIR || errno == ELOOP)) {
        result = clear_way(tree, leaf, false);
        if (result != TREE_DONE)
            return result;
        opened = make_directory(parent, leaf);
    }
    if (opened < 0)
        return tree_errno(tree, errno);
    set_owner(tree, opened, "", attributes);
    add_level(tree, opened, leaf, name->length - name->leaf);
    struct tree_level *level = &tree->levels[tree->depth];
    level->set_mode = true;
    level->mode = kept_mode(tree, attributes->mode);
    level->set_time = level->touched = attributes->has_time;
    level->time = attributes->time;
    return TREE_DONE;
}

enum tree_result tree_file(struct tree *tree, const struct archive_name *name, int *ret_file)
{
    enum tree_result result = enter_parent(tree, name);
    const char *leaf = leaf_of(name);
    const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC;
    for (int attempt = 0; result == TREE_DONE && attempt < 3; attempt++) {
        tree->levels[tree->depth].touched = true;
        *ret_file = openat(parent_of(tree), leaf, flags, 0600);
        if (*ret_file >= 0)
            return TREE_DONE;
        result = errno == EEXIST ? clear_way(tree, leaf, true) : tree_errno(tree, errno);
    }
    return result != TREE_DONE ? result : refuse(tree, "was created by somebody else meanwhile");
}

enum tree_result tree_file_finish(struct tree *tree, int file,
                                  const struct tree_attributes *attributes)
{
    set_owner(tree, file, "", attributes);
    int failed = fchmod(file, kept_mode(tree, attributes->mode)) != 0 ? errno : 0;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, attributes->time};
    if (attributes->has_time)
        (void)futimens(file, times); /* a time that the file system cannot hold is no failure */
    if (close(file) != 0 && failed == 0)
        failed = errno;
    return failed == 0 ? TREE_DONE : tree_errno(tree, failed);
}

void tree_file_abandon(struct tree *tree, const struct archive_name *name, int file)
{
    close(file);
    (void)unlinkat(parent_of(tree), leaf_of(name), 0);
}

enum tree_result tree_link(struct tree *tree, const struct archive_name *name, const char *target,
                           const struct tree_attributes *attributes)
{
    if (target == NULL || *target == '\0')
        return refuse(tree, "is a link to nothing");
    enum tree_result result = enter_parent(tree, name);
    const char *leaf = leaf_of(name);
    for (int attempt = 0; result == TREE_DONE && attempt < 3; attempt++) {
        tree->levels[tree->depth].touched = true;
        if (symlinkat(target, parent_of(tree), leaf) == 0) {
            struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, attributes->time};
            if (attributes->has_time)
                (void)utimensat(parent_of(tree), leaf, times, AT_SYMLINK_NOFOLLOW);
            set_owner(tree, parent_of(tree), leaf, attributes);
            return TREE_DONE;
        }
        result = errno == EEXIST ? clear_way(tree, leaf, false) : tree_errno(tree, errno);
    }
    return result != TREE_DONE ? result : refuse(tree, "was created by somebody else meanwhile");
}

/* Makes the link and looks whether it is to the file that was checked: the directories are not
 * locked, and somebody inside the sandbox may exchange what is in them. */
static enum tree_result link_checked(struct tree *tree, int from, const char *from_leaf,
                                     const char *leaf)
{
    struct stat before, after;
    int parent = parent_of(tree);
    if (fstatat(from, from_leaf, &before, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? refuse(tree, "is a hard link to a file that was not received")
                               : tree_errno(tree, errno);
    if (!S_ISREG(before.st_mode) && !S_ISLNK(before.st_mode))
        return refuse(tree, "is a hard link to something that is no file");
    tree->levels[tree->depth].touched = true;
    if (linkat(from, from_leaf, parent, leaf, 0) != 0) {
        if (errno != EEXIST)
            return tree_errno(tree, errno);
        if (fstatat(parent, leaf, &after, AT_SYMLINK_NOFOLLOW) == 0 &&
            after.st_ino == before.st_ino && after.st_dev == before.st_dev)
            return TREE_DONE; /* the same entry twice, or a link to itself */
        enum tree_result result = clear_way(tree, leaf, false);
        if (result != TREE_DONE)
            return result;
        if (linkat(from, from_leaf, parent, leaf, 0) != 0)
            return tree_errno(tree, errno);
    }
    if (fstatat(parent, leaf, &after, AT_SYMLINK_NOFOLLOW) == 0 && after.st_ino == before.st_ino &&
        after.st_dev == before.st_dev)
        return TREE_DONE;
    (void)unlinkat(parent, leaf, 0);
    return refuse(tree, "is a hard link to a file that was replaced meanwhile");
}

enum tree_result tree_hard_link(struct tree *tree, const struct archive_name *name,
                                const char *target)
{
    struct archive_name to;
    const char *reason = archive_name_parse(target, &to);
    if (reason == NULL && to.length == 0)
        reason = "it names a directory";
    if (reason != NULL) {
        snprintf(tree->reason, sizeof(tree->reason), "is a hard link whose target is bad: %s",
                 reason);
        return TREE_REFUSED;
    }
    enum tree_result result = enter_parent(tree, name);
    if (result != TREE_DONE)
        return result;
    const char *to_leaf = leaf_of(&to);
    char directory[ARCHIVE_NAME_BYTES_MAX + 1];
    snprintf(directory, sizeof(directory), "%.*s", (int)to.leaf, to.path);
    int top = tree->levels[0].descriptor;
    CLEANUP_CLOSE int from = tree->root
                                 ? beneath_open_in_root(top, directory, O_PATH | O_DIRECTORY, 0)
                                 : beneath_open(top, directory, O_PATH | O_DIRECTORY, 0);
    if (from < 0)
        return errno == ENOENT ? refuse(tree, "is a hard link to a file that was not received")
                               : tree_errno(tree, errno);
    return link_checked(tree, from, to_leaf, leaf_of(name));
}

enum tree_result tree_remove(struct tree *tree, const struct archive_name *name)
{
    enum tree_result result = enter_parent(tree, name);
    if (result != TREE_DONE)
        return result;
    tree->levels[tree->depth].touched = true;
    return remove_tree_at(parent_of(tree), leaf_of(name)) ? TREE_DONE : tree_errno(tree, errno);
}

enum tree_result tree_empty(struct tree *tree, const struct archive_name *name)
{
    if (name->length == 0)
        return remove_below(tree->levels[0].descriptor) ? TREE_DONE : tree_errno(tree, errno);
    enum tree_result result = enter_parent(tree, name);
    if (result != TREE_DONE)
        return result;
    mode_t mode;
    CLEANUP_CLOSE int opened = beneath_force_open_directory(parent_of(tree), leaf_of(name), &mode);
    if (opened < 0)
        return errno == ENOENT ? TREE_DONE : tree_errno(tree, errno);
    return remove_below(opened) ? TREE_DONE : tree_errno(tree, errno);
}
