/* Entries out of a tar stream, by libarchive, with what it leaves to us: names are raw bytes and
 * checked, damage is an error, and the end of the archive is proved. */
#ifndef ARCHIVE_READER_H
#define ARCHIVE_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "archive/name.h"
#include "archive/stream.h"

struct archive;
struct archive_entry;

enum reader_type {
    READER_FILE,
    READER_DIRECTORY,
    READER_LINK,
    READER_HARD_LINK,
    READER_DEVICE,
    READER_FIFO,
    READER_SOCKET,
    READER_UNKNOWN,
};

struct reader_entry {
    enum reader_type type;
    const char *raw_name; /* never NULL; until the next entry */
    const char *target;   /* of a link or hard link */
    struct archive_name name;
    const char *refusal; /* why the name cannot be used, else NULL */
    int64_t size;        /* of a file, with its holes */
    mode_t mode;         /* permissions with the special bits */
    bool has_time;
    struct timespec time;
    int64_t user, group;
};

struct reader {
    struct archive *archive;
    struct archive_entry *raw; /* belongs to `archive` */
    struct stream_input *input;
    struct error *error;
    uint64_t entries;
    bool compressed; /* names and the end are not checked raw */
    bool tolerant;   /* what libarchive only warns of is no damage */
};

/* Lets libarchive recognise compression; a callback, so that a program that needs none links none.
 */
typedef int reader_add_filters(struct archive *archive);

/* Reads from `input`, which stays the caller's and open. `add_filters` may be NULL. */
bool reader_open(struct reader *reader, struct stream_input *input, reader_add_filters *add_filters,
                 bool tolerant, struct error *error);

enum reader_step { READER_ENTRY, READER_END, READER_FAILED };
/* The next entry; data of the one before that was not read is skipped. */
enum reader_step reader_next(struct reader *reader, struct reader_entry *ret_entry);

/* The next piece of the current entry's data and its place in the file; `*ret_length` 0 at the end.
 * Pieces lie within the size and come in rising order. */
bool reader_data(struct reader *reader, const struct reader_entry *entry, uint64_t at,
                 const void **ret_data, size_t *ret_length, uint64_t *ret_offset);

/* After READER_END: the archive has its two blocks of zeros, nothing but padding after them, and,
 * unless `trailer_optional`, the right count of entries before. Reads the stream to its end. */
bool reader_check_end(struct reader *reader, bool trailer_optional);

void reader_close(struct reader *reader);

#endif
