/* What a database must be able to do to hold the records. One object serves one thread.
 *
 * Errors that leave the transaction usable are NOT_FOUND, ALREADY_EXISTS, ABORTED (a version that
 * does not match) and INVALID_ARGUMENT; every other code is a fault of the database, after which
 * the transaction is rolled back. */
#ifndef GATEWAY_STORE_BACKEND_H
#define GATEWAY_STORE_BACKEND_H

#include "gateway/store/store.h"

struct store_backend;

struct store_backend_operations {
    bool (*begin)(struct store_backend *backend, bool writes, struct error *error);
    bool (*commit)(struct store_backend *backend, struct error *error);
    void (*rollback)(struct store_backend *backend);
    bool (*insert)(struct store_backend *backend, const struct store_record *record,
                   struct error *error);
    bool (*get)(struct store_backend *backend, const char *object_type, const char *workspace,
                const char *name, struct arena *arena, struct store_record *ret_record,
                struct error *error);
    bool (*get_by_id)(struct store_backend *backend, const char *object_type, const char *id,
                      struct arena *arena, struct store_record *ret_record, struct error *error);
    bool (*update)(struct store_backend *backend, const struct store_record *record,
                   uint64_t expected, struct error *error);
    bool (*remove)(struct store_backend *backend, const char *object_type, const char *id,
                   uint64_t expected, struct error *error);
    bool (*remove_scope)(struct store_backend *backend, const char *object_type, const char *scope,
                         uint64_t *ret_count, struct error *error);
    /* At most query->limit + 1 records; the one over the limit tells that more follow. */
    bool (*list)(struct store_backend *backend, const struct store_query *query,
                 struct arena *arena, struct store_record *records, size_t *ret_count,
                 struct error *error);
    bool (*count)(struct store_backend *backend, const char *object_type, const char *workspace,
                  uint64_t *ret_count, struct error *error);
    void (*close)(struct store_backend *backend);
};

/* The first member of every backend's own structure. */
struct store_backend {
    const struct store_backend_operations *operations;
};

/* The SQLite file; see store_open. */
struct store_backend *sqlite_backend_open(const char *path, struct error *error);

/* The error for a record that is not at the expected version (behaviour reference 1.8). */
bool store_conflict(struct error *error, const char *object_type, const char *name,
                    uint64_t expected, uint64_t current);

#endif
