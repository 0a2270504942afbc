#include "gateway_fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/reactor.h"
#include "gateway/store/backend.h"
#include "gateway/store/sqlite_schema.h"
#include "gateway/store/store.h"

struct fixture {
    char *directory;
    char *path;
    struct reactor *reactor;
    struct store *store;
    struct arena *arena;
};

static int set_up(void **state)
{
    struct fixture *fixture = memory_new_of(struct fixture);
    struct error error = {0};
    fixture->directory = fixture_directory();
    fixture->path = memory_printf("%s/state/openshell.db", fixture->directory);
    fixture->arena = arena_new(0);
    fixture->reactor = reactor_new(&error);
    fixture->store = store_open(fixture->path, fixture->reactor, &error);
    if (fixture->store == NULL)
        fail_msg("%s", error.message);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    reactor_free(fixture->reactor);
    arena_free(fixture->arena);
    free(fixture->path);
    fixture_remove(fixture->directory);
    free(fixture);
    return 0;
}

static void reopen(struct fixture *fixture)
{
    struct error error = {0};
    store_close(fixture->store);
    fixture->store = store_open(fixture->path, fixture->reactor, &error);
    if (fixture->store == NULL)
        fail_msg("%s", error.message);
}

/* Runs a check of a test within one transaction. */
static void within(struct fixture *fixture,
                   bool (*work)(struct store_transaction *, void *, struct error *))
{
    struct error error = {0};
    if (!store_run_wait(fixture->store, work, fixture, &error))
        fail_msg("%s", error.message);
}

static struct store_record plain(const char *id, const char *name)
{
    return (struct store_record){
        .object_type = "sandbox",
        .id = id,
        .workspace = "default",
        .name = name,
        .payload = "bytes\0more",
        .payload_size = 10,
    };
}

/* ---- one record ---- */

static bool insert_and_read(struct store_transaction *transaction, void *argument,
                            struct error *error)
{
    struct fixture *fixture = argument;
    struct store_label labels[] = {{"team", "red"}, {"env", ""}};
    struct store_record record = plain("id-1", "one");
    record.labels = labels;
    record.label_count = 2;
    record.status = "SANDBOX_PHASE_READY";
    record.scope = "scope";
    record.has_version = true;
    record.version = 7;
    record.dedup_key = "key";
    record.hit_count = 3;
    assert_true(store_insert(transaction, &record, error));
    struct store_record read;
    assert_true(store_get(transaction, "sandbox", "default", "one", fixture->arena, &read, error));
    assert_string_equal(read.id, "id-1");
    assert_string_equal(read.status, "SANDBOX_PHASE_READY");
    assert_string_equal(read.scope, "scope");
    assert_string_equal(read.dedup_key, "key");
    assert_true(read.has_version);
    assert_int_equal(read.version, 7);
    assert_int_equal(read.hit_count, 3);
    assert_int_equal(read.payload_size, 10);
    assert_memory_equal(read.payload, "bytes\0more", 10);
    assert_int_equal(read.resource_version, 1);
    assert_true(read.created_at > 1000000000000);
    assert_int_equal(read.updated_at, read.created_at);
    assert_int_equal(read.label_count, 2);
    assert_true(store_get_by_id(transaction, "sandbox", "id-1", fixture->arena, &read, error));
    assert_string_equal(read.name, "one");
    return true;
}

static void test_a_record_comes_back_whole(void **state)
{
    within(*state, insert_and_read);
}

