#include "gateway/journal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/table.h"
#include "base/uuid.h"

enum {
    FIRST_CAPACITY = 16,
    NANOSECONDS = 1000 * 1000 * 1000,
    ENTRY_OVERHEAD = 32, /* bytes that the allocator and the ring add to an entry */
};

/* Entries by their number since the beginning; the oldest go first. */
struct ring {
    struct journal_entry **entries;
    size_t capacity;
    uint64_t first; /* the number of the oldest that is kept */
    size_t count;
    size_t bytes;
    uint64_t dropped_sequence; /* of the newest that was dropped; 0: none */
    int64_t dropped_time;      /* the latest of dropped lines of the sandbox */
};

struct journal {
    struct journals *journals;
    char *id;
    uint64_t space; /* random: tells its cursors from those of other journals */
    uint64_t last_sequence;
    struct ring lines;
    struct ring events;
};

struct journals {
    struct table *by_id;
    size_t bytes;
};

/* ---- rings ---- */

static struct journal_entry *ring_at(const struct ring *ring, uint64_t number)
{
    return ring->entries[number % ring->capacity];
}

static void ring_drop_oldest(struct journals *journals, struct ring *ring)
{
    struct journal_entry *oldest = ring_at(ring, ring->first);
    ring->dropped_sequence = oldest->sequence;
    if (oldest->line != NULL && strcmp(oldest->line->source, JOURNAL_SOURCE_SANDBOX) == 0 &&
        oldest->time > ring->dropped_time)
        ring->dropped_time = oldest->time;
    ring->bytes -= oldest->size;
    journals->bytes -= oldest->size;
    ring->first++;
    ring->count--;
    free(oldest);
}

static void ring_grow(struct ring *ring)
{
    size_t capacity = ring->capacity == 0 ? FIRST_CAPACITY : ring->capacity * 2;
    struct journal_entry **entries = memory_new(capacity * sizeof(struct journal_entry *));
    for (uint64_t number = ring->first; number < ring->first + ring->count; number++)
        entries[number % capacity] = ring_at(ring, number);
    free(ring->entries);
    ring->entries = entries;
    ring->capacity = capacity;
}

static void ring_add(struct journals *journals, struct ring *ring, struct journal_entry *entry,
                     size_t count_limit, size_t bytes_limit)
{
    while (ring->count > 0 &&
           (ring->count >= count_limit || ring->bytes + entry->size > bytes_limit))
        ring_drop_oldest(journals, ring);
    if (ring->count == ring->capacity)
        ring_grow(ring);
    ring->entries[(ring->first + ring->count) % ring->capacity] = entry;
    ring->count++;
    ring->bytes += entry->size;
    journals->bytes += entry->size;
}

static void ring_free(struct journals *journals, struct ring *ring)
{
    while (ring->count > 0)
        ring_drop_oldest(journals, ring);
    free(ring->entries);
}

/* ---- journals ---- */

struct journals *journals_new(void)
{
    struct journals *journals = memory_new_of(struct journals);
    journals->by_id = table_new();
    return journals;
}

static void journal_free(struct journal *journal)
{
    ring_free(journal->journals, &journal->lines);
    ring_free(journal->journals, &journal->events);
    free(journal->id);
    free(journal);
}

void journals_free(struct journals *journals)
{
    if (journals == NULL)
        return;
    struct journal *journal;
    size_t position = 0;
    while ((journal = table_next(journals->by_id, &position, NULL)) != NULL)
        journal_free(journal);
    table_free(journals->by_id);
    free(journals);
}

struct journal *journals_find(const struct journals *journals, const char *sandbox_id)
{
    return table_get(journals->by_id, sandbox_id);
}

struct journal *journals_obtain(struct journals *journals, const char *sandbox_id)
{
    struct journal *journal = journals_find(journals, sandbox_id);
    if (journal != NULL)
        return journal;
    journal = memory_new_of(struct journal);
    journal->journals = journals;
    journal->id = memory_strdup(sandbox_id);
    random_bytes(&journal->space, sizeof(journal->space));
    table_put(journals->by_id, journal->id, journal);
    return journal;
}

void journals_forget(struct journals *journals, const char *sandbox_id)
{
    struct journal *journal = table_remove(journals->by_id, sandbox_id);
    if (journal != NULL)
        journal_free(journal);
}

size_t journals_bytes(const struct journals *journals)
{
    return journals->bytes;
}

