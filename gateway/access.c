#include "gateway/access.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "gateway/lifecycle.h"
#include "gateway/live.h"
#include "gateway/logs.h"
#include "gateway/records.h"

/* ---- the rule ---- */

/* Completed and failed sandboxes can be looked into as long as their supervisor is there. */
static enum access_verdict decide_ended(const struct access_facts *facts, const char **ret_reason)
{
    if (facts->session_connected)
        return ACCESS_ALLOWED;
    if (facts->session_expected)
        return ACCESS_WAIT;
    *ret_reason = "SupervisorDisconnected";
    return ACCESS_REFUSED;
}

enum access_verdict access_decide(const struct access_facts *facts, const char **ret_reason)
{
    *ret_reason = "PhaseNotServing";
    switch (facts->phase) {
    case PHASE(READY):
        if (facts->session_connected)
            return ACCESS_ALLOWED;
        return facts->session_expected ? ACCESS_WAIT : ACCESS_REFUSED;
    case PHASE(ERROR):
        if (facts->purpose == ACCESS_SERVICE && !facts->main_failed) {
            *ret_reason = "ServiceInfraError";
            return ACCESS_REFUSED;
        }
        return decide_ended(facts, ret_reason);
    case PHASE(COMPLETED):
        return decide_ended(facts, ret_reason);
    case PHASE(STARTING):
        return facts->purpose == ACCESS_ATTACH && facts->exit_draining && facts->session_connected
                   ? ACCESS_ALLOWED
                   : ACCESS_REFUSED;
    case PHASE(STOPPING):
    case PHASE(STOPPED):
        *ret_reason = "Stopped";
        return ACCESS_REFUSED;
    case PHASE(DELETING):
        *ret_reason = "Deleting";
        return ACCESS_REFUSED;
    default:
        return ACCESS_REFUSED;
    }
}

/* ---- handles ---- */

struct access_handle {
    struct gateway *gateway;
    char sandbox_id[UUID_SIZE];
};

struct gateway *access_gateway(const struct access_handle *handle)
{
    return handle->gateway;
}

const char *access_sandbox_id(const struct access_handle *handle)
{
    return handle->sandbox_id;
}

void access_release(struct access_handle *handle)
{
    free(handle);
}

/* ---- requests ---- */

struct access_request {
    struct gateway *gateway;
    struct arena *arena;
    const char *workspace;
    const char *name;
    enum access_purpose purpose;
    access_done done;
    void *user;
    bool loading; /* the store has it */
    bool cancelled;
    int64_t until; /* monotonic milliseconds */
    Openshell__V1__Sandbox *sandbox;

    struct live_sandbox *live; /* waited for; NULL otherwise */
    struct access_request *next;
    struct reactor_timer *timer;
};

static void load(struct access_request *request);

static void request_free(struct access_request *request)
{
    reactor_timer_cancel(request->timer);
    arena_free(request->arena);
}

static void answer(struct access_request *request, struct access_handle *handle,
                   const struct error *error)
{
    access_done done = request->done;
    void *user = request->user;
    request_free(request);
    done(handle, error, user);
}

static void refuse(struct access_request *request, const char *reason)
{
    const Openshell__V1__Sandbox *sandbox = request->sandbox;
    struct error error = {0};
    error_set(&error, ERROR_FAILED_PRECONDITION, "sandbox is not ready");
    error_set_reason(&error, ERROR_DOMAIN_GATEWAY, reason);
    error_add_metadata(&error, "phase", lifecycle_phase_name(sandbox->status->phase));
    error_add_metadata(&error, "sandbox", sandbox->metadata->name);
    const struct log_field fields[] = {{"reason", reason}, {NULL, NULL}};
    if (journals_find(request->gateway->journals, sandbox->metadata->id) != NULL)
        logs_note(request->gateway, sandbox->metadata->id, LOG_LEVEL_WARN, "access", fields,
                  "a client was refused: the sandbox is not ready");
    answer(request, NULL, &error);
    error_clear(&error);
}

static void allow(struct access_request *request)
{
    struct access_handle *handle = memory_new_of(struct access_handle);
    handle->gateway = request->gateway;
    const char *id = request->sandbox->metadata->id;
    memcpy(handle->sandbox_id, id, strnlen(id, UUID_SIZE - 1));
    answer(request, handle, NULL);
}

