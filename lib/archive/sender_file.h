/* The data of one regular file into an archive: with its holes, and at exactly the size that the
 * header promised. */
#ifndef ARCHIVE_SENDER_FILE_H
#define ARCHIVE_SENDER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct archive_entry;
struct sender;

struct sparse_extent {
    off_t offset;
    off_t length;
};

struct sparse_map {
    struct sparse_extent *extents; /* malloced; NULL: the file is plain */
    size_t count;
};

/* Finds where the file has data and tells the entry; at most ARCHIVE_EXTENTS_MAX ranges, the last
 * one going to the end of the file. The map stays empty for a file without holes. */
void sender_file_map(int file, off_t size, struct sparse_map *map, struct archive_entry *entry);

/* Writes the data that the header announced. What changed meanwhile is noted. False when the
 * archive cannot be written any more. */
bool sender_file_data(struct sender *sender, int file, const struct stat *status,
                      const struct sparse_map *map);

#endif
