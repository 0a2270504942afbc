/* What cannot be read twice, or has no size yet, into an unnamed file. */
#ifndef ARCHIVE_SPOOL_H
#define ARCHIVE_SPOOL_H

#include "archive/transfer.h"

/* Reads `input` to its end into a file without a name in $TMPDIR or /var/tmp. Returns its
 * descriptor, or -1. */
int spool_input(int input, const struct archive_control *control,
                const struct archive_summary *summary, struct error *error);

#endif
