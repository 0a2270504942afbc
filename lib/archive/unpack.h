/* One entry of an archive into a tree, or its data to a descriptor. */
#ifndef ARCHIVE_UNPACK_H
#define ARCHIVE_UNPACK_H

#include <stdbool.h>
#include <stdint.h>

#include "archive/reader.h"
#include "archive/summary.h"
#include "archive/tree.h"

struct unpack {
    struct reader *reader;
    struct tree *tree;
    struct archive_summary *summary;
    struct error *error;
    uint64_t bytes_max; /* of all files' sizes; 0: no limit */
    uint64_t charged;
};

/* Why an entry is refused whatever the tree looks like, or NULL. */
const char *unpack_refusal(const struct reader_entry *entry);

/* Counts a file's size; false with RESOURCE_EXHAUSTED over the limit. */
bool unpack_charge(struct unpack *unpack, int64_t size);

/* Creates what the entry describes. What is refused is noted; false only when the transfer cannot
 * go on. */
bool unpack_entry(struct unpack *unpack, const struct reader_entry *entry);

/* Writes a file's data to a stream, holes as zeros. */
bool unpack_to_stream(struct unpack *unpack, const struct reader_entry *entry,
                      struct stream_output *output);

#endif
