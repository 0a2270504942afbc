#include "gateway/store/store.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "gateway/store/backend.h"

struct job {
    struct job *next;
    struct reactor *reactor;
    store_work work;
    store_done done;
    void *argument;
    bool writes;
    bool succeeded;
    struct error error;
    bool *waited; /* store_run_wait: set, under the mutex, when it is over */
};

struct store {
    struct reactor *reactor;
    struct store_backend *backend; /* the storage thread's alone once that runs */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t arrived;
    pthread_cond_t finished;
    struct job *first;
    struct job *last;
    size_t waiting;
    bool closing;
};

struct store_transaction {
    struct store_backend *backend;
    bool writes;
    bool broken; /* the database failed: nothing may be committed any more */
    struct error fault;
};

bool store_conflict(struct error *error, const char *object_type, const char *name,
                    uint64_t expected, uint64_t current)
{
    char number[32];
    snprintf(number, sizeof(number), "%" PRIu64, current);
    error_set(error, ERROR_ABORTED,
              "the %s '%s' was changed meanwhile (version %" PRIu64 " was expected, it has %s): "
              "read it again and repeat the change",
              object_type, name, expected, number);
    error_set_reason(error, ERROR_DOMAIN_GATEWAY, "RESOURCE_VERSION_CONFLICT");
    error_add_metadata(error, "recovery", "REFRESH_STATE");
    error_add_metadata(error, "current_resource_version", number);
    return false;
}

/* ---- the thread ---- */

static void run_transaction(struct store_backend *backend, struct job *job)
{
    const struct store_backend_operations *operations = backend->operations;
    if (!operations->begin(backend, job->writes, &job->error))
        return;
    struct store_transaction transaction = {.backend = backend, .writes = job->writes};
    bool worked = job->work(&transaction, job->argument, &job->error);
    if (transaction.broken) {
        error_copy(&job->error, &transaction.fault);
        worked = false;
    }
    if (worked) {
        error_clear(&job->error);
        job->succeeded = operations->commit(backend, &job->error);
    } else if (job->error.code == ERROR_OK) {
        error_set(&job->error, ERROR_INTERNAL, "a change of the records failed without a reason");
    }
    if (!job->succeeded)
        operations->rollback(backend);
    error_clear(&transaction.fault);
}

static void deliver(void *argument)
{
    struct job *job = argument;
    job->done(job->argument, job->succeeded ? NULL : &job->error);
    error_clear(&job->error);
    free(job);
}

static struct job *next_job(struct store *store)
{
    pthread_mutex_lock(&store->mutex);
    while (store->first == NULL && !store->closing)
        pthread_cond_wait(&store->arrived, &store->mutex);
    struct job *job = store->first;
    if (job != NULL) {
        store->first = job->next;
        if (store->first == NULL)
            store->last = NULL;
        store->waiting--;
        pthread_cond_broadcast(&store->finished);
    }
    pthread_mutex_unlock(&store->mutex);
    return job;
}

static void *storage_thread(void *argument)
{
    struct store *store = argument;
    for (struct job *job; (job = next_job(store)) != NULL;) {
        run_transaction(store->backend, job);
        if (job->waited == NULL) {
            reactor_post(job->reactor, deliver, job);
            continue;
        }
        pthread_mutex_lock(&store->mutex);
        *job->waited = true;
        pthread_cond_broadcast(&store->finished);
        pthread_mutex_unlock(&store->mutex);
    }
    return NULL;
}

/* The gateway's signals are the loop's business. */
static int start_thread(struct store *store)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(&store->thread, NULL, storage_thread, store);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

struct store *store_open(const char *path, struct reactor *reactor, struct error *error)
{
    struct store_backend *backend = sqlite_backend_open(path, error);
    if (backend == NULL)
        return NULL;
    struct store *store = memory_new_of(struct store);
    store->reactor = reactor;
    store->backend = backend;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->arrived, NULL);
    pthread_cond_init(&store->finished, NULL);
    int result = start_thread(store);
    if (result != 0) {
        error_set_errno(error, ERROR_INTERNAL, result, "cannot start the storage thread");
        backend->operations->close(backend);
        free(store);
        return NULL;
    }
    return store;
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    pthread_mutex_lock(&store->mutex);
    store->closing = true;
    pthread_cond_broadcast(&store->arrived);
    pthread_mutex_unlock(&store->mutex);
    pthread_join(store->thread, NULL);
    store->backend->operations->close(store->backend);
    pthread_cond_destroy(&store->arrived);
    pthread_cond_destroy(&store->finished);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