/* Whoever has most gives first, a quarter at once: a quiet sandbox keeps its lines when another one
 * floods. */
static void make_room(struct journals *journals)
{
    while (journals->bytes > JOURNALS_BYTES_LIMIT) {
        struct journal *journal, *largest = NULL;
        size_t position = 0;
        while ((journal = table_next(journals->by_id, &position, NULL)) != NULL)
            if (largest == NULL || journal->lines.bytes > largest->lines.bytes)
                largest = journal;
        if (largest == NULL || largest->lines.count == 0)
            return;
        for (size_t left = largest->lines.count / 4 + 1; left > 0; left--)
            ring_drop_oldest(journals, &largest->lines);
    }
}

/* ---- entries ---- */

/* The length of the text, cut to whole characters within the limit. */
static size_t cut_length(const char *text, size_t limit)
{
    size_t length = strnlen(text, limit + 1);
    if (length <= limit)
        return length;
    length = limit;
    while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    return length;
}

/* One block of memory: measured first, then filled. */
struct block {
    char *at; /* NULL while measuring */
    size_t used;
};

static void *block_take(struct block *block, size_t size)
{
    size_t aligned = (block->used + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
    block->used = aligned + size;
    return block->at != NULL ? block->at + aligned : NULL;
}

static char *block_text(struct block *block, const char *text, size_t limit)
{
    size_t length = cut_length(text, limit);
    char *to = block->at != NULL ? block->at + block->used : NULL;
    block->used += length + 1;
    if (to != NULL) {
        memcpy(to, text, length);
        to[length] = '\0';
    }
    return to;
}

/* Both maps of text to text look the same. */
typedef Openshell__V1__SandboxLogLine__FieldsEntry pair;

static pair **block_pairs(struct block *block, pair *const *from, size_t count)
{
    pair **pairs = block_take(block, count * sizeof(*pairs));
    for (size_t i = 0; i < count; i++) {
        pair *entry = block_take(block, sizeof(*entry));
        char *key = block_text(block, from[i]->key, JOURNAL_WORD_LIMIT);
        char *value = block_text(block, from[i]->value, JOURNAL_VALUE_LIMIT);
        if (pairs == NULL)
            continue;
        entry->base = from[i]->base;
        entry->key = key;
        entry->value = value;
        pairs[i] = entry;
    }
    return pairs;
}

static Google__Protobuf__Timestamp *block_time(struct block *block, int64_t time)
{
    Google__Protobuf__Timestamp *timestamp = block_take(block, sizeof(*timestamp));
    if (timestamp != NULL) {
        google__protobuf__timestamp__init(timestamp);
        timestamp->seconds = time / NANOSECONDS;
        timestamp->nanos = (int32_t)(time % NANOSECONDS);
    }
    return timestamp;
}

static struct journal_entry *block_line(struct block *block,
                                        const Openshell__V1__SandboxLogLine *from,
                                        const char *sandbox_id, const char *source, int64_t time)
{
    struct journal_entry *entry = block_take(block, sizeof(*entry));
    Openshell__V1__SandboxLogLine *line = block_take(block, sizeof(*line)), copy = *from;
    copy.event_time = block_time(block, time);
    copy.sandbox_id = block_text(block, sandbox_id, JOURNAL_WORD_LIMIT);
    copy.level = block_text(block, from->level, JOURNAL_WORD_LIMIT);
    copy.target = block_text(block, from->target, JOURNAL_WORD_LIMIT);
    copy.message = block_text(block, from->message, JOURNAL_MESSAGE_LIMIT);
    copy.source = block_text(block, source, JOURNAL_WORD_LIMIT);
    copy.n_fields = from->n_fields < JOURNAL_FIELDS_LIMIT ? from->n_fields : JOURNAL_FIELDS_LIMIT;
    copy.fields = block_pairs(block, from->fields, copy.n_fields);
    if (entry != NULL) {
        *line = copy;
        *entry = (struct journal_entry){.time = time, .line = line};
    }
    return entry;
}

static struct journal_entry *block_event(struct block *block,
                                         const Openshell__V1__PlatformEvent *from, int64_t time)
{
    struct journal_entry *entry = block_take(block, sizeof(*entry));
    Openshell__V1__PlatformEvent *event = block_take(block, sizeof(*event)), copy = *from;
    copy.event_time = block_time(block, time);
    copy.source = block_text(block, from->source, JOURNAL_WORD_LIMIT);
    copy.type = block_text(block, from->type, JOURNAL_WORD_LIMIT);
    copy.reason = block_text(block, from->reason, JOURNAL_WORD_LIMIT);
    copy.message = block_text(block, from->message, JOURNAL_MESSAGE_LIMIT);
    copy.n_metadata =
        from->n_metadata < JOURNAL_FIELDS_LIMIT ? from->n_metadata : JOURNAL_FIELDS_LIMIT;
    copy.metadata = (Openshell__V1__PlatformEvent__MetadataEntry **)block_pairs(
        block, (pair *const *)from->metadata, copy.n_metadata);
    if (entry != NULL) {
        *event = copy;
        *entry = (struct journal_entry){.time = time, .event = event};
    }
    return entry;
}

/* Nanoseconds since the epoch; the present where no sensible time is given. */
static int64_t time_of(const Google__Protobuf__Timestamp *time)
{
    if (time != NULL && time->seconds > 0 && time->seconds < INT64_MAX / NANOSECONDS - 1 &&
        time->nanos >= 0 && time->nanos < NANOSECONDS)
        return time->seconds * NANOSECONDS + time->nanos;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * NANOSECONDS + now.tv_nsec;
}

static bool is_known(const struct journal *journal, const Openshell__V1__SandboxLogLine *line,
                     const char *source, int64_t time)
{
    const struct ring *ring = &journal->lines;
    if (line->event_time == NULL)
        return false;
    if (time <= ring->dropped_time)
        return true;
    size_t length = cut_length(line->message, JOURNAL_MESSAGE_LIMIT);
    for (uint64_t number = ring->first + ring->count; number > ring->first; number--) {
        const struct journal_entry *entry = ring_at(ring, number - 1);
        if (entry->time == time && strcmp(entry->line->source, source) == 0 &&
            strlen(entry->line->message) == length &&
            memcmp(entry->line->message, line->message, length) == 0)
            return true;
    }
    return false;
}

static enum log_level level_of(const char *word)
{
    enum log_level level = LOG_LEVEL_INFO; /* OCSF too */
    log_level_parse(word, &level);
    return level;
}

static void finish_entry(struct journal *journal, struct journal_entry *entry, size_t size)
{
    entry->size = size + ENTRY_OVERHEAD;
    entry->sequence = ++journal->last_sequence;
}

bool journal_add_line(struct journal *journal, const Openshell__V1__SandboxLogLine *line,
                      const char *source)
{
    int64_t time = time_of(line->event_time);
    if (strcmp(source, JOURNAL_SOURCE_GATEWAY) != 0 && is_known(journal, line, source, time))
        return false;
    struct block block = {0};
    block_line(&block, line, journal->id, source, time);
    size_t size = block.used;
    block = (struct block){.at = memory_new(size)};
    struct journal_entry *entry = block_line(&block, line, journal->id, source, time);
    entry->level = level_of(line->level);
    finish_entry(journal, entry, size);
    ring_add(journal->journals, &journal->lines, entry, JOURNAL_LINES_LIMIT, JOURNAL_BYTES_LIMIT);
    make_room(journal->journals);
    return true;
}

void journal_add_event(struct journal *journal, const Openshell__V1__PlatformEvent *event)
{
    int64_t time = time_of(event->event_time);
    struct block block = {0};
    block_event(&block, event, time);
    size_t size = block.used;
    block = (struct block){.at = memory_new(size)};
    struct journal_entry *entry = block_event(&block, event, time);
    finish_entry(journal, entry, size);
    ring_add(journal->journals, &journal->events, entry, JOURNAL_EVENTS_LIMIT, JOURNAL_BYTES_LIMIT);
    make_room(journal->journals);
}

uint64_t journal_last_sequence(const struct journal *journal)
{
    return journal->last_sequence;
}

size_t journal_line_count(const struct journal *journal)
{
    return journal->lines.count;
}

const struct journal_entry *journal_last_event(const struct journal *journal)
{
    const struct ring *ring = &journal->events;
    return ring->count > 0 ? ring_at(ring, ring->first + ring->count - 1) : NULL;
}

/* ---- reading ---- */

void journal_filter_init(struct journal_filter *filter, const Google__Protobuf__Timestamp *since,
                         char *const *sources, size_t source_count, const char *min_level)
{
    *filter = (struct journal_filter){.sources = sources, .source_count = source_count};
    if (since != NULL)
        filter->since = time_of(since);
    filter->has_least_level = log_level_parse(min_level, &filter->most_level);
}

bool journal_filter_matches(const struct journal_filter *filter, const struct journal_entry *entry)
{
    if (entry->line == NULL)
        return true;
    if (entry->time < filter->since ||
        (filter->has_least_level && entry->level > filter->most_level))
        return false;
    bool wanted = filter->source_count == 0;
    for (size_t i = 0; i < filter->source_count && !wanted; i++)
        wanted = strcmp(filter->sources[i], entry->line->source) == 0;
    return wanted;
}

void journal_seek_tail(const struct journal *journal, const struct journal_filter *filter,
                       size_t lines, size_t events, struct journal_reader *reader)
{
    const struct ring *ring = &journal->lines;
    uint64_t number = ring->first + ring->count;
    for (size_t found = 0; number > ring->first && found < lines; number--)
        found += journal_filter_matches(filter, ring_at(ring, number - 1));
    reader->next_line = number;
    ring = &journal->events;
    reader->next_event = ring->first + ring->count - (events < ring->count ? events : ring->count);
}

/* Moves a place that was dropped to the oldest that is kept. */
static uint64_t catch_up(const struct ring *ring, uint64_t *next)
{
    uint64_t lost = *next < ring->first ? ring->first - *next : 0;
    *next += lost;
    return lost;
}

static const struct journal_entry *ring_next(const struct ring *ring, uint64_t next)
{
    return next < ring->first + ring->count ? ring_at(ring, next) : NULL;
}

const struct journal_entry *journal_read(const struct journal *journal,
                                         struct journal_reader *reader, uint64_t *ret_lost)
{
    const struct journal_entry *line = NULL, *event = NULL;
    *ret_lost = 0;
    if (reader->lines) {
        *ret_lost += catch_up(&journal->lines, &reader->next_line);
        line = ring_next(&journal->lines, reader->next_line);
    }
    if (reader->events) {
        *ret_lost += catch_up(&journal->events, &reader->next_event);
        event = ring_next(&journal->events, reader->next_event);
    }
    if (event != NULL && (line == NULL || event->sequence < line->sequence)) {
        reader->next_event++;
        return event;
    }
    reader->next_line += line != NULL;
    return line;
}

/* ---- cursors ---- */

void journal_cursor(const struct journal *journal, const struct journal_entry *entry,
                    char cursor[JOURNAL_CURSOR_SIZE])
{
    snprintf(cursor, JOURNAL_CURSOR_SIZE, "%016" PRIx64 ".%016" PRIx64, journal->space,
             entry->sequence);
}

/* Sixteen digits, as journal_cursor writes them. */
static bool parse_half(const char *text, uint64_t *ret_number)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t number = 0;
    for (size_t i = 0; i < 16; i++) {
        const char *digit = text[i] != '\0' ? strchr(digits, text[i]) : NULL;
        if (digit == NULL)
            return false;
        number = number << 4 | (uint64_t)(digit - digits);
    }
    *ret_number = number;
    return true;
}

