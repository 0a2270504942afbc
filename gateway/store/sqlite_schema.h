/* The schema of the SQLite file and the way to it from older files. */
#ifndef GATEWAY_STORE_SQLITE_SCHEMA_H
#define GATEWAY_STORE_SQLITE_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

#include "base/error.h"

/* One step forward, made in one transaction together with its row in the table `schema`. A step
 * that was released is never changed. */
struct sqlite_migration {
    int version; /* 1, 2, 3, ... without gaps */
    const char *name;
    const char *sql;
};

extern const struct sqlite_migration sqlite_migrations[];
extern const size_t sqlite_migration_count;

/* Applies what the file lacks. A file of a newer program is FAILED_PRECONDITION and left as it is,
 * as is a database that is not ours. */
bool sqlite_schema_update(sqlite3 *database, const char *path,
                          const struct sqlite_migration *migrations, size_t count,
                          struct error *error);

#endif
