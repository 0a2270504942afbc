/* Detached mounts: made from a path or from nothing, restricted, and only then put into place, so
 * that no path is looked up twice and nothing is ever visible with wider flags than it should be.
 */
#ifndef RUNTIME_MOUNTS_H
#define RUNTIME_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Each returns a close-on-exec descriptor of a detached mount, or -1. `attributes` is a mask of
 * MOUNT_ATTR_*. */

/* What is at `path`, with the mounts below it. */
int mounts_clone(const char *path, uint64_t attributes, struct error *error);

/* A read-only overlay of two directories, the first one on top. */
int mounts_overlay(const char *upper, const char *lower, struct error *error);

/* A new file system. `options` is a NULL-terminated list of NAME, VALUE pairs; a NULL value is a
 * flag. */
int mounts_new(const char *type, const char *const *options, uint64_t attributes,
               struct error *error);

/* Puts a detached mount onto `target`, a path below `directory` without links in it; "" is the
 * directory itself. Closes nothing. */
bool mounts_attach(int mount, int directory, const char *target, struct error *error);

/* Adds attributes to an attached mount. */
bool mounts_restrict(int mount, uint64_t attributes, struct error *error);

#endif
