#include "gateway/drivers/local_launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/uuid.h"
#include "boundary/owner_lock.h"

enum { BOUNDARY_BACKLOG = 8 };

/* ---- places ---- */

char *local_run_path(const struct local_driver *driver, const char *id, const char *name)
{
    return memory_printf("%s/%s/%s", driver->run, id, name);
}

static char *state_path(const struct local_driver *driver, const char *id, const char *name)
{
    return memory_printf("%s/%s/%s", driver->state, id, name);
}

static bool make_directories(const struct local_driver *driver, const char *id, struct error *error)
{
    CLEANUP_FREE char *run = memory_printf("%s/%s", driver->run, id);
    CLEANUP_FREE char *root = state_path(driver, id, "root");
    CLEANUP_FREE char *log = state_path(driver, id, "log");
    return file_make_private_directory(run, error) && file_make_private_directory(root, error) &&
           file_make_private_directory(log, error);
}

/* Appends to a log that is moved aside once it is long; one earlier part is kept. */
static int open_log(const struct local_driver *driver, const char *id, const char *name,
                    struct error *error)
{
    CLEANUP_FREE char *path = state_path(driver, id, name);
    log_limit_closed_file(path);
    int descriptor =
        open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    if (descriptor < 0)
        error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '%s'", path);
    return descriptor;
}

/* ---- identities ---- */

struct preparation {
    struct local_driver *driver;
    struct tls_identity *identity;
};

static void prepare(void *argument)
{
    struct preparation *preparation = argument;
    preparation->identity = tls_identity_generate("openshell-sandbox", NULL);
}

static void prepared(void *argument)
{
    struct preparation *preparation = argument;
    preparation->driver->preparing = false;
    tls_identity_free(preparation->driver->spare);
    preparation->driver->spare = preparation->identity;
    free(preparation);
}

static void prepare_spare(struct local_driver *driver)
{
    if (driver->preparing || driver->spare != NULL)
        return;
    driver->preparing = true;
    struct preparation *preparation = memory_new_of(struct preparation);
    preparation->driver = driver;
    reactor_offload(driver->reactor, prepare, prepared, preparation);
}

static struct tls_identity *take_identity(struct local_driver *driver, struct error *error)
{
    struct tls_identity *identity = driver->spare;
    driver->spare = NULL;
    prepare_spare(driver);
    return identity != NULL ? identity : tls_identity_generate("openshell-sandbox", error);
}

/* ---- bundles ---- */

/* What both bundles of one launch share. */
struct shared {
    char descriptor[65]; /* the driver's descriptor of the boundary */
    char pin[65];
    const struct tls_identity *identity;
    char *socket;
};

static int feed_supervisor(struct local_driver *driver, const struct driver_launch *launch,
                           const struct shared *shared, struct error *error)
{
    struct launch_supervisor bundle = {
        .sandbox_id = (char *)launch->sandbox_id,
        .sandbox_name = (char *)launch->sandbox_name,
        .generation = (char *)launch->generation,
        .auth_epoch = launch->auth_epoch,
        .gateway_id = driver->gateway_id,
        .gateway_socket = driver->gateway_socket,
        .gateway_token = (char *)launch->gateway_token,
        .sandbox_token = (char *)launch->sandbox_token,
        .runtime_pin = (char *)shared->pin,
        .backend_name = (char *)"openshell-sandbox",
        .driver_descriptor = (char *)shared->descriptor,
        .main = launch->main,
        .stop_grace_milliseconds = LOCAL_STOP_GRACE_MILLISECONDS,
    };
    struct buffer bytes = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
    if (launch_supervisor_encode(&bundle, &bytes, error))
        return local_pipe_feed(driver->reactor, &bytes, error);
    buffer_wipe(&bytes);
    return -1;
}

