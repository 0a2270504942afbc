#include "archive/reader.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "archive/blocks.h"
#include "base/memory.h"
#include "base/text.h"

static la_ssize_t read_callback(struct archive *archive, void *data, const void **ret_buffer)
{
    struct reader *reader = data;
    const unsigned char *bytes = NULL;
    ssize_t got = stream_input_next(reader->input, &bytes);
    if (got < 0)
        archive_set_error(archive, EIO, "cannot read");
    *ret_buffer = bytes;
    return got;
}

/* The stream's own error, when there was one, says more than libarchive's. */
static bool damaged(struct reader *reader)
{
    if (reader->error->code != ERROR_OK)
        return false;
    char shown[256];
    const char *text = archive_error_string(reader->archive);
    text_escape(text != NULL ? text : "unknown format", shown, sizeof(shown));
    if (reader->input->ended && !reader->compressed)
        return error_set(reader->error, ERROR_DATA_LOSS, "the archive is cut short (%s)", shown);
    return error_set(reader->error, ERROR_DATA_LOSS, "the archive is damaged: %s", shown);
}

bool reader_open(struct reader *reader, struct stream_input *input, reader_add_filters *add_filters,
                 bool tolerant, struct error *error)
{
    *reader = (struct reader){
        .archive = archive_read_new(),
        .input = input,
        .error = error,
        .compressed = add_filters != NULL,
        .tolerant = tolerant,
    };
    if (reader->archive == NULL)
        memory_exhausted();
    if (archive_read_support_format_tar(reader->archive) != ARCHIVE_OK ||
        (add_filters != NULL && add_filters(reader->archive) != ARCHIVE_OK) ||
        archive_read_open(reader->archive, reader, NULL, read_callback, NULL) != ARCHIVE_OK)
        return damaged(reader);
    return true;
}

static enum reader_type type_of(struct archive_entry *raw)
{
    if (archive_entry_hardlink(raw) != NULL)
        return READER_HARD_LINK;
    switch (archive_entry_filetype(raw)) {
    case AE_IFREG:
        return READER_FILE;
    case AE_IFDIR:
        return READER_DIRECTORY;
    case AE_IFLNK:
        return READER_LINK;
    case AE_IFCHR:
    case AE_IFBLK:
        return READER_DEVICE;
    case AE_IFIFO:
        return READER_FIFO;
    case AE_IFSOCK:
        return READER_SOCKET;
    default:
        return READER_UNKNOWN;
    }
}

/* libarchive hands names out as C strings; whether they were cut at a NUL only the raw headers
 * tell. */
static const char *check_raw_headers(const struct reader *reader)
{
    const struct stream_input *input = reader->input;
    int64_t position = archive_read_header_position(reader->archive);
    uint64_t end = input->start + input->length;
    if (position < 0 || (uint64_t)position > end)
        return "its header is damaged";
    size_t length = (size_t)(end - (uint64_t)position);
    if (length > ARCHIVE_HEADER_BYTES_MAX)
        length = ARCHIVE_HEADER_BYTES_MAX;
    const unsigned char *headers = stream_input_at(input, (uint64_t)position, length);
    return headers == NULL ? "its header is larger than 64 KiB"
                           : blocks_check_names(headers, length);
}

static void fill_entry(struct reader *reader, struct reader_entry *entry)
{
    struct archive_entry *raw = reader->raw;
    const char *name = archive_entry_pathname(raw);
    *entry = (struct reader_entry){
        .type = type_of(raw),
        .raw_name = name != NULL ? name : "",
        .size = archive_entry_size(raw),
        .mode = archive_entry_perm(raw),
        .has_time = archive_entry_mtime_is_set(raw),
        .time = {.tv_sec = archive_entry_mtime(raw), .tv_nsec = archive_entry_mtime_nsec(raw)},
        .user = archive_entry_uid(raw),
        .group = archive_entry_gid(raw),
    };
    if (entry->time.tv_nsec < 0 || entry->time.tv_nsec > 999999999)
        entry->time.tv_nsec = 0;
    entry->target =
        entry->type == READER_HARD_LINK ? archive_entry_hardlink(raw) : archive_entry_symlink(raw);
    entry->refusal = archive_name_parse(entry->raw_name, &entry->name);
    if (!reader->compressed && entry->refusal == NULL)
        entry->refusal = check_raw_headers(reader);
}

