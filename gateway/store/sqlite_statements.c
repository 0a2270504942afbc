#include "gateway/store/sqlite_backend.h"
#include "gateway/store/sqlite_file.h"

#define COLUMNS                                                                                    \
    "o.id, o.object_type, o.name, o.scope, o.version, o.status, o.dedup_key, o.hit_count, "        \
    "o.payload, o.created_at_ms, o.updated_at_ms, o.labels, o.resource_version, o.workspace"

/* ?7 holds the other pairs of a selector as [["key", "value"], ...], or NULL. */
#define SELECTED                                                                                   \
    "SELECT " COLUMNS " FROM object_labels l CROSS JOIN objects o ON o.id = l.object_id "          \
    "WHERE l.object_type = ?1 AND l.key = ?5 AND l.value = ?6 AND (?7 IS NULL OR NOT EXISTS "      \
    "(SELECT 1 FROM json_each(?7) pair WHERE NOT EXISTS (SELECT 1 FROM object_labels other "       \
    "WHERE other.object_id = l.object_id AND other.key = json_extract(pair.value, '$[0]') "        \
    "AND other.value = json_extract(pair.value, '$[1]')))) "

static const char *const STATEMENT_TEXT[STATEMENT_TOTAL] = {
    [STATEMENT_BEGIN] = "BEGIN",
    [STATEMENT_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [STATEMENT_COMMIT] = "COMMIT",
    [STATEMENT_ROLLBACK] = "ROLLBACK",
    [STATEMENT_INSERT] =
        "INSERT INTO objects (id, object_type, name, scope, version, status, dedup_key, hit_count, "
        "payload, created_at_ms, updated_at_ms, labels, resource_version, workspace) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, 1, ?13)",
    [STATEMENT_GET] = "SELECT " COLUMNS " FROM objects o "
                      "WHERE o.object_type = ?1 AND o.workspace = ?2 AND o.name = ?3",
    [STATEMENT_GET_BY_ID] =
        "SELECT " COLUMNS " FROM objects o WHERE o.id = ?2 AND o.object_type = ?1",
    [STATEMENT_VERSION] = "SELECT resource_version, labels, coalesce(name, ''), workspace "
                          "FROM objects WHERE id = ?2 AND object_type = ?1",
    [STATEMENT_UPDATE] =
        "UPDATE objects SET name = ?3, scope = ?4, version = ?5, status = ?6, dedup_key = ?7, "
        "hit_count = ?8, payload = ?9, updated_at_ms = ?11, labels = ?12, "
        "resource_version = resource_version + 1 WHERE id = ?1 AND object_type = ?2",
    [STATEMENT_DELETE] = "DELETE FROM objects WHERE id = ?2 AND object_type = ?1",
    [STATEMENT_DELETE_SCOPE] = "DELETE FROM objects WHERE object_type = ?1 AND scope = ?2",
    [STATEMENT_COUNT] = "SELECT count(*) FROM objects WHERE object_type = ?1 AND workspace = ?2",
    [STATEMENT_COUNT_ALL] = "SELECT count(*) FROM objects WHERE object_type = ?1",
    [STATEMENT_COUNT_LABEL] =
        "SELECT count(*) FROM (SELECT 1 FROM object_labels WHERE object_type = ?1 AND key = ?2 "
        "AND value = ?3 LIMIT ?4)",
    [STATEMENT_INSERT_LABEL] =
        "INSERT OR REPLACE INTO object_labels (object_id, key, value, object_type, workspace, "
        "name) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    [STATEMENT_DELETE_LABELS] = "DELETE FROM object_labels WHERE object_id = ?1",
    [STATEMENT_LIST] = "SELECT " COLUMNS " FROM objects o WHERE o.object_type = ?1 "
                       "AND o.workspace = ?2 AND o.name > ?3 ORDER BY o.name LIMIT ?4",
    [STATEMENT_LIST_ALL] = "SELECT " COLUMNS " FROM objects o WHERE o.object_type = ?1 "
                           "AND (o.workspace, o.name) > (?2, ?3) AND o.name IS NOT NULL "
                           "ORDER BY o.workspace, o.name LIMIT ?4",
    [STATEMENT_LIST_SELECTED] =
        SELECTED "AND l.workspace = ?2 AND l.name > ?3 ORDER BY l.name LIMIT ?4",
    [STATEMENT_LIST_ALL_SELECTED] =
        SELECTED "AND (l.workspace, l.name) > (?2, ?3) ORDER BY l.workspace, l.name LIMIT ?4",
};

struct sqlite_backend *sqlite_of(struct store_backend *backend)
{
    return (struct sqlite_backend *)backend;
}

bool sqlite_failed(struct sqlite_backend *backend, struct error *error, const char *doing)
{
    return sqlite_error(backend->database, backend->path, error, doing);
}

sqlite3_stmt *sqlite_prepare(struct sqlite_backend *backend, enum statement which,
                             struct error *error)
{
    sqlite3_stmt **slot = &backend->statements[which];
    if (*slot == NULL && sqlite3_prepare_v3(backend->database, STATEMENT_TEXT[which], -1,
                                            SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK) {
        sqlite_failed(backend, error, "cannot prepare a query of the records");
        return NULL;
    }
    return *slot;
}

void sqlite_release(sqlite3_stmt *statement)
{
    if (statement == NULL)
        return;
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

void sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    if (text == NULL)
        sqlite3_bind_null(statement, index);
    else
        sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}