static uint64_t number_after(const struct ring *ring, uint64_t sequence)
{
    uint64_t number = ring->first + ring->count;
    while (number > ring->first && ring_at(ring, number - 1)->sequence > sequence)
        number--;
    return number;
}

bool journal_seek_cursor(const struct journal *journal, const char *cursor,
                         struct journal_reader *reader, struct error *error)
{
    uint64_t space, sequence;
    if (strlen(cursor) != JOURNAL_CURSOR_SIZE - 1 || cursor[16] != '.' ||
        !parse_half(cursor, &space) || !parse_half(cursor + 17, &sequence) || sequence == 0) {
        error_add_violation(error, "resume_after_cursor", "this is not a cursor");
        return false;
    }
    if (space != journal->space)
        return error_set(error, ERROR_OUT_OF_RANGE,
                         "the cursor is of another stream of events; start without one");
    if (sequence > journal->last_sequence) {
        error_add_violation(error, "resume_after_cursor", "no event has this cursor yet");
        return false;
    }
    if ((reader->lines && journal->lines.dropped_sequence > sequence) ||
        (reader->events && journal->events.dropped_sequence > sequence))
        return error_set(error, ERROR_OUT_OF_RANGE,
                         "what follows this cursor is not kept any more; start without one");
    reader->next_line = number_after(&journal->lines, sequence);
    reader->next_event = number_after(&journal->events, sequence);
    return true;
}