static bool absent(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct fixture *fixture = argument;
    struct store_record read;
    struct error outcome = {0};
    assert_false(
        store_get(transaction, "sandbox", "default", "none", fixture->arena, &read, &outcome));
    assert_int_equal(outcome.code, ERROR_NOT_FOUND);
    assert_false(store_get_by_id(transaction, "sandbox", "x", fixture->arena, &read, &outcome));
    assert_int_equal(outcome.code, ERROR_NOT_FOUND);
    assert_false(store_delete(transaction, "sandbox", "x", 0, &outcome));
    assert_int_equal(outcome.code, ERROR_NOT_FOUND);
    struct store_record record = plain("x", "none");
    assert_false(store_update(transaction, &record, 1, NULL, &outcome));
    assert_int_equal(outcome.code, ERROR_NOT_FOUND);
    error_clear(&outcome);
    (void)error;
    return true;
}

static void test_what_is_absent_is_not_found(void **state)
{
    within(*state, absent);
}

static void expect_taken(struct store_transaction *transaction, struct store_record record)
{
    struct error outcome = {0};
    assert_false(store_insert(transaction, &record, &outcome));
    assert_int_equal(outcome.code, ERROR_ALREADY_EXISTS);
    error_clear(&outcome);
}

static bool unique_keys(struct store_transaction *transaction, void *argument, struct error *error)
{
    (void)argument;
    struct store_record first = plain("id-1", "one");
    first.scope = "s";
    first.has_version = true;
    first.version = 1;
    first.dedup_key = "d";
    assert_true(store_insert(transaction, &first, error));
    expect_taken(transaction, plain("id-1", "two"));
    expect_taken(transaction, plain("id-2", "one"));
    struct store_record other = plain("id-3", "three");
    other.scope = "s";
    other.has_version = true;
    other.version = 1;
    expect_taken(transaction, other);
    other.version = 2;
    other.dedup_key = "d";
    expect_taken(transaction, other);
    other.dedup_key = "e";
    assert_true(store_insert(transaction, &other, error));
    struct store_record elsewhere = plain("id-4", "one");
    elsewhere.workspace = "else";
    assert_true(store_insert(transaction, &elsewhere, error));
    elsewhere = plain("id-5", "one");
    elsewhere.object_type = "provider";
    assert_true(store_insert(transaction, &elsewhere, error));
    /* Records without a name, a scope or a key do not stand in each other's way. */
    struct store_record nameless = plain("id-6", NULL);
    assert_true(store_insert(transaction, &nameless, error));
    nameless.id = "id-7";
    assert_true(store_insert(transaction, &nameless, error));
    return true;
}

static void test_each_key_is_unique(void **state)
{
    within(*state, unique_keys);
}

static bool compare_and_set(struct store_transaction *transaction, void *argument,
                            struct error *error)
{
    struct fixture *fixture = argument;
    struct store_record record = plain("id-1", "one");
    assert_true(store_insert(transaction, &record, error));
    uint64_t version = 0;
    record.payload = "new";
    record.payload_size = 3;
    assert_true(store_update(transaction, &record, 1, &version, error));
    assert_int_equal(version, 2);
    struct error outcome = {0};
    assert_false(store_update(transaction, &record, 1, &version, &outcome));
    assert_int_equal(outcome.code, ERROR_ABORTED);
    assert_string_equal(outcome.domain, ERROR_DOMAIN_GATEWAY);
    assert_string_equal(outcome.reason, "RESOURCE_VERSION_CONFLICT");
    assert_string_equal(error_get_metadata(&outcome, "recovery"), "REFRESH_STATE");
    assert_string_equal(error_get_metadata(&outcome, "current_resource_version"), "2");
    assert_false(store_delete(transaction, "sandbox", "id-1", 1, &outcome));
    assert_int_equal(outcome.code, ERROR_ABORTED);
    error_clear(&outcome);
    struct store_record read;
    assert_true(store_get_by_id(transaction, "sandbox", "id-1", fixture->arena, &read, error));
    assert_memory_equal(read.payload, "new", 3);
    assert_int_equal(read.resource_version, 2);
    assert_true(store_delete(transaction, "sandbox", "id-1", 2, error));
    return true;
}

static void test_a_write_needs_the_current_version(void **state)
{
    within(*state, compare_and_set);
}