/* The mutex is held. */
static void enqueue(struct store *store, struct job *job)
{
    if (store->last != NULL)
        store->last->next = job;
    else
        store->first = job;
    store->last = job;
    store->waiting++;
    pthread_cond_signal(&store->arrived);
}

static void submit(struct store *store, bool writes, store_work work, store_done done,
                   void *argument)
{
    struct job *job = memory_new_of(struct job);
    job->reactor = store->reactor;
    job->work = work;
    job->done = done;
    job->argument = argument;
    job->writes = writes;
    pthread_mutex_lock(&store->mutex);
    bool full = store->waiting >= STORE_QUEUE_LIMIT;
    if (!full)
        enqueue(store, job);
    pthread_mutex_unlock(&store->mutex);
    if (!full)
        return;
    error_set(&job->error, ERROR_RESOURCE_EXHAUSTED,
              "the gateway is overloaded: %d operations wait for its records; try again later",
              STORE_QUEUE_LIMIT);
    reactor_post(store->reactor, deliver, job);
}

void store_run(struct store *store, store_work work, store_done done, void *argument)
{
    submit(store, true, work, done, argument);
}

void store_read(struct store *store, store_work work, store_done done, void *argument)
{
    submit(store, false, work, done, argument);
}

bool store_run_wait(struct store *store, store_work work, void *argument, struct error *error)
{
    bool finished = false;
    struct job job = {.work = work, .argument = argument, .writes = true, .waited = &finished};
    pthread_mutex_lock(&store->mutex);
    while (store->waiting >= STORE_QUEUE_LIMIT)
        pthread_cond_wait(&store->finished, &store->mutex);
    enqueue(store, &job);
    while (!finished)
        pthread_cond_wait(&store->finished, &store->mutex);
    pthread_mutex_unlock(&store->mutex);
    if (!job.succeeded && error != NULL)
        error_copy(error, &job.error);
    error_clear(&job.error);
    return job.succeeded;
}

/* ---- within a transaction ---- */

static bool is_refusal(enum error_code code)
{
    return code == ERROR_NOT_FOUND || code == ERROR_ALREADY_EXISTS || code == ERROR_ABORTED ||
           code == ERROR_INVALID_ARGUMENT;
}

/* Hands the outcome on and remembers a fault, which must not be committed over even where the work
 * overlooks it. */
static bool concluded(struct store_transaction *transaction, bool result, struct error *outcome,
                      struct error *error)
{
    if (!result) {
        if (!is_refusal(outcome->code) && !transaction->broken) {
            transaction->broken = true;
            error_copy(&transaction->fault, outcome);
        }
        if (error != NULL)
            error_copy(error, outcome);
    }
    error_clear(outcome);
    return result;
}

static bool may_go_on(struct store_transaction *transaction, bool writes, struct error *error)
{
    if (transaction->broken) {
        if (error != NULL)
            error_copy(error, &transaction->fault);
        return false;
    }
    if (writes && !transaction->writes) {
        struct error outcome = {0};
        error_set(&outcome, ERROR_INTERNAL, "a reading of the records tried to write");
        return concluded(transaction, false, &outcome, error);
    }
    return true;
}

static bool payload_fits(const struct store_record *record, struct error *error)
{
    if (record->payload_size <= STORE_PAYLOAD_LIMIT)
        return true;
    return error_set(error, ERROR_INVALID_ARGUMENT, "a %s of %zu bytes is over the limit of %d",
                     record->object_type, record->payload_size, STORE_PAYLOAD_LIMIT);
}

