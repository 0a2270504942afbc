/* What a transfer did, and what it left out. */
#ifndef ARCHIVE_SUMMARY_H
#define ARCHIVE_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ARCHIVE_ISSUES_MAX = 100 /* kept with their names; all are counted */
};

enum archive_issue_kind {
    ARCHIVE_ISSUE_REFUSED,    /* not safe to create */
    ARCHIVE_ISSUE_CONFLICT,   /* something of another kind stands at the destination */
    ARCHIVE_ISSUE_SPECIAL,    /* socket, fifo or device: not sent */
    ARCHIVE_ISSUE_UNREADABLE, /* not sent */
    ARCHIVE_ISSUE_CHANGED,    /* changed while it was read: sent, but padded or cut */
};

struct archive_issue {
    enum archive_issue_kind kind;
    char *name; /* escaped, safe to print; owned */
    char reason[160];
};

/* Zero-initialise before use. */
struct archive_summary {
    uint64_t entries;     /* sent, or read from the archive */
    uint64_t bytes;       /* of file data, without holes */
    uint64_t absent;      /* listed paths that do not exist: left out, no issue */
    uint64_t link_copies; /* hard links sent as copies, over the bound of links */
    bool incomplete;      /* at least one issue: an exit code must not be 0 */
    uint64_t issue_count;
    struct archive_issue issues[ARCHIVE_ISSUES_MAX];
};

/* Counts an issue and keeps it when there is room. `name` is raw, the reason safe to print. */
void archive_summary_add(struct archive_summary *summary, enum archive_issue_kind kind,
                         const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The number of issues that are kept with a name. */
size_t archive_summary_kept(const struct archive_summary *summary);

/* Frees what the summary owns and zeroes it. */
void archive_summary_clear(struct archive_summary *summary);

#endif
