/* The table behind lifecycle.h: its rows, what they may depend on and what they do. */
#ifndef GATEWAY_LIFECYCLE_RULES_H
#define GATEWAY_LIFECYCLE_RULES_H

#include <stddef.h>

#include "gateway/lifecycle.h"

/* What a row asks of the record and the facts besides the phase. */
enum lifecycle_guard {
    GUARD_NONE,
    GUARD_OPERATION_PENDING,  /* a driver call is in flight */
    GUARD_ACTIVATED,          /* a configuration was accepted once (A1) */
    GUARD_REFUSED,            /* the boundary refused this launch (A2) */
    GUARD_TIMED_OUT,          /* a deadline ended the attempt */
    GUARD_CLEANUP_PENDING,    /* the same, and its processes may still be there */
    GUARD_MAIN_FAILED,        /* Error because of the main process */
    GUARD_INFRASTRUCTURE,     /* Error for another reason, and not a provisional one (1.4) */
    GUARD_OLD_INSTANCE,       /* the speaker is the instance of the launch before */
    GUARD_OTHER_INSTANCE,     /* the speaker is not the instance that is on record */
    GUARD_UNADMITTED_SPEAKER, /* another instance than the speaker was admitted */
    GUARD_ADMITTED,           /* the admission is ACCEPTED */
    GUARD_ADMITTED_LATE,      /* the same, after the deadline */
    GUARD_SESSION_ADMITTED,   /* the admitted instance has its session */
    GUARD_SESSION_LATE,       /* the same, after the deadline */
    GUARD_NO_SESSION_YET,     /* no instance ever connected, and nothing was rejected */
    GUARD_NO_SESSION,         /* the session is not open */
    GUARD_RESULT_STORED,      /* a result of the main process is on record */
    GUARD_NO_RESULT,
    GUARD_EXIT_ZERO,
    GUARD_RUNNING_ADMITTED, /* compute runs, its session is open and it is admitted */
    GUARD_RUNNING,          /* compute runs */
    GUARD_TRANSIENT_REASON, /* the driver's reason is no terminal one (1.2) */
    GUARD_STOPPED_REASON,   /* ContainerExited, ContainerStopped */
    GUARD_RESTART_REASON,   /* ContainerRuntimeRestart */
    GUARD_PREPARATION_DUE,
    GUARD_REPAIR_DUE,
    GUARD_RESTARTS,         /* the restart policy answers this exit with a new main process */
    GUARD_ASKED_START,      /* Starting because somebody asked for it, not by the policy */
    GUARD_AUTOMATIC,        /* Starting by the restart policy */
    GUARD_RESTART_PENDING,  /* the same, and nothing was launched yet */
    GUARD_DRAINING,         /* the same, while the output may still be fetched */
    GUARD_DRAINING_AT_ONCE, /* the same, and the restart has no delay */
    GUARD_DRAINING_SPEAKER, /* the same, and the speaker is the instance that has the output */
    GUARD_RESTART_DUE,
    GUARD_EPHEMERAL, /* nobody keeps it once its result was delivered */
};

enum lifecycle_outcome {
    OUTCOME_IGNORE,    /* success without effect on the record; actions may follow */
    OUTCOME_STAY,      /* effects, same phase */
    OUTCOME_MOVE,      /* effects, next phase */
    OUTCOME_REMOVE,    /* the record goes */
    OUTCOME_REFUSE,    /* FAILED_PRECONDITION: phase and way out */
    OUTCOME_RECONNECT, /* ABORTED: the session must be tried again */
};

enum lifecycle_effect {
    EFFECT_NEW_ATTEMPT = 1 << 0,    /* provisioning, admission, generation and epoch anew */
    EFFECT_SET_PENDING = 1 << 1,    /* a driver call is in flight from now */
    EFFECT_CLEAR_PENDING = 1 << 2,  /* it is not */
    EFFECT_CLEAR_RESULT = 1 << 3,   /* no exit code */
    EFFECT_STORE_RESULT = 1 << 4,   /* facts.exit_code and facts.instance_id */
    EFFECT_SET_INSTANCE = 1 << 5,   /* facts.instance_id; a new one has no result yet */
    EFFECT_READY = 1 << 6,          /* disarms the deadline, notes the main process's start */
    EFFECT_EXPIRE = 1 << 7,         /* the deadline has ended the attempt */
    EFFECT_CLEANED_UP = 1 << 8,     /* ... and its processes are gone */
    EFFECT_CLEANUP_FAILED = 1 << 9, /* ... or not: facts.text */
    EFFECT_DELETION_TIME = 1 << 10,
    EFFECT_DISARM = 1 << 11, /* no deadline and no restart any more */
    EFFECT_FIRST = 1 << 12,  /* what only a new record gets */
    EFFECT_SCHEDULE_RESTART = 1 << 13,
    EFFECT_RETRY_RESTART = 1 << 14, /* the restart is put off */
    EFFECT_RESTARTED = 1 << 15,     /* with EFFECT_NEW_ATTEMPT: it is the policy's, and counted */
};

#define PHASE_BIT(name) (1u << PHASE(name))
#define PHASES_ALL ((1u << LIFECYCLE_PHASE_COUNT) - 1)

struct lifecycle_rule {
    enum lifecycle_event event;
    unsigned phases; /* bits */
    enum lifecycle_guard guard;
    enum lifecycle_outcome outcome;
    Openshell__V1__SandboxPhase next; /* OUTCOME_MOVE */
    /* The Ready condition: True where next is READY, else False; NULL leaves it. "%reason" and
     * "%configuration" stand for the driver's reason and the admission's. */
    const char *reason;
    /* Its text, where "%text", "%code", "%restart", "%seconds" and "%configuration" are filled in.
     * For OUTCOME_REFUSE the way out, where "%name" is. */
    const char *message;
    unsigned actions;
    unsigned effects;
};

/* The first row that matches counts. Every (phase, event) has one. */
extern const struct lifecycle_rule lifecycle_rules[];
extern const size_t lifecycle_rule_count;

/* ---- between the files of the lifecycle; the record has a status ---- */

bool lifecycle_guard_holds(const Openshell__V1__Sandbox *sandbox, enum lifecycle_guard guard,
                           const struct lifecycle_facts *facts);
/* Whether the record changed. */
bool lifecycle_apply_effects(Openshell__V1__Sandbox *sandbox, struct arena *arena,
                             const struct lifecycle_facts *facts, unsigned effects);
/* Fills the words that begin with % into a text of the table. */
char *lifecycle_fill_in(struct arena *arena, const char *text,
                        const Openshell__V1__Sandbox *sandbox, const struct lifecycle_facts *facts);
/* The phase, UNSPECIFIED where it is none that we know. */
Openshell__V1__SandboxPhase lifecycle_phase_of(const Openshell__V1__Sandbox *sandbox);
bool lifecycle_has_result(const Openshell__V1__Sandbox *sandbox);
bool lifecycle_admission_is(const Openshell__V1__Sandbox *sandbox,
                            Openshell__V1__ConfigurationAdmissionState state);

#endif