/* Whether a warning says only that a name is not ASCII: the name is then left as it is. */
static bool is_name_warning(struct reader *reader)
{
    const char *text = archive_error_string(reader->archive);
    return text != NULL && strstr(text, "can't be converted from") != NULL;
}

enum reader_step reader_next(struct reader *reader, struct reader_entry *ret_entry)
{
    int result = archive_read_next_header(reader->archive, &reader->raw);
    if (result == ARCHIVE_EOF && reader->error->code == ERROR_OK)
        return READER_END;
    if (result != ARCHIVE_OK &&
        (result != ARCHIVE_WARN || !(reader->tolerant || is_name_warning(reader)))) {
        damaged(reader);
        return READER_FAILED;
    }
    reader->entries++;
    fill_entry(reader, ret_entry);
    if (ret_entry->type == READER_FILE && ret_entry->size < 0) {
        error_set(reader->error, ERROR_DATA_LOSS, "the archive is damaged: a size below zero");
        return READER_FAILED;
    }
    return READER_ENTRY;
}

bool reader_data(struct reader *reader, const struct reader_entry *entry, uint64_t at,
                 const void **ret_data, size_t *ret_length, uint64_t *ret_offset)
{
    la_int64_t offset = 0;
    *ret_length = 0;
    int result;
    do
        result = archive_read_data_block(reader->archive, ret_data, ret_length, &offset);
    while (result == ARCHIVE_OK && *ret_length == 0);
    if (result == ARCHIVE_EOF) {
        *ret_length = 0;
        return true;
    }
    if (result != ARCHIVE_OK)
        return damaged(reader);
    if (offset < 0 || (uint64_t)offset < at || offset > entry->size ||
        *ret_length > (uint64_t)(entry->size - offset))
        return error_set(reader->error, ERROR_DATA_LOSS,
                         "the archive is damaged: data outside of a file");
    *ret_offset = (uint64_t)offset;
    return true;
}

/* The two blocks of zeros are the last thing that libarchive took. */
static bool has_end_blocks(struct reader *reader, uint64_t begin, uint64_t end)
{
    const size_t length = 2 * BLOCK_BYTES;
    if (end < begin + length)
        return false;
    const unsigned char *blocks = stream_input_at(reader->input, end - length, length);
    return blocks != NULL && blocks_are_zero(blocks, length);
}

bool reader_check_end(struct reader *reader, bool trailer_optional)
{
    struct stream_input *input = reader->input;
    int64_t position = archive_read_header_position(reader->archive);
    int64_t taken = archive_filter_bytes(reader->archive, 0);
    if (position < 0 || taken < position ||
        !has_end_blocks(reader, (uint64_t)position, (uint64_t)taken))
        return error_set(reader->error, ERROR_DATA_LOSS, "the archive is cut short (no end)");

    const unsigned char *trailer = stream_input_at(input, (uint64_t)position, BLOCKS_TRAILER_BYTES);
    uint64_t entries;
    bool has_trailer = trailer != NULL && taken - position == 2 * BLOCKS_TRAILER_BYTES &&
                       blocks_parse_trailer(trailer, BLOCKS_TRAILER_BYTES, &entries);
    if (!has_trailer && !trailer_optional)
        return error_set(reader->error, ERROR_DATA_LOSS,
                         "the archive is not whole: the count of entries is missing");
    if (has_trailer && entries != reader->entries)
        return error_set(reader->error, ERROR_DATA_LOSS,
                         "the archive is not whole: %" PRIu64 " entries of %" PRIu64 " arrived",
                         reader->entries, entries);
    return stream_input_drain(input, (uint64_t)taken);
}

void reader_close(struct reader *reader)
{
    if (reader->archive != NULL)
        archive_read_free(reader->archive);
    reader->archive = NULL;
}