static bool delete_scopes(struct store_transaction *transaction, void *argument,
                          struct error *error)
{
    (void)argument;
    for (int i = 0; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof(id), "id-%d", i);
        struct store_record record = plain(id, NULL);
        record.object_type = i < 5 ? "ssh_session" : "sandbox_policy";
        record.scope = i % 2 == 0 ? "even" : "odd";
        assert_true(store_insert(transaction, &record, error));
    }
    uint64_t count = 0;
    assert_true(store_delete_scope(transaction, "ssh_session", "even", &count, error));
    assert_int_equal(count, 3);
    assert_true(store_count(transaction, "ssh_session", NULL, &count, error));
    assert_int_equal(count, 2);
    assert_true(store_count(transaction, "sandbox_policy", "default", &count, error));
    assert_int_equal(count, 1);
    assert_true(store_count(transaction, "sandbox_policy", "else", &count, error));
    assert_int_equal(count, 0);
    return true;
}

static void test_a_scope_goes_at_once(void **state)
{
    within(*state, delete_scopes);
}

/* ---- lists ---- */

static bool insert_listed(struct store_transaction *transaction, void *argument,
                          struct error *error)
{
    (void)argument;
    static const char *const names[] = {"delta", "alpha", "charlie", "bravo", "echo"};
    for (int i = 0; i < 5; i++) {
        char id[16];
        snprintf(id, sizeof(id), "id-%d", i);
        struct store_label labels[] = {
            {"all", "yes"}, {"first", names[i][0] < 'd' ? "y" : "n"}, {"quote", "a'\"b"}};
        struct store_record record = plain(id, names[i]);
        record.workspace = names[i][0] == 'e' ? "aaa" : "default";
        record.labels = labels;
        record.label_count = 3;
        assert_true(store_insert(transaction, &record, error));
    }
    struct store_record nameless = plain("id-nameless", NULL);
    assert_true(store_insert(transaction, &nameless, error));
    return true;
}

struct listing {
    struct store_query query;
    struct arena *arena;
    char names[128]; /* with a comma after each */
    bool more;
};

static bool list_names(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct listing *listing = argument;
    struct store_record *records;
    size_t count;
    if (!store_list(transaction, &listing->query, listing->arena, &records, &count, &listing->more,
                    error))
        return false;
    listing->names[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        strcat(listing->names, records[i].name);
        strcat(listing->names, ",");
    }
    return true;
}

static void expect_list(struct fixture *fixture, struct store_query query, const char *names,
                        bool more)
{
    struct error error = {0};
    struct listing listing = {.query = query, .arena = fixture->arena};
    listing.query.object_type = "sandbox";
    if (!store_run_wait(fixture->store, list_names, &listing, &error))
        fail_msg("%s", error.message);
    assert_string_equal(listing.names, names);
    assert_int_equal(listing.more, more);
}

static void test_lists_go_by_name_in_pages(void **state)
{
    struct fixture *fixture = *state;
    within(fixture, insert_listed);
    struct store_query query = {.workspace = "default", .limit = 10};
    expect_list(fixture, query, "alpha,bravo,charlie,delta,", false);
    query.limit = 2;
    expect_list(fixture, query, "alpha,bravo,", true);
    query.after_name = "bravo";
    expect_list(fixture, query, "charlie,delta,", false);
    query.after_name = "bz";
    query.limit = 1;
    expect_list(fixture, query, "charlie,", true);
    query = (struct store_query){.limit = 10};
    expect_list(fixture, query, "echo,alpha,bravo,charlie,delta,", false);
    query.limit = 1;
    expect_list(fixture, query, "echo,", true);
    query.after_workspace = "aaa";
    query.after_name = "echo";
    query.limit = 2;
    expect_list(fixture, query, "alpha,bravo,", true);
    query = (struct store_query){.workspace = "none", .limit = 10};
    expect_list(fixture, query, "", false);
}

