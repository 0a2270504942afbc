/* The blocks of a tar stream that libarchive does not show: our record of the count at the end, the
 * two blocks of zeros, and the raw names in extended headers. */
#ifndef ARCHIVE_BLOCKS_H
#define ARCHIVE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BLOCK_BYTES = 512, BLOCKS_TRAILER_BYTES = 2 * BLOCK_BYTES };

/* The key of the record in the global header that ends our archives: "OPENSHELL.entries=N". */
#define BLOCKS_COUNT_KEY "OPENSHELL.entries"

/* Writes the trailer: a pax global header of one record, `buffer` of BLOCKS_TRAILER_BYTES. */
void blocks_make_trailer(uint64_t entries, unsigned char *buffer);

/* Whether the bytes begin with a trailer; the count in `*ret_entries`. */
bool blocks_parse_trailer(const unsigned char *data, size_t length, uint64_t *ret_entries);

/* Looks at the headers of one entry, from the first extended header on, for a name or link target
 * with a NUL in it, which a reader of C strings would cut short. Returns a reason for people, or
 * NULL when there is nothing of the kind. */
const char *blocks_check_names(const unsigned char *data, size_t length);

bool blocks_are_zero(const unsigned char *data, size_t length);

#endif
