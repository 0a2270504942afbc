#include "gateway/reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "gateway/compute.h"
#include "gateway/deadlines.h"
#include "gateway/host_ids.h"
#include "gateway/launch.h"
#include "gateway/lifecycle.h"
#include "gateway/lifecycle_rules.h"
#include "gateway/live.h"
#include "gateway/records.h"
#include "gateway/sessions.h"
#include "gateway/transition.h"

struct page {
    struct arena *arena;
    struct pages_position after;
    Openshell__V1__Sandbox **sandboxes;
    size_t count;
    struct pages_position last;
};

static bool load_page(struct store_transaction *store, void *argument, struct error *error)
{
    struct page *page = argument;
    return record_list_sandboxes(store, page->arena, NULL, &page->after, STORE_LIST_LIMIT, NULL, 0,
                                 &page->sandboxes, &page->count, &page->last, error);
}

/* ---- one sandbox ---- */

/* The start that an earlier gateway promised and nothing came of is done now: it is repeatable for
 * one generation (decision P11), as long as its supervisor was admitted to nothing. Until then what
 * runs, or ran, is at most the launch before. */
static bool start_was_cut_short(const Openshell__V1__Sandbox *sandbox, bool runs,
                                const struct driver_end *end)
{
    const Openshell__V1__SandboxProvisioning *provisioning = sandbox->status->provisioning;
    if (provisioning == NULL || !provisioning->driver_operation_pending)
        return false;
    if (sandbox->status->phase == PHASE(STARTING))
        return lifecycle_admission_is(sandbox, ADMISSION_STATE(PENDING)) &&
               (runs || end->cause == DRIVER_END_ABSENT || end->cause == DRIVER_END_STOPPED);
    return sandbox->status->phase == PHASE(PROVISIONING) && !runs &&
           end->cause == DRIVER_END_ABSENT;
}

static void done(const Openshell__V1__Sandbox *sandbox, const struct error *error, void *user)
{
    (void)sandbox;
    struct operation *operation = user;
    if (error != NULL)
        log_warn("sandbox %s: %s", operation->live->id, error->message);
    operation_finish(operation);
}

static bool keep(struct transition *transition, Openshell__V1__Sandbox *sandbox,
                 struct error *refusal, struct error *error)
{
    (void)transition;
    (void)sandbox;
    (void)refusal;
    (void)error;
    return true;
}

static void loaded(struct transition *transition, const struct error *error, void *user)
{
    struct operation *operation = user;
    if (error != NULL) {
        done(NULL, error, operation);
        return;
    }
    const Openshell__V1__Sandbox *sandbox = transition->sandbox;
    bool creating = sandbox->status->phase == PHASE(PROVISIONING);
    unsigned actions = LIFECYCLE_START_COMPUTE | (creating ? 0 : LIFECYCLE_STOP_COMPUTE);
    compute_perform(transition->gateway, transition->sandbox_id, sandbox, actions, creating, done,
                    operation);
}

static void run_start(struct operation *operation)
{
    struct transition *transition =
        transition_new(operation->live->gateway, operation->live->id, loaded, operation);
    transition->decide = keep;
    transition_run(transition);
}

/* Waits for each: the store's queue is bounded, the number of sandboxes is not. The facts' strings
 * live long enough. */
static void apply(struct gateway *gateway, const char *id, enum lifecycle_event event,
                  const struct lifecycle_facts *facts)
{
    struct transition *transition = transition_new(gateway, id, NULL, NULL);
    transition->event = event;
    transition->facts = *facts;
    transition_run_wait(transition);
}

/* What happened to a sandbox whose processes are gone. One that had its result keeps it, where it
 * is to be kept; an error's clean-up may have been cut short, and is over now. */
static void record_end(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox,
                       const struct driver_end *end, struct lifecycle_facts *facts)
{
    enum lifecycle_event event = LIFECYCLE_BACKEND_MISSING;
    if (sandbox->status->phase != PHASE(ERROR) && sandbox->status->phase != PHASE(COMPLETED)) {
        event = compute_event_of_end(end, sandbox->status->phase == PHASE(READY), facts);
        log_info("sandbox %s ('%s') ended meanwhile: %s", sandbox->metadata->id,
                 sandbox->metadata->name, lifecycle_event_name(event));
    }
    apply(gateway, sandbox->metadata->id, event, facts);
}

static void take_over(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox)
{
    const char *id = sandbox->metadata->id;
    struct driver_end end;
    struct lifecycle_facts facts = {.generation = launch_generation(sandbox)};
    bool runs = gateway->driver->class->adopt(gateway->driver, id, &end);
    if (start_was_cut_short(sandbox, runs, &end)) {
        log_info("sandbox %s ('%s') is started again", id, sandbox->metadata->name);
        operation_submit_own(gateway, id, run_start, NULL);
    } else if (runs) {
        struct live_sandbox *live = live_obtain(gateway, id);
        live_launch(live, launch_generation(sandbox), launch_auth_epoch(sandbox));
        session_expect(live);
        log_info("sandbox %s ('%s') runs on", id, sandbox->metadata->name);
        apply(gateway, id, LIFECYCLE_ADOPTED, &facts);
    } else {
        record_end(gateway, sandbox, &end, &facts);
    }
}

static void reconcile_sandbox(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox)
{
    const char *id = sandbox->metadata->id;
    struct driver_end end;
    host_ids_note(gateway->host_ids, sandbox);
    deadlines_note(gateway, id, lifecycle_next_deadline(sandbox));
    switch (sandbox->status->phase) {
    case PHASE(STOPPED):
        break;
    case PHASE(DELETING):
        gateway->driver->class->adopt(gateway->driver, id, &end);
        compute_queue(gateway, id, LIFECYCLE_DELETE_COMPUTE);
        break;
    case PHASE(STOPPING):
        gateway->driver->class->adopt(gateway->driver, id, &end);
        compute_queue(gateway, id, LIFECYCLE_STOP_COMPUTE);
        break;
    default:
        take_over(gateway, sandbox);
        break;
    }
}

bool reconcile(struct gateway *gateway, struct error *error)
{
    struct page page = {0};
    char *workspace = NULL, *name = NULL;
    bool loaded_well;
    do {
        page.arena = arena_new(0);
        page.after = (struct pages_position){.workspace = workspace, .name = name};
        loaded_well = store_run_wait(gateway->store, load_page, &page, error);
        for (size_t i = 0; loaded_well && i < page.count; i++)
            reconcile_sandbox(gateway, page.sandboxes[i]);
        free(workspace);
        free(name);
        workspace = loaded_well ? memory_strdup(page.last.workspace) : NULL;
        name = loaded_well ? memory_strdup(page.last.name) : NULL;
        arena_free(page.arena);
    } while (name != NULL);
    free(workspace);
    return loaded_well;
}
