#include "gateway/watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gateway/journal.h"
#include "gateway/lifecycle.h"
#include "gateway/live.h"
#include "gateway/message.h"
#include "gateway/records.h"
#include "gateway/validate.h"

enum {
    /* Messages that wait in a call before nothing further is taken from the journal: what a slow
     * reader has not read waits there, within its bounds. */
    UNSENT_LIMIT = 16,
    LOG_TAIL_DEFAULT = 200, /* command-line reference 3.9 */
    EVENT_TAIL_DEFAULT = JOURNAL_EVENTS_LIMIT,
};

struct watcher {
    struct gateway *gateway;
    struct rpc_call *call; /* NULL once the call is over */
    struct watcher *next;
    struct watcher *previous;
    bool loading;  /* the store has it */
    bool behind;   /* something newer than what was sent last exists */
    bool finished; /* the end of the stream was asked for */
    bool follow;
    bool records; /* every change of the record, not the first snapshot alone */
    bool stop_on_terminal;
    struct live_sandbox *live; /* NULL until the sandbox is known */

    struct journal_filter filter; /* points into the request */
    struct journal_reader reader; /* placed when the sandbox is known */
    bool reading;
    bool ending;              /* what was said so far is sent, then the stream ends */
    uint64_t ending_sequence; /* the last that is still sent */

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

/* ---- lines and events ---- */

static void send_entry(struct watcher *watcher, const struct journal *journal,
                       const struct journal_entry *entry)
{
    char cursor[JOURNAL_CURSOR_SIZE];
    Openshell__V1__SandboxStreamEvent event = OPENSHELL__V1__SANDBOX_STREAM_EVENT__INIT;
    if (entry->line != NULL) {
        event.payload_case = OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_LOG;
        event.log = entry->line;
    } else {
        event.payload_case = OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_EVENT;
        event.event = entry->event;
    }
    journal_cursor(journal, entry, cursor);
    event.cursor = cursor;
    rpc_call_send(watcher->call, &event.base);
}

static void warn_of_lag(struct watcher *watcher, uint64_t lost)
{
    char text[160];
    snprintf(text, sizeof(text),
             "%" PRIu64 " log lines or events were dropped: they came faster than they were read",
             lost);
    Openshell__V1__SandboxStreamWarning warning = OPENSHELL__V1__SANDBOX_STREAM_WARNING__INIT;
    warning.message = text;
    Openshell__V1__SandboxStreamEvent event = OPENSHELL__V1__SANDBOX_STREAM_EVENT__INIT;
    event.payload_case = OPENSHELL__V1__SANDBOX_STREAM_EVENT__PAYLOAD_WARNING;
    event.warning = &warning;
    rpc_call_send(watcher->call, &event.base);
}

/* Sends what the journal has and the call takes. */
static void pump(struct watcher *watcher)
{
    const struct journal *journal =
        watcher->reading ? journals_find(watcher->gateway->journals, watcher->live->id) : NULL;
    const struct journal_entry *entry = NULL;
    while (journal != NULL && rpc_call_unsent(watcher->call) < UNSENT_LIMIT) {
        uint64_t lost;
        entry = journal_read(journal, &watcher->reader, &lost);
        if (lost > 0)
            warn_of_lag(watcher, lost);
        if (entry == NULL || (watcher->ending && entry->sequence > watcher->ending_sequence))
            break;
        if (journal_filter_matches(&watcher->filter, entry))
            send_entry(watcher, journal, entry);
    }
    if (watcher->ending && (journal == NULL || rpc_call_unsent(watcher->call) < UNSENT_LIMIT))
        finish(watcher);
}

static void end_after_journal(struct watcher *watcher)
{
    const struct journal *journal = journals_find(watcher->gateway->journals, watcher->live->id);
    watcher->ending = true;
    watcher->ending_sequence = journal != NULL ? journal_last_sequence(journal) : 0;
}

void watch_journal_changed(struct gateway *gateway, const char *sandbox_id)
{
    const struct live_sandbox *live = live_find(gateway, sandbox_id);
    if (live == NULL || live->watcher_count == 0)
        return;
    for (struct watcher *watcher = gateway->watchers; watcher != NULL; watcher = watcher->next)
        if (watcher->live == live && watcher->call != NULL && !watcher->finished)
            pump(watcher);
}

/* Places the reader, once the sandbox is known. */
static bool start_reading(struct watcher *watcher, struct error *error)
{
    const Openshell__V1__WatchSandboxRequest *request =
        (const Openshell__V1__WatchSandboxRequest *)rpc_call_request(watcher->call);
    struct journal_reader *reader = &watcher->reader;
    reader->lines = request->follow_logs;
    reader->events = request->follow_events;
    if (!reader->lines && !reader->events)
        return true;
    const struct journal *journal = journals_obtain(watcher->gateway->journals, watcher->live->id);
    journal_filter_init(&watcher->filter, request->since_time, request->log_sources,
                        request->n_log_sources, request->log_min_level);
    watcher->reading = true;
    if (request->resume_after_cursor[0] != '\0')
        return journal_seek_cursor(journal, request->resume_after_cursor, reader, error);
    journal_seek_tail(journal, &watcher->filter,
                      request->log_tail_lines > 0 ? request->log_tail_lines : LOG_TAIL_DEFAULT,
                      request->event_tail > 0 ? request->event_tail : EVENT_TAIL_DEFAULT, reader);
    return true;
}

/* ---- records ---- */

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
    if (!watcher->follow)
        finish(watcher);
    else if (watcher->stop_on_terminal && terminal(sandbox->status->phase))
        end_after_journal(watcher);
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
        return;
    }
    bool first = watcher->live == NULL;
    if (error != NULL || !still_the_same(watcher)) {
        finish(watcher);
        return;
    }
    struct error refusal = {0};
    if (first && !start_reading(watcher, &refusal)) {
        fail(watcher, &refusal);
        error_clear(&refusal);
        return;
    }
    record_public_view(watcher->sandbox);
    send_record(watcher, watcher->sandbox);
    if (!watcher->finished)
        pump(watcher);
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
    if (watcher->finished || watcher->live == NULL)
        return;
    if (watcher->behind && !watcher->loading)
        load(watcher);
    pump(watcher);
}

/* ---- changes ---- */

static void publish_record(struct watcher *watcher, Openshell__V1__Sandbox *view)
{
    send_record(watcher, view);
    if (watcher->ending)
        pump(watcher);
}

/* The journal goes with the record: what the call still takes of it is sent. */
static void end_removed(struct watcher *watcher)
{
    pump(watcher);
    if (!watcher->finished)
        finish(watcher);
}

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
            end_removed(watcher);
        else if (!watcher->records || watcher->ending)
            continue;
        else if (watcher->loading || rpc_call_unsent(watcher->call) > 0)
            watcher->behind = true;
        else
            publish_record(watcher, view);
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
    watcher->records = request->follow_status || request->stop_on_terminal;
    watcher->workspace = workspace;
    watcher->name = request->sandbox;
    watcher->next = gateway->watchers;
    if (watcher->next != NULL)
        watcher->next->previous = watcher;
    gateway->watchers = watcher;
    rpc_call_accept(call, &events, watcher);
    load(watcher);
}
