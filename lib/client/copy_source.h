/* What an upload sends: a path of this machine, through the filter of git, or standard input. */
#ifndef CLIENT_COPY_SOURCE_H
#define CLIENT_COPY_SOURCE_H

#include "client/copy.h"

struct copy_source {
    struct archive_local_source local; /* not for standard input */
    int descriptor;                    /* the list, or standard input; -1 for a path */
    enum archive_source from;
    char name[ARCHIVE_COMPONENT_BYTES_MAX + 1];
    uint64_t total_bytes; /* 0: not known */
};

/* Opens `path`, "-" for standard input, and asks git which files of a directory are sent unless
 * `everything`. A file that is named is sent whether git ignores it or not. */
bool copy_source_open(struct copy_source *source, const char *path, const char *dest,
                      bool everything, struct error *error);

/* Starts to send it, as the child of the copy. */
bool copy_source_start(struct copy_source *source, struct copy *copy, struct error *error);

#endif
