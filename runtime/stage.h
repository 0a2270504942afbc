/* The stages of a boundary and what may be asked in each (isolation IB-43): a call out of order
 * fails and moves nothing. */
#ifndef RUNTIME_STAGE_H
#define RUNTIME_STAGE_H

#include <stdbool.h>

#include "base/error.h"
#include "boundary/operations.h"

enum boundary_stage {
    STAGE_CLOSED,     /* nobody has opened it */
    STAGE_OPENED,     /* OpenBoundary reserved it */
    STAGE_BOUND,      /* attach prepared the controls */
    STAGE_READY,      /* confirm measured them */
    STAGE_RUNNING,    /* start_agent let the main process go */
    STAGE_TERMINATED, /* terminate_boundary has begun */
    STAGE_COUNT,
};

const char *stage_name(enum boundary_stage stage);

/* Fails with a ProtocolViolation, or Terminated once the boundary is. */
bool stage_allows(enum boundary_stage stage, enum exchange_operation operation,
                  struct error *error);
/* The stage after the operation succeeded. */
enum boundary_stage stage_after(enum boundary_stage stage, enum exchange_operation operation);

#endif
