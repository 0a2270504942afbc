#include "gateway/store/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum { BUSY_TIMEOUT = 5000 /* milliseconds */ };

bool sqlite_error(sqlite3 *database, const char *path, struct error *error, const char *doing)
{
    int extended = sqlite3_extended_errcode(database);
    int system_error = sqlite3_system_errno(database);
    const char *text = sqlite3_errmsg(database);
    switch (extended & 0xFF) {
    case SQLITE_FULL:
        return error_set(error, ERROR_RESOURCE_EXHAUSTED,
                         "%s: the disk that holds %s is full; nothing was changed", doing, path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return error_set(error, ERROR_UNAVAILABLE,
                         "%s: another process holds %s; is a second gateway running?", doing, path);
    case SQLITE_NOTADB:
        return error_set(error, ERROR_DATA_LOSS,
                         "%s: %s is not an SQLite database; move it away to begin without "
                         "sandboxes, or put a backup in its place",
                         doing, path);
    case SQLITE_CORRUPT:
        return error_set(error, ERROR_DATA_LOSS,
                         "%s: the database %s is damaged (%s); put a backup in its place, or move "
                         "it away together with its -wal and -shm files to begin without sandboxes",
                         doing, path, text);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "%s: %s cannot be opened for writing: %s; check its owner, its mode and "
                         "its directory",
                         doing, path, system_error != 0 ? strerror(system_error) : text);
    default:
        if (system_error == ENOSPC || system_error == EDQUOT)
            return error_set(error, ERROR_RESOURCE_EXHAUSTED,
                             "%s: the disk that holds %s is full; nothing was changed", doing,
                             path);
        return error_set(error, ERROR_INTERNAL, "%s: %s: %s%s%s", doing, path, text,
                         system_error != 0 ? ": " : "",
                         system_error != 0 ? strerror(system_error) : "");
    }
}

/* Makes the file 0600 before SQLite sees it: its -wal and -shm files get the mode of the file. */
static bool make_private(const char *path, struct error *error)
{
    CLEANUP_FREE char *copy = memory_strdup(path);
    if (!file_make_private_directory(dirname(copy), error))
        return false;
    CLEANUP_CLOSE int descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno, "cannot open %s", path);
    struct stat status;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
        return error_set(error, ERROR_FAILED_PRECONDITION, "%s is not a regular file", path);
    if ((status.st_mode & 07777) != 0600 && fchmod(descriptor, 0600) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot make %s private (mode 0600)", path);
    static const char *const companions[] = {"-wal", "-shm"};
    for (size_t i = 0; i < 2; i++) {
        CLEANUP_FREE char *companion = memory_printf("%s%s", path, companions[i]);
        if (chmod(companion, 0600) != 0 && errno != ENOENT)
            return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                                   "cannot make %s private (mode 0600)", companion);
    }
    return true;
}

static bool configure(sqlite3 *database, const char *path, struct error *error)
{
    sqlite3_extended_result_codes(database, 1);
    sqlite3_busy_timeout(database, BUSY_TIMEOUT);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_stmt *statement = NULL;
    bool wal = sqlite3_prepare_v2(database, "PRAGMA journal_mode = WAL", -1, &statement, NULL) ==
                   SQLITE_OK &&
               sqlite3_step(statement) == SQLITE_ROW;
    if (!wal)
        sqlite_error(database, path, error, "cannot open the records");
    if (wal && strcmp((const char *)sqlite3_column_text(statement, 0), "wal") != 0)
        wal = error_set(error, ERROR_FAILED_PRECONDITION,
                        "%s cannot have a write-ahead log; put it on a local disk", path);
    sqlite3_finalize(statement);
    if (!wal)
        return false;
    return sqlite3_exec(database,
                        "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; "
                        "PRAGMA journal_size_limit = 16777216;",
                        NULL, NULL, NULL) == SQLITE_OK ||
           sqlite_error(database, path, error, "cannot open the records");
}

sqlite3 *sqlite_file_open(const char *path, struct error *error)
{
    if (!make_private(path, error))
        return NULL;
    sqlite3 *database = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    bool opened = sqlite3_open_v2(path, &database, flags, NULL) == SQLITE_OK ||
                  sqlite_error(database, path, error, "cannot open the records");
    if (opened && configure(database, path, error))
        return database;
    sqlite3_close(database);
    return NULL;
}
