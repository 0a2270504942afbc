#include "runtime/stage.h"

#include "boundary/failure.h"

static const char *const NAMES[STAGE_COUNT] = {
    [STAGE_CLOSED] = "closed", [STAGE_OPENED] = "opened",   [STAGE_BOUND] = "bound",
    [STAGE_READY] = "ready",   [STAGE_RUNNING] = "running", [STAGE_TERMINATED] = "terminated",
};

#define AT(stage) (1u << (stage))
#define OPEN (AT(STAGE_OPENED) | AT(STAGE_BOUND) | AT(STAGE_READY) | AT(STAGE_RUNNING))

/* In which stages an operation may be asked for, and where it leads; STAGE_COUNT: nowhere else. */
static const struct {
    unsigned stages;
    enum boundary_stage after;
} RULES[OPERATION_COUNT] = {
    [OPERATION_DISCOVER_POLICY] = {AT(STAGE_OPENED), STAGE_COUNT},
    [OPERATION_ATTACH] = {AT(STAGE_OPENED), STAGE_BOUND},
    [OPERATION_CONFIRM] = {AT(STAGE_BOUND), STAGE_READY},
    [OPERATION_START_AGENT] = {AT(STAGE_READY), STAGE_RUNNING},
    [OPERATION_EXEC] = {AT(STAGE_RUNNING), STAGE_COUNT},
    [OPERATION_ATTACH_PROCESS] = {AT(STAGE_RUNNING), STAGE_COUNT},
    [OPERATION_WAIT] = {AT(STAGE_RUNNING), STAGE_COUNT},
    [OPERATION_SIGNAL] = {AT(STAGE_RUNNING), STAGE_COUNT},
    [OPERATION_TERMINATE] = {AT(STAGE_RUNNING), STAGE_COUNT},
    [OPERATION_TERMINATE_BOUNDARY] = {OPEN, STAGE_TERMINATED},
};

const char *stage_name(enum boundary_stage stage)
{
    return NAMES[stage];
}

bool stage_allows(enum boundary_stage stage, enum exchange_operation operation, struct error *error)
{
    if (RULES[operation].stages & AT(stage))
        return true;
    if (stage == STAGE_TERMINATED)
        return failure_set(error, FAILURE_TERMINATED, "the boundary is being terminated");
    return failure_set(error, FAILURE_PROTOCOL_VIOLATION, "%s is out of order: the boundary is %s",
                       exchange_operation_name(operation), stage_name(stage));
}

enum boundary_stage stage_after(enum boundary_stage stage, enum exchange_operation operation)
{
    return RULES[operation].after == STAGE_COUNT ? stage : RULES[operation].after;
}
