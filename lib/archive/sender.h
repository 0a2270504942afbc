/* One entry after the other into an archive; what send.c decides to send, this writes. */
#ifndef ARCHIVE_SENDER_H
#define ARCHIVE_SENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "archive/link_table.h"
#include "archive/stream.h"
#include "archive/transfer.h"

struct archive;
struct archive_entry;

enum {
    SENDER_CHUNK_BYTES = 256 * 1024,
    SENDER_TARGET_BYTES_MAX = 4096 /* of a link's text */
};

struct sender {
    struct archive *writer;
    struct archive_entry *entry;
    struct stream_output output;
    struct link_table links;
    struct archive_summary *summary;
    struct error *error;
    unsigned char *chunk; /* SENDER_CHUNK_BYTES + 1 */
    const unsigned char *zeros;
    size_t zeros_length;
    char target[SENDER_TARGET_BYTES_MAX];
    /* Name of the current entry in the archive; empty for "./". */
    char name[ARCHIVE_NAME_BYTES_MAX + 1];
    size_t name_length;
    unsigned depth; /* components in `name` */
};

bool sender_open(struct sender *sender, int output, const struct archive_control *control,
                 struct archive_summary *summary, struct error *error);
/* Writes the trailer and the end of the archive. */
bool sender_finish(struct sender *sender);
void sender_close(struct sender *sender);

/* Appends one or more components to the name; false, with an issue noted, over a bound. */
bool sender_push_name(struct sender *sender, const char *component);
/* Cuts the name back to what it was. */
void sender_pop_name(struct sender *sender, size_t length, unsigned depth);

/* Notes an issue with the current name, or with "." at the top. */
void sender_note(struct sender *sender, enum archive_issue_kind kind, const char *reason);
/* As sender_note, with the text of an error number. */
void sender_note_errno(struct sender *sender, enum archive_issue_kind kind, int errnum);

/* Sends what `leaf` in `directory` names, under the current name; never through a link. A directory
 * is sent as an entry, and its descriptor comes back in `*ret_directory` (else -1) so that the
 * caller can go on below it. What cannot be sent is noted. False only when the archive cannot be
 * written any more. */
bool sender_put(struct sender *sender, int directory, const char *leaf, unsigned char type,
                int *ret_directory);

/* Sends an entry for an open directory. */
bool sender_put_directory(struct sender *sender, const struct stat *status);

/* Sends an open regular file, from its beginning, under the current name. */
bool sender_put_open_file(struct sender *sender, int file, const struct stat *status);

#endif
