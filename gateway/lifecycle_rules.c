/* Rows of one event stand together, special cases first. */
#include "gateway/lifecycle_rules.h"

#define BIT(name) PHASE_BIT(name)
#define WAITING (BIT(PROVISIONING) | BIT(UNKNOWN)) /* for a session or an admission */
#define LIVE (WAITING | BIT(READY) | BIT(STARTING))
#define ENDED (BIT(COMPLETED) | BIT(ERROR))
#define DOWN (BIT(STOPPING) | BIT(STOPPED) | BIT(DELETING) | BIT(UNSPECIFIED))

#define IGNORE(event, phases, guard)                                                               \
    {                                                                                              \
        event, phases, guard, OUTCOME_IGNORE, 0, NULL, NULL, 0, 0                                  \
    }
#define IGNORE_BUT(event, phases, guard, actions)                                                  \
    {                                                                                              \
        event, phases, guard, OUTCOME_IGNORE, 0, NULL, NULL, actions, 0                            \
    }
#define STAY(event, phases, guard, actions, effects)                                               \
    {                                                                                              \
        event, phases, guard, OUTCOME_STAY, 0, NULL, NULL, actions, effects                        \
    }
#define SHOW(event, phases, guard, reason, message, effects)                                       \
    {                                                                                              \
        event, phases, guard, OUTCOME_STAY, 0, reason, message, 0, effects                         \
    }
#define MOVE(event, phases, guard, next, reason, message, actions, effects)                        \
    {                                                                                              \
        event, phases, guard, OUTCOME_MOVE, PHASE(next), reason, message, actions, effects         \
    }
#define REFUSE(event, phases, guard, way_out)                                                      \
    {                                                                                              \
        event, phases, guard, OUTCOME_REFUSE, 0, NULL, way_out, 0, 0                               \
    }
#define RECONNECT(event, phases, guard)                                                            \
    {                                                                                              \
        event, phases, guard, OUTCOME_RECONNECT, 0, NULL, NULL, 0, 0                               \
    }
#define REMOVE(event, phases)                                                                      \
    {                                                                                              \
        event, phases, GUARD_NONE, OUTCOME_REMOVE, 0, NULL, NULL, 0, 0                             \
    }

#define TEXT_BUSY "an operation on it is still running; try again when it has ended"
#define TEXT_DELETE "delete it with: openshell sandbox delete %name"
#define TEXT_REFUSED                                                                               \
    "its configuration was refused before the start, which cannot be repaired; " TEXT_DELETE       \
    ", and create it again"
#define TEXT_UNKNOWN "wait until its supervisor has connected, or " TEXT_DELETE
#define TEXT_GONE "it cannot be used any more"

#define CLEAN_SESSIONS (LIFECYCLE_DISCONNECT | LIFECYCLE_DELETE_SSH_SESSIONS)
#define CLEAN_UP (LIFECYCLE_DISCONNECT | LIFECYCLE_STOP_COMPUTE)

/* 1.2: the Ready condition of a sandbox whose session is there and whose configuration is in. */
#define READY(event, phases, guard, effects)                                                       \
    MOVE(event, phases, guard, READY, "DependenciesReady", "Supervisor session connected", 0,      \
         EFFECT_READY | (effects))
#define LATE(event, phases, guard, effects)                                                        \
    MOVE(event, phases, guard, PROVISIONING, "ProvisioningDeadlineElapsed",                        \
         "The sandbox became ready after its provisioning deadline", 0, effects)
#define START(phases, guard, actions)                                                              \
    MOVE(LIFECYCLE_START_REQUESTED, phases, guard, STARTING, "Starting",                           \
         "Sandbox start requested", (actions) | LIFECYCLE_START_COMPUTE,                           \
         EFFECT_NEW_ATTEMPT | EFFECT_CLEAR_RESULT | EFFECT_SET_PENDING)
#define STOP(phases, guard)                                                                        \
    MOVE(LIFECYCLE_STOP_REQUESTED, phases, guard, STOPPING, "Stopping", "Sandbox stop requested",  \
         LIFECYCLE_STOP_COMPUTE, EFFECT_CLEAR_RESULT | EFFECT_SET_PENDING | EFFECT_DISARM)
