/* This side's end of a file copy: a child process that packs or unpacks while its parent talks to
 * the gateway. The bytes go through a socket, what it did through memory that both share. */
#ifndef CLIENT_COPY_CHILD_H
#define CLIENT_COPY_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "archive/destination.h"
#include "archive/transfer.h"
#include "base/error.h"

/* What the child does with its end of the socket. */
typedef bool copy_work(void *data, int stream, const struct archive_control *control,
                       struct archive_summary *summary, struct error *error);

struct copy_shared;

struct copy_child {
    pid_t process;
    int stream; /* the parent's end */
    int cancel; /* the child's work is cancelled when this is closed, as by the parent's death */
    struct copy_shared *shared;
    bool ended;
};

/* What came of it, after copy_child_wait. */
struct copy_result {
    bool good; /* the archive was whole */
    bool incomplete;
    uint64_t bytes, entries, link_copies;
};

/* Forks; to be called before any thread exists. */
bool copy_child_start(struct copy_child *child, copy_work *work, void *data, struct error *error);

/* Bytes and entries so far. */
void copy_child_progress(const struct copy_child *child, uint64_t *ret_bytes,
                         uint64_t *ret_entries);

/* No more input for the child. */
void copy_child_close_stream(struct copy_child *child);
void copy_child_cancel(struct copy_child *child);

/* Waits for its end. The error says why it failed; a child that died failed too. */
struct copy_result copy_child_wait(struct copy_child *child, struct error *error);

/* Says what was left out, a line for each on standard error. */
void copy_child_report(const struct copy_child *child);

#endif
