/* Removing trees that somebody else may be changing, or has made as deep as can be. */
#ifndef ARCHIVE_REMOVE_H
#define ARCHIVE_REMOVE_H

#include <stdbool.h>

/* Removes everything below the open directory, never through a link. Directories more than 64
 * levels down are first moved up into it, so neither descriptors nor stack grow with the depth.
 * False with errno of the first failure; everything that can be removed is removed. */
bool remove_below(int directory);

/* Removes `name` and everything below it; absent is fine. */
bool remove_tree_at(int directory, const char *name);

#endif