static int feed_runtime(struct local_driver *driver, const struct driver_launch *launch,
                        const struct shared *shared, struct error *error)
{
    CLEANUP_FREE char *root = state_path(driver, launch->sandbox_id, "root");
    struct launch_runtime bundle = {
        .sandbox_id = (char *)launch->sandbox_id,
        .sandbox_name = (char *)launch->sandbox_name,
        .generation = (char *)launch->generation,
        .auth_epoch = launch->auth_epoch,
        .gateway_id = driver->gateway_id,
        .supervisor_socket = shared->socket,
        .verification_key_id = driver->key_id,
        .verification_key_pem = driver->key_pem,
        .driver_descriptor = (char *)shared->descriptor,
        .state_directory = root,
        .cache_directory = driver->cache,
        .from_directory = (char *)launch->from_directory,
        .host_id_base = launch->host_id_base,
        .process_limit = LOCAL_PROCESS_LIMIT,
    };
    struct buffer bytes = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
    if (launch_runtime_encode(&bundle, &bytes, error))
        return local_pipe_feed(driver->reactor, &bytes, error);
    buffer_wipe(&bytes);
    return -1;
}

static int feed_secret(struct local_driver *driver, const struct shared *shared,
                       struct error *error)
{
    struct launch_runtime_secret secret = {
        .certificate_pem = tls_identity_certificate_pem(shared->identity),
        .key_pem = tls_identity_key_pem(shared->identity),
    };
    struct buffer bytes = BUFFER_INIT(LAUNCH_BUNDLE_LIMIT);
    bool encoded = launch_runtime_secret_encode(&secret, &bytes, error);
    launch_runtime_secret_free(&secret);
    if (encoded)
        return local_pipe_feed(driver->reactor, &bytes, error);
    buffer_wipe(&bytes);
    return -1;
}

/* ---- the launch ---- */

static bool start_runtime(struct local_driver *driver, const struct driver_launch *launch,
                          const struct shared *shared, struct local_process *runtime,
                          struct error *error)
{
    CLEANUP_FREE char *lock_path = local_run_path(driver, launch->sandbox_id, "runtime.lock");
    CLEANUP_CLOSE int lock = owner_lock_create(lock_path, error);
    if (lock < 0)
        return false;
    CLEANUP_CLOSE int log = open_log(driver, launch->sandbox_id, "log/runtime.log", error);
    if (log < 0)
        return false;
    CLEANUP_CLOSE int config = feed_runtime(driver, launch, shared, error);
    if (config < 0)
        return false;
    CLEANUP_CLOSE int secret = feed_secret(driver, shared, error);
    if (secret < 0)
        return false;
    const int descriptors[SPAWNER_DESCRIPTORS] = {[SPAWNER_LOG] = log,
                                                  [SPAWNER_CONFIG] = config,
                                                  [SPAWNER_SECRET] = secret,
                                                  [SPAWNER_LOCK] = lock};
    return local_process_spawn(runtime, &driver->spawner, SPAWNER_RUNTIME, descriptors, error);
}

static bool start_supervisor(struct local_driver *driver, const struct driver_launch *launch,
                             const struct shared *shared, int listener, int lock,
                             struct local_process *supervisor, struct error *error)
{
    CLEANUP_CLOSE int log = open_log(driver, launch->sandbox_id, "log/supervisor.log", error);
    if (log < 0)
        return false;
    CLEANUP_CLOSE int config = feed_supervisor(driver, launch, shared, error);
    if (config < 0)
        return false;
    const int descriptors[SPAWNER_DESCRIPTORS] = {[SPAWNER_LOG] = log,
                                                  [SPAWNER_CONFIG] = config,
                                                  [SPAWNER_SECRET] = listener,
                                                  [SPAWNER_LOCK] = lock};
    return local_process_spawn(supervisor, &driver->spawner, SPAWNER_SUPERVISOR, descriptors,
                               error);
}

