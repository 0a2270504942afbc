/* Files with several names that were sent, so that the next name can be sent as a hard link.
 * Bounded by ARCHIVE_LINKS_MAX and ARCHIVE_LINKS_BYTES_MAX: what does not fit is not remembered. */
#ifndef ARCHIVE_LINK_TABLE_H
#define ARCHIVE_LINK_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct link_node;

/* Zero-initialise before use. */
struct link_table {
    struct link_node **buckets;
    struct link_node *finished; /* its last name was found; kept until the next call */
    size_t count;
    size_t bytes;
};

/* The name under which the file was sent, NULL when it is not known or is no longer the same: the
 * number of a removed file may be used again, so its times and size are compared too. Owned by the
 * table, valid until the next call. The file is forgotten with its last name. */
const char *link_table_find(struct link_table *table, const struct stat *status);

/* Remembers a file that was sent. False when a bound was reached. */
bool link_table_add(struct link_table *table, const struct stat *status, const char *name);

void link_table_free(struct link_table *table);

#endif
