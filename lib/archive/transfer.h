/* Trees of files sent as, and received from, a stream in tar format: both sides of a file copy
 * (decisions W3 and B18, command-line reference 3.5 and 3.6).
 *
 * One side of a copy is a sandbox, and everything that comes from it is hostile: the bytes of the
 * archive, and the tree around the helper that sends or receives inside it. No name is ever
 * resolved through a link, nothing that an archive holds is written outside the destination, and
 * nothing gets a final name before the whole archive has arrived.
 *
 * Everything here is synchronous and works on descriptors. Callers ignore SIGPIPE. The bounds of
 * both directions are the constants below. */
#ifndef ARCHIVE_TRANSFER_H
#define ARCHIVE_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "archive/summary.h"
#include "base/error.h"

enum {
    ARCHIVE_NAME_BYTES_MAX = 4095,     /* a whole name within an archive */
    ARCHIVE_COMPONENT_BYTES_MAX = 255, /* between two slashes */
    ARCHIVE_DEPTH_MAX = 200,           /* components of a name; one or two descriptors each */
    ARCHIVE_HEADER_BYTES_MAX = 65536,  /* what stands before one entry's data */
    ARCHIVE_ENTRIES_MAX = 20000000,    /* of one archive, unless the caller says otherwise */
    ARCHIVE_EXTENTS_MAX = 4096,        /* data ranges sent of a sparse file; the rest is plain */
    ARCHIVE_LINKS_MAX = 65536,         /* hard-linked files remembered while sending, and ... */
    ARCHIVE_LINKS_BYTES_MAX = 16 << 20 /* ... their names; further ones are sent as copies */
};

/* Called with totals so far, at most ten times a second. */
typedef void archive_progress(void *data, uint64_t bytes, uint64_t entries);

/* What both directions need. A zeroed structure is right but for `cancel`. */
struct archive_control {
    int cancel; /* readable when the transfer is to end with CANCELLED; -1: never. Writes stay
                   cancellable when the output is a socket or non-blocking */
    archive_progress *progress;
    void *progress_data;
};

enum archive_source {
    ARCHIVE_SOURCE_PATH,       /* one path; a directory with all that is below it */
    ARCHIVE_SOURCE_LIST,       /* the paths that a descriptor yields */
    ARCHIVE_SOURCE_DESCRIPTOR, /* one file, what the descriptor yields to its end */
};

struct archive_send_options {
    enum archive_source from;
    /* Directory descriptor below which paths are looked up. No step leads through a link or out of
     * it. */
    int base;
    /* ARCHIVE_SOURCE_PATH: relative to `base`, "." for itself. A link is sent as a link. */
    const char *path;
    /* ARCHIVE_SOURCE_LIST: yields NUL-terminated paths relative to `base`, as `git ls-files -z`
     * prints them. The directories above each path are sent too; a listed directory is sent
     * without what is below it. ARCHIVE_SOURCE_DESCRIPTOR: the data. The size stands before the
     * data in an archive, so what is no regular file goes through an unnamed file in $TMPDIR, or
     * /var/tmp, first. */
    int descriptor;
    /* The name that the path or the data gets in the archive, or what stands before each listed
     * path. Empty (or NULL): what is in the source directory stands at the top of the archive,
     * after an entry "./" for the directory itself. Without a slash at either end. */
    const char *name;
    struct archive_control control;
};

/* Writes an archive to `output` and leaves the descriptor open. The last thing before the end of
 * the archive is a record with the count of entries, which other readers of tar ignore.
 *
 * Sent: directories, regular files (sparse ones with their holes), links, hard links, with
 * permissions and times in nanoseconds, any bytes in names. Sockets, fifos and devices are never
 * opened; they, and what cannot be read, are named in the summary and the rest goes on. A file
 * that shrinks while it is read is padded with zeros, one that grows is cut, and named.
 *
 * True when the archive was written to its end: `ret_summary->incomplete` tells whether something
 * was left out. False: NOT_FOUND when `path` does not exist, FAILED_PRECONDITION when it is a
 * special file or cannot be reached without following a link, PERMISSION_DENIED when it cannot be
 * read at all, INVALID_ARGUMENT for a path or list that is none, CANCELLED, UNAVAILABLE when the
 * other side closed, INTERNAL. In these cases the archive has no end and no receiver accepts it.
 * The summary is the caller's in both cases: free it with archive_summary_clear. */
