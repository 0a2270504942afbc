/* The records in one SQLite file, on one connection that belongs to the storage thread. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <sqlite3.h>

#include "base/memory.h"
#include "gateway/store/sqlite_backend.h"
#include "gateway/store/sqlite_file.h"
#include "gateway/store/sqlite_schema.h"

/* Runs a statement that gives no rows. */
static bool finish(struct sqlite_backend *backend, sqlite3_stmt *statement, struct error *error,
                   const char *doing)
{
    bool done = sqlite3_step(statement) == SQLITE_DONE;
    if (!done)
        sqlite_failed(backend, error, doing);
    sqlite_release(statement);
    return done;
}

static bool simple(struct sqlite_backend *backend, enum statement which, struct error *error,
                   const char *doing)
{
    sqlite3_stmt *statement = sqlite_prepare(backend, which, error);
    return statement != NULL && finish(backend, statement, error, doing);
}

/* ---- transactions ---- */

static bool sqlite_begin(struct store_backend *backend, bool writes, struct error *error)
{
    return simple(sqlite_of(backend), writes ? STATEMENT_BEGIN_WRITE : STATEMENT_BEGIN, error,
                  "cannot begin a change of the records");
}

static bool sqlite_commit(struct store_backend *backend, struct error *error)
{
    return simple(sqlite_of(backend), STATEMENT_COMMIT, error,
                  "cannot store a change of the records");
}

/* Some errors (a full disk among them) have ended the transaction already. */
static void sqlite_rollback(struct store_backend *backend)
{
    if (!sqlite3_get_autocommit(sqlite_of(backend)->database))
        simple(sqlite_of(backend), STATEMENT_ROLLBACK, NULL,
               "cannot take back a change of the records");
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
        sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_INSERT_LABEL, error);
        if (statement == NULL)
            return false;
        sqlite_bind_text(statement, 1, record->id);
        sqlite_bind_text(statement, 2, record->labels[i].key);
        sqlite_bind_text(statement, 3, record->labels[i].value);
        sqlite_bind_text(statement, 4, record->object_type);
        sqlite_bind_text(statement, 5, workspace);
        sqlite_bind_text(statement, 6, record->name);
        if (!finish(backend, statement, error, "cannot store a record's labels"))
            return false;
    }
    return true;
}

/* ---- one record ---- */

static void bind_record(sqlite3_stmt *statement, const struct store_record *record,
                        const char *labels)
{
    sqlite_bind_text(statement, 1, record->id);
    sqlite_bind_text(statement, 2, record->object_type);
    sqlite_bind_text(statement, 3, record->name);
    sqlite_bind_text(statement, 4, record->scope);
    if (record->has_version)
        sqlite3_bind_int64(statement, 5, record->version);
    else
        sqlite3_bind_null(statement, 5);
    sqlite_bind_text(statement, 6, record->status);
    sqlite_bind_text(statement, 7, record->dedup_key);
    sqlite3_bind_int64(statement, 8, record->hit_count);
    /* A NULL pointer would bind NULL, and an empty message is a record too. */
    sqlite3_bind_blob64(statement, 9, record->payload_size > 0 ? record->payload : "",
                        record->payload_size, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 10, record->created_at);
    sqlite3_bind_int64(statement, 11, record->updated_at);
    sqlite_bind_text(statement, 12, labels);
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
            sqlite_failed(backend, error, "cannot store a record");
    }
    sqlite_release(statement);
    return result == SQLITE_DONE;
}

static bool sqlite_insert(struct store_backend *store_backend, const struct store_record *record,
                          struct error *error)
{
    struct sqlite_backend *backend = sqlite_of(store_backend);
    sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_INSERT, error);
    if (statement == NULL)
        return false;
    CLEANUP_FREE char *labels = labels_to_json(record);
    bind_record(statement, record, labels);
    sqlite_bind_text(statement, 13, record->workspace);
    return finish_unique(backend, statement, record, error) &&
           insert_labels(backend, record, record->workspace, error);
}

static const char *column_text(sqlite3_stmt *statement, int column, struct arena *arena)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return text == NULL ? NULL : arena_strdup(arena, text);
}

bool sqlite_read_record(struct sqlite_backend *backend, sqlite3_stmt *statement,
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
        found = sqlite_read_record(backend, statement, arena, ret_record, error);
    else if (result == SQLITE_DONE)
        error_set(error, ERROR_NOT_FOUND, "the %s '%s' does not exist", object_type, name);
    else
        sqlite_failed(backend, error, "cannot read a record");
    sqlite_release(statement);
    return found;
}