bool store_insert(struct store_transaction *transaction, const struct store_record *record,
                  struct error *error)
{
    struct error outcome = {0};
    if (!may_go_on(transaction, true, error) || !payload_fits(record, error))
        return false;
    struct store_record stored = *record;
    stored.updated_at = clock_realtime_milliseconds();
    if (stored.created_at == 0)
        stored.created_at = stored.updated_at;
    stored.resource_version = 1;
    bool result = transaction->backend->operations->insert(transaction->backend, &stored, &outcome);
    return concluded(transaction, result, &outcome, error);
}

bool store_get(struct store_transaction *transaction, const char *object_type,
               const char *workspace, const char *name, struct arena *arena,
               struct store_record *ret_record, struct error *error)
{
    struct error outcome = {0};
    if (!may_go_on(transaction, false, error))
        return false;
    bool result = transaction->backend->operations->get(
        transaction->backend, object_type, workspace, name, arena, ret_record, &outcome);
    return concluded(transaction, result, &outcome, error);
}

bool store_get_by_id(struct store_transaction *transaction, const char *object_type, const char *id,
                     struct arena *arena, struct store_record *ret_record, struct error *error)
{
    struct error outcome = {0};
    if (!may_go_on(transaction, false, error))
        return false;
    bool result = transaction->backend->operations->get_by_id(transaction->backend, object_type, id,
                                                              arena, ret_record, &outcome);
    return concluded(transaction, result, &outcome, error);
}

bool store_update(struct store_transaction *transaction, const struct store_record *record,
                  uint64_t expected, uint64_t *ret_resource_version, struct error *error)
{
    struct error outcome = {0};
    if (!may_go_on(transaction, true, error) || !payload_fits(record, error))
        return false;
    struct store_record stored = *record;
    stored.updated_at = clock_realtime_milliseconds();
    bool result =
        transaction->backend->operations->update(transaction->backend, &stored, expected, &outcome);
    if (result && ret_resource_version != NULL)
        *ret_resource_version = expected + 1;
    return concluded(transaction, result, &outcome, error);
}

bool store_delete(struct store_transaction *transaction, const char *object_type, const char *id,
                  uint64_t expected, struct error *error)
{
    struct error outcome = {0};
    if (!may_go_on(transaction, true, error))
        return false;
    bool result = transaction->backend->operations->remove(transaction->backend, object_type, id,
                                                           expected, &outcome);
    return concluded(transaction, result, &outcome, error);
}

bool store_delete_scope(struct store_transaction *transaction, const char *object_type,
                        const char *scope, uint64_t *ret_count, struct error *error)
{
    struct error outcome = {0};
    uint64_t count = 0;
    if (!may_go_on(transaction, true, error))
        return false;
    bool result = transaction->backend->operations->remove_scope(transaction->backend, object_type,
                                                                 scope, &count, &outcome);
    if (result && ret_count != NULL)
        *ret_count = count;
    return concluded(transaction, result, &outcome, error);
}

bool store_list(struct store_transaction *transaction, const struct store_query *query,
                struct arena *arena, struct store_record **ret_records, size_t *ret_count,
                bool *ret_more, struct error *error)
{
    struct error outcome = {0};
    if (!may_go_on(transaction, false, error))
        return false;
    if (query->limit < 1 || query->limit > STORE_LIST_LIMIT)
        return error_set(error, ERROR_INVALID_ARGUMENT, "a page must have 1 to %d records",
                         STORE_LIST_LIMIT);
    struct store_record *records = arena_array_of(arena, struct store_record, query->limit + 1);
    size_t count = 0;
    bool result = transaction->backend->operations->list(transaction->backend, query, arena,
                                                         records, &count, &outcome);
    if (result) {
        *ret_more = count > query->limit;
        *ret_count = *ret_more ? query->limit : count;
        *ret_records = records;
    }
    return concluded(transaction, result, &outcome, error);
}

bool store_count(struct store_transaction *transaction, const char *object_type,
                 const char *workspace, uint64_t *ret_count, struct error *error)
{
    struct error outcome = {0};
    if (!may_go_on(transaction, false, error))
        return false;
    bool result = transaction->backend->operations->count(transaction->backend, object_type,
                                                          workspace, ret_count, &outcome);
    return concluded(transaction, result, &outcome, error);
}
