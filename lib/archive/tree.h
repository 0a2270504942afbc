/* A tree being built from entries in any order, below one directory descriptor.
 *
 * The directories on the way to the current entry are held open; a directory gets its permissions
 * and time when it is left, so that one without write permission can still be filled. Coming back
 * to a directory later restores both again, and memory does not grow with the tree. */
#ifndef ARCHIVE_TREE_H
#define ARCHIVE_TREE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "archive/name.h"
#include "base/error.h"

struct tree_level {
    int descriptor;
    size_t path_length;
    bool set_mode;
    bool set_time; /* known, and something was created here since */
    bool touched;
    mode_t mode;
    struct timespec time;
};

struct tree {
    struct tree_level levels[ARCHIVE_DEPTH_MAX + 1]; /* [0] is the top */
    unsigned depth;
    char path[ARCHIVE_NAME_BYTES_MAX + 1]; /* of levels[depth] */
    /* A root file system is unpacked: links on the way are followed within the top, what stands in
     * the way of an entry is removed, set-id bits stay, owners are set where that is allowed. */
    bool root;
    bool owners_refused; /* setting an owner failed and is not tried again */
    bool top_described;  /* an entry for the top itself was seen */
    mode_t top_mode;
    bool top_has_time;
    struct timespec top_time;
    char reason[160]; /* why the last entry was refused */
    struct error *error;
};

struct tree_attributes {
    mode_t mode; /* permissions; what may not be kept is dropped */
    bool has_time;
    struct timespec time;
    int64_t user, group;
};

enum tree_result {
    TREE_DONE,
    TREE_REFUSED, /* `reason` says why; the next entry may work */
    TREE_FAILED   /* `error` is set: disk full, disk broken, no descriptors left */
};

/* `top` stays the caller's, and open. */
void tree_open(struct tree *tree, int top, bool root, struct error *error);
/* Leaves every directory, which gives them their permissions and times. */
void tree_close(struct tree *tree);

enum tree_result tree_directory(struct tree *tree, const struct archive_name *name,
                                const struct tree_attributes *attributes);
/* A new file, in the place of an earlier regular one. Give it to tree_file_finish when it is
 * written, which closes it; a file that is not finished is removed by tree_file_abandon. */
enum tree_result tree_file(struct tree *tree, const struct archive_name *name, int *ret_file);
enum tree_result tree_file_finish(struct tree *tree, int file,
                                  const struct tree_attributes *attributes);
void tree_file_abandon(struct tree *tree, const struct archive_name *name, int file);
enum tree_result tree_link(struct tree *tree, const struct archive_name *name, const char *target,
                           const struct tree_attributes *attributes);
/* `target` names an earlier file of the tree. */
enum tree_result tree_hard_link(struct tree *tree, const struct archive_name *name,
                                const char *target);
/* Removes what the name stands for, if anything; used for the whiteouts of an image's layers. */
enum tree_result tree_remove(struct tree *tree, const struct archive_name *name);
/* Removes everything in a directory of the tree, but not itself. */
enum tree_result tree_empty(struct tree *tree, const struct archive_name *name);

/* TREE_FAILED with the error for what no entry can survive, TREE_REFUSED with the reason else. */
enum tree_result tree_errno(struct tree *tree, int errnum);

#endif