#define STOPPED(event, phases, guard)                                                              \
    MOVE(event, phases, guard, STOPPED, "Stopped", "Sandbox compute is stopped", CLEAN_SESSIONS,   \
         EFFECT_CLEAR_PENDING | EFFECT_DISARM)
#define LOST(event, phases, guard, reason, message)                                                \
    MOVE(event, phases, guard, ERROR, reason, message, CLEAN_UP,                                   \
         EFFECT_CLEAR_PENDING | EFFECT_DISARM)
/* What nobody keeps goes once its result was delivered, or cannot be any more. */
#define DISCARD(event)                                                                             \
    MOVE(event, ENDED, GUARD_EPHEMERAL, DELETING, "Deleting",                                      \
         "The sandbox was not to be kept, and its main process has ended",                         \
         CLEAN_SESSIONS | LIFECYCLE_DELETE_COMPUTE, EFFECT_DELETION_TIME | EFFECT_DISARM)
#define RESULT(phases)                                                                             \
    MOVE(LIFECYCLE_MAIN_EXITED, phases, GUARD_EXIT_ZERO, COMPLETED, "MainProcessCompleted",        \
         "The main process ended with exit code 0", 0, EFFECT_STORE_RESULT | EFFECT_DISARM),       \
        MOVE(LIFECYCLE_MAIN_EXITED, phases, GUARD_NONE, ERROR, "MainProcessFailed",                \
             "The main process ended with exit code %code", 0,                                     \
             EFFECT_STORE_RESULT | EFFECT_DISARM)

