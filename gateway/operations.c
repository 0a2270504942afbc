#include "gateway/operations.h"

#include <stdlib.h>

#include "base/memory.h"

static void submit(struct live_sandbox *live, void (*run)(struct operation *operation), void *user)
{
    struct operation *operation = memory_new_of(struct operation);
    operation->live = live;
    operation->run = run;
    operation->user = user;
    struct operation **last = &live->operations;
    while (*last != NULL)
        last = &(*last)->next;
    *last = operation;
    live->operation_count++;
    if (live->operations == operation)
        run(operation);
}

bool operation_submit(struct gateway *gateway, const char *sandbox_id,
                      void (*run)(struct operation *operation), void *user, struct error *error)
{
    struct live_sandbox *live = live_obtain(gateway, sandbox_id);
    if (live->operation_count >= OPERATIONS_LIMIT)
        return error_set(error, ERROR_RESOURCE_EXHAUSTED,
                         "%d operations on this sandbox wait already; try again later",
                         OPERATIONS_LIMIT);
    submit(live, run, user);
    return true;
}

void operation_submit_own(struct gateway *gateway, const char *sandbox_id,
                          void (*run)(struct operation *operation), void *user)
{
    submit(live_obtain(gateway, sandbox_id), run, user);
}

/* A step of its own, so that a long queue does not become a deep stack. */
static void run_next(void *argument)
{
    struct live_sandbox *live = argument;
    live->operations->run(live->operations);
}

void operation_finish(struct operation *operation)
{
    struct live_sandbox *live = operation->live;
    live->operations = operation->next;
    live->operation_count--;
    free(operation);
    if (live->operations != NULL)
        reactor_post(live->gateway->reactor, run_next, live);
    else
        live_release(live);
}
