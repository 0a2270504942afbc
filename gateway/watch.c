#include "gateway/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gateway/lifecycle.h"
#include "gateway/live.h"
#include "gateway/message.h"
#include "gateway/records.h"
#include "gateway/validate.h"

struct watcher {
    struct gateway *gateway;
    struct rpc_call *call; /* NULL once the call is over */
    struct watcher *next;
    struct watcher *previous;
    bool loading;  /* the store has it */
    bool behind;   /* something newer than what was sent last exists */
    bool finished; /* the end of the stream was asked for */
    bool follow;
    bool stop_on_terminal;
    struct live_sandbox *live; /* NULL until the sandbox is known */

    struct arena *arena; /* of the load in flight */
    const char *workspace;
    const char *name;
    Openshell__V1__Sandbox *sandbox;
};

static void watcher_free(struct watcher *watcher)
{
    struct gateway *gateway = watcher->gateway;
    if (watcher->previous != NULL)
        watcher->previous->next = watcher->next;
    else
        gateway->watchers = watcher->next;
    if (watcher->next != NULL)
        watcher->next->previous = watcher->previous;
    if (watcher->live != NULL) {
        watcher->live->watcher_count--;
        live_release(watcher->live);
    }
    arena_free(watcher->arena);
    free(watcher);
}

static void fail(struct watcher *watcher, const struct error *error)
{
    watcher->finished = true;
    rpc_call_fail(watcher->call, error);
}

static void finish(struct watcher *watcher)
{
    watcher->finished = true;
    rpc_call_finish(watcher->call);
}

static bool terminal(Openshell__V1__SandboxPhase phase)
{
    return phase == PHASE(READY) || phase == PHASE(COMPLETED) || phase == PHASE(STOPPED) ||
           phase == PHASE(ERROR);
}

/* `sandbox` is the public view. */
static void send_record(struct watcher *watcher, Openshell__V1__Sandbox *sandbox)
{
    Openshell__V1__SandboxStreamEvent event = OPENSHELL__V1__SANDBOX_STREAM_EVENT__INIT;
    event.payload_case = OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_SANDBOX;
    event.sandbox = sandbox;
    watcher->behind = false;
    rpc_call_send(watcher->call, &event.base);
    if (!watcher->follow || (watcher->stop_on_terminal && terminal(sandbox->status->phase)))
        finish(watcher);
}

/* ---- loading ---- */

static bool work(struct store_transaction *store, void *argument, struct error *error)
{
    struct watcher *watcher = argument;
    return record_load_sandbox(store, watcher->arena, watcher->workspace, watcher->name,
                               &watcher->sandbox, error);
}

/* A name may have come to mean another sandbox since the watch began. */
static bool still_the_same(struct watcher *watcher)
{
    const char *id = watcher->sandbox->metadata->id;
    if (watcher->live == NULL) {
        watcher->live = live_obtain(watcher->gateway, id);
        watcher->live->watcher_count++;
    }
    return strcmp(watcher->live->id, id) == 0;
}

static void loaded(void *argument, const struct error *error)
{
    struct watcher *watcher = argument;
    watcher->loading = false;
    if (watcher->call == NULL) {
        watcher_free(watcher);
        return;
    }
    if (watcher->finished)
        return;
    if (error != NULL && (watcher->live == NULL || error->code != ERROR_NOT_FOUND)) {
        fail(watcher, error);
    } else if (error != NULL || !still_the_same(watcher)) {
        finish(watcher);
    } else {
        record_public_view(watcher->sandbox);
        send_record(watcher, watcher->sandbox);
    }
}

static void load(struct watcher *watcher)
{
    const char *workspace = watcher->workspace, *name = watcher->name;
    struct arena *arena = arena_new(0);
    watcher->workspace = arena_strdup(arena, workspace);
    watcher->name = arena_strdup(arena, name);
    if (watcher->arena != NULL)
        arena_free(watcher->arena);
    watcher->arena = arena;
    watcher->loading = true;
    watcher->behind = false;
    store_read(watcher->gateway->store, work, loaded, watcher);
}

static void on_sent(struct rpc_call *call, void *user)
{
    (void)call;
    struct watcher *watcher = user;
    if (watcher->behind && !watcher->loading && !watcher->finished)
        load(watcher);
}

/* ---- changes ---- */

void watch_publish(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox, bool removed)
{
    const struct live_sandbox *live = live_find(gateway, sandbox->metadata->id);
    if (live == NULL || live->watcher_count == 0)
        return;
    struct arena *arena = arena_new(0);
    Openshell__V1__Sandbox *view = message_copy(arena, &sandbox->base);
    record_public_view(view);
    for (struct watcher *watcher = gateway->watchers; watcher != NULL; watcher = watcher->next) {
        if (watcher->live != live || watcher->call == NULL || watcher->finished)
            continue;
        if (removed)
            finish(watcher);
        else if (watcher->loading || rpc_call_unsent(watcher->call) > 0)
            watcher->behind = true;
        else
            send_record(watcher, view);
    }
    arena_free(arena);
}

/* ---- the call ---- */

static void on_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    (void)status;
    struct watcher *watcher = user;
    watcher->call = NULL;
    if (!watcher->loading)
        watcher_free(watcher);
}

static bool check(struct gateway *gateway, const Openshell__V1__WatchSandboxRequest *request,
                  const char **ret_workspace, struct error *error)
{
    bool good = validate_workspace_scope(request->workspace_scope, false, ret_workspace, error);
    good &= validate_sandbox_reference("sandbox", request->sandbox, error);
    if (!good)
        return false;
    size_t count = 0;
    for (const struct watcher *watcher = gateway->watchers; watcher != NULL;
         watcher = watcher->next)
        count++;
    return count < WATCH_LIMIT ||
           error_set(error, ERROR_RESOURCE_EXHAUSTED, "%d watches are open already", WATCH_LIMIT);
}

void watch_sandbox(struct rpc_call *call, void *user)
{
    static const struct rpc_call_events events = {.on_sent = on_sent, .on_done = on_done};
    struct gateway *gateway = user;
    const Openshell__V1__WatchSandboxRequest *request =
        (const Openshell__V1__WatchSandboxRequest *)rpc_call_request(call);
    const char *workspace;
    struct error error = {0};
    if (!check(gateway, request, &workspace, &error)) {
        rpc_call_fail(call, &error);
        error_clear(&error);
        return;
    }
    struct watcher *watcher = memory_new_of(struct watcher);
    watcher->gateway = gateway;
    watcher->call = call;
    watcher->follow = request->follow_status || request->follow_logs || request->follow_events ||
                      request->stop_on_terminal;
    watcher->stop_on_terminal = request->stop_on_terminal;
    watcher->workspace = workspace;
    watcher->name = request->sandbox;
    watcher->next = gateway->watchers;
    if (watcher->next != NULL)
        watcher->next->previous = watcher;
    gateway->watchers = watcher;
    rpc_call_accept(call, &events, watcher);
    load(watcher);
}
