/* Which frame may follow which: one table of (operation, direction, state) for both peers
 * (isolation IB-09 to IB-11). A stream carries one operation; each direction has its own state.
 *
 * A peer steps the table for each frame that it sends and for each that it receives, so that
 * neither can say what the other would refuse. */
#ifndef BOUNDARY_OPERATIONS_H
#define BOUNDARY_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "boundary/protocol.h"

enum exchange_operation {
    OPERATION_NONE, /* not named yet */
    OPERATION_DISCOVER_POLICY,
    OPERATION_ATTACH,
    OPERATION_CONFIRM,
    OPERATION_START_AGENT,
    OPERATION_EXEC,
    OPERATION_ATTACH_PROCESS,
    OPERATION_WAIT,
    OPERATION_SIGNAL,
    OPERATION_TERMINATE,
    OPERATION_TERMINATE_BOUNDARY,
    OPERATION_COUNT,
};

enum exchange_direction {
    TO_RUNTIME,
    TO_SUPERVISOR,
};

enum exchange_state {
    STATE_UNBOUND,     /* to the runtime: nothing was said */
    STATE_BOUND,       /* the handle was named */
    STATE_INPUT,       /* input and control of a process may follow */
    STATE_INPUT_ENDED, /* control of a process may follow */
    STATE_SILENT,      /* to the supervisor: nothing was asked */
    STATE_ASKED,       /* an answer is owed */
    STATE_OUTPUT,      /* output and the end of a process may follow */
    STATE_CLOSED,      /* nothing may follow */
    STATE_COUNT,
};

/* Zero-initialise with EXCHANGE_INIT. */
struct exchange {
    enum exchange_operation operation;
    enum exchange_state to_runtime;
    enum exchange_state to_supervisor;
};
#define EXCHANGE_INIT                                                                              \
    ((struct exchange){.to_runtime = STATE_UNBOUND, .to_supervisor = STATE_SILENT})

/* "exec" and so on; "nothing" for OPERATION_NONE. */
const char *exchange_operation_name(enum exchange_operation operation);
/* The field's name in ExchangeFrame, or "nothing". */
const char *exchange_frame_name(const exchange_frame *frame);

/* The table itself: whether a frame of this case may travel, and the state after it. An operation
 * that is named begins with *ret_operation. */
bool exchange_allows(enum exchange_operation operation, enum exchange_direction direction,
                     enum exchange_state state, int frame_case,
                     enum exchange_operation *ret_operation, enum exchange_state *ret_next);

/* Advances, or leaves the exchange as it is and fails with a ProtocolViolation. Looks also at what
 * the table cannot: sizes, and an exec whose input is complete from the start. */
bool exchange_step(struct exchange *exchange, enum exchange_direction direction,
                   const exchange_frame *frame, struct error *error);

#endif
