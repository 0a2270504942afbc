/* One event applied to one record: loaded, decided by gateway/lifecycle.c (or admission.c), saved
 * in the same transaction, then made known to whoever watches. */
#ifndef GATEWAY_TRANSITION_H
#define GATEWAY_TRANSITION_H

#include "gateway/gateway.h"
#include "gateway/lifecycle.h"
#include "openshell.pb-c.h"

struct transition;

/* Decides, on the storage thread; touches nothing but its arguments. False refuses. A refusal that
 * must be saved all the same returns true and fills in `refusal`. */
typedef bool (*transition_decide)(struct transition *transition, Openshell__V1__Sandbox *sandbox,
                                  struct error *refusal, struct error *error);

/* On the loop, when everything but the compute actions of the result was done. The transition is
 * freed when this returns. */
typedef void (*transition_done)(struct transition *transition, const struct error *error,
                                void *user);

struct transition {
    struct gateway *gateway;
    struct arena *arena; /* of its own: holds the record and copies of the facts */
    char sandbox_id[64];
    enum lifecycle_event event;
    struct lifecycle_facts facts;
    transition_decide decide;
    const void *detail; /* for decide; in the arena */
    transition_done done;
    void *user;

    /* Afterwards: */
    Openshell__V1__Sandbox *sandbox; /* as it is now; NULL when it does not exist (any more) */
    struct lifecycle_result result;  /* its actions without LIFECYCLE_DISCONNECT and
                                        LIFECYCLE_DELETE_SSH_SESSIONS, which were done */
    struct error refusal;
};

/* A transition that can be filled in further before it is run. Zero time means now. */
struct transition *transition_new(struct gateway *gateway, const char *sandbox_id,
                                  transition_done done, void *user);
void transition_run(struct transition *transition);
/* Blocks until it is over; `done` was called then. For the start of the gateway. */
void transition_run_wait(struct transition *transition);

/* The common case: an event. The facts' strings are copied. `done` may be NULL: then compute
 * actions are queued as an operation and an error is logged. */
void transition_apply(struct gateway *gateway, const char *sandbox_id, enum lifecycle_event event,
                      const struct lifecycle_facts *facts, transition_done done, void *user);

/* Queues what the result's compute actions ask for behind whatever is being done to the sandbox.
 * For those whose transition was not part of an operation. */
void transition_queue_compute(struct transition *transition);

/* What every change of a record calls for: deadlines and watchers. `removed` when it is gone. */
void transition_publish(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox,
                        bool removed);

#endif
