/* The stages, and the control operations that lead through them: each is one Exchange stream. */
#include "supervisor/boundary.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "boundary/failure.h"
#include "boundary/operations.h"
#include "method_table.h"
#include "supervisor/boundary_internal.h"
#include "supervisor/evidence.h"

/* ---- one control operation ---- */

typedef void (*control_done)(struct control_call *call, const exchange_frame *answer,
                             const struct error *error);

struct control_call {
    struct boundary *boundary;
    struct control_call *next;
    struct control_call *previous;
    struct exchange exchange;
    control_done done; /* NULL once it was called */
    void (*callback)(void);
    void *user;
};

static void finish(struct control_call *control, const exchange_frame *answer,
                   const struct error *error)
{
    control_done done = control->done;
    control->done = NULL;
    if (done != NULL)
        done(control, answer, error);
}

static void on_answer(struct rpc_call *call, const ProtobufCMessage *message, void *user)
{
    struct control_call *control = user;
    const exchange_frame *frame = (const exchange_frame *)message;
    struct error error = {0};
    if (!exchange_step(&control->exchange, TO_SUPERVISOR, frame, &error)) {
        rpc_call_cancel(call);
        finish(control, NULL, &error);
    } else if (frame->frame_case == EXCHANGE_FRAME(FAILURE)) {
        failure_decode(frame->failure, &error);
        finish(control, NULL, &error);
    } else {
        finish(control, frame, NULL);
    }
    error_clear(&error);
}

static void on_call_done(struct rpc_call *call, const struct error *status, void *user)
{
    (void)call;
    struct control_call *control = user;
    struct error error = {0};
    if (status->code != ERROR_OK)
        error_copy(&error, status);
    else
        failure_set(&error, FAILURE_PROTOCOL_VIOLATION, "the backend gave no answer");
    finish(control, NULL, &error);
    error_clear(&error);
    if (control->previous != NULL)
        control->previous->next = control->next;
    else if (control->boundary != NULL)
        control->boundary->calls = control->next;
    if (control->next != NULL)
        control->next->previous = control->previous;
    free(control);
}

static bool send_frame(struct rpc_call *call, struct exchange *exchange,
                       const exchange_frame *frame)
{
    struct error error = {0};
    if (exchange_step(exchange, TO_RUNTIME, frame, &error))
        return rpc_call_send(call, &frame->base);
    log_error("cannot ask: %s", error.message);
    error_clear(&error);
    return false;
}

static bool send_binding(struct rpc_call *call, struct exchange *exchange,
                         const struct boundary *boundary)
{
    Openshell__Sandbox__Protocol__V1__Binding binding =
        OPENSHELL__SANDBOX__PROTOCOL__V1__BINDING__INIT;
    binding.boundary_id = (char *)boundary->boundary_id;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(BINDING);
    frame.binding = &binding;
    return send_frame(call, exchange, &frame);
}

/* `deadline` in milliseconds, 0: none. `callback` is what the public function was given. */
static void ask(struct boundary *boundary, const exchange_frame *operation, int64_t deadline,
                control_done done, void (*callback)(void), void *user)
{
    static const struct rpc_call_events EVENTS = {.on_message = on_answer, .on_done = on_call_done};
    struct control_call *control = memory_new_of(struct control_call);
    *control = (struct control_call){.boundary = boundary,
                                     .exchange = EXCHANGE_INIT,
                                     .done = done,
                                     .callback = callback,
                                     .user = user};
    struct rpc_call_options options = {.bearer = boundary->launch->sandbox_token,
                                       .deadline = deadline};
    struct rpc_call *call = NULL;
    if (boundary->channel != NULL)
        call = rpc_call_start(boundary->channel,
                              &rpc_openshell_sandbox_protocol_v1_SandboxProtocol_Exchange, &options,
                              &EVENTS, control);
    if (call == NULL) {
        struct error error = {0};
        failure_set(&error, FAILURE_UNAVAILABLE, "there is no connection to the runtime");
        finish(control, NULL, &error);
        error_clear(&error);
        free(control);
        return;
    }
    control->next = boundary->calls;
    if (control->next != NULL)
        control->next->previous = control;
    boundary->calls = control;
    send_binding(call, &control->exchange, boundary);
    send_frame(call, &control->exchange, operation);
    rpc_call_half_close(call);
    rpc_call_read(call);
}

/* ---- using up handles ---- */

static const struct error *used_up(struct error *error)
{
    failure_set(error, FAILURE_PROTOCOL_VIOLATION, "the boundary's handle was used up already");
    return error;
}

/* ---- discover_policy ---- */

