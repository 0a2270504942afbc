/* Which phase follows which event: the only place that assigns a sandbox's phase.
 *
 * One table (phase, event) -> phase, condition, by behaviour reference 1.1 to 1.4, 1.6, 1.7 and
 * decisions P9 to P12, P20, P21, A2. Nothing here does I/O: a caller loads the record, applies an
 * event, saves the record in the same transaction and then does what the result's actions say. */
#ifndef GATEWAY_LIFECYCLE_H
#define GATEWAY_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "openshell.pb-c.h"

/* PHASE(READY) is the generated constant. */
#define PHASE(name) OPENSHELL__V1__SANDBOX_PHASE__SANDBOX_PHASE_##name
#define ADMISSION_STATE(name)                                                                      \
    OPENSHELL__V1__CONFIGURATION_ADMISSION_STATE__CONFIGURATION_ADMISSION_STATE_##name

enum {
    LIFECYCLE_PHASE_COUNT = 10,
    /* Milliseconds. */
    LIFECYCLE_REPAIR_WINDOW = 300 * 1000,        /* (1.7) */
    LIFECYCLE_PREPARATION_TIMEOUT = 1800 * 1000, /* the default (1.7) */
    /* Automatic restarts (1.4). */
    LIFECYCLE_RESTART_STABLE = 10 * 1000,      /* a run that lasts so long begins the count anew */
    LIFECYCLE_RESTART_DELAY_FIRST = 1000,      /* of the second restart; the first has none, */
    LIFECYCLE_RESTART_DELAY_MOST = 180 * 1000, /* and each further one twice as much */
    LIFECYCLE_RESTART_GRACE = 10 * 1000,       /* for the delivery of the output, after the exit */
    LIFECYCLE_RESTART_TIMEOUT = 120 * 1000,    /* until it is ready again */
    LIFECYCLE_RESTART_RETRY = 10 * 1000,       /* after the driver could not start it */
};

/* Annotations of the row that belong to the gateway (6.1); record_public_view hides them. */
#define ANNOTATION_INTERNAL_PREFIX "internal.openshell.ai/"
#define ANNOTATION_GENERATION ANNOTATION_INTERNAL_PREFIX "runtime-generation"
#define ANNOTATION_AUTH_EPOCH ANNOTATION_INTERNAL_PREFIX "auth-epoch"
#define ANNOTATION_HOST_ID_BASE ANNOTATION_INTERNAL_PREFIX "host-id-base"
/* The creator announced that it attaches to the first main process (behaviour reference 1.4). */
#define ANNOTATION_AWAIT_ATTACHMENT ANNOTATION_INTERNAL_PREFIX "await-attachment"
/* "COLUMNSxROWS": the terminal of whoever created it. */
#define ANNOTATION_TERMINAL_SIZE ANNOTATION_INTERNAL_PREFIX "terminal-size"
/* The instance whose configuration the boundary refused before the start (A2). */
#define ANNOTATION_REFUSED ANNOTATION_INTERNAL_PREFIX "refused-before-start"

/* Annotations that a request may have: what nobody keeps goes once its result was delivered (1.6);
 * and the terminal size of the creator, which the gateway takes away. */
#define ANNOTATION_RETENTION "openshell.nvidia.com/retention"
#define RETENTION_EPHEMERAL "ephemeral"
#define ANNOTATION_REQUEST_TERMINAL_SIZE "openshell.nvidia.com/terminal-size"

