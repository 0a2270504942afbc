/* The records in one SQLite file, on one connection that belongs to the storage thread. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sqlite3.h>

#include "base/memory.h"
#include "gateway/store/backend.h"
#include "gateway/store/sqlite_file.h"
#include "gateway/store/sqlite_schema.h"

#define COLUMNS                                                                                    \
    "o.id, o.object_type, o.name, o.scope, o.version, o.status, o.dedup_key, o.hit_count, "        \
    "o.payload, o.created_at_ms, o.updated_at_ms, o.labels, o.resource_version, o.workspace"

/* ?7 holds the second and further pairs of a selector as [["key", "value"], ...], or NULL. */
#define SELECTED                                                                                   \
    "SELECT " COLUMNS " FROM object_labels l CROSS JOIN objects o ON o.id = l.object_id "          \
    "WHERE l.object_type = ?1 AND l.key = ?5 AND l.value = ?6 AND (?7 IS NULL OR NOT EXISTS "      \
    "(SELECT 1 FROM json_each(?7) pair WHERE NOT EXISTS (SELECT 1 FROM object_labels other "       \
    "WHERE other.object_id = l.object_id AND other.key = json_extract(pair.value, '$[0]') "        \
    "AND other.value = json_extract(pair.value, '$[1]')))) "

enum statement {
    STATEMENT_BEGIN,
    STATEMENT_BEGIN_WRITE,
    STATEMENT_COMMIT,
    STATEMENT_ROLLBACK,
    STATEMENT_INSERT,
    STATEMENT_GET,
    STATEMENT_GET_BY_ID,
    STATEMENT_VERSION,
    STATEMENT_UPDATE,
    STATEMENT_DELETE,
    STATEMENT_DELETE_SCOPE,
    STATEMENT_COUNT,
    STATEMENT_COUNT_ALL,
    STATEMENT_INSERT_LABEL,
    STATEMENT_DELETE_LABELS,
    STATEMENT_LIST,
    STATEMENT_LIST_ALL,
    STATEMENT_LIST_SELECTED,
    STATEMENT_LIST_ALL_SELECTED,
    STATEMENT_TOTAL
};

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

struct sqlite_backend {
    struct store_backend backend;
    sqlite3 *database;
    char *path;
    sqlite3_stmt *statements[STATEMENT_TOTAL]; /* prepared at first use */
};

static struct sqlite_backend *of(struct store_backend *backend)
{
    return (struct sqlite_backend *)backend;
}

static bool failed(struct sqlite_backend *backend, struct error *error, const char *doing)
{
    return sqlite_error(backend->database, backend->path, error, doing);
}

/* The statement, ready for its parameters; NULL on an error. */
static sqlite3_stmt *prepare(struct sqlite_backend *backend, enum statement which,
                             struct error *error)
{
    sqlite3_stmt **slot = &backend->statements[which];
    if (*slot == NULL && sqlite3_prepare_v3(backend->database, STATEMENT_TEXT[which], -1,
                                            SQLITE_PREPARE_PERSISTENT, slot, NULL) != SQLITE_OK) {
        failed(backend, error, "cannot prepare a query of the records");
        return NULL;
    }
    return *slot;
}

/* Ends the use of a statement, so that it neither holds a lock nor the caller's strings. */
static void release(sqlite3_stmt *statement)
{
    if (statement == NULL)
        return;
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
}

static void bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    if (text == NULL)
        sqlite3_bind_null(statement, index);
    else
        sqlite3_bind_text(statement, index, text, -1, SQLITE_STATIC);
}

/* Runs a statement that gives no rows. */
static bool finish(struct sqlite_backend *backend, sqlite3_stmt *statement, struct error *error,
                   const char *doing)
{
    bool done = sqlite3_step(statement) == SQLITE_DONE;
    if (!done)
        failed(backend, error, doing);
    release(statement);
    return done;
}

static bool simple(struct sqlite_backend *backend, enum statement which, struct error *error,
                   const char *doing)
{
    sqlite3_stmt *statement = prepare(backend, which, error);
    return statement != NULL && finish(backend, statement, error, doing);
}

/* ---- transactions ---- */

