/* What the files of the SQLite backend share. */
#ifndef GATEWAY_STORE_SQLITE_BACKEND_H
#define GATEWAY_STORE_SQLITE_BACKEND_H

#include <sqlite3.h>

#include "gateway/store/backend.h"

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
    STATEMENT_COUNT_LABEL,
    STATEMENT_INSERT_LABEL,
    STATEMENT_DELETE_LABELS,
    STATEMENT_LIST,
    STATEMENT_LIST_ALL,
    STATEMENT_LIST_SELECTED,
    STATEMENT_LIST_ALL_SELECTED,
    STATEMENT_TOTAL
};

struct sqlite_backend {
    struct store_backend backend;
    sqlite3 *database;
    char *path;
    sqlite3_stmt *statements[STATEMENT_TOTAL]; /* prepared at first use */
};

struct sqlite_backend *sqlite_of(struct store_backend *backend);

/* The statement, ready for its parameters; NULL on an error. */
sqlite3_stmt *sqlite_prepare(struct sqlite_backend *backend, enum statement which,
                             struct error *error);
/* Ends the use of a statement, so that it neither holds a lock nor the caller's strings. */
void sqlite_release(sqlite3_stmt *statement);
/* NULL for NULL. The text must stay until the statement is released. */
void sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text);
/* The connection's last error, in words; always false. */
bool sqlite_failed(struct sqlite_backend *backend, struct error *error, const char *doing);

/* The row that a statement over the columns of objects stands on. */
bool sqlite_read_record(struct sqlite_backend *backend, sqlite3_stmt *statement,
                        struct arena *arena, struct store_record *ret_record, struct error *error);

bool sqlite_list(struct store_backend *store_backend, const struct store_query *query,
                 struct arena *arena, struct store_record *records, size_t *ret_count,
                 struct error *error);

#endif
