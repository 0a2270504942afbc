/* Files and directories that belong to one user. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buffer.h"
#include "base/error.h"

/* Reads a whole file of at most `buffer->maximum` bytes. NOT_FOUND when it does not exist. */
bool file_read(const char *path, struct buffer *buffer, struct error *error);
/* Reads a descriptor to its end, at most `buffer->maximum` bytes. */
bool file_read_descriptor(int descriptor, struct buffer *buffer, struct error *error);
/* Writes under a temporary name in the same directory, syncs, renames: the file is whole or old. */
bool file_write_atomic(const char *path, const void *data, size_t length, mode_t mode,
                       struct error *error);
/* Writes everything; restarts on EINTR and waits on EAGAIN. */
bool file_write_all(int descriptor, const void *data, size_t length, struct error *error);

/* Makes the directory and its missing parents with mode 0700. One that exists must be a real
 * directory (no link) that the caller owns and that nobody else may write to: it is made 0700. */
bool file_make_private_directory(const char *path, struct error *error);

/* Removes a tree without following links. Absent is fine. Files that cannot be removed are an
 * error naming the first of them, after everything else was removed. However deep the tree is, this
 * needs few descriptors and little memory. */
bool file_remove_tree(const char *path, struct error *error);

/* Connects to, or binds and listens on, a Unix socket; a path over 107 bytes goes through
 * /proc/self/fd (decision B14). Returns a close-on-exec, non-blocking descriptor, or -1. */
int file_unix_connect(const char *path, struct error *error);
/* An existing socket file is removed first: the caller holds the lock that makes it stale. */
int file_unix_listen(const char *path, mode_t mode, int backlog, struct error *error);

/* Takes an exclusive lock on the file (created 0600), waiting at most `milliseconds`; writes
 * nothing to it. Returns the descriptor that holds the lock, or -1 with code ABORTED when another
 * process holds it. The lock lasts as long as the descriptor, across exec when inherited. */
int file_lock(const char *path, int milliseconds, struct error *error);

#endif
