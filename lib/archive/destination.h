/* Which name a copy gets: the rules of `sandbox upload` and `sandbox download` (command-line
 * reference 3.5 and 3.6), the same for relative and absolute paths, with git filter or without.
 *
 *   upload, source is     DEST ends in "/" or is a directory   DEST is a file or link   DEST is
 * free file or link          DEST/NAME                            DEST, replaced           DEST,
 * but below the root: DEST/NAME directory             DEST/NAME/...                        refused
 * DEST/NAME/... contents ("dir/.")    DEST/...                             refused DEST/...
 *
 *   download, source is
 *   file                  DEST/NAME                            DEST, replaced           DEST
 *   link                  refused: a copy of a link made outside of the sandbox means something
 * else directory             DEST/...                             refused                  DEST/...
 *
 * Missing directories on the way to DEST are made. Whether a file meets a directory at its final
 * name, or the other way round, is found when it is moved into place, and refused there. */
#ifndef ARCHIVE_DESTINATION_H
#define ARCHIVE_DESTINATION_H

#include <stdbool.h>
#include <stddef.h>

#include "archive/transfer.h"
#include "base/error.h"

enum archive_direction { ARCHIVE_UPLOAD, ARCHIVE_DOWNLOAD };

enum archive_found {
    ARCHIVE_FOUND_NOTHING,
    ARCHIVE_FOUND_DIRECTORY,
    ARCHIVE_FOUND_OTHER, /* a file, or a link that leads to no directory */
};

struct archive_destination {
    char directory[ARCHIVE_NAME_BYTES_MAX + 1];       /* to be opened, or made */
    char final_name[ARCHIVE_COMPONENT_BYTES_MAX + 1]; /* empty: entries keep their names */
};

/* The table above, and nothing else: no file is looked at. `name` is the last component of the
 * source, empty for ARCHIVE_KIND_CONTENTS. False with FAILED_PRECONDITION where the table says
 * refused, INVALID_ARGUMENT for a DEST that is empty or too long. */
bool archive_destination_decide(enum archive_direction direction, enum archive_kind kind,
                                const char *name, const char *dest, enum archive_found found,
                                struct archive_destination *ret_destination, struct error *error);

/* The name of a source in the archive, which may be a path that the user wrote: its last component,
 * empty for ".", "..", "/" and whatever ends in one of them, whose contents are spread. `buffer`
 * of ARCHIVE_COMPONENT_BYTES_MAX + 1; false with INVALID_ARGUMENT when empty or too long. */
bool archive_source_name(const char *path, char *buffer, struct error *error);

/* What the user named outside of the sandbox, ready to be sent. Links on the way to it are
 * followed, since the user wrote them; the last component is not, unless a slash follows. */
struct archive_local_source {
    int base; /* owned: close it */
    char path[ARCHIVE_COMPONENT_BYTES_MAX + 1];
    char name[ARCHIVE_COMPONENT_BYTES_MAX + 1];
};
/* NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT, FAILED_PRECONDITION ("file/"), INTERNAL. */
bool archive_local_source_open(const char *path, struct archive_local_source *ret_source,
                               struct error *error);

/* The source of a download, inside of the sandbox: `path` is relative to `working_directory`
 * (absolute) or lies inside it; anything else is refused (PERMISSION_DENIED), and so is a link on
 * the way. A file is sent under its name, a directory as its contents. `path` as above, up to
 * ARCHIVE_NAME_BYTES_MAX. */
struct archive_inner_source {
    int base; /* owned: close it */
    char path[ARCHIVE_NAME_BYTES_MAX + 1];
    char name[ARCHIVE_COMPONENT_BYTES_MAX + 1];
};
bool archive_inner_source_open(const char *working_directory, const char *path,
                               struct archive_inner_source *ret_source, struct error *error);

/* Finds and opens the destination when the first entry is known: `archive_chooser_place` is the
 * choose_place of archive_receive_options, the chooser its data. Zero-initialise, then fill in. */
struct archive_chooser {
    enum archive_direction direction;
    const char *dest;
    /* NULL outside of the sandbox: DEST is the user's word, links in it are followed. Inside of
     * it: the absolute path that a relative DEST is relative to, and no link is followed. */
    const char *working_directory;
    int output; /* the file's data goes here and DEST is not used; -1: no */

    /* Set by archive_chooser_place. */
    struct archive_destination chosen;
    size_t made; /* directories made on the way, for archive_chooser_undo */
};
bool archive_chooser_place(void *chooser, enum archive_kind kind, const char *name,
                           struct archive_place *ret_place, struct error *error);

/* After a transfer that failed: removes the directories made on the way, when they are empty. */
void archive_chooser_undo(const struct archive_chooser *chooser);

#endif
