#include "archive/sender.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "archive/blocks.h"
#include "archive/sender_file.h"
#include "base/memory.h"

static const unsigned char FEW_ZEROS[16384];
static const size_t MANY_ZEROS = (size_t)256 << 20;

static la_ssize_t write_callback(struct archive *writer, void *data, const void *buffer,
                                 size_t length)
{
    struct sender *sender = data;
    if (stream_output_write(&sender->output, buffer, length))
        return (la_ssize_t)length;
    archive_set_error(writer, EIO, "cannot write");
    return -1;
}

static bool fail(struct sender *sender)
{
    if (!sender->output.failed) /* else the error is set already */
        error_set(sender->error, ERROR_INTERNAL, "cannot write the archive: %s",
                  archive_error_string(sender->writer));
    return false;
}

bool sender_open(struct sender *sender, int output, const struct archive_control *control,
                 struct archive_summary *summary, struct error *error)
{
    memset(sender, 0, sizeof(*sender));
    sender->summary = summary;
    sender->error = error;
    stream_output_open(&sender->output, output, control, summary, error);
    sender->chunk = memory_allocate(SENDER_CHUNK_BYTES + 1);
    /* Pages that are never touched: libarchive wants to be handed the bytes of a hole, but does
     * not read them, and so a hole of terabytes takes a few calls. */
    void *zeros =
        mmap(NULL, MANY_ZEROS, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    sender->zeros = zeros != MAP_FAILED ? zeros : FEW_ZEROS;
    sender->zeros_length = zeros != MAP_FAILED ? MANY_ZEROS : sizeof(FEW_ZEROS);

    sender->entry = archive_entry_new();
    sender->writer = archive_write_new();
    if (sender->entry == NULL || sender->writer == NULL)
        memory_exhausted();
    /* In the C locale, names that are not ASCII cannot be converted to UTF-8: libarchive then
     * writes them as they are and marks that entry's header as binary, which is what is wanted.
     * With its option for binary headers every entry is marked, and GNU tar warns of every mark. */
    if (archive_write_set_format_pax(sender->writer) != ARCHIVE_OK ||
        archive_write_set_bytes_per_block(sender->writer, 0) != ARCHIVE_OK ||
        archive_write_open(sender->writer, sender, NULL, write_callback, NULL) != ARCHIVE_OK)
        return fail(sender);
    return true;
}

bool sender_finish(struct sender *sender)
{
    unsigned char trailer[BLOCKS_TRAILER_BYTES];
    blocks_make_trailer(sender->summary->entries, trailer);
    /* Ends the last entry, so that the trailer stands after its padding. */
    if (sender->summary->entries > 0 && archive_write_finish_entry(sender->writer) != ARCHIVE_OK)
        return fail(sender);
    if (!stream_output_write(&sender->output, trailer, sizeof(trailer)))
        return false;
    if (archive_write_close(sender->writer) != ARCHIVE_OK)
        return fail(sender);
    return stream_output_flush(&sender->output);
}

void sender_close(struct sender *sender)
{
    if (sender->writer != NULL) {
        /* An archive that did not get its end must not get it from the clean-up. */
        sender->output.failed = true;
        archive_write_free(sender->writer);
    }
    archive_entry_free(sender->entry);
    if (sender->zeros != NULL && sender->zeros != FEW_ZEROS)
        munmap((void *)sender->zeros, sender->zeros_length);
    link_table_free(&sender->links);
    stream_output_close(&sender->output);
    free(sender->chunk);
}

void sender_note(struct sender *sender, enum archive_issue_kind kind, const char *reason)
{
    archive_summary_add(sender->summary, kind, sender->name_length > 0 ? sender->name : ".", "%s",
                        reason);
}

void sender_note_errno(struct sender *sender, enum archive_issue_kind kind, int errnum)
{
    sender_note(sender, kind, strerror(errnum));
}

bool sender_push_name(struct sender *sender, const char *component)
{
    size_t length = strlen(component), slash = sender->name_length > 0;
    unsigned depth = 1;
    for (const char *at = strchr(component, '/'); at != NULL; at = strchr(at + 1, '/'))
        depth++;
    if (sender->name_length + slash + length > ARCHIVE_NAME_BYTES_MAX) {
        archive_summary_add(sender->summary, ARCHIVE_ISSUE_REFUSED, component,
                            "its name with the directories above is longer than %d bytes",
                            ARCHIVE_NAME_BYTES_MAX);
        return false;
    }
    if (sender->depth + depth > ARCHIVE_DEPTH_MAX) {
        archive_summary_add(sender->summary, ARCHIVE_ISSUE_REFUSED, component,
                            "more than %d directories deep", ARCHIVE_DEPTH_MAX);
        return false;
    }
    if (slash)
        sender->name[sender->name_length++] = '/';
    memcpy(sender->name + sender->name_length, component, length + 1);
    sender->name_length += length;
    sender->depth += depth;
    return true;
}

void sender_pop_name(struct sender *sender, size_t length, unsigned depth)
{
    sender->name[length] = '\0';
    sender->name_length = length;
    sender->depth = depth;
}

static void begin_entry(struct sender *sender, const struct stat *status)
{
    archive_entry_clear(sender->entry);
    archive_entry_set_pathname(sender->entry, sender->name_length > 0 ? sender->name : "./");
    archive_entry_set_mode(sender->entry, status->st_mode & (S_IFMT | 0777));
    archive_entry_set_mtime(sender->entry, status->st_mtim.tv_sec, status->st_mtim.tv_nsec);
}

static bool write_header(struct sender *sender)
{
    int result = archive_write_header(sender->writer, sender->entry);
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) {
        sender->summary->entries++;
        return true;
    }
    if (result != ARCHIVE_FAILED || sender->output.failed)
        return fail(sender);
    sender_note(sender, ARCHIVE_ISSUE_UNREADABLE, archive_error_string(sender->writer));
    return true;
}