bool local_launch(struct local_driver *driver, const struct driver_launch *launch,
                  struct local_process *supervisor, struct local_process *runtime,
                  struct error *error)
{
    if (!make_directories(driver, launch->sandbox_id, error))
        return false;
    /* Both locks before the socket: a living supervisor of an earlier launch may listen on it. */
    CLEANUP_FREE char *lock_path = local_run_path(driver, launch->sandbox_id, "supervisor.lock");
    CLEANUP_CLOSE int lock = owner_lock_create(lock_path, error);
    if (lock < 0)
        return false;
    CLEANUP_FREE char *socket = local_run_path(driver, launch->sandbox_id, "boundary.sock");
    CLEANUP_CLOSE int listener = file_unix_listen(socket, 0600, BOUNDARY_BACKLOG, error);
    if (listener < 0)
        return false;
    struct tls_identity *identity = take_identity(driver, error);
    if (identity == NULL)
        return false;
    struct shared shared = {.identity = identity, .socket = socket};
    random_hexadecimal(shared.descriptor, 32);
    tls_identity_pin(identity, shared.pin);
    /* The runtime first: it has more to do before the two meet. */
    bool started = start_runtime(driver, launch, &shared, runtime, error) &&
                   start_supervisor(driver, launch, &shared, listener, lock, supervisor, error);
    tls_identity_free(identity);
    return started;
}

/* ---- the trash ---- */

static void empty_trash(void *argument)
{
    struct local_driver *driver = argument;
    DIR *stream = opendir(driver->trash);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        CLEANUP_FREE char *path = memory_printf("%s/%s", driver->trash, entry->d_name);
        struct error error = {0};
        if (!file_remove_tree(path, &error))
            log_warn("cannot remove everything of a deleted sandbox: %s", error.message);
        error_clear(&error);
    }
    if (stream != NULL)
        closedir(stream);
}

static void start_emptying(struct local_driver *driver);

static void emptied(void *argument)
{
    struct local_driver *driver = argument;
    driver->emptying = false;
    if (driver->emptying_again)
        start_emptying(driver);
}

static void start_emptying(struct local_driver *driver)
{
    driver->emptying_again = driver->emptying;
    if (driver->emptying)
        return;
    driver->emptying = true;
    reactor_offload(driver->reactor, empty_trash, emptied, driver);
}

bool local_discard_state(struct local_driver *driver, const char *id, struct error *error)
{
    CLEANUP_FREE char *run = memory_printf("%s/%s", driver->run, id);
    if (!file_remove_tree(run, error))
        return false;
    CLEANUP_FREE char *state = memory_printf("%s/%s", driver->state, id);
    char suffix[UUID_SIZE];
    uuid_generate(suffix);
    CLEANUP_FREE char *away = memory_printf("%s/%s", driver->trash, suffix);
    if (rename(state, away) != 0)
        return errno == ENOENT ||
               error_set_errno(error, ERROR_INTERNAL, errno, "cannot move '%s' away", state);
    start_emptying(driver);
    return true;
}

/* ---- opening and closing ---- */

bool local_launch_open(struct local_driver *driver, const struct local_driver_options *options,
                       struct error *error)
{
    driver->reactor = options->reactor;
    driver->run = memory_printf("%s/sandboxes", options->run_directory);
    driver->state = memory_printf("%s/sandboxes", options->state_directory);
    driver->cache = memory_printf("%s/cache", options->state_directory);
    driver->trash = memory_printf("%s/trash", options->state_directory);
    driver->gateway_id = memory_strdup(options->gateway_id);
    driver->gateway_socket = memory_strdup(options->gateway_socket);
    driver->key_id = memory_strdup(options->verification_key_id);
    driver->key_pem = memory_strdup(options->verification_key_pem);
    if (!file_make_private_directory(driver->run, error) ||
        !file_make_private_directory(driver->state, error) ||
        !file_make_private_directory(driver->cache, error) ||
        !file_make_private_directory(driver->trash, error))
        return false;
    start_emptying(driver);
    prepare_spare(driver);
    local_spawner_open(&driver->spawner);
    return true;
}

void local_launch_close(struct local_driver *driver)
{
    tls_identity_free(driver->spare);
    free(driver->run);
    free(driver->state);
    free(driver->cache);
    free(driver->trash);
    free(driver->gateway_id);
    free(driver->gateway_socket);
    free(driver->key_id);
    free(driver->key_pem);
    local_spawner_close(&driver->spawner);
    free(driver);
}
