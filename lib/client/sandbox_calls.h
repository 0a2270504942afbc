/* Calls about one sandbox that several commands make. */
#ifndef CLIENT_SANDBOX_CALLS_H
#define CLIENT_SANDBOX_CALLS_H

#include "client/connection.h"
#include "client/sandbox.h"

/* DeleteSandbox; absence is fine. */
bool sandbox_delete(struct connection *connection, const char *name,
                    Openshell__V1__DeletionOutcome *ret_outcome, struct error *error);

/* StopSandbox and StartSandbox: the gateway has noted it and sees to it. */
bool sandbox_begin_stop(struct connection *connection, const char *name, struct error *error);
bool sandbox_begin_start(struct connection *connection, const char *name, struct error *error);

/* Waits until the gateway says that it is done, for OPENSHELL_LIFECYCLE_TIMEOUT seconds at most.
 * Returns the last state; NULL with the error. */
const Openshell__V1__Sandbox *sandbox_await(struct connection *connection, const char *name,
                                            struct error *error);

#endif
