/* A directory for one test, and what tests of copies ask about files. Paths are relative to it. */
#ifndef TESTS_PLACE_H
#define TESTS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "archive/transfer.h"

/* Makes a new directory below $TMPDIR, or /dev/shm, or /tmp, and goes into it; leaves and removes
 * it. */
int place_set_up(void **state);
int place_tear_down(void **state);

void place_directory(const char *path, mode_t mode);
void place_file(const char *path, const char *content);
/* The content of a file, up to 64 KiB, in a buffer that the next call reuses; NULL: none there. */
const char *place_read(const char *path);
bool place_exists(const char *path); /* not through a link */
/* Entries of a directory, without "." and "..". */
size_t place_count(const char *path);
int place_open(const char *path); /* a directory; the test fails when there is none */

/* The tree below a path as text, sorted, one line for each entry: kind, permissions, modification
 * time, size, name, target or checksum, and which names are one file. Malloced. */
char *place_describe(const char *path, bool with_times);

/* Receives from memory, through a pipe that a thread feeds in pieces of `piece` bytes (0: large),
 * into the directory. */
bool place_receive(const void *data, size_t length, size_t piece, const char *directory,
                   const struct archive_receive_options *options, struct archive_summary *summary,
                   struct error *error);
/* Options that most tests use: no cancelling, everything else zero. */
struct archive_receive_options place_receive_options(void);

/* Sends and receives at once, through a socket pair; each side's results. */
struct place_copy {
    struct archive_summary sent, received;
    struct error send_error, receive_error;
    bool send_good, receive_good;
};
void place_copy(const struct archive_send_options *send, const char *directory,
                const struct archive_receive_options *receive, struct place_copy *ret_copy);
void place_copy_clear(struct place_copy *copy);
/* `source` in the current directory under its own name (or `name`), into `directory`. */
void place_copy_tree(const char *source, const char *name, const char *directory,
                     struct place_copy *ret_copy);

/* Whether the summary holds an issue of this kind with this (escaped) name. */
bool place_issue(const struct archive_summary *summary, enum archive_issue_kind kind,
                 const char *name);

#endif