static bool sqlite_get(struct store_backend *store_backend, const char *object_type,
                       const char *workspace, const char *name, struct arena *arena,
                       struct store_record *ret_record, struct error *error)
{
    struct sqlite_backend *backend = sqlite_of(store_backend);
    sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_GET, error);
    if (statement == NULL)
        return false;
    sqlite_bind_text(statement, 1, object_type);
    sqlite_bind_text(statement, 2, workspace);
    sqlite_bind_text(statement, 3, name);
    return read_one(backend, statement, object_type, name, arena, ret_record, error);
}

static bool sqlite_get_by_id(struct store_backend *store_backend, const char *object_type,
                             const char *id, struct arena *arena, struct store_record *ret_record,
                             struct error *error)
{
    struct sqlite_backend *backend = sqlite_of(store_backend);
    sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_GET_BY_ID, error);
    if (statement == NULL)
        return false;
    sqlite_bind_text(statement, 1, object_type);
    sqlite_bind_text(statement, 2, id);
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
    sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_VERSION, error);
    if (statement == NULL)
        return false;
    sqlite_bind_text(statement, 1, object_type);
    sqlite_bind_text(statement, 2, id);
    int result = sqlite3_step(statement);
    if (result == SQLITE_ROW) {
        ret_stored->resource_version = (uint64_t)sqlite3_column_int64(statement, 0);
        ret_stored->labels = memory_strdup((const char *)sqlite3_column_text(statement, 1));
        ret_stored->name = memory_strdup((const char *)sqlite3_column_text(statement, 2));
        ret_stored->workspace = memory_strdup((const char *)sqlite3_column_text(statement, 3));
    } else if (result == SQLITE_DONE) {
        error_set(error, ERROR_NOT_FOUND, "the %s '%s' does not exist", object_type, id);
    } else {
        sqlite_failed(backend, error, "cannot read a record");
    }
    sqlite_release(statement);
    return result == SQLITE_ROW;
}

/* Rewrites the label index where labels or name changed; most writes change neither. */
static bool update_labels(struct sqlite_backend *backend, const struct store_record *record,
                          const struct stored *stored, const char *labels, struct error *error)
{
    const char *name = record->name != NULL ? record->name : "";
    if (strcmp(stored->labels, labels) == 0 && strcmp(stored->name, name) == 0)
        return true;
    sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_DELETE_LABELS, error);
    if (statement == NULL)
        return false;
    sqlite_bind_text(statement, 1, record->id);
    return finish(backend, statement, error, "cannot store a record's labels") &&
           insert_labels(backend, record, stored->workspace, error);
}

static bool sqlite_update(struct store_backend *store_backend, const struct store_record *record,
                          uint64_t expected, struct error *error)
{
    struct sqlite_backend *backend = sqlite_of(store_backend);
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
    sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_UPDATE, error);
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
    struct sqlite_backend *backend = sqlite_of(store_backend);
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
    sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_DELETE, error);
    if (statement == NULL)
        return false;
    sqlite_bind_text(statement, 1, object_type);
    sqlite_bind_text(statement, 2, id);
    return finish(backend, statement, error, "cannot delete a record");
}

static bool sqlite_remove_scope(struct store_backend *store_backend, const char *object_type,
                                const char *scope, uint64_t *ret_count, struct error *error)
{
    struct sqlite_backend *backend = sqlite_of(store_backend);
    sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_DELETE_SCOPE, error);
    if (statement == NULL)
        return false;
    sqlite_bind_text(statement, 1, object_type);
    sqlite_bind_text(statement, 2, scope);
    if (!finish(backend, statement, error, "cannot delete records"))
        return false;
    *ret_count = (uint64_t)sqlite3_changes64(backend->database);
    return true;
}

static bool sqlite_count(struct store_backend *store_backend, const char *object_type,
                         const char *workspace, uint64_t *ret_count, struct error *error)
{
    struct sqlite_backend *backend = sqlite_of(store_backend);
    sqlite3_stmt *statement =
        sqlite_prepare(backend, workspace != NULL ? STATEMENT_COUNT : STATEMENT_COUNT_ALL, error);
    if (statement == NULL)
        return false;
    sqlite_bind_text(statement, 1, object_type);
    if (workspace != NULL)
        sqlite_bind_text(statement, 2, workspace);
    bool counted = sqlite3_step(statement) == SQLITE_ROW;
    if (counted)
        *ret_count = (uint64_t)sqlite3_column_int64(statement, 0);
    else
        sqlite_failed(backend, error, "cannot count the records");
    sqlite_release(statement);
    return counted;
}

/* ---- open and close ---- */

static void sqlite_close(struct store_backend *store_backend)
{
    struct sqlite_backend *backend = sqlite_of(store_backend);
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
