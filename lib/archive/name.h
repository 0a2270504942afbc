/* Names of entries, checked and brought to one form. */
#ifndef ARCHIVE_NAME_H
#define ARCHIVE_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "archive/transfer.h"

struct archive_name {
    /* Components joined by single slashes, without "."; empty for the top itself. */
    char path[ARCHIVE_NAME_BYTES_MAX + 1];
    size_t length;
    size_t leaf; /* where the last component begins in `path` */
    unsigned depth;
    bool slash; /* a slash or "." stood at the end: only a directory can be meant */
};

/* Checks a name: relative, no "..", within the bounds of transfer.h. Returns NULL when it is good
 * and a reason, for people, when it is not; nothing is stripped to make it good. */
const char *archive_name_parse(const char *name, struct archive_name *ret_name);

#endif
