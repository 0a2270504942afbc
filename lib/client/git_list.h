/* Which files of a directory belong to its git work tree: those that git tracks, and those that it
 * neither tracks nor ignores. */
#ifndef CLIENT_GIT_LIST_H
#define CLIENT_GIT_LIST_H

#include <stdbool.h>

#include "base/error.h"

/* Whether the directory lies in a work tree, found by a ".git" in it or above it. */
bool git_list_applies(int directory);

/* A file without a name that holds the paths, relative to the directory, each with a NUL behind
 * it; close it. -1 when git cannot be run or fails, or when it names no file. */
int git_list_open(int directory, const char *shown, struct error *error);

#endif
