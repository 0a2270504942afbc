#include "archive/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/locale.h"
#include "archive/merge.h"
#include "archive/reader.h"
#include "archive/staging.h"
#include "archive/tree.h"
#include "archive/unpack.h"
#include "base/memory.h"

struct receiver {
    const struct archive_receive_options *options;
    struct stream_input input;
    struct reader reader;
    struct unpack unpack;
    struct staging staging;
    struct tree tree;
    struct archive_place place;
    bool placed;  /* the place is known */
    bool single;  /* one entry under a name of its own, or to a descriptor */
    bool arrived; /* that entry was seen */
    struct archive_summary *summary;
    struct error *error;
};

static enum archive_kind kind_of(const struct reader_entry *entry)
{
    if (entry->name.length == 0)
        return ARCHIVE_KIND_CONTENTS;
    if (entry->type == READER_LINK && entry->name.depth == 1)
        return ARCHIVE_KIND_LINK;
    /* A file below directories that have no entry of their own comes from a directory. */
    return entry->type == READER_FILE && entry->name.depth == 1 ? ARCHIVE_KIND_FILE
                                                                : ARCHIVE_KIND_DIRECTORY;
}

static bool choose_place(struct receiver *receiver, const struct reader_entry *entry)
{
    const struct archive_receive_options *options = receiver->options;
    char first[ARCHIVE_COMPONENT_BYTES_MAX + 1];
    size_t length = strcspn(entry->name.path, "/");
    memcpy(first, entry->name.path, length);
    first[length] = '\0';
    if (options->choose_place != NULL &&
        !options->choose_place(options->choose_place_data, kind_of(entry), first, &receiver->place,
                               receiver->error))
        return false;
    receiver->placed = true;
    receiver->single = receiver->place.output >= 0 || receiver->place.final_name[0] != '\0';
    if (receiver->place.output >= 0)
        return true;
    if (!staging_open(&receiver->staging, receiver->place.directory, receiver->error))
        return false;
    tree_open(&receiver->tree, receiver->staging.directory, false, receiver->error);
    return true;
}

/* In the mode for one entry: whether this is it. Renames it. */
static bool accept_single(struct receiver *receiver, struct reader_entry *entry)
{
    bool fits =
        entry->type == READER_FILE || (entry->type == READER_LINK && receiver->place.output < 0);
    bool first = !receiver->arrived;
    receiver->arrived = true; /* whatever it is: a later one does not take its place */
    if (!first || !fits) {
        archive_summary_add(receiver->summary, ARCHIVE_ISSUE_REFUSED, entry->raw_name,
                            first ? "is no file" : "only one file was expected");
        return false;
    }
    if (receiver->place.output < 0) {
        const char *reason = archive_name_parse(receiver->place.final_name, &entry->name);
        if (reason == NULL && entry->name.depth != 1)
            reason = "the name of the destination is no file name";
        if (reason != NULL)
            archive_summary_add(receiver->summary, ARCHIVE_ISSUE_REFUSED, entry->raw_name, "%s",
                                reason);
        return reason == NULL;
    }
    return true;
}

static bool count_entry(struct receiver *receiver, const struct reader_entry *entry)
{
    const struct archive_receive_options *options = receiver->options;
    uint64_t entries_max = options->entries_max > 0 ? options->entries_max : ARCHIVE_ENTRIES_MAX;
    receiver->summary->entries = receiver->reader.entries;
    if (receiver->reader.entries > entries_max)
        return error_set(receiver->error, ERROR_RESOURCE_EXHAUSTED,
                         "the archive holds more than %" PRIu64 " entries", entries_max);
    return entry->type != READER_FILE || unpack_charge(&receiver->unpack, entry->size);
}

static bool send_on(struct receiver *receiver, const struct reader_entry *entry)
{
    struct stream_output output;
    stream_output_open(&output, receiver->place.output, &receiver->options->control,
                       receiver->summary, receiver->error);
    bool sent = unpack_to_stream(&receiver->unpack, entry, &output);
    stream_output_close(&output);
    return sent;
}

static bool receive_entry(struct receiver *receiver, struct reader_entry *entry)
{
    if (!count_entry(receiver, entry))
        return false;
    const char *reason = unpack_refusal(entry);
    if (reason != NULL) {
        archive_summary_add(receiver->summary, ARCHIVE_ISSUE_REFUSED, entry->raw_name, "%s",
                            reason);
        return true;
    }
    if (!receiver->placed && !choose_place(receiver, entry))
        return false;
    if (receiver->single && !accept_single(receiver, entry))
        return true;
    if (receiver->place.output >= 0)
        return send_on(receiver, entry);
    return unpack_entry(&receiver->unpack, entry);
}

static bool receive_entries(struct receiver *receiver)
{
    for (;;) {
        struct reader_entry entry;
        enum reader_step step = reader_next(&receiver->reader, &entry);
        if (step == READER_FAILED)
            return false;
        if (step == READER_END)
            return reader_check_end(&receiver->reader, receiver->options->trailer_optional);
        if (!receive_entry(receiver, &entry))
            return false;
    }
}

/* The whole archive is there: everything gets its final name. */
static void put_in_place(struct receiver *receiver)
{
    struct tree *tree = &receiver->tree;
    tree_close(tree);
    merge_into(receiver->staging.directory, receiver->place.directory, receiver->summary);
    if (!receiver->place.created || !tree->top_described)
        return;
    CLEANUP_CLOSE int top =
        openat(receiver->place.directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return;
    staging_remove(&receiver->staging); /* it stands in there, and would change the time */
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, tree->top_time};
    (void)fchmod(top, tree->top_mode);
    if (tree->top_has_time)
        (void)futimens(top, times);
}

static bool run(struct receiver *receiver, int input)
{
    stream_input_open(&receiver->input, input, &receiver->options->control, receiver->summary,
                      receiver->error);
    receiver->unpack = (struct unpack){
        .reader = &receiver->reader,
        .tree = &receiver->tree,
        .summary = receiver->summary,
        .error = receiver->error,
        .bytes_max = receiver->options->bytes_max,
    };
    if (!reader_open(&receiver->reader, &receiver->input, NULL, receiver->options->trailer_optional,
                     receiver->error) ||
        !receive_entries(receiver))
        return false;
    if (receiver->placed && receiver->place.output < 0)
        put_in_place(receiver);
    return true;
}

bool archive_receive(int input, int destination_directory,
                     const struct archive_receive_options *options,
                     struct archive_summary *ret_summary, struct error *error)
{
    struct receiver *receiver = memory_new_of(struct receiver);
    struct error own = {0};
    *ret_summary = (struct archive_summary){0};
    receiver->options = options;
    receiver->summary = ret_summary;
    receiver->error = &own;
    receiver->place.directory = destination_directory;
    receiver->place.output = -1;
    receiver->staging.directory = -1;

    locale_t before = archive_locale_enter();
    bool received = run(receiver, input);
    reader_close(&receiver->reader);
    stream_input_close(&receiver->input);
    if (receiver->placed && receiver->place.output < 0)
        tree_close(&receiver->tree);
    staging_remove(&receiver->staging);
    if (receiver->place.close_directory && receiver->place.directory >= 0)
        close(receiver->place.directory);
    archive_locale_leave(before);
    if (!received)
        error_copy(error, &own);
    error_clear(&own);
    free(receiver);
    return received;
}
