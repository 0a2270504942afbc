/* What the driver has to do for a sandbox, and the events that follow from how it went. Everything
 * here runs within an operation on the sandbox (gateway/operations.h). */
#ifndef GATEWAY_COMPUTE_H
#define GATEWAY_COMPUTE_H

#include "gateway/gateway.h"
#include "gateway/lifecycle.h"
#include "gateway/operations.h"
#include "gateway/transition.h"

/* `sandbox` is the record as it is now, NULL when it is gone; it lives until the callback returns.
 * `error`: what the driver or the last event answered. */
typedef void (*compute_done)(const Openshell__V1__Sandbox *sandbox, const struct error *error,
                             void *user);

/* Does what the actions ask for, and what the events behind them ask for in turn. The record is
 * needed to start something and may be NULL otherwise; it is copied. `creating` makes the events
 * those of a create. */
void compute_perform(struct gateway *gateway, const char *sandbox_id,
                     const Openshell__V1__Sandbox *sandbox, unsigned actions, bool creating,
                     compute_done done, void *user);

/* Performs the actions of a transition that was part of an operation, then finishes that. */
void compute_finish_operation(struct transition *transition, struct operation *operation);

/* An operation of its own for these actions, behind what is being done to the sandbox. */
void compute_queue(struct gateway *gateway, const char *sandbox_id, unsigned actions);

/* The event that says how processes ended, with the facts for it; `served`: they had been usable.
 * The facts point into `end`. */
enum lifecycle_event compute_event_of_end(const struct driver_end *end, bool served,
                                          struct lifecycle_facts *facts);

/* What the driver says by itself: the processes of a sandbox ended. */
void compute_ended(struct gateway *gateway, const char *sandbox_id, const struct driver_end *end);

#endif