static bool sqlite_begin(struct store_backend *backend, bool writes, struct error *error)
{
    return simple(of(backend), writes ? STATEMENT_BEGIN_WRITE : STATEMENT_BEGIN, error,
                  "cannot begin a change of the records");
}

static bool sqlite_commit(struct store_backend *backend, struct error *error)
{
    return simple(of(backend), STATEMENT_COMMIT, error, "cannot store a change of the records");
}

/* Some errors (a full disk among them) have ended the transaction already. */
static void sqlite_rollback(struct store_backend *backend)
{
    if (!sqlite3_get_autocommit(of(backend)->database))
        simple(of(backend), STATEMENT_ROLLBACK, NULL, "cannot take back a change of the records");
}

/* ---- labels ---- */

/* The same labels give the same text. Owned by the caller. */
static char *labels_to_json(const struct store_record *record)
{
    json_t *object = json_object();
    for (size_t i = 0; i < record->label_count; i++)
        json_object_set_new(object, record->labels[i].key, json_string(record->labels[i].value));
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(object);
    if (text == NULL)
        memory_exhausted();
    return text;
}

static bool labels_from_json(const char *text, struct arena *arena, struct store_record *record)
{
    json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        return false;
    }
    struct store_label *labels =
        arena_array_of(arena, struct store_label, json_object_size(object));
    const char *key;
    json_t *value;
    size_t count = 0;
    json_object_foreach(object, key, value)
    {
        const char *word = json_string_value(value);
        labels[count].key = arena_strdup(arena, key);
        labels[count++].value = arena_strdup(arena, word != NULL ? word : "");
    }
    record->labels = labels;
    record->label_count = count;
    json_decref(object);
    return true;
}

static bool insert_labels(struct sqlite_backend *backend, const struct store_record *record,
                          const char *workspace, struct error *error)
{
    if (record->name == NULL)
        return true;
    for (size_t i = 0; i < record->label_count; i++) {
        sqlite3_stmt *statement = prepare(backend, STATEMENT_INSERT_LABEL, error);
        if (statement == NULL)
            return false;
        bind_text(statement, 1, record->id);
        bind_text(statement, 2, record->labels[i].key);
        bind_text(statement, 3, record->labels[i].value);
        bind_text(statement, 4, record->object_type);
        bind_text(statement, 5, workspace);
        bind_text(statement, 6, record->name);
        if (!finish(backend, statement, error, "cannot store a record's labels"))
            return false;
    }
    return true;
}

/* ---- one record ---- */

static void bind_record(sqlite3_stmt *statement, const struct store_record *record,
                        const char *labels)
{
    bind_text(statement, 1, record->id);
    bind_text(statement, 2, record->object_type);
    bind_text(statement, 3, record->name);
    bind_text(statement, 4, record->scope);
    if (record->has_version)
        sqlite3_bind_int64(statement, 5, record->version);
    else
        sqlite3_bind_null(statement, 5);
    bind_text(statement, 6, record->status);
    bind_text(statement, 7, record->dedup_key);
    sqlite3_bind_int64(statement, 8, record->hit_count);
    /* A NULL pointer would bind NULL, and an empty message is a record too. */
    sqlite3_bind_blob64(statement, 9, record->payload_size > 0 ? record->payload : "",
                        record->payload_size, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 10, record->created_at);
    sqlite3_bind_int64(statement, 11, record->updated_at);
    bind_text(statement, 12, labels);
}

/* Runs an insert or update; a unique key that is taken is ALREADY_EXISTS. */
static bool finish_unique(struct sqlite_backend *backend, sqlite3_stmt *statement,
                          const struct store_record *record, struct error *error)
{
    int result = sqlite3_step(statement);
    if (result != SQLITE_DONE) {
        int code = sqlite3_extended_errcode(backend->database);
        if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY)
            error_set(error, ERROR_ALREADY_EXISTS, "the %s '%s' exists already",
                      record->object_type, record->name != NULL ? record->name : record->id);
        else
            failed(backend, error, "cannot store a record");
    }
    release(statement);
    return result == SQLITE_DONE;
}

static bool sqlite_insert(struct store_backend *store_backend, const struct store_record *record,
                          struct error *error)
{
    struct sqlite_backend *backend = of(store_backend);
    sqlite3_stmt *statement = prepare(backend, STATEMENT_INSERT, error);
    if (statement == NULL)
        return false;
    CLEANUP_FREE char *labels = labels_to_json(record);
    bind_record(statement, record, labels);
    bind_text(statement, 13, record->workspace);
    return finish_unique(backend, statement, record, error) &&
           insert_labels(backend, record, record->workspace, error);
}

