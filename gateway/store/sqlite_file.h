/* The SQLite file as a file: private, with a write-ahead log, and its errors in words. */
#ifndef GATEWAY_STORE_SQLITE_FILE_H
#define GATEWAY_STORE_SQLITE_FILE_H

#include <stdbool.h>

#include <sqlite3.h>

#include "base/error.h"

/* Opens or makes the file, 0600 in a directory of 0700; see store_open. The schema is not looked
 * at. Close with sqlite3_close. */
sqlite3 *sqlite_file_open(const char *path, struct error *error);

/* An error of SQLite in words: `doing` as "cannot read the records". */
bool sqlite_error(sqlite3 *database, const char *path, struct error *error, const char *doing);

#endif
