#include "gateway/compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "gateway/launch.h"
#include "gateway/live.h"
#include "gateway/message.h"
#include "gateway/sessions.h"

enum { STEPS_LIMIT = 8 /* actions that follow from actions */ };

/* The actions of one operation, lowest bit first. */
struct perform {
    struct gateway *gateway;
    struct arena *arena;
    char sandbox_id[64];
    Openshell__V1__Sandbox *sandbox; /* a copy; NULL where nothing is to be started */
    unsigned actions;
    unsigned current;
    unsigned steps;
    bool creating;
    struct error failure; /* the driver's first */
    compute_done done;
    void *user;
};

static void next_action(struct perform *perform);

static void finish(struct perform *perform, const Openshell__V1__Sandbox *sandbox,
                   const struct error *error)
{
    if (error == NULL && perform->failure.code != ERROR_OK)
        error = &perform->failure;
    perform->done(sandbox, error, perform->user);
    error_clear(&perform->failure);
    arena_free(perform->arena);
}

/* The event behind an action is in the record. */
static void recorded(struct transition *transition, const struct error *error, void *user)
{
    struct perform *perform = user;
    if (error == NULL) {
        perform->actions |= transition->result.actions;
        if (transition->result.actions & LIFECYCLE_START_COMPUTE)
            perform->sandbox = message_copy(perform->arena, &transition->sandbox->base);
    }
    if (error != NULL || perform->actions == 0 || ++perform->steps > STEPS_LIMIT)
        finish(perform, transition->result.remove ? NULL : transition->sandbox, error);
    else
        next_action(perform);
}

static enum lifecycle_event event_after(const struct perform *perform, bool well)
{
    switch (perform->current) {
    case LIFECYCLE_STOP_COMPUTE:
        return well ? LIFECYCLE_DRIVER_STOPPED : LIFECYCLE_DRIVER_STOP_FAILED;
    case LIFECYCLE_DELETE_COMPUTE:
        return well ? LIFECYCLE_DRIVER_DELETED : LIFECYCLE_DRIVER_DELETE_FAILED;
    default:
        if (perform->creating)
            return well ? LIFECYCLE_DRIVER_CREATED : LIFECYCLE_DRIVER_CREATE_FAILED;
        return well ? LIFECYCLE_DRIVER_STARTED : LIFECYCLE_START_FAILED;
    }
}

static void record_outcome(struct perform *perform, const struct error *error)
{
    struct driver *driver = perform->gateway->driver;
    const struct live_sandbox *live = live_find(perform->gateway, perform->sandbox_id);
    struct lifecycle_facts facts = {
        .text = error != NULL ? error->message : NULL,
        .session_connected = live != NULL && live->session != NULL,
        .compute_running = driver->class->running(driver, perform->sandbox_id),
    };
    transition_apply(perform->gateway, perform->sandbox_id, event_after(perform, error == NULL),
                     &facts, recorded, perform);
}

/* What a failed start left behind is gone, or cannot be had away. */
static void cleared(const struct error *error, void *user)
{
    struct perform *perform = user;
    if (error != NULL)
        log_error("sandbox %s: cannot clear up after a failed start: %s", perform->sandbox_id,
                  error->message);
    record_outcome(perform, &perform->failure);
}

static void acted(const struct error *error, void *user)
{
    struct perform *perform = user;
    struct gateway *gateway = perform->gateway;
    struct live_sandbox *live = live_find(gateway, perform->sandbox_id);
    bool started = perform->current == LIFECYCLE_START_COMPUTE;
    if (error != NULL && perform->failure.code == ERROR_OK)
        error_copy(&perform->failure, error);
    if (live != NULL && started == (error != NULL)) {
        live_unlaunch(live);
        session_disconnect(gateway, perform->sandbox_id);
    }
    if (started && error != NULL && perform->creating)
        gateway->driver->class->remove(gateway->driver, perform->sandbox_id, cleared, perform);
    else if (started && error != NULL)
        gateway->driver->class->stop(gateway->driver, perform->sandbox_id, cleared, perform);
    else
        record_outcome(perform, error);
}