static void test_lists_go_by_label(void **state)
{
    struct fixture *fixture = *state;
    within(fixture, insert_listed);
    struct store_label selector[] = {{"all", "yes"}, {"first", "y"}, {"quote", "a'\"b"}};
    struct store_query query = {
        .workspace = "default", .limit = 10, .selector = selector, .selector_count = 1};
    expect_list(fixture, query, "alpha,bravo,charlie,delta,", false);
    query.selector_count = 3;
    expect_list(fixture, query, "alpha,bravo,charlie,", false);
    query.limit = 1;
    expect_list(fixture, query, "alpha,", true);
    query.after_name = "alpha";
    expect_list(fixture, query, "bravo,", true);
    query = (struct store_query){.limit = 10, .selector = selector, .selector_count = 1};
    expect_list(fixture, query, "echo,alpha,bravo,charlie,delta,", false);
    struct store_label contradiction[] = {{"first", "y"}, {"first", "n"}};
    query.selector = contradiction;
    query.selector_count = 2;
    expect_list(fixture, query, "", false);
    struct store_label none[] = {{"first", "no"}};
    query.selector = none;
    query.selector_count = 1;
    expect_list(fixture, query, "", false);
}

static bool relabel(struct store_transaction *transaction, void *argument, struct error *error)
{
    (void)argument;
    struct store_label labels[] = {{"all", "no"}};
    struct store_record record = plain("id-1", "alpha");
    record.labels = labels;
    record.label_count = 1;
    assert_true(store_update(transaction, &record, 1, NULL, error));
    assert_true(store_delete(transaction, "sandbox", "id-3", 0, error));
    return true;
}

static void test_labels_and_their_index_change_together(void **state)
{
    struct fixture *fixture = *state;
    within(fixture, insert_listed);
    within(fixture, relabel);
    struct store_label selector[] = {{"all", "yes"}};
    struct store_query query = {
        .workspace = "default", .limit = 10, .selector = selector, .selector_count = 1};
    expect_list(fixture, query, "charlie,delta,", false);
    selector[0].value = "no";
    expect_list(fixture, query, "alpha,", false);
}

/* ---- transactions ---- */

static bool insert_then_fail(struct store_transaction *transaction, void *argument,
                             struct error *error)
{
    (void)argument;
    struct store_record record = plain("id-1", "one");
    assert_true(store_insert(transaction, &record, error));
    return error_set(error, ERROR_CANCELLED, "changed my mind");
}

static bool expect_empty(struct store_transaction *transaction, void *argument, struct error *error)
{
    (void)argument;
    uint64_t count = 1;
    assert_true(store_count(transaction, "sandbox", NULL, &count, error));
    assert_int_equal(count, 0);
    return true;
}

static bool write_in_read(struct store_transaction *transaction, void *argument,
                          struct error *error)
{
    (void)argument;
    struct store_record record = plain("id-1", "one");
    assert_false(store_insert(transaction, &record, error));
    return true; /* the fault must not be lost even so */
}

struct outcome {
    struct reactor *reactor;
    enum error_code code;
    int *calls;
    int turn; /* how many were called before */
};

static void note(void *argument, const struct error *error)
{
    struct outcome *outcome = argument;
    outcome->code = error != NULL ? error->code : ERROR_OK;
    outcome->turn = (*outcome->calls)++;
}

static void run_until(struct reactor *reactor, const int *calls, int wanted)
{
    while (*calls < wanted)
        reactor_run_once(reactor);
}

static void test_a_failed_piece_of_work_leaves_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    assert_false(store_run_wait(fixture->store, insert_then_fail, fixture, &error));
    assert_int_equal(error.code, ERROR_CANCELLED);
    assert_string_equal(error.message, "changed my mind");
    error_clear(&error);
    within(fixture, expect_empty);
    int calls = 0;
    struct outcome outcome = {.calls = &calls};
    store_read(fixture->store, write_in_read, note, &outcome);
    run_until(fixture->reactor, &calls, 1);
    assert_int_equal(outcome.code, ERROR_INTERNAL);
    within(fixture, expect_empty);
}