/* ---- waiting ---- */

static void stop_waiting(struct access_request *request)
{
    struct live_sandbox *live = request->live;
    if (live == NULL)
        return;
    struct access_request **place = &live->waiters;
    while (*place != request)
        place = &(*place)->next;
    *place = request->next;
    live->waiter_count--;
    request->gateway->access_waiters--;
    request->live = NULL;
    reactor_timer_cancel(request->timer);
    request->timer = NULL;
}

static void waited_long_enough(void *argument)
{
    struct access_request *request = argument;
    struct live_sandbox *live = request->live;
    stop_waiting(request);
    live_release(live);
    load(request);
}

static void wait_for_session(struct access_request *request, struct live_sandbox *live)
{
    if (request->gateway->access_waiters >= ACCESS_WAITERS_LIMIT ||
        live->waiter_count >= ACCESS_SANDBOX_WAITERS_LIMIT) {
        struct error error = {0};
        error_set(&error, ERROR_RESOURCE_EXHAUSTED,
                  "too many calls wait for the supervisor of this sandbox");
        answer(request, NULL, &error);
        error_clear(&error);
        return;
    }
    int64_t left = request->until - clock_monotonic_milliseconds();
    request->live = live;
    request->next = live->waiters;
    live->waiters = request;
    live->waiter_count++;
    request->gateway->access_waiters++;
    request->timer = reactor_timer_start(request->gateway->reactor, (uint64_t)(left > 0 ? left : 0),
                                         0, waited_long_enough, request);
}

void access_wake(struct live_sandbox *live)
{
    struct access_request *woken = live->waiters;
    while (live->waiters != NULL) {
        struct access_request *request = live->waiters;
        stop_waiting(request);
        request->next = request == woken ? NULL : woken;
        woken = request;
    }
    for (struct access_request *next; woken != NULL; woken = next) {
        next = woken->next;
        load(woken);
    }
}

/* ---- deciding ---- */

static bool work(struct store_transaction *store, void *argument, struct error *error)
{
    struct access_request *request = argument;
    return record_load_sandbox(store, request->arena, request->workspace, request->name,
                               &request->sandbox, error);
}

static void loaded(void *argument, const struct error *error)
{
    struct access_request *request = argument;
    request->loading = false;
    if (request->cancelled) {
        request_free(request);
        return;
    }
    if (error != NULL) {
        answer(request, NULL, error);
        return;
    }
    struct live_sandbox *live = live_find(request->gateway, request->sandbox->metadata->id);
    struct access_facts facts = {
        .phase = request->sandbox->status->phase,
        .main_failed = lifecycle_main_failed(request->sandbox),
        .exit_draining = lifecycle_exit_draining(request->sandbox),
        .session_connected = live != NULL && live->session != NULL,
        .session_expected = live != NULL && live_session_expected(live) &&
                            clock_monotonic_milliseconds() < request->until,
        .purpose = request->purpose,
    };
    const char *reason;
    switch (access_decide(&facts, &reason)) {
    case ACCESS_ALLOWED:
        allow(request);
        break;
    case ACCESS_WAIT:
        wait_for_session(request, live);
        break;
    case ACCESS_REFUSED:
        refuse(request, reason);
        break;
    }
}

static void load(struct access_request *request)
{
    request->loading = true;
    store_read(request->gateway->store, work, loaded, request);
}

struct access_request *access_acquire(struct gateway *gateway, const char *workspace,
                                      const char *name, enum access_purpose purpose,
                                      access_done done, void *user)
{
    struct arena *arena = arena_new(0);
    struct access_request *request = arena_new_of(arena, struct access_request);
    request->gateway = gateway;
    request->arena = arena;
    request->workspace = arena_strdup(arena, workspace);
    request->name = arena_strdup(arena, name);
    request->purpose = purpose;
    request->done = done;
    request->user = user;
    request->until = clock_monotonic_milliseconds() + ACCESS_WAIT_MILLISECONDS;
    load(request);
    return request;
}

void access_cancel(struct access_request *request)
{
    struct live_sandbox *live = request->live;
    stop_waiting(request);
    if (live != NULL)
        live_release(live);
    if (request->loading)
        request->cancelled = true;
    else
        request_free(request);
}