static const char *column_text(sqlite3_stmt *statement, int column, struct arena *arena)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text == NULL ? NULL : arena_strdup(arena, text);
}

static bool read_record(struct sqlite_backend *backend, sqlite3_stmt *statement,
                        struct arena *arena, struct store_record *ret_record, struct error *error)
{
    struct store_record record = {
        .id = column_text(statement, 0, arena),
        .object_type = column_text(statement, 1, arena),
        .name = column_text(statement, 2, arena),
        .scope = column_text(statement, 3, arena),
        .has_version = sqlite3_column_type(statement, 4) != SQLITE_NULL,
        .version = sqlite3_column_int64(statement, 4),
        .status = column_text(statement, 5, arena),
        .dedup_key = column_text(statement, 6, arena),
        .hit_count = sqlite3_column_int64(statement, 7),
        .created_at = sqlite3_column_int64(statement, 9),
        .updated_at = sqlite3_column_int64(statement, 10),
        .resource_version = (uint64_t)sqlite3_column_int64(statement, 12),
        .workspace = column_text(statement, 13, arena),
    };
    const void *payload = sqlite3_column_blob(statement, 8);
    record.payload_size = (size_t)sqlite3_column_bytes(statement, 8);
    record.payload = arena_memdup(arena, payload != NULL ? payload : "", record.payload_size);
    const char *labels = (const char *)sqlite3_column_text(statement, 11);
    if (record.id == NULL || record.object_type == NULL || record.workspace == NULL ||
        labels == NULL || !labels_from_json(labels, arena, &record))
        return error_set(error, ERROR_DATA_LOSS,
                         "a record in %s cannot be read (%s %s); put a backup in its place",
                         backend->path, record.object_type != NULL ? record.object_type : "?",
                         record.id != NULL ? record.id : "?");
    *ret_record = record;
    return true;
}

/* Reads the one row of a statement whose parameters are set. */
static bool read_one(struct sqlite_backend *backend, sqlite3_stmt *statement,
                     const char *object_type, const char *name, struct arena *arena,
                     struct store_record *ret_record, struct error *error)
{
    int result = sqlite3_step(statement);
    bool found = result == SQLITE_ROW;
    if (found)
        found = read_record(backend, statement, arena, ret_record, error);
    else if (result == SQLITE_DONE)
        error_set(error, ERROR_NOT_FOUND, "the %s '%s' does not exist", object_type, name);
    else
        failed(backend, error, "cannot read a record");
    release(statement);
    return found;
}

static bool sqlite_get(struct store_backend *store_backend, const char *object_type,
                       const char *workspace, const char *name, struct arena *arena,
                       struct store_record *ret_record, struct error *error)
{
    struct sqlite_backend *backend = of(store_backend);
    sqlite3_stmt *statement = prepare(backend, STATEMENT_GET, error);
    if (statement == NULL)
        return false;
    bind_text(statement, 1, object_type);
    bind_text(statement, 2, workspace);
    bind_text(statement, 3, name);
    return read_one(backend, statement, object_type, name, arena, ret_record, error);
}

static bool sqlite_get_by_id(struct store_backend *store_backend, const char *object_type,
                             const char *id, struct arena *arena, struct store_record *ret_record,
                             struct error *error)
{
    struct sqlite_backend *backend = of(store_backend);
    sqlite3_stmt *statement = prepare(backend, STATEMENT_GET_BY_ID, error);
    if (statement == NULL)
        return false;
    bind_text(statement, 1, object_type);
    bind_text(statement, 2, id);
    return read_one(backend, statement, object_type, id, arena, ret_record, error);
}

/* What an update or a delete must know about the stored record. Strings are owned. */
struct stored {
    uint64_t resource_version;
    char *labels;
    char *name;
    char *workspace;
};

static void stored_free(struct stored *stored)
{
    free(stored->labels);
    free(stored->name);
    free(stored->workspace);
}