typedef void (*discover_callback)(const Openshell__Sandbox__Protocol__V1__ImagePolicy *,
                                  const struct error *, void *);

static void on_discovered(struct control_call *control, const exchange_frame *answer,
                          const struct error *error)
{
    ((discover_callback)control->callback)(answer == NULL ? NULL : answer->image_policy, error,
                                           control->user);
}

void opened_boundary_discover_policy(struct opened_boundary *opened, discover_callback done,
                                     void *user)
{
    Openshell__Sandbox__Protocol__V1__DiscoverPolicy discover =
        OPENSHELL__SANDBOX__PROTOCOL__V1__DISCOVER_POLICY__INIT;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(DISCOVER_POLICY);
    frame.discover_policy = &discover;
    ask(opened->boundary, &frame, BOUNDARY_STEP_MILLISECONDS, on_discovered, (void (*)(void))done,
        user);
}

/* ---- attach ---- */

typedef void (*attach_callback)(struct bound_boundary *,
                                const Openshell__Sandbox__Protocol__V1__Attached *,
                                const struct error *, void *);

static void on_attached(struct control_call *control, const exchange_frame *answer,
                        const struct error *error)
{
    struct boundary *boundary = control->boundary;
    attach_callback done = (attach_callback)control->callback;
    struct error problem = {0};
    if (answer != NULL && strcmp(answer->attached->generation, boundary->launch->generation) != 0) {
        failure_set(&problem, FAILURE_DENIED, "attach was answered for another generation");
        error = &problem;
    }
    boundary->bound_handle.boundary = boundary;
    if (error != NULL)
        done(NULL, NULL, error, control->user);
    else
        done(&boundary->bound_handle, answer->attached, NULL, control->user);
    error_clear(&problem);
}

void opened_boundary_attach(struct opened_boundary **opened,
                            const Openshell__Sandbox__Protocol__V1__Attach *attach,
                            attach_callback done, void *user)
{
    struct opened_boundary *handle = *opened;
    *opened = NULL;
    struct error error = {0};
    if (handle == NULL) {
        done(NULL, NULL, used_up(&error), user);
        error_clear(&error);
        return;
    }
    const Openshell__Sandbox__V1__LandlockPolicy *landlock =
        attach->policy == NULL ? NULL : attach->policy->landlock;
    handle->boundary->landlock_required =
        landlock != NULL && strcmp(landlock->compatibility, "hard_requirement") == 0;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(ATTACH);
    frame.attach = (Openshell__Sandbox__Protocol__V1__Attach *)attach;
    ask(handle->boundary, &frame, BOUNDARY_STEP_MILLISECONDS, on_attached, (void (*)(void))done,
        user);
}

/* ---- confirm ---- */

typedef void (*confirm_callback)(struct ready_boundary *, const struct error *, void *);

static void log_evidence_warning(const char *text, void *user)
{
    (void)user;
    log_warn("%s", text);
}

static void on_confirmed(struct control_call *control, const exchange_frame *answer,
                         const struct error *error)
{
    struct boundary *boundary = control->boundary;
    confirm_callback done = (confirm_callback)control->callback;
    struct error problem = {0};
    if (answer != NULL) {
        struct evidence_expectation expected = {
            .generation = boundary->launch->generation,
            .session_id = boundary->launch->generation,
            .landlock_required = boundary->landlock_required,
        };
        if (!evidence_check(answer->confirmed, &expected, log_evidence_warning, NULL, &problem))
            error = &problem;
    }
    boundary->ready_handle.boundary = boundary;
    done(error == NULL ? &boundary->ready_handle : NULL, error, control->user);
    error_clear(&problem);
}

void bound_boundary_confirm(struct bound_boundary **bound, confirm_callback done, void *user)
{
    struct bound_boundary *handle = *bound;
    *bound = NULL;
    struct error error = {0};
    if (handle == NULL) {
        done(NULL, used_up(&error), user);
        error_clear(&error);
        return;
    }
    Openshell__Sandbox__Protocol__V1__Confirm confirm =
        OPENSHELL__SANDBOX__PROTOCOL__V1__CONFIRM__INIT;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(CONFIRM);
    frame.confirm = &confirm;
    ask(handle->boundary, &frame, BOUNDARY_STEP_MILLISECONDS, on_confirmed, (void (*)(void))done,
        user);
}

/* ---- start ---- */

typedef void (*start_callback)(struct running_boundary *,
                               const Openshell__Sandbox__Protocol__V1__Started *,
                               const struct error *, void *);

