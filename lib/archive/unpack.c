#include "archive/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

const char *unpack_refusal(const struct reader_entry *entry)
{
    if (entry->refusal != NULL)
        return entry->refusal;
    switch (entry->type) {
    case READER_DEVICE:
        return "is a device";
    case READER_FIFO:
        return "is a fifo";
    case READER_SOCKET:
        return "is a socket";
    case READER_UNKNOWN:
        return "is of an unknown kind";
    case READER_DIRECTORY:
        return NULL;
    case READER_FILE:
    case READER_LINK:
    case READER_HARD_LINK:
        break;
    }
    return entry->name.length == 0 ? "is no directory, but named like the top"
           : entry->name.slash     ? "is no directory, but its name ends like one"
                                   : NULL;
}

bool unpack_charge(struct unpack *unpack, int64_t size)
{
    uint64_t wanted = size > 0 ? (uint64_t)size : 0;
    if (unpack->bytes_max > 0 && wanted > unpack->bytes_max - unpack->charged)
        return error_set(unpack->error, ERROR_RESOURCE_EXHAUSTED,
                         "the archive holds more than %" PRIu64 " bytes", unpack->bytes_max);
    unpack->charged += wanted;
    return true;
}

/* Writes at a place of the file; 0 or an error number. */
static int write_at(int file, const char *data, size_t length, uint64_t offset)
{
    while (length > 0) {
        ssize_t written = pwrite(file, data, length, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return errno;
        data += written;
        length -= (size_t)written;
        offset += (uint64_t)written;
    }
    return 0;
}

/* Copies the data to the file. False when the archive fails; `*ret_errno` for a file that cannot be
 * written. */
static bool copy_to_file(struct unpack *unpack, const struct reader_entry *entry, int file,
                         int *ret_errno)
{
    *ret_errno = 0;
    for (uint64_t at = 0;;) {
        const void *data;
        size_t length;
        uint64_t offset;
        if (!reader_data(unpack->reader, entry, at, &data, &length, &offset))
            return false;
        if (length == 0) {
            /* What ends in a hole, or is one, gets its size. */
            if (at < (uint64_t)entry->size && ftruncate(file, entry->size) != 0)
                *ret_errno = errno;
            return true;
        }
        *ret_errno = write_at(file, data, length, offset);
        if (*ret_errno != 0)
            return true;
        at = offset + length;
        unpack->summary->bytes += length;
    }
}

static bool note(struct unpack *unpack, const struct reader_entry *entry, enum tree_result result)
{
    if (result == TREE_REFUSED)
        archive_summary_add(unpack->summary, ARCHIVE_ISSUE_REFUSED, entry->raw_name, "%s",
                            unpack->tree->reason);
    return result != TREE_FAILED;
}

static struct tree_attributes attributes_of(const struct reader_entry *entry)
{
    return (struct tree_attributes){
        .mode = entry->mode,
        .has_time = entry->has_time,
        .time = entry->time,
        .user = entry->user,
        .group = entry->group,
    };
}

static bool unpack_file(struct unpack *unpack, const struct reader_entry *entry)
{
    int file;
    enum tree_result result = tree_file(unpack->tree, &entry->name, &file);
    if (result != TREE_DONE)
        return note(unpack, entry, result);
    int errnum;
    bool copied = copy_to_file(unpack, entry, file, &errnum);
    if (!copied || errnum != 0) {
        tree_file_abandon(unpack->tree, &entry->name, file);
        return copied && note(unpack, entry, tree_errno(unpack->tree, errnum));
    }
    struct tree_attributes attributes = attributes_of(entry);
    return note(unpack, entry, tree_file_finish(unpack->tree, file, &attributes));
}

bool unpack_entry(struct unpack *unpack, const struct reader_entry *entry)
{
    struct tree_attributes attributes = attributes_of(entry);
    switch (entry->type) {
    case READER_FILE:
        return unpack_file(unpack, entry);
    case READER_DIRECTORY:
        return note(unpack, entry, tree_directory(unpack->tree, &entry->name, &attributes));
    case READER_LINK:
        return note(unpack, entry,
                    tree_link(unpack->tree, &entry->name, entry->target, &attributes));
    case READER_HARD_LINK:
        return note(unpack, entry, tree_hard_link(unpack->tree, &entry->name, entry->target));
    default:
        return true;
    }
}

static bool write_zeros(struct stream_output *output, uint64_t length)
{
    static const char zeros[65536];
    while (length > 0) {
        size_t piece = length < sizeof(zeros) ? (size_t)length : sizeof(zeros);
        if (!stream_output_write(output, zeros, piece))
            return false;
        length -= piece;
    }
    return true;
}

bool unpack_to_stream(struct unpack *unpack, const struct reader_entry *entry,
                      struct stream_output *output)
{
    for (uint64_t at = 0;;) {
        const void *data;
        size_t length;
        uint64_t offset;
        if (!reader_data(unpack->reader, entry, at, &data, &length, &offset))
            return false;
        if (length == 0)
            return write_zeros(output, (uint64_t)entry->size - at) && stream_output_flush(output);
        if (!write_zeros(output, offset - at) || !stream_output_write(output, data, length))
            return false;
        at = offset + length;
        unpack->summary->bytes += length;
    }
}
