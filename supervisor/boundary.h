/* The boundary as the supervisor holds it: a type for each stage, and a handle that was used up
 * cannot be used again (isolation IB-42).
 *
 *     opened --attach--> bound --confirm--> ready --start--> running
 *
 * A transition takes a pointer to the handle and clears it at once, whatever becomes of it. All
 * callbacks run on the loop, once; `error` is NULL on success and of a failure kind, or the
 * transport's, otherwise. */
#ifndef SUPERVISOR_BOUNDARY_H
#define SUPERVISOR_BOUNDARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/reactor.h"
#include "boundary/launch.h"
#include "boundary/protocol.h"
#include "rpc/rpc.h"

enum {
    /* Each remote step of a start. */
    BOUNDARY_STEP_MILLISECONDS = 10 * 1000,
    /* Decision P14, for one route. */
    BOUNDARY_HANDSHAKES_LIMIT = 4,
};

struct boundary;
struct opened_boundary;
struct bound_boundary;
struct ready_boundary;
struct running_boundary;

struct boundary_events {
    /* Connected, negotiated and opened; or why not. */
    void (*on_opened)(struct opened_boundary *opened, const struct error *error, void *user);
    /* The connection is gone, after on_opened succeeded. */
    void (*on_lost)(void *user);
    void *user;
};

/* Listens for the runtime on `listener`, a listening Unix socket which stays the caller's, takes
 * the first connection that has the pinned certificate, negotiates and opens. Everything given
 * outlives the boundary. */
struct boundary *boundary_new(struct reactor *reactor, struct rpc_runtime *rpc, int listener,
                              const struct launch_supervisor *launch,
                              const struct boundary_events *events, struct error *error);
/* Closes the connection; pending callbacks are not called. Handles die with it. NULL is allowed. */
void boundary_free(struct boundary *boundary);

/* ---- opened ---- */

void opened_boundary_discover_policy(
    struct opened_boundary *opened,
    void (*done)(const Openshell__Sandbox__Protocol__V1__ImagePolicy *policy,
                 const struct error *error, void *user),
    void *user);

void opened_boundary_attach(struct opened_boundary **opened,
                            const Openshell__Sandbox__Protocol__V1__Attach *attach,
                            void (*done)(struct bound_boundary *bound,
                                         const Openshell__Sandbox__Protocol__V1__Attached *attached,
                                         const struct error *error, void *user),
                            void *user);

/* ---- bound ---- */

/* Checks the evidence (supervisor/evidence.h): `ready` is there only when all of it holds. */
void bound_boundary_confirm(struct bound_boundary **bound,
                            void (*done)(struct ready_boundary *ready, const struct error *error,
                                         void *user),
                            void *user);

/* ---- ready ---- */

void ready_boundary_start(struct ready_boundary **ready,
                          const Openshell__Sandbox__Protocol__V1__StartAgent *start,
                          void (*done)(struct running_boundary *running,
                                       const Openshell__Sandbox__Protocol__V1__Started *started,
                                       const struct error *error, void *user),
                          void *user);

/* ---- running ---- */

/* Answered when the process has ended; no time limit. */
void running_boundary_wait(struct running_boundary *running, const char *process_id,
                           void (*done)(const Openshell__Sandbox__Protocol__V1__Exited *exited,
                                        const struct error *error, void *user),
                           void *user);

/* Starts an Exchange stream and sends the binding; the caller sends the operation and steps the
 * table. NULL when the connection is gone. */
struct rpc_call *running_boundary_stream(struct running_boundary *running,
                                         const struct rpc_call_events *events, void *user);

/* ---- any stage after opening ---- */

/* Ends every process and then the runtime. */
void boundary_terminate(struct boundary *boundary, uint32_t grace_milliseconds,
                        void (*done)(const struct error *error, void *user), void *user);
/* Whether it was opened and the connection lives. */
bool boundary_is_open(const struct boundary *boundary);

#endif
