/* The lifecycle lock of a sandbox: what is done to it is done one after the other, in the order of
 * arrival, and goes on when whoever asked for it goes away (behaviour reference 1.6). */
#ifndef GATEWAY_OPERATIONS_H
#define GATEWAY_OPERATIONS_H

#include "base/error.h"
#include "gateway/live.h"

enum { OPERATIONS_LIMIT = 32 /* asked for from outside, for one sandbox */ };

struct operation {
    struct live_sandbox *live;
    struct operation *next;
    /* Starts the work, maybe at once within operation_submit; operation_finish ends it. */
    void (*run)(struct operation *operation);
    void *user;
};

/* RESOURCE_EXHAUSTED, and `run` is never called, when too many wait already. */
bool operation_submit(struct gateway *gateway, const char *sandbox_id,
                      void (*run)(struct operation *operation), void *user, struct error *error);
/* The same for what the gateway itself has to do, which must not be refused: it is bounded by the
 * events that ask for it, a few for each launch. */
void operation_submit_own(struct gateway *gateway, const char *sandbox_id,
                          void (*run)(struct operation *operation), void *user);
/* Frees the operation, lets the next one run. */
void operation_finish(struct operation *operation);

#endif
