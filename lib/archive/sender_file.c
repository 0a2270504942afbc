#include "archive/sender_file.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "archive/sender.h"
#include "base/memory.h"

static bool next_extent(int file, off_t size, off_t from, struct sparse_extent *ret_extent)
{
    off_t data = lseek(file, from, SEEK_DATA);
    if (data < 0 || data >= size) /* ENXIO: only a hole is left */
        return false;
    off_t hole = lseek(file, data, SEEK_HOLE);
    if (hole < 0 || hole > size)
        hole = size;
    *ret_extent = (struct sparse_extent){.offset = data, .length = hole - data};
    return hole > data;
}

void sender_file_map(int file, off_t size, struct sparse_map *map, struct archive_entry *entry)
{
    off_t first = lseek(file, 0, SEEK_DATA);
    if (size == 0 || (first < 0 && errno != ENXIO)) /* not known on this file system */
        return;
    map->extents = memory_allocate(ARCHIVE_EXTENTS_MAX * sizeof(*map->extents));
    off_t from = 0;
    while (map->count < ARCHIVE_EXTENTS_MAX) {
        struct sparse_extent *extent = &map->extents[map->count];
        if (!next_extent(file, size, from, extent))
            break;
        from = extent->offset + extent->length;
        map->count++;
    }
    if (map->count == ARCHIVE_EXTENTS_MAX) {
        struct sparse_extent *last = &map->extents[map->count - 1];
        last->length = size - last->offset;
    }
    for (size_t i = 0; i < map->count; i++)
        archive_entry_sparse_add_entry(entry, map->extents[i].offset, map->extents[i].length);
    if (map->count == 0) /* nothing but a hole */
        archive_entry_sparse_add_entry(entry, 0, 0);
}

static bool write_data(struct sender *sender, const void *data, size_t length)
{
    return archive_write_data(sender->writer, data, length) == (la_ssize_t)length;
}

/* Hands over `length` zeros: a hole, or what a file that shrank no longer has. */
static bool write_zeros(struct sender *sender, off_t length)
{
    while (length > 0) {
        size_t piece = length < (off_t)sender->zeros_length ? (size_t)length : sender->zeros_length;
        if (!write_data(sender, sender->zeros, piece))
            return false;
        length -= (off_t)piece;
    }
    return true;
}

/* Why the data is not what the header promised, the first reason only. */
struct trouble {
    const char *reason;
    int errnum;
};

static bool copy_range(struct sender *sender, int file, off_t offset, off_t length, bool to_end,
                       struct trouble *trouble)
{
    while (length > 0) {
        /* At the end of the file one byte more is asked for, to see that there is none. */
        size_t want =
            length > SENDER_CHUNK_BYTES ? SENDER_CHUNK_BYTES : (size_t)length + (to_end ? 1 : 0);
        ssize_t got = pread(file, sender->chunk, want, offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            *trouble = (struct trouble){.reason = "became shorter while it was read",
                                        .errnum = got < 0 ? errno : 0};
            return write_zeros(sender, length);
        }
        if (got > length) {
            *trouble = (struct trouble){.reason = "became longer while it was read"};
            got = (ssize_t)length;
        }
        if (!write_data(sender, sender->chunk, (size_t)got))
            return false;
        sender->summary->bytes += (uint64_t)got;
        offset += got;
        length -= got;
    }
    return true;
}

static bool copy_extents(struct sender *sender, int file, off_t size, const struct sparse_map *map,
                         struct trouble *trouble)
{
    off_t at = 0;
    for (size_t i = 0; i < map->count; i++) {
        const struct sparse_extent *extent = &map->extents[i];
        off_t end = extent->offset + extent->length;
        if (!write_zeros(sender, extent->offset - at) ||
            !copy_range(sender, file, extent->offset, extent->length, end == size, trouble))
            return false;
        at = end;
    }
    return write_zeros(sender, size - at);
}

/* Whether the file was written to between two looks at it. */
static bool was_written(int file, const struct stat *before)
{
    struct stat after;
    return fstat(file, &after) == 0 && (after.st_mtim.tv_sec != before->st_mtim.tv_sec ||
                                        after.st_mtim.tv_nsec != before->st_mtim.tv_nsec);
}

bool sender_file_data(struct sender *sender, int file, const struct stat *status,
                      const struct sparse_map *map)
{
    struct trouble trouble = {0};
    bool written = map->extents != NULL
                       ? copy_extents(sender, file, status->st_size, map, &trouble)
                       : copy_range(sender, file, 0, status->st_size, true, &trouble);
    if (!written)
        return false;
    if (trouble.errnum != 0)
        sender_note_errno(sender, ARCHIVE_ISSUE_CHANGED, trouble.errnum);
    else if (trouble.reason != NULL)
        sender_note(sender, ARCHIVE_ISSUE_CHANGED, trouble.reason);
    else if (status->st_size > SENDER_CHUNK_BYTES && was_written(file, status))
        sender_note(sender, ARCHIVE_ISSUE_CHANGED, "was written to while it was read");
    return true;
}
