#include "gateway/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/paths.h"
#include "boundary/owner_lock.h"
#include "gateway/api/api.h"
#include "gateway/auth/authorize.h"
#include "gateway/auth/keys.h"
#include "gateway/compute.h"
#include "gateway/host_ids.h"
#include "gateway/journal.h"
#include "gateway/listener.h"
#include "gateway/metadata.h"
#include "gateway/reconcile.h"
#include "gateway/records.h"

enum { LOCK_WAIT_MILLISECONDS = 500 /* a gateway that is just ending still holds it */ };

/* ---- the lock ---- */

/* Says who holds it. */
static void name_holder(const char *path, struct error *error)
{
    struct owner_lock holder;
    if (owner_lock_read(path, &holder, NULL))
        error_set(error, ERROR_FAILED_PRECONDITION,
                  "another gateway (process %d) runs already; stop it with: openshell gateway stop",
                  (int)holder.process);
    else
        error_set(error, ERROR_FAILED_PRECONDITION, "another gateway is starting at this moment");
}

/* Held as long as the process lives. */
static bool take_lock(const char *run_directory, struct error *error)
{
    CLEANUP_FREE char *path = memory_printf("%s/gateway.lock", run_directory);
    int descriptor = file_lock(path, LOCK_WAIT_MILLISECONDS, error);
    if (descriptor >= 0)
        return owner_lock_claim(descriptor, error);
    if (error->code == ERROR_ABORTED)
        name_holder(path, error);
    return false;
}

/* ---- records and keys ---- */

struct first_records {
    struct gateway *gateway;
    struct arena *arena;
};

static bool load_first_records(struct store_transaction *store, void *argument, struct error *error)
{
    struct first_records *first = argument;
    return record_ensure_default_workspace(store, first->arena, error) &&
           record_load_page_key(store, first->arena, &first->gateway->page_key, error);
}

static bool open_records(struct gateway *gateway, struct error *error)
{
    CLEANUP_FREE char *path = memory_printf("%s/gateway/openshell.db", gateway->state_directory);
    gateway->store = store_open(path, gateway->reactor, error);
    if (gateway->store == NULL)
        return false;
    struct first_records first = {.gateway = gateway, .arena = arena_new(0)};
    bool loaded = store_run_wait(gateway->store, load_first_records, &first, error);
    arena_free(first.arena);
    return loaded;
}

static bool open_keys(struct gateway *gateway, struct error *error)
{
    CLEANUP_FREE char *directory = memory_printf("%s/gateway/jwt", gateway->state_directory);
    gateway->key = keys_load(directory, error);
    return gateway->key != NULL;
}

/* ---- the driver ---- */

static void on_ended(const char *sandbox_id, const struct driver_end *end, void *user)
{
    compute_ended(user, sandbox_id, end);
}

static bool open_driver(struct gateway *gateway, struct error *error)
{
    CLEANUP_FREE char *public_key = session_token_key_public_pem(gateway->key);
    struct local_driver_options options = {
        .reactor = gateway->reactor,
        .run_directory = gateway->run_directory,
        .state_directory = gateway->state_directory,
        .gateway_id = GATEWAY_NAME,
        .gateway_socket = gateway->socket_path,
        .verification_key_id = session_token_key_id(gateway->key),
        .verification_key_pem = public_key,
    };
    struct driver_events events = {.on_ended = on_ended, .user = gateway};
    gateway->driver = local_driver_new(&options, &events, error);
    return gateway->driver != NULL;
}

/* ---- signals ---- */

static void on_signal(int number, void *user)
{
    struct gateway *gateway = user;
    log_info("stopping on %s; sandboxes go on running", number == SIGINT ? "SIGINT" : "SIGTERM");
    reactor_stop(gateway->reactor);
}

static bool watch_signals(struct gateway *gateway, struct error *error)
{
    return reactor_signal_start(gateway->reactor, SIGTERM, on_signal, gateway, error) != NULL &&
           reactor_signal_start(gateway->reactor, SIGINT, on_signal, gateway, error) != NULL;
}

/* ---- opening ---- */

static bool open_places(struct gateway *gateway, const char *socket_path, struct error *error)
{
    gateway->run_directory = paths_run_directory(error);
    if (gateway->run_directory == NULL || !take_lock(gateway->run_directory, error))
        return false;
    gateway->state_directory = paths_state_directory(error);
    if (gateway->state_directory == NULL)
        return false;
    gateway->socket_path = socket_path != NULL
                               ? memory_strdup(socket_path)
                               : memory_printf("%s/gateway.sock", gateway->run_directory);
    return true;
}

static bool open_rpc(struct gateway *gateway, struct error *error)
{
    gateway->rpc = rpc_runtime_new(gateway->reactor, error);
    if (gateway->rpc == NULL)
        return false;
    gateway->server = rpc_server_new(gateway->rpc, authorize_call, gateway);
    api_register(gateway);
    return true;
}

static bool announce(const struct gateway *gateway, struct error *error)
{
    CLEANUP_FREE char *directory = paths_config_directory(error);
    return directory != NULL && metadata_write(directory, gateway->socket_path, error);
}

struct gateway *server_open(const char *socket_path, struct error *error)
{
    struct gateway *gateway = memory_new_of(struct gateway);
    gateway->live = table_new();
    gateway->journals = journals_new();
    gateway->pending_relays = table_new();
    gateway->host_ids = host_ids_new(geteuid() == 0);
    gateway->reactor = reactor_new(error);
    /* Listening before the takeover: supervisors that are told to connect find the socket. Nothing
     * is accepted before the loop runs. */
    if (gateway->reactor != NULL && open_places(gateway, socket_path, error) &&
        open_records(gateway, error) && open_keys(gateway, error) && open_driver(gateway, error) &&
        open_rpc(gateway, error) && listener_open(gateway, error) && reconcile(gateway, error) &&
        watch_signals(gateway, error) && announce(gateway, error))
        return gateway;
    /* The caller ends the process, which frees the rest. */
    listener_close(gateway);
    store_close(gateway->store);
    return NULL;
}

void server_run(struct gateway *gateway)
{
    reactor_run(gateway->reactor);
}

void server_close(struct gateway *gateway)
{
    listener_close(gateway);
    store_close(gateway->store);
}
