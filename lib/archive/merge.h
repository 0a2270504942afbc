/* Moves what was unpacked to where it belongs. */
#ifndef ARCHIVE_MERGE_H
#define ARCHIVE_MERGE_H

#include "archive/summary.h"

/* Moves everything in the directory `from` into the directory `to`: a name that is not there yet by
 * one rename, with all below it; directories are merged and existing ones keep their
 * permissions; a file or link replaces a file or link at once. What cannot be moved (a directory
 * stands where a file should go, the other way round, no permission) is removed from `from` and
 * noted, and the rest goes on. No step leads through a link, whatever changes in `to` meanwhile. A
 * further file system below `to` gets copies. */
void merge_into(int from, int to, struct archive_summary *summary);

#endif
