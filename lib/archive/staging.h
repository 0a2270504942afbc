/* The private directory in which an archive is unpacked before anything gets its final name. */
#ifndef ARCHIVE_STAGING_H
#define ARCHIVE_STAGING_H

#include <stdbool.h>

#include "base/error.h"

#define STAGING_PREFIX ".openshell-receive-"

enum {
    STAGING_NAME_BYTES = 64,
    STAGING_SWEEP_MAX = 20000 /* names looked at for what a killed transfer left */
};

struct staging {
    int parent;    /* the caller's */
    int directory; /* locked as long as it is open; -1: none */
    char name[STAGING_NAME_BYTES];
};

/* Makes a directory of a random name, 0700, below `parent`, after removing those that a killed
 * transfer of the same user left there. PERMISSION_DENIED, RESOURCE_EXHAUSTED or INTERNAL. */
bool staging_open(struct staging *staging, int parent, struct error *error);

/* Removes it and all that is in it. Nothing happens when it is not open. */
void staging_remove(struct staging *staging);

/* A random name that begins with `prefix`; `buffer` of STAGING_NAME_BYTES. */
bool staging_random_name(const char *prefix, char *buffer, struct error *error);

#endif