static void on_started(struct control_call *control, const exchange_frame *answer,
                       const struct error *error)
{
    struct boundary *boundary = control->boundary;
    start_callback done = (start_callback)control->callback;
    boundary->running_handle.boundary = boundary;
    if (error != NULL)
        done(NULL, NULL, error, control->user);
    else
        done(&boundary->running_handle, answer->started, NULL, control->user);
}

void ready_boundary_start(struct ready_boundary **ready,
                          const Openshell__Sandbox__Protocol__V1__StartAgent *start,
                          start_callback done, void *user)
{
    struct ready_boundary *handle = *ready;
    *ready = NULL;
    struct error error = {0};
    if (handle == NULL) {
        done(NULL, NULL, used_up(&error), user);
        error_clear(&error);
        return;
    }
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(START_AGENT);
    frame.start_agent = (Openshell__Sandbox__Protocol__V1__StartAgent *)start;
    ask(handle->boundary, &frame, BOUNDARY_STEP_MILLISECONDS, on_started, (void (*)(void))done,
        user);
}

/* ---- running ---- */

typedef void (*wait_callback)(const Openshell__Sandbox__Protocol__V1__Exited *,
                              const struct error *, void *);

static void on_exited(struct control_call *control, const exchange_frame *answer,
                      const struct error *error)
{
    ((wait_callback)control->callback)(answer == NULL ? NULL : answer->exited, error,
                                       control->user);
}

void running_boundary_wait(struct running_boundary *running, const char *process_id,
                           wait_callback done, void *user)
{
    Openshell__Sandbox__Protocol__V1__Wait wait = OPENSHELL__SANDBOX__PROTOCOL__V1__WAIT__INIT;
    wait.process_id = (char *)process_id;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(WAIT);
    frame.wait = &wait;
    ask(running->boundary, &frame, 0, on_exited, (void (*)(void))done, user);
}

struct rpc_call *running_boundary_stream(struct running_boundary *running,
                                         const struct rpc_call_events *events, void *user)
{
    struct boundary *boundary = running->boundary;
    if (boundary->channel == NULL)
        return NULL;
    struct rpc_call_options options = {.bearer = boundary->launch->sandbox_token};
    struct rpc_call *call = rpc_call_start(
        boundary->channel, &rpc_openshell_sandbox_protocol_v1_SandboxProtocol_Exchange, &options,
        events, user);
    struct exchange exchange = EXCHANGE_INIT;
    if (call != NULL)
        send_binding(call, &exchange, boundary);
    return call;
}

/* ---- terminate ---- */

typedef void (*terminate_callback)(const struct error *, void *);

static void on_terminated(struct control_call *control, const exchange_frame *answer,
                          const struct error *error)
{
    (void)answer;
    ((terminate_callback)control->callback)(error, control->user);
}

void boundary_terminate(struct boundary *boundary, uint32_t grace_milliseconds,
                        terminate_callback done, void *user)
{
    Google__Protobuf__Duration grace = GOOGLE__PROTOBUF__DURATION__INIT;
    grace.seconds = grace_milliseconds / 1000;
    grace.nanos = (int32_t)(grace_milliseconds % 1000) * 1000000;
    Openshell__Sandbox__Protocol__V1__TerminateBoundary terminate =
        OPENSHELL__SANDBOX__PROTOCOL__V1__TERMINATE_BOUNDARY__INIT;
    terminate.grace = &grace;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(TERMINATE_BOUNDARY);
    frame.terminate_boundary = &terminate;
    ask(boundary, &frame, (int64_t)grace_milliseconds + BOUNDARY_STEP_MILLISECONDS, on_terminated,
        (void (*)(void))done, user);
}

bool boundary_is_open(const struct boundary *boundary)
{
    return boundary->opened;
}

/* ---- life ---- */

struct boundary *boundary_new(struct reactor *reactor, struct rpc_runtime *rpc, int listener,
                              const struct launch_supervisor *launch,
                              const struct boundary_events *events, struct error *error)
{
    struct boundary *boundary = memory_new_of(struct boundary);
    boundary->reactor = reactor;
    boundary->rpc = rpc;
    boundary->listener = listener;
    boundary->launch = launch;
    boundary->events = *events;
    if (!boundary_listen(boundary, error)) {
        free(boundary);
        return NULL;
    }
    return boundary;
}

void boundary_free(struct boundary *boundary)
{
    if (boundary == NULL)
        return;
    boundary->events.on_opened = NULL;
    for (struct control_call *call = boundary->calls; call != NULL; call = call->next) {
        call->done = NULL;
        call->boundary = NULL;
    }
    boundary_disconnect(boundary);
    free(boundary);
}