bool archive_send(int output, const struct archive_send_options *options,
                  struct archive_summary *ret_summary, struct error *error);

/* What the first entry of an archive says about the thing that was sent. */
enum archive_kind {
    ARCHIVE_KIND_FILE,
    ARCHIVE_KIND_LINK,
    ARCHIVE_KIND_DIRECTORY, /* wrapped in its own name */
    ARCHIVE_KIND_CONTENTS,  /* a directory's contents: the first entry is "./" */
};

/* Where received entries go. */
struct archive_place {
    /* An open directory; the receiver closes it when `close_directory` is set. */
    int directory;
    bool close_directory;
    /* The directory was made for this archive: an entry for it ("./") sets permissions and times.
     * An existing directory keeps what it has. */
    bool created;
    /* When not empty, exactly one entry that is no directory is expected, and this is the name it
     * gets: one component. Any further entry is refused. */
    char final_name[ARCHIVE_COMPONENT_BYTES_MAX + 1];
    /* When not negative, the data of the one regular file is written here and nothing is created.
     * Nothing can be held back then: the result tells whether what was written is whole. */
    int output;
};

/* Decides, when the first entry is known, where everything goes: `name` is its first component,
 * empty for ARCHIVE_KIND_CONTENTS. False, with the error set, ends the transfer. */
typedef bool archive_choose_place(void *data, enum archive_kind kind, const char *name,
                                  struct archive_place *ret_place, struct error *error);

struct archive_receive_options {
    /* Accept an archive without our record of the count, from a peer that is not ours. It must
     * still have its two blocks of zeros at the end. */
    bool trailer_optional;
    /* Asked once, in place of `destination_directory`; NULL: there, as they are named. */
    archive_choose_place *choose_place;
    void *choose_place_data;
    uint64_t entries_max; /* 0: ARCHIVE_ENTRIES_MAX. More is RESOURCE_EXHAUSTED */
    uint64_t bytes_max;   /* of all files' sizes, holes included; 0: no limit */
    struct archive_control control;
};

/* Reads an archive from `input`, to the end of the stream, and puts its entries into
 * `destination_directory`.
 *
 * Everything is unpacked into a private directory below the destination first. When the end of the
 * archive, and the count of entries in it, were right, the entries are moved into place: existing
 * directories are merged and keep their permissions, files and links are replaced at once, and a
 * file never takes the place of a directory nor a directory that of a file or link. A transfer
 * that fails or is cancelled before leaves nothing but what was there.
 *
 * Refused and named in the summary, while the rest goes on: absolute names, "..", names and depths
 * over the bounds, names with a NUL, entries below a link or a file, hard links to anything but an
 * earlier file of the archive, devices, fifos, sockets, a second entry of a name unless both are
 * regular files (the last one wins) or directories. Ownership is never taken, set-id and sticky
 * bits are dropped.
 *
 * True when the archive was whole: `ret_summary->incomplete` tells whether something was refused.
 * False, and nothing was placed: DATA_LOSS for an archive that is cut short, damaged or has the
 * wrong count; RESOURCE_EXHAUSTED over a limit or on a full disk; CANCELLED; INTERNAL; or what
 * choose_place gave. The summary is the caller's in both cases. */
bool archive_receive(int input, int destination_directory,
                     const struct archive_receive_options *options,
                     struct archive_summary *ret_summary, struct error *error);

#endif
