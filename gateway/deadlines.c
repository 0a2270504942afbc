#include "gateway/deadlines.h"

#include "base/clock.h"
#include "gateway/compute.h"
#include "gateway/lifecycle.h"
#include "gateway/live.h"
#include "gateway/operations.h"
#include "gateway/transition.h"

/* A long wait is cut into pieces, in case somebody sets the clock. */
enum { WAIT_MOST_MILLISECONDS = 60 * 1000 };

int64_t gateway_now(const struct gateway *gateway)
{
    return gateway->clock != NULL ? gateway->clock() : clock_realtime_milliseconds();
}

static bool decide(struct transition *transition, Openshell__V1__Sandbox *sandbox,
                   struct error *refusal, struct error *error)
{
    (void)refusal;
    int64_t now = transition->facts.now;
    lifecycle_fresh_facts(transition->arena, &transition->facts);
    transition->facts.now = now;
    if (!lifecycle_deadline_due(sandbox, transition->facts.now, &transition->event))
        return true;
    return lifecycle_apply(sandbox, transition->arena, transition->event, &transition->facts,
                           &transition->result, error);
}

static void expired(struct transition *transition, const struct error *error, void *user)
{
    /* What was not due after all has another deadline, which nothing else would note. */
    if (error == NULL && !transition->result.changed)
        deadlines_note(transition->gateway, transition->sandbox_id,
                       lifecycle_next_deadline(transition->sandbox));
    compute_finish_operation(transition, user);
}

/* Under the sandbox's lock: a stop or delete that came first makes it moot. */
static void expire(struct operation *operation)
{
    struct transition *transition =
        transition_new(operation->live->gateway, operation->live->id, expired, operation);
    transition->decide = decide;
    transition_run(transition);
}

static void scan(void *argument);

static void arm(struct gateway *gateway, int64_t when)
{
    int64_t left = when - gateway_now(gateway);
    left = left < 0 ? 0 : left > WAIT_MOST_MILLISECONDS ? WAIT_MOST_MILLISECONDS : left;
    reactor_timer_cancel(gateway->deadlines);
    gateway->deadlines = reactor_timer_start(gateway->reactor, (uint64_t)left, 0, scan, gateway);
    gateway->deadlines_at = when;
}

static void scan(void *argument)
{
    struct gateway *gateway = argument;
    int64_t now = gateway_now(gateway), earliest = 0;
    size_t position = 0;
    struct live_sandbox *live;
    reactor_timer_cancel(gateway->deadlines);
    gateway->deadlines = NULL;
    while ((live = table_next(gateway->live, &position, NULL)) != NULL) {
        if (live->deadline == 0)
            continue;
        if (live->deadline <= now) {
            live->deadline = 0;
            operation_submit_own(gateway, live->id, expire, NULL);
        } else if (earliest == 0 || live->deadline < earliest) {
            earliest = live->deadline;
        }
    }
    if (earliest != 0 && (gateway->deadlines == NULL || earliest < gateway->deadlines_at))
        arm(gateway, earliest);
}

void deadlines_note(struct gateway *gateway, const char *sandbox_id, int64_t when)
{
    struct live_sandbox *live =
        when == 0 ? live_find(gateway, sandbox_id) : live_obtain(gateway, sandbox_id);
    if (live == NULL)
        return;
    live->deadline = when;
    if (when == 0)
        live_release(live);
    else if (gateway->deadlines == NULL || when < gateway->deadlines_at)
        arm(gateway, when);
}
