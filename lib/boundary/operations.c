#include "boundary/operations.h"

#include <string.h>

#include "boundary/failure.h"

static const char *const OPERATION_NAMES[OPERATION_COUNT] = {
    [OPERATION_NONE] = "nothing",
    [OPERATION_DISCOVER_POLICY] = "discover_policy",
    [OPERATION_ATTACH] = "attach",
    [OPERATION_CONFIRM] = "confirm",
    [OPERATION_START_AGENT] = "start_agent",
    [OPERATION_EXEC] = "exec",
    [OPERATION_ATTACH_PROCESS] = "attach_process",
    [OPERATION_WAIT] = "wait",
    [OPERATION_SIGNAL] = "signal",
    [OPERATION_TERMINATE] = "terminate",
    [OPERATION_TERMINATE_BOUNDARY] = "terminate_boundary",
};

struct rule {
    enum exchange_operation operation;
    enum exchange_direction direction;
    enum exchange_state state;
    int frame;
    enum exchange_state next;
    enum exchange_operation names; /* the operation that this frame begins, if any */
};

#define NAMES(operation, frame, next)                                                              \
    {                                                                                              \
        OPERATION_NONE, TO_RUNTIME, STATE_BOUND, EXCHANGE_FRAME(frame), next, operation            \
    }
#define INPUT(operation, state, frame, next)                                                       \
    {                                                                                              \
        operation, TO_RUNTIME, state, EXCHANGE_FRAME(frame), next, OPERATION_NONE                  \
    }
#define ANSWER(operation, state, frame, next)                                                      \
    {                                                                                              \
        operation, TO_SUPERVISOR, state, EXCHANGE_FRAME(frame), next, OPERATION_NONE               \
    }

static const struct rule RULES[] = {
    /* A stream begins with the handle, then names its operation. */
    INPUT(OPERATION_NONE, STATE_UNBOUND, BINDING, STATE_BOUND),
    NAMES(OPERATION_DISCOVER_POLICY, DISCOVER_POLICY, STATE_CLOSED),
    NAMES(OPERATION_ATTACH, ATTACH, STATE_CLOSED),
    NAMES(OPERATION_CONFIRM, CONFIRM, STATE_CLOSED),
    NAMES(OPERATION_START_AGENT, START_AGENT, STATE_CLOSED),
    NAMES(OPERATION_EXEC, EXEC, STATE_INPUT),
    NAMES(OPERATION_ATTACH_PROCESS, ATTACH_PROCESS, STATE_INPUT),
    NAMES(OPERATION_WAIT, WAIT, STATE_CLOSED),
    NAMES(OPERATION_SIGNAL, SIGNAL, STATE_CLOSED),
    NAMES(OPERATION_TERMINATE, TERMINATE, STATE_CLOSED),
    NAMES(OPERATION_TERMINATE_BOUNDARY, TERMINATE_BOUNDARY, STATE_CLOSED),

    /* Input and control of a process; only an exec's owner can cancel it. */
    INPUT(OPERATION_EXEC, STATE_INPUT, STDIN, STATE_INPUT),
    INPUT(OPERATION_EXEC, STATE_INPUT, STDIN_EOF, STATE_INPUT_ENDED),
    INPUT(OPERATION_EXEC, STATE_INPUT, RESIZE, STATE_INPUT),
    INPUT(OPERATION_EXEC, STATE_INPUT, PROCESS_SIGNAL, STATE_INPUT),
    INPUT(OPERATION_EXEC, STATE_INPUT, CANCEL, STATE_CLOSED),
    INPUT(OPERATION_EXEC, STATE_INPUT_ENDED, RESIZE, STATE_INPUT_ENDED),
    INPUT(OPERATION_EXEC, STATE_INPUT_ENDED, PROCESS_SIGNAL, STATE_INPUT_ENDED),
    INPUT(OPERATION_EXEC, STATE_INPUT_ENDED, CANCEL, STATE_CLOSED),
    INPUT(OPERATION_ATTACH_PROCESS, STATE_INPUT, STDIN, STATE_INPUT),
    INPUT(OPERATION_ATTACH_PROCESS, STATE_INPUT, STDIN_EOF, STATE_INPUT_ENDED),
    INPUT(OPERATION_ATTACH_PROCESS, STATE_INPUT, RESIZE, STATE_INPUT),
    INPUT(OPERATION_ATTACH_PROCESS, STATE_INPUT, PROCESS_SIGNAL, STATE_INPUT),
    INPUT(OPERATION_ATTACH_PROCESS, STATE_INPUT_ENDED, RESIZE, STATE_INPUT_ENDED),
    INPUT(OPERATION_ATTACH_PROCESS, STATE_INPUT_ENDED, PROCESS_SIGNAL, STATE_INPUT_ENDED),

    /* Answers. */
    ANSWER(OPERATION_DISCOVER_POLICY, STATE_ASKED, IMAGE_POLICY, STATE_CLOSED),
    ANSWER(OPERATION_DISCOVER_POLICY, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_ATTACH, STATE_ASKED, ATTACHED, STATE_CLOSED),
    ANSWER(OPERATION_ATTACH, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_CONFIRM, STATE_ASKED, CONFIRMED, STATE_CLOSED),
    ANSWER(OPERATION_CONFIRM, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_START_AGENT, STATE_ASKED, STARTED, STATE_CLOSED),
    ANSWER(OPERATION_START_AGENT, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_WAIT, STATE_ASKED, EXITED, STATE_CLOSED),
    ANSWER(OPERATION_WAIT, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_SIGNAL, STATE_ASKED, SIGNALED, STATE_CLOSED),
    ANSWER(OPERATION_SIGNAL, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_TERMINATE, STATE_ASKED, TERMINATED, STATE_CLOSED),
    ANSWER(OPERATION_TERMINATE, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_TERMINATE_BOUNDARY, STATE_ASKED, BOUNDARY_TERMINATED, STATE_CLOSED),
    ANSWER(OPERATION_TERMINATE_BOUNDARY, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_EXEC, STATE_ASKED, EXEC_STARTED, STATE_OUTPUT),
    ANSWER(OPERATION_EXEC, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_EXEC, STATE_OUTPUT, STDOUT, STATE_OUTPUT),
    ANSWER(OPERATION_EXEC, STATE_OUTPUT, STDERR, STATE_OUTPUT),
    ANSWER(OPERATION_EXEC, STATE_OUTPUT, EXITED, STATE_CLOSED),
    ANSWER(OPERATION_EXEC, STATE_OUTPUT, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_ATTACH_PROCESS, STATE_ASKED, PROCESS_ATTACHED, STATE_OUTPUT),
    ANSWER(OPERATION_ATTACH_PROCESS, STATE_ASKED, FAILURE, STATE_CLOSED),
    ANSWER(OPERATION_ATTACH_PROCESS, STATE_OUTPUT, STDOUT, STATE_OUTPUT),
    ANSWER(OPERATION_ATTACH_PROCESS, STATE_OUTPUT, STDERR, STATE_OUTPUT),
    ANSWER(OPERATION_ATTACH_PROCESS, STATE_OUTPUT, SKIPPED, STATE_OUTPUT),
    ANSWER(OPERATION_ATTACH_PROCESS, STATE_OUTPUT, EXITED, STATE_CLOSED),
    ANSWER(OPERATION_ATTACH_PROCESS, STATE_OUTPUT, FAILURE, STATE_CLOSED),
};