static bool read_stored(struct sqlite_backend *backend, const char *object_type, const char *id,
                        struct stored *ret_stored, struct error *error)
{
    sqlite3_stmt *statement = prepare(backend, STATEMENT_VERSION, error);
    if (statement == NULL)
        return false;
    bind_text(statement, 1, object_type);
    bind_text(statement, 2, id);
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        ret_stored->resource_version = (uint64_t)sqlite3_column_int64(statement, 0);
        ret_stored->labels = memory_strdup((const char *)sqlite3_column_text(statement, 1));
        ret_stored->name = memory_strdup((const char *)sqlite3_column_text(statement, 2));
        ret_stored->workspace = memory_strdup((const char *)sqlite3_column_text(statement, 3));
    } else if (result == SQLITE_DONE) {
        error_set(error, ERROR_NOT_FOUND, "the %s '%s' does not exist", object_type, id);
    } else {
        failed(backend, error, "cannot read a record");
    }
    release(statement);
    return result == SQLITE_ROW;
}

/* Rewrites the label index where labels or name changed; most writes change neither. */
static bool update_labels(struct sqlite_backend *backend, const struct store_record *record,
                          const struct stored *stored, const char *labels, struct error *error)
{
    const char *name = record->name != NULL ? record->name : "";
    if (strcmp(stored->labels, labels) == 0 && strcmp(stored->name, name) == 0)
        return true;
    sqlite3_stmt *statement = prepare(backend, STATEMENT_DELETE_LABELS, error);
    if (statement == NULL)
        return false;
    bind_text(statement, 1, record->id);
    return finish(backend, statement, error, "cannot store a record's labels") &&
           insert_labels(backend, record, stored->workspace, error);
}

static bool sqlite_update(struct store_backend *store_backend, const struct store_record *record,
                          uint64_t expected, struct error *error)
{
    struct sqlite_backend *backend = of(store_backend);
    struct stored stored = {0};
    if (!read_stored(backend, record->object_type, record->id, &stored, error))
        return false;
    if (stored.resource_version != expected) {
        store_conflict(error, record->object_type, record->name != NULL ? record->name : record->id,
                       expected, stored.resource_version);
        stored_free(&stored);
        return false;
    }
    CLEANUP_FREE char *labels = labels_to_json(record);
    sqlite3_stmt *statement = prepare(backend, STATEMENT_UPDATE, error);
    bool updated = statement != NULL;
    if (updated) {
        bind_record(statement, record, labels);
        updated = finish_unique(backend, statement, record, error) &&
                  update_labels(backend, record, &stored, labels, error);
    }
    stored_free(&stored);
    return updated;
}

static bool sqlite_remove(struct store_backend *store_backend, const char *object_type,
                          const char *id, uint64_t expected, struct error *error)
{
    struct sqlite_backend *backend = of(store_backend);
    struct stored stored = {0};
    if (!read_stored(backend, object_type, id, &stored, error))
        return false;
    bool matches = expected == 0 || stored.resource_version == expected;
    if (!matches)
        store_conflict(error, object_type, stored.name[0] != '\0' ? stored.name : id, expected,
                       stored.resource_version);
    stored_free(&stored);
    if (!matches)
        return false;
    sqlite3_stmt *statement = prepare(backend, STATEMENT_DELETE, error);
    if (statement == NULL)
        return false;
    bind_text(statement, 1, object_type);
    bind_text(statement, 2, id);
    return finish(backend, statement, error, "cannot delete a record");
}

static bool sqlite_remove_scope(struct store_backend *store_backend, const char *object_type,
                                const char *scope, uint64_t *ret_count, struct error *error)
{
    struct sqlite_backend *backend = of(store_backend);
    sqlite3_stmt *statement = prepare(backend, STATEMENT_DELETE_SCOPE, error);
    if (statement == NULL)
        return false;
    bind_text(statement, 1, object_type);
    bind_text(statement, 2, scope);
    if (!finish(backend, statement, error, "cannot delete records"))
        return false;
    *ret_count = (uint64_t)sqlite3_changes64(backend->database);
    return true;
}

/* ---- many records ---- */

