#include <stdlib.h>

#include <jansson.h>

#include "base/memory.h"
#include "gateway/store/sqlite_backend.h"

enum { COUNTED_MAX = 1000 /* records that share a label */ };

/* Which pair the fewest records have, counted no further than COUNTED_MAX: that one is walked, and
 * the others are looked up for each of its records. */
static bool choose_pair(struct sqlite_backend *backend, const struct store_query *query,
                        size_t *ret_chosen, struct error *error)
{
    int64_t fewest = COUNTED_MAX + 1;
    *ret_chosen = 0;
    for (size_t i = 0; query->selector_count > 1 && i < query->selector_count; i++) {
        sqlite3_stmt *statement = sqlite_prepare(backend, STATEMENT_COUNT_LABEL, error);
        if (statement == NULL)
            return false;
        sqlite_bind_text(statement, 1, query->object_type);
        sqlite_bind_text(statement, 2, query->selector[i].key);
        sqlite_bind_text(statement, 3, query->selector[i].value);
        sqlite3_bind_int64(statement, 4, fewest);
        bool counted = sqlite3_step(statement) == SQLITE_ROW;
        int64_t count = counted ? sqlite3_column_int64(statement, 0) : 0;
        if (!counted)
            sqlite_failed(backend, error, "cannot list the records");
        sqlite_release(statement);
        if (!counted)
            return false;
        if (count < fewest) {
            fewest = count;
            *ret_chosen = i;
        }
    }
    return true;
}

/* The pairs but the chosen one for ?7; NULL when there are none. Owned by the caller. */
static char *further_pairs(const struct store_query *query, size_t chosen)
{
    if (query->selector_count < 2)
        return NULL;
    json_t *pairs = json_array();
    for (size_t i = 0; i < query->selector_count; i++)
        if (i != chosen)
            json_array_append_new(
                pairs, json_pack("[ss]", query->selector[i].key, query->selector[i].value));
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
        if (!sqlite_read_record(backend, statement, arena, &records[count++], error))
            return false;
    *ret_count = count;
    return result == SQLITE_DONE || sqlite_failed(backend, error, "cannot list the records");
}

bool sqlite_list(struct store_backend *store_backend, const struct store_query *query,
                 struct arena *arena, struct store_record *records, size_t *ret_count,
                 struct error *error)
{
    struct sqlite_backend *backend = sqlite_of(store_backend);
    bool all = query->workspace == NULL, selected = query->selector_count > 0;
    size_t chosen;
    if (!choose_pair(backend, query, &chosen, error))
        return false;
    sqlite3_stmt *statement =
        sqlite_prepare(backend,
                       all ? (selected ? STATEMENT_LIST_ALL_SELECTED : STATEMENT_LIST_ALL)
                           : (selected ? STATEMENT_LIST_SELECTED : STATEMENT_LIST),
                       error);
    if (statement == NULL)
        return false;
    const char *after_workspace = query->after_workspace != NULL ? query->after_workspace : "";
    CLEANUP_FREE char *further = further_pairs(query, chosen);
    sqlite_bind_text(statement, 1, query->object_type);
    sqlite_bind_text(statement, 2, all ? after_workspace : query->workspace);
    sqlite_bind_text(statement, 3, query->after_name != NULL ? query->after_name : "");
    sqlite3_bind_int64(statement, 4, (sqlite3_int64)query->limit + 1);
    if (selected) {
        sqlite_bind_text(statement, 5, query->selector[chosen].key);
        sqlite_bind_text(statement, 6, query->selector[chosen].value);
        sqlite_bind_text(statement, 7, further);
    }
    bool listed = read_rows(backend, statement, arena, records, ret_count, error);
    sqlite_release(statement);
    return listed;
}
