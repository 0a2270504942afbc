/* The records: one storage thread with a bounded queue in order owns the database.
 *
 * Domain code hands over a piece of work; it runs on the storage thread inside one transaction and
 * sees everything that was handed over before it. Records follow behaviour reference 6.5: one table
 * of objects with a type, a name that is unique in its workspace, and a resource_version that grows
 * by one at each write (1.8). Nothing here shows which database holds them. */
#ifndef GATEWAY_STORE_STORE_H
#define GATEWAY_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/reactor.h"

struct store;
struct store_transaction;

enum {
    STORE_QUEUE_LIMIT = 1024,              /* pieces of work that wait */
    STORE_PAYLOAD_LIMIT = 4 * 1024 * 1024, /* bytes of one record's payload */
    STORE_LIST_LIMIT = 1000,               /* records of one listing */
};

struct store_label {
    const char *key;
    const char *value;
};

/* One record. Strings are never NULL except where it says so. What a function returns lives in the
 * arena given to it; what a function takes is read before it returns. */
struct store_record {
    const char *object_type; /* "sandbox", "workspace", ... */
    const char *id;          /* unique among all records */
    const char *workspace;   /* "" outside every workspace */
    const char *name;        /* unique in (object_type, workspace); NULL: without a name */
    const char *scope;       /* NULL: none. With version and with dedup_key unique in its type */
    const char *dedup_key;   /* NULL: none */
    const char *status;      /* NULL: none; for people who look into the database */
    int64_t version;         /* counts within scope; used where has_version */
    bool has_version;
    int64_t hit_count;
    const void *payload; /* a protobuf message or JSON, by object_type */
    size_t payload_size;
    const struct store_label *labels; /* kept as JSON and in an index, written together */
    size_t label_count;
    int64_t created_at;        /* milliseconds since the epoch; set by store_insert where 0 */
    int64_t updated_at;        /* the same; set by every write */
    uint64_t resource_version; /* 1 after store_insert, one more after each store_update */
};

/* Opens `path` (made with mode 0600 in a directory made 0700, both checked), brings its schema up
 * to date, each step in one transaction, and starts the storage thread. Errors, in words a person
 * can act on: FAILED_PRECONDITION for a schema that is newer than this program and for a database
 * of another program; DATA_LOSS for a file that is no database or is damaged; RESOURCE_EXHAUSTED
 * for a full disk; UNAVAILABLE where another process holds the file. */
struct store *store_open(const char *path, struct reactor *reactor, struct error *error);

/* Finishes what is queued, then closes. `done` callbacks that are due are still posted to the
 * reactor: run or free it afterwards. NULL is allowed. */
void store_close(struct store *store);

/* The work of one transaction, on the storage thread. It must touch nothing that the loop uses
 * meanwhile: give it an argument of its own, with its own arena, and leave that alone until `done`.
 * True commits; false, with the error set, rolls everything back. A refusal that must be stored
 * (an expiry that was noticed) returns true and keeps its error in the argument. */
typedef bool (*store_work)(struct store_transaction *transaction, void *argument,
                           struct error *error);
/* On the loop, exactly once for each piece of work, in the order handed over (one that found the
 * queue full may be earlier). `error` is NULL when the transaction was committed; otherwise nothing
 * of it was stored. */
typedef void (*store_done)(void *argument, const struct error *error);

/* A transaction that may write. It is on disk (fsync) before `done` is called. A full queue answers
 * RESOURCE_EXHAUSTED through `done`. Loop thread only. */
void store_run(struct store *store, store_work work, store_done done, void *argument);
/* The same without writing; a write in it fails. Waits its turn in the same queue. */
void store_read(struct store *store, store_work work, store_done done, void *argument);
/* As store_run, blocking the caller until it is over. For the start of the gateway and for tests;
 * waits for room in the queue. */
bool store_run_wait(struct store *store, store_work work, void *argument, struct error *error);

/* ---- within a transaction ---- */

/* Must not exist: ALREADY_EXISTS for an id, a (type, workspace, name), a (type, scope, version) or
 * a (type, scope, dedup_key) that is taken, after which the transaction may go on (another name may
 * be tried). */
bool store_insert(struct store_transaction *transaction, const struct store_record *record,
                  struct error *error);

/* NOT_FOUND when there is none. */
bool store_get(struct store_transaction *transaction, const char *object_type,
               const char *workspace, const char *name, struct arena *arena,
               struct store_record *ret_record, struct error *error);
bool store_get_by_id(struct store_transaction *transaction, const char *object_type, const char *id,
                     struct arena *arena, struct store_record *ret_record, struct error *error);

/* Writes every field but object_type, id, workspace and created_at, where the stored
 * resource_version is `expected`. Otherwise ABORTED with reason RESOURCE_VERSION_CONFLICT and
 * metadata recovery=REFRESH_STATE and current_resource_version (behaviour reference 1.8), or
 * NOT_FOUND. ret_resource_version may be NULL. */
bool store_update(struct store_transaction *transaction, const struct store_record *record,
                  uint64_t expected, uint64_t *ret_resource_version, struct error *error);

/* NOT_FOUND when there is none. `expected` 0: whatever its version (1.8: deletes carry none). */
bool store_delete(struct store_transaction *transaction, const char *object_type, const char *id,
                  uint64_t expected, struct error *error);
/* Deletes every record of a type in a scope; for the cascade of 1.6. ret_count may be NULL. */
bool store_delete_scope(struct store_transaction *transaction, const char *object_type,
                        const char *scope, uint64_t *ret_count, struct error *error);

struct store_query {
    const char *object_type;
    const char *workspace; /* NULL: all workspaces, in the order of (workspace, name) */
    /* Where to go on: only records behind this one. NULL after_name: from the start;
     * after_workspace counts only without a workspace. */
    const char *after_workspace;
    const char *after_name;
    size_t limit;                       /* 1 to STORE_LIST_LIMIT */
    const struct store_label *selector; /* records that have all of these labels */
    size_t selector_count;
};

/* A page of the records that have a name, by name. *ret_more tells whether further ones follow. */
bool store_list(struct store_transaction *transaction, const struct store_query *query,
                struct arena *arena, struct store_record **ret_records, size_t *ret_count,
                bool *ret_more, struct error *error);

/* How many records a type has in a workspace (NULL: in all). */
bool store_count(struct store_transaction *transaction, const char *object_type,
                 const char *workspace, uint64_t *ret_count, struct error *error);

#endif