static bool do_nothing(struct store_transaction *transaction, void *argument, struct error *error)
{
    (void)transaction;
    (void)argument;
    (void)error;
    return true;
}

struct gate {
    int entered[2];
    int open[2];
};

static bool wait_at_gate(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct gate *gate = argument;
    char byte = 0;
    (void)transaction;
    (void)error;
    assert_int_equal(write(gate->entered[1], "x", 1), 1);
    assert_int_equal(read(gate->open[0], &byte, 1), 1);
    return true;
}

static void gate_passed(void *argument, const struct error *error)
{
    (void)argument;
    assert_null(error);
}

static void test_the_queue_is_bounded_and_in_order(void **state)
{
    struct fixture *fixture = *state;
    struct gate gate;
    char byte;
    assert_int_equal(pipe(gate.entered), 0);
    assert_int_equal(pipe(gate.open), 0);
    store_run(fixture->store, wait_at_gate, gate_passed, &gate);
    assert_int_equal(read(gate.entered[0], &byte, 1), 1);
    int calls = 0;
    struct outcome *outcomes = memory_new(sizeof(*outcomes) * (STORE_QUEUE_LIMIT + 1));
    for (int i = 0; i <= STORE_QUEUE_LIMIT; i++) {
        outcomes[i].calls = &calls;
        store_read(fixture->store, do_nothing, note, &outcomes[i]);
    }
    run_until(fixture->reactor, &calls, 1);
    assert_int_equal(outcomes[STORE_QUEUE_LIMIT].code, ERROR_RESOURCE_EXHAUSTED);
    assert_int_equal(write(gate.open[1], "x", 1), 1);
    run_until(fixture->reactor, &calls, STORE_QUEUE_LIMIT + 1);
    for (int i = 0; i < STORE_QUEUE_LIMIT; i++) {
        assert_int_equal(outcomes[i].code, ERROR_OK);
        assert_int_equal(outcomes[i].turn, i + 1);
    }
    free(outcomes);
    for (int i = 0; i < 2; i++) {
        close(gate.entered[i]);
        close(gate.open[i]);
    }
}

static bool insert_one(struct store_transaction *transaction, void *argument, struct error *error)
{
    (void)argument;
    struct store_record record = plain("id-1", "one");
    return store_insert(transaction, &record, error);
}

static bool expect_one(struct store_transaction *transaction, void *argument, struct error *error)
{
    (void)argument;
    uint64_t count = 0;
    assert_true(store_count(transaction, "sandbox", NULL, &count, error));
    assert_int_equal(count, 1);
    return true;
}

static void test_closing_finishes_what_is_queued(void **state)
{
    struct fixture *fixture = *state;
    int calls = 0;
    struct outcome outcome = {.calls = &calls};
    store_run(fixture->store, insert_one, note, &outcome);
    reopen(fixture);
    run_until(fixture->reactor, &calls, 1);
    assert_int_equal(outcome.code, ERROR_OK);
    within(fixture, expect_one);
}

/* ---- the file ---- */

static void expect_mode(const char *path, mode_t mode)
{
    struct stat status;
    if (stat(path, &status) != 0)
        fail_msg("%s is missing", path);
    assert_int_equal(status.st_mode & 07777, mode);
}

static void expect_private(const struct fixture *fixture)
{
    CLEANUP_FREE char *log = memory_printf("%s-wal", fixture->path);
    CLEANUP_FREE char *shared = memory_printf("%s-shm", fixture->path);
    CLEANUP_FREE char *parent = memory_printf("%s/state", fixture->directory);
    expect_mode(fixture->path, 0600);
    expect_mode(log, 0600);
    expect_mode(shared, 0600);
    expect_mode(parent, 0700);
}

