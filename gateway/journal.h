/* What the gateway remembers of what was said about each sandbox: log lines and platform events
 * (behaviour reference 2.9, 2.10). In memory alone, within stated bounds; a reader that does not
 * keep up with them is told how much it missed. */
#ifndef GATEWAY_JOURNAL_H
#define GATEWAY_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "openshell.pb-c.h"

enum {
    JOURNAL_LINES_LIMIT = 2000,        /* lines of one sandbox */
    JOURNAL_EVENTS_LIMIT = 50,         /* platform events of one sandbox */
    JOURNAL_BYTES_LIMIT = 1024 * 1024, /* lines of one sandbox, with what keeping them takes */
    JOURNALS_BYTES_LIMIT = 64 * 1024 * 1024, /* lines and events of all sandboxes */
    /* Bytes of the parts of one line; what is longer is cut at a character. */
    JOURNAL_MESSAGE_LIMIT = 8192,
    JOURNAL_WORD_LIMIT = 256, /* level, target, source, a field's key */
    JOURNAL_VALUE_LIMIT = 2048,
    JOURNAL_FIELDS_LIMIT = 32,
};

#define JOURNAL_SOURCE_GATEWAY "gateway"
#define JOURNAL_SOURCE_SANDBOX "sandbox"

struct journals; /* of all sandboxes */
struct journal;  /* of one */

struct journal_entry {
    uint64_t sequence; /* from 1, over lines and events of the sandbox */
    size_t size;
    int64_t time;         /* nanoseconds since the epoch */
    enum log_level level; /* of a line; INFO where its word is not known */
    /* One of the two; it lives as long as the entry. */
    Openshell__V1__SandboxLogLine *line;
    Openshell__V1__PlatformEvent *event;
};

struct journals *journals_new(void);
void journals_free(struct journals *journals);
/* NULL when nothing was said yet. */
struct journal *journals_find(const struct journals *journals, const char *sandbox_id);
struct journal *journals_obtain(struct journals *journals, const char *sandbox_id);
void journals_forget(struct journals *journals, const char *sandbox_id);
size_t journals_bytes(const struct journals *journals);

/* Adds a copy under the source. A line without a time gets the present one. False for one that is
 * there already, or that is older than what was dropped for space: a supervisor sends again what
 * it does not know to have arrived. */
bool journal_add_line(struct journal *journal, const Openshell__V1__SandboxLogLine *line,
                      const char *source);
/* Adds a copy. */
void journal_add_event(struct journal *journal, const Openshell__V1__PlatformEvent *event);
/* Of the newest entry; 0: none. */
uint64_t journal_last_sequence(const struct journal *journal);
size_t journal_line_count(const struct journal *journal);
/* The newest event, or NULL. */
const struct journal_entry *journal_last_event(const struct journal *journal);

/* ---- reading ---- */

struct journal_filter {
    int64_t since; /* nanoseconds since the epoch; 0: all */
    char *const *sources;
    size_t source_count;       /* 0: all */
    bool has_least_level;      /* false: all */
    enum log_level most_level; /* LOG_LEVEL_WARN lets errors and warnings through */
};

/* The words of a request; an unknown level lets everything through (command-line reference 3.9).
 * The sources stay the request's. */
void journal_filter_init(struct journal_filter *filter, const Google__Protobuf__Timestamp *since,
                         char *const *sources, size_t source_count, const char *min_level);
/* Events pass always. */
bool journal_filter_matches(const struct journal_filter *filter, const struct journal_entry *entry);

/* Where somebody is who reads a journal, over lines, events or both. */
struct journal_reader {
    bool lines;
    bool events;
    uint64_t next_line;
    uint64_t next_event;
};

/* Places the reader before the last so many lines that pass, and events. */
void journal_seek_tail(const struct journal *journal, const struct journal_filter *filter,
                       size_t lines, size_t events, struct journal_reader *reader);
/* The next entry in order, past which the reader moves; NULL at the end. `ret_lost` is how many
 * were dropped before the reader came to them. */
const struct journal_entry *journal_read(const struct journal *journal,
                                         struct journal_reader *reader, uint64_t *ret_lost);

/* ---- cursors ---- */

enum { JOURNAL_CURSOR_SIZE = 16 + 1 + 16 + 1 };

/* An opaque token that grows bytewise with the entries of one journal. */
void journal_cursor(const struct journal *journal, const struct journal_entry *entry,
                    char cursor[JOURNAL_CURSOR_SIZE]);
/* Places the reader behind the entry of that token. OUT_OF_RANGE: it is of another journal, as of
 * an earlier gateway, or something that follows it was dropped. INVALID_ARGUMENT: it is no token
 * that this journal can have given. */
bool journal_seek_cursor(const struct journal *journal, const char *cursor,
                         struct journal_reader *reader, struct error *error);

#endif