const char *exchange_operation_name(enum exchange_operation operation)
{
    return (unsigned)operation < OPERATION_COUNT ? OPERATION_NAMES[operation] : "nothing";
}

const char *exchange_frame_name(const exchange_frame *frame)
{
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(
        &openshell__sandbox__protocol__v1__exchange_frame__descriptor, frame->frame_case);
    return frame->frame_case == 0 || field == NULL ? "nothing" : field->name;
}

bool exchange_allows(enum exchange_operation operation, enum exchange_direction direction,
                     enum exchange_state state, int frame_case,
                     enum exchange_operation *ret_operation, enum exchange_state *ret_next)
{
    for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); i++) {
        const struct rule *rule = &RULES[i];
        if (rule->operation != operation || rule->direction != direction || rule->state != state ||
            rule->frame != frame_case)
            continue;
        *ret_operation = rule->names != OPERATION_NONE ? rule->names : operation;
        *ret_next = rule->next;
        return true;
    }
    return false;
}

static bool check_content(const exchange_frame *frame, struct error *error)
{
    size_t chunk = 0;
    switch ((int)frame->frame_case) {
    case EXCHANGE_FRAME(BINDING):
        if (strlen(frame->binding->boundary_id) > BOUNDARY_ID_LIMIT)
            return failure_set(error, FAILURE_PROTOCOL_VIOLATION, "the handle is too long");
        break;
    case EXCHANGE_FRAME(STDIN_EOF):
        if (!frame->stdin_eof)
            return failure_set(error, FAILURE_PROTOCOL_VIOLATION, "stdin_eof is false");
        break;
    case EXCHANGE_FRAME(STDIN):
        chunk = frame->stdin.len;
        break;
    case EXCHANGE_FRAME(STDOUT):
        chunk = frame->stdout.len;
        break;
    case EXCHANGE_FRAME(STDERR):
        chunk = frame->stderr.len;
        break;
    default:
        break;
    }
    if (chunk > EXCHANGE_CHUNK_LIMIT)
        return failure_set(error, FAILURE_PROTOCOL_VIOLATION, "%s carries more than %d bytes",
                           exchange_frame_name(frame), EXCHANGE_CHUNK_LIMIT);
    return true;
}

bool exchange_step(struct exchange *exchange, enum exchange_direction direction,
                   const exchange_frame *frame, struct error *error)
{
    enum exchange_state *state =
        direction == TO_RUNTIME ? &exchange->to_runtime : &exchange->to_supervisor;
    enum exchange_operation operation;
    enum exchange_state next;
    if (!exchange_allows(exchange->operation, direction, *state, (int)frame->frame_case, &operation,
                         &next))
        return failure_set(error, FAILURE_PROTOCOL_VIOLATION, "%s may not %s in a stream for %s",
                           exchange_frame_name(frame),
                           direction == TO_RUNTIME ? "be sent now" : "be answered now",
                           exchange_operation_name(exchange->operation));
    if (!check_content(frame, error))
        return false;
    if (exchange->operation == OPERATION_NONE && operation != OPERATION_NONE)
        exchange->to_supervisor = STATE_ASKED;
    if (frame->frame_case == EXCHANGE_FRAME(EXEC) && frame->exec->stdin_complete)
        next = STATE_INPUT_ENDED;
    exchange->operation = operation;
    *state = next;
    return true;
}