static void test_the_files_are_private(void **state)
{
    struct fixture *fixture = *state;
    within(fixture, insert_one);
    expect_private(fixture);
    store_close(fixture->store);
    fixture->store = NULL;
    assert_int_equal(chmod(fixture->path, 0644), 0);
    mode_t before = umask(0);
    reopen(fixture);
    umask(before);
    within(fixture, expect_one);
    expect_private(fixture);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *database;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    char *message = NULL;
    if (sqlite3_exec(database, sql, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(database);
}

static void expect_refused(struct fixture *fixture, enum error_code code, const char *word)
{
    struct error error = {0};
    assert_null(store_open(fixture->path, fixture->reactor, &error));
    assert_int_equal(error.code, code);
    if (strstr(error.message, word) == NULL || strstr(error.message, fixture->path) == NULL)
        fail_msg("'%s' does not say '%s' and the path", error.message, word);
    error_clear(&error);
}

static void test_a_newer_schema_is_refused(void **state)
{
    struct fixture *fixture = *state;
    within(fixture, insert_one);
    store_close(fixture->store);
    fixture->store = NULL;
    run_sql(fixture->path, "INSERT INTO schema VALUES (999, 'from the future', 0)");
    expect_refused(fixture, ERROR_FAILED_PRECONDITION, "version 999");
    run_sql(fixture->path, "DELETE FROM schema WHERE version = 999");
    reopen(fixture);
    within(fixture, expect_one);
}

static void overwrite(const char *path, off_t offset, const char *text, size_t times)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(lseek(descriptor, offset, SEEK_SET), offset);
    for (size_t i = 0; i < times; i++)
        assert_int_equal(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
}

static void test_what_is_no_database_is_refused(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    fixture->store = NULL;
    overwrite(fixture->path, 0, "this is a letter to my aunt. ", 200);
    expect_refused(fixture, ERROR_DATA_LOSS, "not an SQLite database");
    assert_int_equal(unlink(fixture->path), 0);
    run_sql(fixture->path, "CREATE TABLE recipes (name TEXT)");
    expect_refused(fixture, ERROR_FAILED_PRECONDITION, "another program");
}

static void test_a_damaged_database_is_refused(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    fixture->store = NULL;
    overwrite(fixture->path, 100, "damaged ", 500);
    expect_refused(fixture, ERROR_DATA_LOSS, "damaged");
}

static void test_a_place_that_cannot_be_written_is_refused(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    fixture->store = NULL;
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    expect_refused(fixture, ERROR_FAILED_PRECONDITION, "cannot open");
}

static void count_rows(const char *path, const char *sql, int wanted)
{
    sqlite3 *database;
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(statement, 0), wanted);
    sqlite3_finalize(statement);
    sqlite3_close(database);
}

static void test_migrations_go_forward_whole_or_not_at_all(void **state)
{
    struct fixture *fixture = *state;
    store_close(fixture->store);
    fixture->store = NULL;
    struct sqlite_migration steps[] = {
        sqlite_migrations[0],
        {2, "a step", "CREATE TABLE second (a); INSERT INTO second VALUES (1)"},
        {3, "a bad step", "CREATE TABLE third (a); INSERT INTO nowhere VALUES (1)"},
    };
    sqlite3 *database;
    struct error error = {0};
    assert_int_equal(sqlite3_open(fixture->path, &database), SQLITE_OK);
    assert_false(sqlite_schema_update(database, fixture->path, steps, 3, &error));
    assert_non_null(strstr(error.message, "version 3 (a bad step)"));
    error_clear(&error);
    sqlite3_close(database);
    count_rows(fixture->path, "SELECT max(version) FROM schema", 2);
    count_rows(fixture->path, "SELECT count(*) FROM second", 1);
    count_rows(fixture->path, "SELECT count(*) FROM sqlite_master WHERE name = 'third'", 0);
    steps[2].sql = "CREATE TABLE third (a)";
    assert_int_equal(sqlite3_open(fixture->path, &database), SQLITE_OK);
    assert_true(sqlite_schema_update(database, fixture->path, steps, 3, &error));
    assert_true(sqlite_schema_update(database, fixture->path, steps, 3, &error));
    sqlite3_close(database);
    count_rows(fixture->path, "SELECT count(*) FROM schema", 3);
    count_rows(fixture->path, "SELECT count(*) FROM second", 1);
}

/* A record at a time until the disk is full; returns how many were stored. */
struct filling {
    int number;
    char payload[20000];
};

static bool insert_filling(struct store_transaction *transaction, void *argument,
                           struct error *error)
{
    struct filling *filling = argument;
    char id[32];
    snprintf(id, sizeof(id), "id-%d", filling->number);
    struct store_record record = plain(id, id);
    record.payload = filling->payload;
    record.payload_size = sizeof(filling->payload);
    return store_insert(transaction, &record, error);
}

static bool count_filling(struct store_transaction *transaction, void *argument,
                          struct error *error)
{
    return store_count(transaction, "sandbox", NULL, argument, error);
}

static bool write_text(const char *path, const char *text)
{
    int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    bool written = descriptor >= 0 && write(descriptor, text, strlen(text)) > 0;
    close(descriptor);
    return written;
}

/* A place where mounting is allowed, under the same ids. */
static bool may_mount(void)
{
    if (geteuid() == 0)
        return unshare(CLONE_NEWNS) == 0;
    CLEANUP_FREE char *users = memory_printf("%u %u 1", geteuid(), geteuid());
    CLEANUP_FREE char *groups = memory_printf("%u %u 1", getegid(), getegid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
           write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", users) &&
           write_text("/proc/self/gid_map", groups);
}

/* In a process of its own: 0 is right, 77 means that there may be no small file system. */
static int fill_disk(const char *directory)
{
    if (!may_mount() || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", directory, "tmpfs", 0, "size=600k") != 0)
        return 77;
    struct error error = {0};
    struct reactor *reactor = reactor_new(&error);
    CLEANUP_FREE char *path = memory_printf("%s/openshell.db", directory);
    struct store *store = store_open(path, reactor, &error);
    if (store == NULL)
        return 1;
    struct filling filling = {0};
    while (filling.number < 1000 && store_run_wait(store, insert_filling, &filling, &error))
        filling.number++;
    if (error.code != ERROR_RESOURCE_EXHAUSTED || strstr(error.message, "full") == NULL)
        return 2;
    error_clear(&error);
    store_close(store);
    /* With room again, everything that was acknowledged is there, and nothing else. */
    if (mount("tmpfs", directory, "tmpfs", MS_REMOUNT, "size=4m") != 0)
        return 3;
    store = store_open(path, reactor, &error);
    uint64_t count = 0;
    if (store == NULL || !store_run_wait(store, count_filling, &count, &error) ||
        count != (uint64_t)filling.number || filling.number < 2)
        return 4;
    if (!store_run_wait(store, insert_filling, &filling, &error))
        return 5;
    store_close(store);
    reactor_free(reactor);
    return 0;
}

static void test_a_full_disk_loses_nothing(void **state)
{
    struct fixture *fixture = *state;
    CLEANUP_FREE char *directory = memory_printf("%s/full", fixture->directory);
    assert_int_equal(mkdir(directory, 0700), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(fill_disk(directory));
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        skip();
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- how long it takes ---- */

enum { MANY = 10000 };

static double milliseconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) * 1e3 +
           (double)(now.tv_nsec - start->tv_nsec) / 1e6;
}

struct many {
    int from;
    int to;
    struct fixture *fixture;
    struct store_query query;
    size_t count;
};

static bool insert_many(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct many *many = argument;
    char payload[1500] = {0};
    for (int i = many->from; i < many->to; i++) {
        char id[40], name[40], group[40];
        snprintf(id, sizeof(id), "%08x-0000-4000-8000-000000000000", (unsigned)i * 2654435761U);
        snprintf(name, sizeof(name), "sandbox-%u", (unsigned)i * 2654435761U);
        snprintf(group, sizeof(group), "group-%d", i % 100);
        struct store_label labels[] = {{"group", group}, {"all", "yes"}};
        struct store_record record = plain(id, name);
        record.payload = payload;
        record.payload_size = sizeof(payload);
        record.labels = labels;
        record.label_count = 2;
        if (!store_insert(transaction, &record, error))
            return false;
    }
    return true;
}

static bool list_many(struct store_transaction *transaction, void *argument, struct error *error)
{
    struct many *many = argument;
    struct store_record *records;
    bool more;
    return store_list(transaction, &many->query, many->fixture->arena, &records, &many->count,
                      &more, error);
}

static double time_creates(struct fixture *fixture, int from, int to)
{
    struct timespec start;
    struct error error = {0};
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = from; i < to; i++) {
        struct many many = {.from = i, .to = i + 1};
        assert_true(store_run_wait(fixture->store, insert_many, &many, &error));
    }
    return milliseconds_since(&start) / (to - from);
}

static double time_list(struct fixture *fixture, const struct store_label *selector, size_t count,
                        size_t wanted)
{
    struct timespec start;
    struct error error = {0};
    struct many many = {.fixture = fixture};
    many.query = (struct store_query){.object_type = "sandbox",
                                      .workspace = "default",
                                      .limit = 100,
                                      .selector = selector,
                                      .selector_count = count};
    clock_gettime(CLOCK_MONOTONIC, &start);
    assert_true(store_run_wait(fixture->store, list_many, &many, &error));
    double elapsed = milliseconds_since(&start);
    assert_int_equal(many.count, wanted);
    return elapsed;
}

static void test_ten_thousand_records(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {0};
    double first = time_creates(fixture, 0, 100);
    struct many many = {.from = 100, .to = MANY - 100};
    assert_true(store_run_wait(fixture->store, insert_many, &many, &error));
    double last = time_creates(fixture, MANY - 100, MANY);
    struct store_label rare[] = {{"group", "group-7"}, {"all", "yes"}};
    struct store_label frequent[] = {{"all", "yes"}, {"group", "group-7"}};
    double plain_list = time_list(fixture, NULL, 0, 100);
    double by_rare = time_list(fixture, rare, 2, 100);
    double by_frequent = time_list(fixture, frequent, 2, 100);
    print_message("create: %.3f ms each at first, %.3f ms each at %d records\n", first, last, MANY);
    print_message("first page of %d: %.2f ms; by label: %.2f ms, %.2f ms\n", MANY, plain_list,
                  by_rare, by_frequent);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_record_comes_back_whole),
        TEST(test_what_is_absent_is_not_found),
        TEST(test_each_key_is_unique),
        TEST(test_a_write_needs_the_current_version),
        TEST(test_a_scope_goes_at_once),
        TEST(test_lists_go_by_name_in_pages),
        TEST(test_lists_go_by_label),
        TEST(test_labels_and_their_index_change_together),
        TEST(test_a_failed_piece_of_work_leaves_nothing),
        TEST(test_the_queue_is_bounded_and_in_order),
        TEST(test_closing_finishes_what_is_queued),
        TEST(test_the_files_are_private),
        TEST(test_a_newer_schema_is_refused),
        TEST(test_what_is_no_database_is_refused),
        TEST(test_a_damaged_database_is_refused),
        TEST(test_a_place_that_cannot_be_written_is_refused),
        TEST(test_migrations_go_forward_whole_or_not_at_all),
        TEST(test_a_full_disk_loses_nothing),
        TEST(test_ten_thousand_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