const struct lifecycle_rule lifecycle_rules[] = {
    MOVE(LIFECYCLE_CREATE, BIT(UNSPECIFIED), GUARD_NONE, PROVISIONING, "ConfigurationPending",
         "Configuration waits for validation before activation", 0,
         EFFECT_FIRST | EFFECT_NEW_ATTEMPT | EFFECT_SET_PENDING),
    REFUSE(LIFECYCLE_CREATE, PHASES_ALL, GUARD_NONE, "it was created before"),

    SHOW(LIFECYCLE_DRIVER_CREATED, BIT(PROVISIONING), GUARD_NO_SESSION_YET,
         "SupervisorNotConnected", "Backend ready; waiting for supervisor session",
         EFFECT_CLEAR_PENDING),
    STAY(LIFECYCLE_DRIVER_CREATED, PHASES_ALL, GUARD_NONE, 0, EFFECT_CLEAR_PENDING),

    REMOVE(LIFECYCLE_DRIVER_CREATE_FAILED, BIT(PROVISIONING)),
    STAY(LIFECYCLE_DRIVER_CREATE_FAILED, PHASES_ALL, GUARD_NONE, 0, EFFECT_CLEAR_PENDING),

    IGNORE(LIFECYCLE_START_REQUESTED, BIT(READY), GUARD_NONE),
    REFUSE(LIFECYCLE_START_REQUESTED, BIT(PROVISIONING) | BIT(STARTING), GUARD_REFUSED,
           TEXT_REFUSED),
    REFUSE(LIFECYCLE_START_REQUESTED, BIT(PROVISIONING), GUARD_NONE,
           "it starts by itself; wait until it is ready, or " TEXT_DELETE),
    REFUSE(LIFECYCLE_START_REQUESTED, BIT(STOPPING), GUARD_NONE,
           "start it once it is stopped, with: openshell sandbox start %name"),
    REFUSE(LIFECYCLE_START_REQUESTED, BIT(DELETING), GUARD_NONE, TEXT_GONE),
    REFUSE(LIFECYCLE_START_REQUESTED, BIT(UNKNOWN) | BIT(UNSPECIFIED), GUARD_NONE, TEXT_UNKNOWN),
    REFUSE(LIFECYCLE_START_REQUESTED, PHASES_ALL, GUARD_OPERATION_PENDING, TEXT_BUSY),
    REFUSE(LIFECYCLE_START_REQUESTED, BIT(ERROR), GUARD_CLEANUP_PENDING,
           "what is left of its last start is still being cleared away; start it again in a "
           "moment, or " TEXT_DELETE),
    START(BIT(STARTING), GUARD_RESTART_PENDING, CLEAN_SESSIONS | LIFECYCLE_STOP_COMPUTE),
    STAY(LIFECYCLE_START_REQUESTED, BIT(STARTING), GUARD_NONE, LIFECYCLE_START_COMPUTE,
         EFFECT_SET_PENDING),
    START(BIT(STOPPED), GUARD_NONE, 0),
    START(ENDED, GUARD_NONE, CLEAN_SESSIONS | LIFECYCLE_STOP_COMPUTE),

    STAY(LIFECYCLE_DRIVER_STARTED, PHASES_ALL, GUARD_NONE, 0, EFFECT_CLEAR_PENDING),

    SHOW(LIFECYCLE_START_FAILED, BIT(STARTING), GUARD_AUTOMATIC, "MainProcessRestartBackoff",
         "The main process could not be started again, which is tried again: %text",
         EFFECT_CLEAR_PENDING | EFFECT_RETRY_RESTART),
    LOST(LIFECYCLE_START_FAILED, BIT(STARTING), GUARD_NONE, "StartFailed", "%text"),
    STAY(LIFECYCLE_START_FAILED, PHASES_ALL, GUARD_NONE, 0, EFFECT_CLEAR_PENDING),

    IGNORE_BUT(LIFECYCLE_STOP_REQUESTED, BIT(STOPPED), GUARD_NONE, CLEAN_SESSIONS),
    IGNORE_BUT(LIFECYCLE_STOP_REQUESTED, BIT(COMPLETED), GUARD_NONE,
               CLEAN_SESSIONS | LIFECYCLE_STOP_COMPUTE),
    IGNORE_BUT(LIFECYCLE_STOP_REQUESTED, BIT(ERROR), GUARD_MAIN_FAILED,
               CLEAN_SESSIONS | LIFECYCLE_STOP_COMPUTE),
    REFUSE(LIFECYCLE_STOP_REQUESTED, BIT(ERROR), GUARD_NONE,
           "it does not run; start it again with: openshell sandbox start %name, or " TEXT_DELETE),
    REFUSE(LIFECYCLE_STOP_REQUESTED, BIT(PROVISIONING), GUARD_REFUSED, TEXT_REFUSED),
    REFUSE(LIFECYCLE_STOP_REQUESTED, BIT(DELETING), GUARD_NONE, TEXT_GONE),
    REFUSE(LIFECYCLE_STOP_REQUESTED, BIT(UNKNOWN) | BIT(UNSPECIFIED), GUARD_NONE, TEXT_UNKNOWN),
    REFUSE(LIFECYCLE_STOP_REQUESTED, BIT(STARTING), GUARD_ASKED_START,
           "stop it once it is ready, or " TEXT_DELETE),
    REFUSE(LIFECYCLE_STOP_REQUESTED, PHASES_ALL, GUARD_OPERATION_PENDING, TEXT_BUSY),
    STOP(BIT(READY) | BIT(STARTING), GUARD_NONE),
    STOP(BIT(PROVISIONING), GUARD_ACTIVATED),
    REFUSE(LIFECYCLE_STOP_REQUESTED, BIT(PROVISIONING), GUARD_NONE,
           "it has not run yet; wait until it is ready, or " TEXT_DELETE),
    STAY(LIFECYCLE_STOP_REQUESTED, BIT(STOPPING), GUARD_NONE, LIFECYCLE_STOP_COMPUTE,
         EFFECT_SET_PENDING),

    STOPPED(LIFECYCLE_DRIVER_STOPPED, WAITING | BIT(READY) | BIT(STOPPING), GUARD_NONE),
    STAY(LIFECYCLE_DRIVER_STOPPED, BIT(ERROR), GUARD_CLEANUP_PENDING, 0,
         EFFECT_CLEANED_UP | EFFECT_CLEAR_PENDING),
    IGNORE(LIFECYCLE_DRIVER_STOPPED, PHASES_ALL, GUARD_NONE),

    MOVE(LIFECYCLE_DRIVER_STOP_FAILED, BIT(STOPPING), GUARD_RUNNING_ADMITTED, READY,
         "DependenciesReady", "Supervisor session connected", 0, EFFECT_CLEAR_PENDING),
    MOVE(LIFECYCLE_DRIVER_STOP_FAILED, BIT(STOPPING), GUARD_RUNNING, PROVISIONING,
         "DependenciesNotReady", "The sandbox could not be stopped: %text", 0,
         EFFECT_CLEAR_PENDING),
    STOPPED(LIFECYCLE_DRIVER_STOP_FAILED, BIT(STOPPING), GUARD_NONE),
    STAY(LIFECYCLE_DRIVER_STOP_FAILED, BIT(ERROR), GUARD_CLEANUP_PENDING, 0,
         EFFECT_CLEANUP_FAILED | EFFECT_CLEAR_PENDING),
    IGNORE(LIFECYCLE_DRIVER_STOP_FAILED, PHASES_ALL, GUARD_NONE),

    IGNORE_BUT(LIFECYCLE_DELETE_REQUESTED, BIT(DELETING), GUARD_NONE, LIFECYCLE_DELETE_COMPUTE),
    MOVE(LIFECYCLE_DELETE_REQUESTED, PHASES_ALL, GUARD_NONE, DELETING, "Deleting",
         "Sandbox deletion requested", CLEAN_SESSIONS | LIFECYCLE_DELETE_COMPUTE,
         EFFECT_DELETION_TIME | EFFECT_DISARM),

    REMOVE(LIFECYCLE_DRIVER_DELETED, PHASES_ALL),

    SHOW(LIFECYCLE_DRIVER_DELETE_FAILED, BIT(DELETING), GUARD_NONE, "Deleting",
         "The deletion failed and is tried again: %text", 0),
    IGNORE(LIFECYCLE_DRIVER_DELETE_FAILED, PHASES_ALL, GUARD_NONE),

    RECONNECT(LIFECYCLE_SUPERVISOR_CONNECTED, DOWN, GUARD_NONE),
    RECONNECT(LIFECYCLE_SUPERVISOR_CONNECTED, BIT(ERROR), GUARD_TIMED_OUT),
    STAY(LIFECYCLE_SUPERVISOR_CONNECTED, BIT(STARTING), GUARD_DRAINING_SPEAKER, 0, 0),
    RECONNECT(LIFECYCLE_SUPERVISOR_CONNECTED, BIT(STARTING), GUARD_RESTART_PENDING),
    RECONNECT(LIFECYCLE_SUPERVISOR_CONNECTED, BIT(STARTING), GUARD_OLD_INSTANCE),
    REFUSE(LIFECYCLE_SUPERVISOR_CONNECTED, LIVE, GUARD_UNADMITTED_SPEAKER,
           "another supervisor instance was admitted"),
    REFUSE(LIFECYCLE_SUPERVISOR_CONNECTED, ENDED, GUARD_OTHER_INSTANCE,
           "another supervisor instance ran it"),
    STAY(LIFECYCLE_SUPERVISOR_CONNECTED, ENDED, GUARD_NONE, 0, EFFECT_SET_INSTANCE),
    LATE(LIFECYCLE_SUPERVISOR_CONNECTED, WAITING | BIT(STARTING), GUARD_ADMITTED_LATE,
         EFFECT_SET_INSTANCE),
    READY(LIFECYCLE_SUPERVISOR_CONNECTED, LIVE, GUARD_ADMITTED, EFFECT_SET_INSTANCE),
    STAY(LIFECYCLE_SUPERVISOR_CONNECTED, BIT(STARTING), GUARD_NONE, 0, EFFECT_SET_INSTANCE),
    MOVE(LIFECYCLE_SUPERVISOR_CONNECTED, WAITING | BIT(READY), GUARD_NONE, PROVISIONING,
         "%configuration", "%configuration", 0, EFFECT_SET_INSTANCE),

    IGNORE(LIFECYCLE_SUPERVISOR_DISCONNECTED, PHASES_ALL, GUARD_OTHER_INSTANCE),
    MOVE(LIFECYCLE_SUPERVISOR_DISCONNECTED, BIT(READY), GUARD_NONE, PROVISIONING,
         "DependenciesNotReady", "Supervisor session disconnected", 0, 0),
    IGNORE(LIFECYCLE_SUPERVISOR_DISCONNECTED, PHASES_ALL, GUARD_NONE),

    IGNORE(LIFECYCLE_MAIN_EXITED, DOWN, GUARD_NONE),
    IGNORE(LIFECYCLE_MAIN_EXITED, BIT(ERROR), GUARD_TIMED_OUT),
    IGNORE(LIFECYCLE_MAIN_EXITED, BIT(STARTING), GUARD_OLD_INSTANCE),
    IGNORE(LIFECYCLE_MAIN_EXITED, WAITING | BIT(READY) | ENDED, GUARD_OTHER_INSTANCE),
    IGNORE(LIFECYCLE_MAIN_EXITED, PHASES_ALL, GUARD_RESULT_STORED),
    STAY(LIFECYCLE_MAIN_EXITED, BIT(ERROR), GUARD_INFRASTRUCTURE, 0, EFFECT_STORE_RESULT),
    MOVE(LIFECYCLE_MAIN_EXITED, LIVE, GUARD_RESTARTS, STARTING, "MainProcessExitDraining",
         "The main process ended with exit code %code, and is started again once its output was "
         "delivered",
         0, EFFECT_STORE_RESULT | EFFECT_DISARM | EFFECT_SCHEDULE_RESTART),
    RESULT(LIVE | ENDED),

    IGNORE(LIFECYCLE_FINALIZED, DOWN, GUARD_NONE),
    REFUSE(LIFECYCLE_FINALIZED, PHASES_ALL, GUARD_NO_RESULT,
           "no result of its main process was reported"),
    REFUSE(LIFECYCLE_FINALIZED, PHASES_ALL, GUARD_OTHER_INSTANCE,
           "another supervisor instance reported its result"),
    REFUSE(LIFECYCLE_FINALIZED, PHASES_ALL, GUARD_NO_SESSION,
           "supervisor session is not connected"),
    SHOW(LIFECYCLE_FINALIZED, BIT(STARTING), GUARD_DRAINING_AT_ONCE, "MainProcessRestartScheduled",
         "The main process is started again at once (restart %restart)", 0),
    SHOW(LIFECYCLE_FINALIZED, BIT(STARTING), GUARD_DRAINING, "MainProcessRestartBackoff",
         "The main process is started again %seconds s after its end (restart %restart)", 0),
    DISCARD(LIFECYCLE_FINALIZED),
    IGNORE(LIFECYCLE_FINALIZED, PHASES_ALL, GUARD_NONE),

    MOVE(LIFECYCLE_ADMISSION_PENDING, WAITING | BIT(READY), GUARD_NONE, PROVISIONING,
         "%configuration", "%configuration", 0, 0),
    IGNORE(LIFECYCLE_ADMISSION_PENDING, PHASES_ALL, GUARD_NONE),

    IGNORE(LIFECYCLE_ADMISSION_ACCEPTED, BIT(STARTING), GUARD_RESTART_PENDING),
    LATE(LIFECYCLE_ADMISSION_ACCEPTED, WAITING | BIT(STARTING), GUARD_SESSION_LATE, 0),
    READY(LIFECYCLE_ADMISSION_ACCEPTED, WAITING | BIT(STARTING), GUARD_SESSION_ADMITTED, 0),
    MOVE(LIFECYCLE_ADMISSION_ACCEPTED, WAITING, GUARD_NONE, PROVISIONING, "SupervisorNotConnected",
         "Configuration accepted; waiting for supervisor session", 0, 0),
    IGNORE(LIFECYCLE_ADMISSION_ACCEPTED, PHASES_ALL, GUARD_NONE),

    MOVE(LIFECYCLE_ADMISSION_REJECTED, WAITING | BIT(READY), GUARD_NONE, PROVISIONING,
         "%configuration", "%configuration", 0, 0),
    IGNORE(LIFECYCLE_ADMISSION_REJECTED, PHASES_ALL, GUARD_NONE),

    IGNORE(LIFECYCLE_ADMISSION_DESIRED_REJECTED, PHASES_ALL, GUARD_NONE),

    MOVE(LIFECYCLE_ADMISSION_REFUSED, WAITING | BIT(READY), GUARD_NONE, PROVISIONING,
         "%configuration", "%configuration", 0, 0),
    IGNORE(LIFECYCLE_ADMISSION_REFUSED, PHASES_ALL, GUARD_NONE),

    IGNORE_BUT(LIFECYCLE_SUPERVISOR_LOST, BIT(STARTING), GUARD_RESTART_PENDING, CLEAN_UP),
    STAY(LIFECYCLE_SUPERVISOR_LOST, BIT(PROVISIONING) | BIT(STARTING), GUARD_REFUSED, 0,
         EFFECT_CLEAR_PENDING),
    LOST(LIFECYCLE_SUPERVISOR_LOST, LIVE, GUARD_NONE, "SupervisorLost",
         "The supervisor ended unexpectedly, and the workload with it"),
    DISCARD(LIFECYCLE_SUPERVISOR_LOST),
    IGNORE_BUT(LIFECYCLE_SUPERVISOR_LOST, ENDED, GUARD_NONE, CLEAN_UP),
    IGNORE(LIFECYCLE_SUPERVISOR_LOST, PHASES_ALL, GUARD_NONE),

    IGNORE_BUT(LIFECYCLE_RUNTIME_LOST, BIT(STARTING), GUARD_RESTART_PENDING, CLEAN_UP),
    STAY(LIFECYCLE_RUNTIME_LOST, BIT(PROVISIONING) | BIT(STARTING), GUARD_REFUSED, 0,
         EFFECT_CLEAR_PENDING),
    LOST(LIFECYCLE_RUNTIME_LOST, LIVE, GUARD_NONE, "RuntimeLost",
         "The sandbox runtime ended unexpectedly, and the workload with it"),
    DISCARD(LIFECYCLE_RUNTIME_LOST),
    IGNORE_BUT(LIFECYCLE_RUNTIME_LOST, ENDED, GUARD_NONE, CLEAN_UP),
    IGNORE(LIFECYCLE_RUNTIME_LOST, PHASES_ALL, GUARD_NONE),

    IGNORE_BUT(LIFECYCLE_SUPERVISOR_REFUSED, BIT(STARTING), GUARD_RESTART_PENDING, CLEAN_UP),
    STAY(LIFECYCLE_SUPERVISOR_REFUSED, BIT(PROVISIONING) | BIT(STARTING), GUARD_NONE, 0,
         EFFECT_CLEAR_PENDING),
    LOST(LIFECYCLE_SUPERVISOR_REFUSED, LIVE, GUARD_NONE, "SupervisorLost",
         "The supervisor ended unexpectedly, and the workload with it"),
    DISCARD(LIFECYCLE_SUPERVISOR_REFUSED),
    IGNORE_BUT(LIFECYCLE_SUPERVISOR_REFUSED, ENDED, GUARD_NONE, CLEAN_UP),
    IGNORE(LIFECYCLE_SUPERVISOR_REFUSED, PHASES_ALL, GUARD_NONE),

    IGNORE(LIFECYCLE_DRIVER_FAILED, PHASES_ALL, GUARD_TRANSIENT_REASON),
    IGNORE_BUT(LIFECYCLE_DRIVER_FAILED, BIT(STARTING), GUARD_RESTART_PENDING, CLEAN_UP),
    STAY(LIFECYCLE_DRIVER_FAILED, BIT(PROVISIONING) | BIT(STARTING), GUARD_REFUSED, 0,
         EFFECT_CLEAR_PENDING),
    STOPPED(LIFECYCLE_DRIVER_FAILED, BIT(STOPPING), GUARD_STOPPED_REASON),
    IGNORE(LIFECYCLE_DRIVER_FAILED, BIT(STOPPING), GUARD_RESTART_REASON),
    LOST(LIFECYCLE_DRIVER_FAILED, LIVE | BIT(STOPPING), GUARD_NONE, "%reason", "%text"),
    DISCARD(LIFECYCLE_DRIVER_FAILED),
    IGNORE(LIFECYCLE_DRIVER_FAILED, PHASES_ALL, GUARD_NONE),

    IGNORE(LIFECYCLE_ADOPTED, BIT(UNSPECIFIED), GUARD_NONE),
    STAY(LIFECYCLE_ADOPTED, BIT(ERROR), GUARD_MAIN_FAILED, 0, EFFECT_CLEAR_PENDING),
    STAY(LIFECYCLE_ADOPTED, LIVE | BIT(COMPLETED), GUARD_NONE, 0, EFFECT_CLEAR_PENDING),
    STAY(LIFECYCLE_ADOPTED, BIT(ERROR) | BIT(STOPPING) | BIT(STOPPED), GUARD_NONE,
         LIFECYCLE_STOP_COMPUTE, EFFECT_CLEAR_PENDING),
    STAY(LIFECYCLE_ADOPTED, BIT(DELETING), GUARD_NONE, LIFECYCLE_DELETE_COMPUTE,
         EFFECT_CLEAR_PENDING),

    IGNORE(LIFECYCLE_BACKEND_MISSING, BIT(UNSPECIFIED), GUARD_NONE),
    IGNORE(LIFECYCLE_BACKEND_MISSING, BIT(STARTING), GUARD_RESTART_PENDING),
    STAY(LIFECYCLE_BACKEND_MISSING, BIT(PROVISIONING) | BIT(STARTING), GUARD_REFUSED, 0,
         EFFECT_CLEAR_PENDING),
    MOVE(LIFECYCLE_BACKEND_MISSING, LIVE, GUARD_NONE, ERROR, "BackendResourceMissing",
         "Nothing of the sandbox runs any more; the machine may have been restarted",
         LIFECYCLE_DISCONNECT, EFFECT_CLEAR_PENDING | EFFECT_DISARM),
    STOPPED(LIFECYCLE_BACKEND_MISSING, BIT(STOPPING), GUARD_NONE),
    DISCARD(LIFECYCLE_BACKEND_MISSING),
    STAY(LIFECYCLE_BACKEND_MISSING, BIT(ERROR), GUARD_CLEANUP_PENDING, 0,
         EFFECT_CLEANED_UP | EFFECT_CLEAR_PENDING),
    STAY(LIFECYCLE_BACKEND_MISSING, ENDED | BIT(STOPPED), GUARD_NONE, 0, EFFECT_CLEAR_PENDING),
    STAY(LIFECYCLE_BACKEND_MISSING, BIT(DELETING), GUARD_NONE, LIFECYCLE_DELETE_COMPUTE,
         EFFECT_CLEAR_PENDING),

    MOVE(LIFECYCLE_PREPARATION_DEADLINE, BIT(PROVISIONING) | BIT(STARTING), GUARD_PREPARATION_DUE,
         ERROR, "ImagePreparationTimedOut", "The sandbox was not prepared within its time limit",
         CLEAN_UP, EFFECT_EXPIRE),
    IGNORE(LIFECYCLE_PREPARATION_DEADLINE, PHASES_ALL, GUARD_NONE),

    MOVE(LIFECYCLE_REPAIR_DEADLINE, BIT(PROVISIONING) | BIT(STARTING), GUARD_REPAIR_DUE, ERROR,
         "ProvisioningTimedOut", "The sandbox did not become ready within its time limit", CLEAN_UP,
         EFFECT_EXPIRE),
    IGNORE(LIFECYCLE_REPAIR_DEADLINE, PHASES_ALL, GUARD_NONE),

    MOVE(LIFECYCLE_RESTART_DUE, BIT(STARTING), GUARD_RESTART_DUE, STARTING,
         "MainProcessRestartScheduled",
         "The main process is being started again (restart %restart)",
         CLEAN_SESSIONS | LIFECYCLE_STOP_COMPUTE | LIFECYCLE_START_COMPUTE,
         EFFECT_NEW_ATTEMPT | EFFECT_RESTARTED | EFFECT_CLEAR_RESULT | EFFECT_SET_PENDING),
    IGNORE(LIFECYCLE_RESTART_DUE, PHASES_ALL, GUARD_NONE),
};

const size_t lifecycle_rule_count = sizeof(lifecycle_rules) / sizeof(lifecycle_rules[0]);