bool sender_put_directory(struct sender *sender, const struct stat *status)
{
    begin_entry(sender, status);
    return write_header(sender);
}

static bool put_link(struct sender *sender, int directory, const char *leaf,
                     const struct stat *status)
{
    ssize_t length = readlinkat(directory, leaf, sender->target, sizeof(sender->target));
    if (length < 0 || (size_t)length == sizeof(sender->target)) {
        sender_note_errno(sender, ARCHIVE_ISSUE_UNREADABLE, length < 0 ? errno : ENAMETOOLONG);
        return true;
    }
    sender->target[length] = '\0';
    begin_entry(sender, status);
    archive_entry_set_symlink(sender->entry, sender->target);
    return write_header(sender);
}

/* Another name of a file that was sent before. */
static bool put_hard_link(struct sender *sender, const struct stat *status, const char *first)
{
    begin_entry(sender, status);
    archive_entry_set_hardlink(sender->entry, first);
    return write_header(sender);
}

bool sender_put_open_file(struct sender *sender, int file, const struct stat *status)
{
    begin_entry(sender, status);
    archive_entry_set_size(sender->entry, status->st_size);
    struct sparse_map map = {0};
    if (status->st_blocks < (status->st_size + 511) / 512)
        sender_file_map(file, status->st_size, &map, sender->entry);
    uint64_t before = sender->summary->entries;
    bool written = write_header(sender);
    bool accepted = sender->summary->entries > before;
    if (written && accepted && !sender_file_data(sender, file, status, &map))
        written = fail(sender);
    free(map.extents);
    if (written && accepted && status->st_nlink > 1 &&
        !link_table_add(&sender->links, status, sender->name))
        sender->summary->link_copies++;
    return written;
}

static bool put_file(struct sender *sender, int directory, const char *leaf)
{
    /* O_NONBLOCK: a fifo may have taken the file's place since it was looked at. */
    CLEANUP_CLOSE int file =
        openat(directory, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) {
        if (errno == ELOOP || errno == ENXIO || errno == ENOENT)
            sender_note(sender, ARCHIVE_ISSUE_CHANGED, "was replaced or removed meanwhile");
        else
            sender_note_errno(sender, ARCHIVE_ISSUE_UNREADABLE, errno);
        return true;
    }
    if (!S_ISREG(status.st_mode)) {
        sender_note(sender, ARCHIVE_ISSUE_CHANGED, "was replaced or removed meanwhile");
        return true;
    }
    const char *first = status.st_nlink > 1 ? link_table_find(&sender->links, &status) : NULL;
    return first != NULL ? put_hard_link(sender, &status, first)
                         : sender_put_open_file(sender, file, &status);
}

static bool put_open_directory(struct sender *sender, int directory, const char *leaf,
                               struct stat *status, int *ret_directory)
{
    int opened =
        openat(directory, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (opened < 0 && (errno == ELOOP || errno == ENOTDIR || errno == ENOENT)) {
        sender_note(sender, ARCHIVE_ISSUE_CHANGED, "was replaced or removed meanwhile");
        return true;
    }
    if (opened < 0)
        sender_note_errno(sender, ARCHIVE_ISSUE_UNREADABLE, errno);
    else
        (void)fstat(opened, status);
    if (!sender_put_directory(sender, status)) {
        if (opened >= 0)
            close(opened);
        return false;
    }
    *ret_directory = opened;
    return true;
}

static const char *special_reason(mode_t mode)
{
    return S_ISFIFO(mode)   ? "is a fifo"
           : S_ISSOCK(mode) ? "is a socket"
           : S_ISCHR(mode)  ? "is a character device"
           : S_ISBLK(mode)  ? "is a block device"
                            : "is of an unknown kind";
}

bool sender_put(struct sender *sender, int directory, const char *leaf, unsigned char type,
                int *ret_directory)
{
    *ret_directory = -1;
    if (type == DT_REG) /* the kernel said so a moment ago; it is checked once more when open */
        return put_file(sender, directory, leaf);
    struct stat status;
    if (fstatat(directory, leaf, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == ENOENT)
            sender_note(sender, ARCHIVE_ISSUE_CHANGED, "was replaced or removed meanwhile");
        else
            sender_note_errno(sender, ARCHIVE_ISSUE_UNREADABLE, errno);
        return true;
    }
    if (S_ISREG(status.st_mode))
        return put_file(sender, directory, leaf);
    if (S_ISDIR(status.st_mode))
        return put_open_directory(sender, directory, leaf, &status, ret_directory);
    if (S_ISLNK(status.st_mode))
        return put_link(sender, directory, leaf, &status);
    sender_note(sender, ARCHIVE_ISSUE_SPECIAL, special_reason(status.st_mode));
    return true;
}
