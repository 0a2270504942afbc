#include "gateway/store/sqlite_schema.h"

#include <stdint.h>

#include "base/clock.h"
#include "base/memory.h"
#include "gateway/store/sqlite_file.h"

/* The label index repeats type, workspace and name, so that a listing with a selector walks it in
 * the order of names and reads nothing else. */
const struct sqlite_migration sqlite_migrations[] = {
    {1, "objects and their labels",
     "CREATE TABLE objects ("
     "  id TEXT NOT NULL PRIMARY KEY,"
     "  object_type TEXT NOT NULL,"
     "  name TEXT,"
     "  scope TEXT,"
     "  version INTEGER,"
     "  status TEXT,"
     "  dedup_key TEXT,"
     "  hit_count INTEGER NOT NULL DEFAULT 0,"
     "  payload BLOB NOT NULL,"
     "  created_at_ms INTEGER NOT NULL,"
     "  updated_at_ms INTEGER NOT NULL,"
     "  labels TEXT NOT NULL DEFAULT '{}',"
     "  resource_version INTEGER NOT NULL DEFAULT 1,"
     "  workspace TEXT NOT NULL DEFAULT '');"
     "CREATE UNIQUE INDEX objects_by_name ON objects (object_type, workspace, name);"
     "CREATE UNIQUE INDEX objects_by_version ON objects (object_type, scope, version)"
     "  WHERE scope IS NOT NULL;"
     "CREATE UNIQUE INDEX objects_by_dedup_key ON objects (object_type, scope, dedup_key)"
     "  WHERE dedup_key IS NOT NULL;"
     "CREATE TABLE object_labels ("
     "  object_id TEXT NOT NULL REFERENCES objects (id) ON DELETE CASCADE,"
     "  key TEXT NOT NULL,"
     "  value TEXT NOT NULL,"
     "  object_type TEXT NOT NULL,"
     "  workspace TEXT NOT NULL,"
     "  name TEXT NOT NULL,"
     "  PRIMARY KEY (object_id, key)) WITHOUT ROWID;"
     "CREATE INDEX object_labels_by_value"
     "  ON object_labels (object_type, key, value, workspace, name);"},
};
const size_t sqlite_migration_count = sizeof(sqlite_migrations) / sizeof(sqlite_migrations[0]);

static bool execute(sqlite3 *database, const char *path, const char *sql, const char *doing,
                    struct error *error)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    return sqlite_error(database, path, error, doing);
}

static bool query_integer(sqlite3 *database, const char *path, const char *sql, int64_t *ret_value,
                          struct error *error)
{
    sqlite3_stmt *statement = NULL;
    bool read = sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW;
    if (read)
        *ret_value = sqlite3_column_int64(statement, 0);
    else
        sqlite_error(database, path, error, "cannot read the version of the records");
    sqlite3_finalize(statement);
    return read;
}

/* 0 for a file without anything in it. */
static bool stored_version(sqlite3 *database, const char *path, int64_t *ret_version,
                           struct error *error)
{
    int64_t tables = 0, ours = 0;
    if (!query_integer(database, path, "SELECT count(*) FROM sqlite_master WHERE type = 'table'",
                       &tables, error) ||
        !query_integer(database, path,
                       "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND "
                       "name = 'schema'",
                       &ours, error))
        return false;
    if (ours == 0 && tables != 0)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "%s is a database of another program; name another file or move it away",
                         path);
    *ret_version = 0;
    return ours == 0 ||
           query_integer(database, path, "SELECT coalesce(max(version), 0) FROM schema",
                         ret_version, error);
}

static bool record_step(sqlite3 *database, const char *path,
                        const struct sqlite_migration *migration, struct error *error)
{
    sqlite3_stmt *statement = NULL;
    bool written =
        sqlite3_prepare_v2(database,
                           "INSERT INTO schema (version, name, applied_at_ms) "
                           "VALUES (?1, ?2, ?3)",
                           -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_bind_int(statement, 1, migration->version) == SQLITE_OK &&
        sqlite3_bind_text(statement, 2, migration->name, -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_bind_int64(statement, 3, clock_realtime_milliseconds()) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_DONE;
    if (!written)
        sqlite_error(database, path, error, "cannot note the version of the records");
    sqlite3_finalize(statement);
    return written;
}

static bool apply(sqlite3 *database, const char *path, const struct sqlite_migration *migration,
                  struct error *error)
{
    CLEANUP_FREE char *doing = memory_printf("cannot bring the records to version %d (%s)",
                                             migration->version, migration->name);
    if (!execute(database, path, "BEGIN IMMEDIATE", doing, error))
        return false;
    if (execute(database, path,
                "CREATE TABLE IF NOT EXISTS schema (version INTEGER NOT NULL PRIMARY KEY, "
                "name TEXT NOT NULL, applied_at_ms INTEGER NOT NULL)",
                doing, error) &&
        execute(database, path, migration->sql, doing, error) &&
        record_step(database, path, migration, error) &&
        execute(database, path, "COMMIT", doing, error))
        return true;
    if (!sqlite3_get_autocommit(database))
        sqlite3_exec(database, "ROLLBACK", NULL, NULL, NULL);
    return false;
}

bool sqlite_schema_update(sqlite3 *database, const char *path,
                          const struct sqlite_migration *migrations, size_t count,
                          struct error *error)
{
    int64_t version;
    if (!stored_version(database, path, &version, error))
        return false;
    int newest = count > 0 ? migrations[count - 1].version : 0;
    if (version > newest)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "%s has schema version %lld, and this openshell-gateway knows versions up "
                         "to %d: a newer release wrote it. Start that release again, or move the "
                         "file away to begin without sandboxes",
                         path, (long long)version, newest);
    for (size_t i = 0; i < count; i++)
        if (migrations[i].version > version && !apply(database, path, &migrations[i], error))
            return false;
    return true;
}