enum lifecycle_event {
    /* -- the record and the driver -- */
    LIFECYCLE_CREATE,               /* a new record, before the driver is called */
    LIFECYCLE_DRIVER_CREATED,       /* the driver's create came back well */
    LIFECYCLE_DRIVER_CREATE_FAILED, /* it failed; the record goes (result.remove) */
    LIFECYCLE_START_REQUESTED,
    LIFECYCLE_DRIVER_STARTED,
    LIFECYCLE_START_FAILED, /* facts.text: the driver's words */
    LIFECYCLE_STOP_REQUESTED,
    LIFECYCLE_DRIVER_STOPPED,     /* the driver's stop came back well, or it saw compute stopped */
    LIFECYCLE_DRIVER_STOP_FAILED, /* facts.text, facts.compute_running: what is really there */
    LIFECYCLE_DELETE_REQUESTED,
    LIFECYCLE_DRIVER_DELETED,       /* everything is gone; the record goes (result.remove) */
    LIFECYCLE_DRIVER_DELETE_FAILED, /* facts.text; stays DELETING and is tried again */
    /* -- the supervisor -- */
    LIFECYCLE_SUPERVISOR_CONNECTED,    /* facts.instance_id */
    LIFECYCLE_SUPERVISOR_DISCONNECTED, /* facts.instance_id; only once it is lost for good (P12) */
    LIFECYCLE_MAIN_EXITED,             /* facts.instance_id, facts.exit_code (128+N for signals) */
    LIFECYCLE_FINALIZED,               /* facts.instance_id, facts.session_connected */
    /* -- admission; admission_apply gives these -- */
    LIFECYCLE_ADMISSION_PENDING,
    LIFECYCLE_ADMISSION_ACCEPTED, /* facts.session_connected */
    LIFECYCLE_ADMISSION_REJECTED,
    LIFECYCLE_ADMISSION_DESIRED_REJECTED, /* the running one stays accepted, a newer one is bad */
    LIFECYCLE_ADMISSION_REFUSED,          /* refused before start (A2) */
    /* -- what became of the processes -- */
    LIFECYCLE_SUPERVISOR_LOST,    /* P9 */
    LIFECYCLE_RUNTIME_LOST,       /* P10 */
    LIFECYCLE_SUPERVISOR_REFUSED, /* ended with status 78: not terminal (A2) */
    LIFECYCLE_DRIVER_FAILED,      /* facts.reason, facts.text: a terminal reason of the driver,
                                     as StorageLimitExceeded, GatewayUnreachable, ProcessExited */
    LIFECYCLE_ADOPTED,            /* a new gateway found both processes alive (P12) */
    LIFECYCLE_BACKEND_MISSING,    /* nothing of the sandbox is alive, and nobody knows why */
    /* -- deadlines (1.7); nothing happens where they are not due -- */
    LIFECYCLE_PREPARATION_DEADLINE,
    LIFECYCLE_REPAIR_DEADLINE,
    LIFECYCLE_RESTART_DUE, /* the restart policy's turn (1.4) */
    LIFECYCLE_EVENT_COUNT
};

/* What is known with an event. Zero-initialise, then set what the event names. Strings are the
 * caller's and are copied. */
struct lifecycle_facts {
    int64_t now;             /* milliseconds since the epoch; always */
    const char *instance_id; /* of the supervisor process that speaks */
    int32_t exit_code;
    bool session_connected; /* its session is open on this gateway, or on any replica */
    bool compute_running;   /* DRIVER_STOP_FAILED: the processes are alive */
    const char *reason;     /* DRIVER_FAILED */
    const char *text;       /* what the driver said; shown to people */
    /* SUPERVISOR_LOST, RUNTIME_LOST, SUPERVISOR_REFUSED, DRIVER_*: the launch that is spoken of.
     * When it is given and is not the record's, the event is about an older launch and is ignored.
     */
    const char *generation;
    /* CREATE, START_REQUESTED, RESTART_DUE; lifecycle_fresh_facts fills them with new UUIDs. */
    const char *new_attempt_id;
    const char *new_generation;
    const char *new_fence_instance_id; /* what the first report must expect (3.2) */
    const char *new_operation_id;
    const char *new_attachment_epoch; /* CREATE: spec.provider_attachment_epoch */
    int64_t preparation_timeout;      /* milliseconds; 0: LIFECYCLE_PREPARATION_TIMEOUT */
};

/* What the caller has to do once the record is saved, in this order. All are repeatable: one that
 * runs already is joined. */
