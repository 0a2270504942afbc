#include "gateway/retention.h"

#include <string.h>

#include "gateway/compute.h"
#include "gateway/lifecycle.h"
#include "gateway/live.h"
#include "gateway/operations.h"
#include "gateway/records.h"
#include "gateway/transition.h"

static bool is_due(const Openshell__V1__Sandbox *sandbox)
{
    const char *value = record_annotation(sandbox, RETENTION_ANNOTATION);
    return value != NULL && strcmp(value, RETENTION_EPHEMERAL) == 0 &&
           (sandbox->status->phase == PHASE(COMPLETED) || lifecycle_main_failed(sandbox));
}

/* Decided again in the transaction: somebody may have started it. */
static bool decide(struct transition *transition, Openshell__V1__Sandbox *sandbox,
                   struct error *refusal, struct error *error)
{
    (void)refusal;
    return !is_due(sandbox) || lifecycle_apply(sandbox, transition->arena, transition->event,
                                               &transition->facts, &transition->result, error);
}

static void committed(struct transition *transition, const struct error *error, void *user)
{
    (void)error; /* gone already, or to be tried at the next start */
    compute_finish_operation(transition, user);
}

static void run(struct operation *operation)
{
    struct transition *transition =
        transition_new(operation->live->gateway, operation->live->id, committed, operation);
    transition->event = LIFECYCLE_DELETE_REQUESTED;
    transition->decide = decide;
    transition_run(transition);
}

static void on_timer(void *argument)
{
    struct live_sandbox *live = argument;
    if (live->watcher_count > 0)
        return; /* the timer repeats */
    reactor_timer_cancel(live->retention);
    live->retention = NULL;
    operation_submit_own(live->gateway, live->id, run, NULL);
}

void retention_consider(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox)
{
    const char *id = sandbox->metadata->id;
    bool due = is_due(sandbox);
    struct live_sandbox *live = due ? live_obtain(gateway, id) : live_find(gateway, id);
    if (live == NULL || due == (live->retention != NULL))
        return;
    reactor_timer_cancel(live->retention);
    live->retention = due ? reactor_timer_start(gateway->reactor, RETENTION_MILLISECONDS,
                                                RETENTION_MILLISECONDS, on_timer, live)
                          : NULL;
    if (!due)
        live_release(live);
}