/* The second and further pairs for ?7; NULL when there are none. Owned by the caller. */
static char *further_pairs(const struct store_query *query)
{
    if (query->selector_count < 2)
        return NULL;
    json_t *pairs = json_array();
    for (size_t i = 1; i < query->selector_count; i++)
        json_array_append_new(pairs,
                              json_pack("[ss]", query->selector[i].key, query->selector[i].value));
    char *text = json_dumps(pairs, JSON_COMPACT);
    json_decref(pairs);
    if (text == NULL)
        memory_exhausted();
    return text;
}

static bool read_rows(struct sqlite_backend *backend, sqlite3_stmt *statement, struct arena *arena,
                      struct store_record *records, size_t *ret_count, struct error *error)
{
    size_t count = 0;
    int result;
    while ((result = sqlite3_step(statement)) == SQLITE_ROW)
        if (!read_record(backend, statement, arena, &records[count++], error))
            return false;
    *ret_count = count;
    return result == SQLITE_DONE || failed(backend, error, "cannot list the records");
}

static bool sqlite_list(struct store_backend *store_backend, const struct store_query *query,
                        struct arena *arena, struct store_record *records, size_t *ret_count,
                        struct error *error)
{
    struct sqlite_backend *backend = of(store_backend);
    bool all = query->workspace == NULL, selected = query->selector_count > 0;
    sqlite3_stmt *statement =
        prepare(backend,
                all ? (selected ? STATEMENT_LIST_ALL_SELECTED : STATEMENT_LIST_ALL)
                    : (selected ? STATEMENT_LIST_SELECTED : STATEMENT_LIST),
                error);
    if (statement == NULL)
        return false;
    const char *after_workspace = query->after_workspace != NULL ? query->after_workspace : "";
    CLEANUP_FREE char *further = further_pairs(query);
    bind_text(statement, 1, query->object_type);
    bind_text(statement, 2, all ? after_workspace : query->workspace);
    bind_text(statement, 3, query->after_name != NULL ? query->after_name : "");
    sqlite3_bind_int64(statement, 4, (sqlite3_int64)query->limit + 1);
    if (selected) {
        bind_text(statement, 5, query->selector[0].key);
        bind_text(statement, 6, query->selector[0].value);
        bind_text(statement, 7, further);
    }
    bool listed = read_rows(backend, statement, arena, records, ret_count, error);
    release(statement);
    return listed;
}

static bool sqlite_count(struct store_backend *store_backend, const char *object_type,
                         const char *workspace, uint64_t *ret_count, struct error *error)
{
    struct sqlite_backend *backend = of(store_backend);
    sqlite3_stmt *statement =
        prepare(backend, workspace != NULL ? STATEMENT_COUNT : STATEMENT_COUNT_ALL, error);
    if (statement == NULL)
        return false;
    bind_text(statement, 1, object_type);
    if (workspace != NULL)
        bind_text(statement, 2, workspace);
    bool counted = sqlite3_step(statement) == SQLITE_ROW;
    if (counted)
        *ret_count = (uint64_t)sqlite3_column_int64(statement, 0);
    else
        failed(backend, error, "cannot count the records");
    release(statement);
    return counted;
}

/* ---- open and close ---- */

static void sqlite_close(struct store_backend *store_backend)
{
    struct sqlite_backend *backend = of(store_backend);
    for (size_t i = 0; i < STATEMENT_TOTAL; i++)
        sqlite3_finalize(backend->statements[i]);
    sqlite3_close(backend->database);
    free(backend->path);
    free(backend);
}

static const struct store_backend_operations OPERATIONS = {
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .insert = sqlite_insert,
    .get = sqlite_get,
    .get_by_id = sqlite_get_by_id,
    .update = sqlite_update,
    .remove = sqlite_remove,
    .remove_scope = sqlite_remove_scope,
    .list = sqlite_list,
    .count = sqlite_count,
    .close = sqlite_close,
};

struct store_backend *sqlite_backend_open(const char *path, struct error *error)
{
    sqlite3 *database = sqlite_file_open(path, error);
    if (database == NULL)
        return NULL;
    struct sqlite_backend *backend = memory_new_of(struct sqlite_backend);
    backend->backend.operations = &OPERATIONS;
    backend->path = memory_strdup(path);
    backend->database = database;
    if (sqlite_schema_update(database, path, sqlite_migrations, sqlite_migration_count, error))
        return &backend->backend;
    sqlite_close(&backend->backend);
    return NULL;
}