static void next_action(struct perform *perform)
{
    struct gateway *gateway = perform->gateway;
    const struct driver_class *class = gateway->driver->class;
    perform->current = perform->actions & -perform->actions;
    perform->actions &= ~perform->current;
    if (perform->current == LIFECYCLE_STOP_COMPUTE) {
        class->stop(gateway->driver, perform->sandbox_id, acted, perform);
    } else if (perform->current == LIFECYCLE_DELETE_COMPUTE) {
        class->remove(gateway->driver, perform->sandbox_id, acted, perform);
    } else {
        live_launch(live_obtain(gateway, perform->sandbox_id), launch_generation(perform->sandbox),
                    launch_auth_epoch(perform->sandbox));
        launch_start(gateway, perform->sandbox, acted, perform);
    }
}

void compute_perform(struct gateway *gateway, const char *sandbox_id,
                     const Openshell__V1__Sandbox *sandbox, unsigned actions, bool creating,
                     compute_done done, void *user)
{
    if (actions == 0) {
        done(sandbox, NULL, user);
        return;
    }
    struct arena *arena = arena_new(0);
    struct perform *perform = arena_new_of(arena, struct perform);
    perform->gateway = gateway;
    perform->arena = arena;
    snprintf(perform->sandbox_id, sizeof(perform->sandbox_id), "%s", sandbox_id);
    perform->actions = actions;
    perform->creating = creating;
    perform->done = done;
    perform->user = user;
    if (actions & LIFECYCLE_START_COMPUTE)
        perform->sandbox = message_copy(arena, &sandbox->base);
    next_action(perform);
}

/* ---- whole operations ---- */

static void operation_done(const Openshell__V1__Sandbox *sandbox, const struct error *error,
                           void *user)
{
    (void)sandbox;
    struct operation *operation = user;
    if (error != NULL)
        log_warn("sandbox %s: %s", operation->live->id, error->message);
    operation_finish(operation);
}

void compute_finish_operation(struct transition *transition, struct operation *operation)
{
    compute_perform(transition->gateway, transition->sandbox_id, transition->sandbox,
                    transition->result.actions, false, operation_done, operation);
}

static void run_queued(struct operation *operation)
{
    unsigned actions = (unsigned)(uintptr_t)operation->user;
    compute_perform(operation->live->gateway, operation->live->id, NULL, actions, false,
                    operation_done, operation);
}

void compute_queue(struct gateway *gateway, const char *sandbox_id, unsigned actions)
{
    /* A start needs the record and belongs to the operation that asked for it. */
    actions &= LIFECYCLE_STOP_COMPUTE | LIFECYCLE_DELETE_COMPUTE;
    operation_submit_own(gateway, sandbox_id, run_queued, (void *)(uintptr_t)actions);
}

/* ---- what the driver sees ---- */

enum lifecycle_event compute_event_of_end(const struct driver_end *end, bool served,
                                          struct lifecycle_facts *facts)
{
    facts->reason = served ? "ProcessExited" : "StartFailed";
    switch (end->cause) {
    case DRIVER_END_ABSENT:
        return LIFECYCLE_BACKEND_MISSING;
    case DRIVER_END_REFUSED:
        return LIFECYCLE_SUPERVISOR_REFUSED;
    case DRIVER_END_SUPERVISOR_LOST:
        return LIFECYCLE_SUPERVISOR_LOST;
    case DRIVER_END_RUNTIME_LOST:
        return LIFECYCLE_RUNTIME_LOST;
    case DRIVER_END_STOPPED:
        facts->text = "its processes were stopped from outside";
        break;
    case DRIVER_END_FAILED:
        facts->text = end->text;
        break;
    }
    return LIFECYCLE_DRIVER_FAILED;
}

void compute_ended(struct gateway *gateway, const char *sandbox_id, const struct driver_end *end)
{
    struct live_sandbox *live = live_obtain(gateway, sandbox_id);
    char generation[UUID_SIZE];
    memcpy(generation, live->generation, sizeof(generation));
    struct lifecycle_facts facts = {.generation = generation};
    enum lifecycle_event event = compute_event_of_end(end, live->connected_once, &facts);
    log_info("sandbox %s: its processes ended: %s%s%s", sandbox_id, lifecycle_event_name(event),
             facts.text != NULL ? ": " : "", facts.text != NULL ? facts.text : "");
    live_unlaunch(live);
    transition_apply(gateway, sandbox_id, event, &facts, NULL, NULL);
    session_disconnect(gateway, sandbox_id);
    live = live_find(gateway, sandbox_id);
    if (live != NULL)
        live_release(live);
}
