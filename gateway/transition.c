#include "gateway/transition.h"

#include <string.h>

#include "base/log.h"
#include "gateway/compute.h"
#include "gateway/deadlines.h"
#include "gateway/host_ids.h"
#include "gateway/live.h"
#include "gateway/logs.h"
#include "gateway/records.h"
#include "gateway/sessions.h"
#include "gateway/watch.h"

enum { TRANSITION_ARENA_LIMIT = 0 /* a record is bounded by STORE_PAYLOAD_LIMIT */ };

enum {
    COMPUTE_ACTIONS = LIFECYCLE_STOP_COMPUTE | LIFECYCLE_START_COMPUTE | LIFECYCLE_DELETE_COMPUTE
};

static bool decide_by_lifecycle(struct transition *transition, Openshell__V1__Sandbox *sandbox,
                                struct error *refusal, struct error *error)
{
    (void)refusal;
    return lifecycle_apply(sandbox, transition->arena, transition->event, &transition->facts,
                           &transition->result, error);
}

static bool work(struct store_transaction *store, void *argument, struct error *error)
{
    struct transition *transition = argument;
    Openshell__V1__Sandbox *sandbox;
    if (!record_load_sandbox_by_id(store, transition->arena, transition->sandbox_id, &sandbox,
                                   error) ||
        !transition->decide(transition, sandbox, &transition->refusal, error))
        return false;
    transition->sandbox = sandbox;
    if (transition->result.remove)
        return record_delete_sandbox(store, transition->sandbox_id, error);
    return !transition->result.changed ||
           record_save_sandbox(store, transition->arena, sandbox, error);
}

/* What a record that is gone held. */
static void forget(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox)
{
    host_ids_give(gateway->host_ids, sandbox);
    journals_forget(gateway->journals, sandbox->metadata->id);
}

void transition_publish(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox,
                        bool removed)
{
    const char *id = sandbox->metadata->id;
    deadlines_note(gateway, id, removed ? 0 : lifecycle_next_deadline(sandbox));
    if (!removed)
        logs_note_state(gateway, sandbox);
    watch_publish(gateway, sandbox, removed);
    if (removed)
        forget(gateway, sandbox);
}

static void transition_free(struct transition *transition)
{
    error_clear(&transition->refusal);
    arena_free(transition->arena);
}

static void done(void *argument, const struct error *error)
{
    struct transition *transition = argument;
    struct gateway *gateway = transition->gateway;
    if (error != NULL) {
        transition->result = (struct lifecycle_result){0};
        transition->sandbox = NULL;
    } else {
        log_debug("sandbox %s: %s: %s to %s", transition->sandbox_id,
                  lifecycle_event_name(transition->event),
                  lifecycle_phase_word(transition->result.previous_phase),
                  lifecycle_phase_word(transition->result.phase));
        if (transition->result.changed || transition->result.remove)
            transition_publish(gateway, transition->sandbox, transition->result.remove);
        if (transition->result.actions & LIFECYCLE_DISCONNECT)
            session_disconnect(gateway, transition->sandbox_id);
        transition->result.actions &= COMPUTE_ACTIONS;
    }
    if (error == NULL && transition->refusal.code != ERROR_OK)
        error = &transition->refusal;
    if (transition->done != NULL) {
        transition->done(transition, error, transition->user);
    } else {
        if (error != NULL && error->code != ERROR_NOT_FOUND)
            log_warn("sandbox %s: %s: %s", transition->sandbox_id,
                     lifecycle_event_name(transition->event), error->message);
        transition_queue_compute(transition);
    }
    transition_free(transition);
}

struct transition *transition_new(struct gateway *gateway, const char *sandbox_id,
                                  transition_done on_done, void *user)
{
    struct arena *arena = arena_new(TRANSITION_ARENA_LIMIT);
    struct transition *transition = arena_new_of(arena, struct transition);
    transition->gateway = gateway;
    transition->arena = arena;
    memcpy(transition->sandbox_id, sandbox_id,
           strnlen(sandbox_id, sizeof(transition->sandbox_id) - 1));
    transition->decide = decide_by_lifecycle;
    transition->done = on_done;
    transition->user = user;
    return transition;
}

void transition_run(struct transition *transition)
{
    if (transition->facts.now == 0)
        transition->facts.now = gateway_now(transition->gateway);
    store_run(transition->gateway->store, work, done, transition);
}

void transition_run_wait(struct transition *transition)
{
    if (transition->facts.now == 0)
        transition->facts.now = gateway_now(transition->gateway);
    struct error error = {0};
    bool stored = store_run_wait(transition->gateway->store, work, transition, &error);
    done(transition, stored ? NULL : &error);
    error_clear(&error);
}

static const char *copied(struct arena *arena, const char *text)
{
    return text != NULL ? arena_strdup(arena, text) : NULL;
}

void transition_apply(struct gateway *gateway, const char *sandbox_id, enum lifecycle_event event,
                      const struct lifecycle_facts *facts, transition_done on_done, void *user)
{
    struct transition *transition = transition_new(gateway, sandbox_id, on_done, user);
    struct arena *arena = transition->arena;
    transition->event = event;
    if (facts != NULL)
        transition->facts = *facts;
    struct lifecycle_facts *own = &transition->facts;
    own->instance_id = copied(arena, own->instance_id);
    own->reason = copied(arena, own->reason);
    own->text = copied(arena, own->text);
    own->generation = copied(arena, own->generation);
    own->new_attempt_id = copied(arena, own->new_attempt_id);
    own->new_generation = copied(arena, own->new_generation);
    own->new_fence_instance_id = copied(arena, own->new_fence_instance_id);
    own->new_operation_id = copied(arena, own->new_operation_id);
    transition_run(transition);
}

void transition_queue_compute(struct transition *transition)
{
    if (transition->result.actions != 0)
        compute_queue(transition->gateway, transition->sandbox_id, transition->result.actions);
}