enum lifecycle_action {
    LIFECYCLE_DISCONNECT = 1 << 0,          /* end the supervisor's session */
    LIFECYCLE_DELETE_SSH_SESSIONS = 1 << 1, /* those of the generation that ends */
    LIFECYCLE_STOP_COMPUTE = 1 << 2,   /* driver stop; DRIVER_STOPPED or _FAILED follows, also when
                                          it only clears up behind an Error or a Completed */
    LIFECYCLE_START_COMPUTE = 1 << 3,  /* driver start; DRIVER_STARTED or START_FAILED follows */
    LIFECYCLE_DELETE_COMPUTE = 1 << 4, /* driver delete; DRIVER_DELETED or _FAILED follows */
};

struct lifecycle_result {
    bool changed; /* the record must be saved */
    bool remove;  /* the record must be deleted instead */
    bool ignored; /* stale, repeated or without meaning in this phase: success without effect */
    unsigned actions;
    Openshell__V1__SandboxPhase previous_phase;
    Openshell__V1__SandboxPhase phase;
};

/* Applies an event to the record; what it adds to the record lives in the arena. False refuses the
 * event, leaving the record as it was:
 * - a stop or start that this phase does not allow: FAILED_PRECONDITION, naming the phase and the
 *   way out;
 * - a driver call in flight (driver_operation_pending) under a stop or start: FAILED_PRECONDITION.
 *   A delete is never refused: the caller lets the call in flight end first, under the sandbox's
 *   lock;
 * - a session that must not be accepted (2.2, step 8): ABORTED "failed to persist supervisor
 *   session state; reconnect"; one of another instance than the admitted one: FAILED_PRECONDITION;
 * - FINALIZED without a result or session: FAILED_PRECONDITION.
 *
 * Notes for callers:
 * - DRIVER_CREATE_FAILED without result.remove: the row went on meanwhile. Answer the create with
 *   DEADLINE_EXCEEDED "image preparation deadline expired" where lifecycle_timed_out, else ABORTED.
 * - A start of a Completed or Error sandbox asks for STOP_COMPUTE and START_COMPUTE; where that
 *   stop fails, report START_FAILED.
 * - BACKEND_MISSING is not for a sandbox whose driver call is in flight in this process.
 * - DRIVER_STOP_FAILED: the stop is answered with the driver's code, "stop sandbox failed: TEXT".
 */
bool lifecycle_apply(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                     enum lifecycle_event event, const struct lifecycle_facts *facts,
                     struct lifecycle_result *ret_result, struct error *error);

/* Facts with the time and new UUIDs, which live in the arena. */
void lifecycle_fresh_facts(struct arena *arena, struct lifecycle_facts *ret_facts);

/* The deadline event that is due at `now`, if any (1.4, 1.7). */
bool lifecycle_deadline_due(const Openshell__V1__Sandbox *sandbox, int64_t now,
                            enum lifecycle_event *ret_event);
/* When the next deadline is, milliseconds since the epoch; 0: none. */
int64_t lifecycle_next_deadline(const Openshell__V1__Sandbox *sandbox);

/* Facts about a record that others may ask for. */
bool lifecycle_admitted(const Openshell__V1__Sandbox *sandbox);
bool lifecycle_timed_out(const Openshell__V1__Sandbox *sandbox);
/* The phase is ERROR because the main process failed, not the infrastructure. */
bool lifecycle_main_failed(const Openshell__V1__Sandbox *sandbox);
/* The boundary refused the admitted configuration before the start (A2). */
bool lifecycle_refused(const Openshell__V1__Sandbox *sandbox);

/* The main process ended, a new one is to follow, and its output may still be fetched (1.4). */
bool lifecycle_exit_draining(const Openshell__V1__Sandbox *sandbox);
/* Milliseconds between an exit and restart number `count` (1.4). */
int64_t lifecycle_restart_delay(uint32_t count);

/* "SANDBOX_PHASE_READY". */
const char *lifecycle_phase_name(Openshell__V1__SandboxPhase phase);
/* "ready", for sentences. */
const char *lifecycle_phase_word(Openshell__V1__SandboxPhase phase);
/* "MAIN_EXITED"; for logs and tests. */
const char *lifecycle_event_name(enum lifecycle_event event);

#endif
