/* The lifecycle's table, held to one that is written out here from the behaviour reference (1.1 to
 * 1.4, 1.6, 1.7) and the decisions P9 to P12, P20, P21 and A2, without a look at the other. */
#include "gateway_fixture.h"

#include "gateway/conditions.h"
#include "gateway/lifecycle.h"
#include "gateway/records.h"

#define NOW INT64_C(1800000000000)
#define INSTANCE_A "aaaaaaaa-0000-4000-8000-000000000000"
#define INSTANCE_B "bbbbbbbb-0000-4000-8000-000000000000"
#define GENERATION "11111111-0000-4000-8000-000000000000"

/* The columns of the tables, and the letters of the phases in them. */
static const char LETTERS[] = "NPRGSTECDU";
static const Openshell__V1__SandboxPhase COLUMNS[LIFECYCLE_PHASE_COUNT] = {
    PHASE(UNSPECIFIED), PHASE(PROVISIONING), PHASE(READY),     PHASE(STOPPING), PHASE(STOPPED),
    PHASE(STARTING),    PHASE(ERROR),        PHASE(COMPLETED), PHASE(DELETING), PHASE(UNKNOWN),
};
static const char *const READY_REASONS[LIFECYCLE_PHASE_COUNT] = {
    NULL,       "SupervisorNotConnected", "DependenciesReady",    "Stopping", "Stopped",
    "Starting", "MainProcessFailed",      "MainProcessCompleted", "Deleting", "BackendUnknown",
};

/* A cell says what comes out:
 *   "="            success without any change of the record
 *   "L:Reason"     phase L with this reason of the Ready condition
 *   "x", "a"       refused with FAILED_PRECONDITION, ABORTED; the record is as before
 *   "-"            the record goes
 * and after a blank what is to be done: D disconnect, H SSH sessions, S stop, R start, X delete.
 *
 * The sandbox of each column: its admission was accepted for instance A, which is connected where
 * the phase allows it; activated; no driver call in flight; no deadline; ERROR is a main process
 * that failed with 1, COMPLETED one that ended with 0. The facts: instance A, exit code 0, its
 * session is open, compute does not run, the driver says ProcessExited. */
struct row {
    enum lifecycle_event event;
    const char *cells[LIFECYCLE_PHASE_COUNT];
};

#define READY_CELL "R:DependenciesReady"
#define LOST_CELL "E:SupervisorLost DS"
#define DELETE_CELL "D:Deleting DHX"

static const struct row TABLE[LIFECYCLE_EVENT_COUNT] = {
    /* clang-format off */
    /*                                     none  provisioning  ready  stopping  stopped  starting  error  completed  deleting  unknown */
    {LIFECYCLE_CREATE,                    {"P:ConfigurationPending", "x", "x", "x", "x", "x", "x", "x", "x", "x"}},
    {LIFECYCLE_DRIVER_CREATED,            {"=", "=", "=", "=", "=", "=", "=", "=", "=", "="}},
    {LIFECYCLE_DRIVER_CREATE_FAILED,      {"=", "-", "=", "=", "=", "=", "=", "=", "=", "="}},
    {LIFECYCLE_START_REQUESTED,           {"x", "x", "=", "x", "T:Starting R", "T:Starting R", "T:Starting DHSR", "T:Starting DHSR", "x", "x"}},
    {LIFECYCLE_DRIVER_STARTED,            {"=", "=", "=", "=", "=", "=", "=", "=", "=", "="}},
    {LIFECYCLE_START_FAILED,              {"=", "=", "=", "=", "=", "E:StartFailed DS", "=", "=", "=", "="}},
    {LIFECYCLE_STOP_REQUESTED,            {"x", "G:Stopping S", "G:Stopping S", "G:Stopping S", "= DH", "x", "= DHS", "= DHS", "x", "x"}},
    {LIFECYCLE_DRIVER_STOPPED,            {"=", "S:Stopped DH", "S:Stopped DH", "S:Stopped DH", "=", "=", "=", "=", "=", "S:Stopped DH"}},
    {LIFECYCLE_DRIVER_STOP_FAILED,        {"=", "=", "=", "S:Stopped DH", "=", "=", "=", "=", "=", "="}},
    {LIFECYCLE_DELETE_REQUESTED,          {DELETE_CELL, DELETE_CELL, DELETE_CELL, DELETE_CELL, DELETE_CELL, DELETE_CELL, DELETE_CELL, DELETE_CELL, "= X", DELETE_CELL}},
    {LIFECYCLE_DRIVER_DELETED,            {"-", "-", "-", "-", "-", "-", "-", "-", "-", "-"}},
    {LIFECYCLE_DRIVER_DELETE_FAILED,      {"=", "=", "=", "=", "=", "=", "=", "=", "D:Deleting", "="}},
    {LIFECYCLE_SUPERVISOR_CONNECTED,      {"a", READY_CELL, "=", "a", "a", READY_CELL, "=", "=", "a", READY_CELL}},
    {LIFECYCLE_SUPERVISOR_DISCONNECTED,   {"=", "=", "P:DependenciesNotReady", "=", "=", "=", "=", "=", "=", "="}},
    {LIFECYCLE_MAIN_EXITED,               {"=", "C:MainProcessCompleted", "C:MainProcessCompleted", "=", "=", "C:MainProcessCompleted", "=", "=", "=", "C:MainProcessCompleted"}},
    {LIFECYCLE_FINALIZED,                 {"=", "x", "x", "=", "=", "x", "=", "=", "=", "x"}},
    {LIFECYCLE_ADMISSION_PENDING,         {"=", "P:ConfigurationPending", "P:ConfigurationPending", "=", "=", "=", "=", "=", "=", "P:ConfigurationPending"}},
    {LIFECYCLE_ADMISSION_ACCEPTED,        {"=", READY_CELL, "=", "=", "=", READY_CELL, "=", "=", "=", READY_CELL}},
    {LIFECYCLE_ADMISSION_REJECTED,        {"=", "P:ConfigurationInvalid", "P:ConfigurationInvalid", "=", "=", "=", "=", "=", "=", "P:ConfigurationInvalid"}},
    {LIFECYCLE_ADMISSION_DESIRED_REJECTED,{"=", "=", "=", "=", "=", "=", "=", "=", "=", "="}},
    {LIFECYCLE_ADMISSION_REFUSED,         {"=", "P:ConfigurationInvalid", "P:ConfigurationInvalid", "=", "=", "=", "=", "=", "=", "P:ConfigurationInvalid"}},
    {LIFECYCLE_SUPERVISOR_LOST,           {"=", LOST_CELL, LOST_CELL, "=", "=", LOST_CELL, "= DS", "= DS", "=", LOST_CELL}},
    {LIFECYCLE_RUNTIME_LOST,              {"=", "E:RuntimeLost DS", "E:RuntimeLost DS", "=", "=", "E:RuntimeLost DS", "= DS", "= DS", "=", "E:RuntimeLost DS"}},
    {LIFECYCLE_SUPERVISOR_REFUSED,        {"=", "=", LOST_CELL, "=", "=", "=", "= DS", "= DS", "=", LOST_CELL}},
    {LIFECYCLE_DRIVER_FAILED,             {"=", "E:ProcessExited DS", "E:ProcessExited DS", "E:ProcessExited DS", "=", "E:ProcessExited DS", "=", "=", "=", "E:ProcessExited DS"}},
    {LIFECYCLE_ADOPTED,                   {"=", "=", "=", "= S", "= S", "=", "=", "=", "= X", "="}},
    {LIFECYCLE_BACKEND_MISSING,           {"=", "E:BackendResourceMissing D", "E:BackendResourceMissing D", "S:Stopped DH", "=", "E:BackendResourceMissing D", "=", "=", "= X", "E:BackendResourceMissing D"}},
    {LIFECYCLE_PREPARATION_DEADLINE,      {"=", "=", "=", "=", "=", "=", "=", "=", "=", "="}},
    {LIFECYCLE_REPAIR_DEADLINE,           {"=", "=", "=", "=", "=", "=", "=", "=", "=", "="}},
    {LIFECYCLE_RESTART_DUE,               {"=", "=", "=", "=", "=", "=", "=", "=", "=", "="}},
    /* clang-format on */
};

/* ---- the sandboxes of the columns ---- */

struct subject {
    struct arena *arena;
    Openshell__V1__Sandbox *sandbox;
    Openshell__V1__SandboxStatus *status;
    struct lifecycle_facts facts;
};

static void set_result(struct subject *subject, int32_t code)
{
    subject->status->exit_code_presence_case =
        OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE_EXIT_CODE;
    subject->status->exit_code = code;
}

static void set_ready_reason(struct subject *subject, const char *reason)
{
    bool ready = strcmp(reason, "DependenciesReady") == 0;
    conditions_set(subject->status, subject->arena, CONDITION_READY, ready, reason,
                   ready ? "Supervisor session connected" : "before", NOW - 5000);
}

static void set_activated(struct subject *subject, bool activated)
{
    subject->status->configuration_activated_presence_case =
        OPENSHELL__V1__SANDBOX_STATUS__CONFIGURATION_ACTIVATED_PRESENCE_CONFIGURATION_ACTIVATED;
    subject->status->configuration_activated = activated;
}

static size_t column_of(Openshell__V1__SandboxPhase phase)
{
    for (size_t i = 0; i < LIFECYCLE_PHASE_COUNT; i++)
        if (COLUMNS[i] == phase)
            return i;
    fail();
    return 0;
}

static void make_known(struct subject *subject)
{
    Openshell__V1__SandboxStatus *status = subject->status;
    status->main_process_instance_id = arena_strdup(subject->arena, INSTANCE_A);
    status->main_process_started_time = record_timestamp(subject->arena, NOW - 5000);
    status->configuration_admission =
        arena_new_of(subject->arena, Openshell__V1__SandboxConfigurationAdmission);
    openshell__v1__sandbox_configuration_admission__init(status->configuration_admission);
    status->configuration_admission->instance_id = arena_strdup(subject->arena, INSTANCE_A);
    status->configuration_admission->state = ADMISSION_STATE(ACCEPTED);
    status->provisioning = arena_new_of(subject->arena, Openshell__V1__SandboxProvisioning);
    openshell__v1__sandbox_provisioning__init(status->provisioning);
    set_activated(subject, true);
    record_set_annotation(subject->sandbox, subject->arena, ANNOTATION_GENERATION, GENERATION);
    record_set_annotation(subject->sandbox, subject->arena, ANNOTATION_AUTH_EPOCH, "4");
}

static struct subject subject_in(Openshell__V1__SandboxPhase phase)
{
    struct subject subject = {.arena = arena_new(0)};
    subject.sandbox = fixture_sandbox(subject.arena, "id-1", "job");
    subject.status = arena_new_of(subject.arena, Openshell__V1__SandboxStatus);
    openshell__v1__sandbox_status__init(subject.status);
    subject.sandbox->status = subject.status;
    subject.status->phase = phase;
    if (phase != PHASE(UNSPECIFIED)) {
        make_known(&subject);
        set_ready_reason(&subject, READY_REASONS[column_of(phase)]);
    }
    if (phase == PHASE(ERROR))
        set_result(&subject, 1);
    if (phase == PHASE(COMPLETED))
        set_result(&subject, 0);
    subject.facts = (struct lifecycle_facts){
        .now = NOW,
        .instance_id = INSTANCE_A,
        .session_connected = true,
        .reason = "ProcessExited",
        .text = "words of the driver",
        .new_attempt_id = "attempt",
        .new_generation = "generation",
        .new_fence_instance_id = "fence",
        .new_operation_id = "operation",
        .new_attachment_epoch = "epoch",
    };
    return subject;
}

static void subject_free(struct subject *subject)
{
    arena_free(subject->arena);
}

static char *packed(const struct subject *subject, size_t *ret_size)
{
    *ret_size = openshell__v1__sandbox__get_packed_size(subject->sandbox);
    char *bytes = memory_allocate(*ret_size + 1);
    openshell__v1__sandbox__pack(subject->sandbox, (uint8_t *)bytes);
    return bytes;
}

/* ---- comparing with a cell ---- */

static void write_actions(unsigned actions, char *text)
{
    static const struct {
        unsigned action;
        char letter;
    } letters[] = {
        {LIFECYCLE_DISCONNECT, 'D'},     {LIFECYCLE_DELETE_SSH_SESSIONS, 'H'},
        {LIFECYCLE_STOP_COMPUTE, 'S'},   {LIFECYCLE_START_COMPUTE, 'R'},
        {LIFECYCLE_DELETE_COMPUTE, 'X'},
    };
    if (actions == 0)
        return;
    text += strlen(text);
    *text++ = ' ';
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
        if ((actions & letters[i].action) != 0)
            *text++ = letters[i].letter;
    *text = '\0';
}

static void describe(const struct subject *subject, bool applied,
                     const struct lifecycle_result *result, const struct error *error, char *text,
                     size_t size)
{
    if (!applied) {
        snprintf(text, size, "%s",
                 error->code == ERROR_FAILED_PRECONDITION ? "x"
                 : error->code == ERROR_ABORTED           ? "a"
                                                          : error_code_name(error->code));
        return;
    }
    if (result->remove)
        snprintf(text, size, "-");
    else if (!result->changed)
        snprintf(text, size, "=");
    else
        snprintf(text, size, "%c:%s", LETTERS[column_of(subject->status->phase)],
                 conditions_reason(subject->status, CONDITION_READY));
    write_actions(result->actions, text);
}

/* Applies the event and compares. What counts as unchanged must be so to the byte. */
static void expect(struct subject *subject, enum lifecycle_event event, const char *cell)
{
    struct lifecycle_result result = {0};
    struct error error = {0};
    char text[128];
    size_t size, size_after;
    Openshell__V1__SandboxPhase before = subject->status->phase;
    CLEANUP_FREE char *bytes = packed(subject, &size);
    bool applied =
        lifecycle_apply(subject->sandbox, subject->arena, event, &subject->facts, &result, &error);
    describe(subject, applied, &result, &error, text, sizeof(text));
    if (strcmp(text, cell) != 0)
        fail_msg("%s in %s: '%s' where '%s' is right", lifecycle_event_name(event),
                 lifecycle_phase_name(before), text, cell);
    CLEANUP_FREE char *bytes_after = packed(subject, &size_after);
    bool same = size == size_after && memcmp(bytes, bytes_after, size) == 0;
    if (same == result.changed && !result.remove)
        fail_msg("%s in %s: the record %s", lifecycle_event_name(event),
                 lifecycle_phase_name(before), same ? "did not change" : "changed");
    if (applied) {
        assert_int_equal(result.previous_phase, before);
        assert_int_equal(result.phase, subject->status->phase);
        assert_int_equal(result.ignored, !result.changed && !result.remove);
    } else {
        assert_true(error.message[0] != '\0');
    }
    error_clear(&error);
}

static void prepare(struct subject *subject, enum lifecycle_event event)
{
    if (subject->status->configuration_admission == NULL)
        return;
    if (event == LIFECYCLE_ADMISSION_PENDING)
        subject->status->configuration_admission->state = ADMISSION_STATE(PENDING);
    if (event == LIFECYCLE_ADMISSION_REJECTED || event == LIFECYCLE_ADMISSION_REFUSED) {
        subject->status->configuration_admission->state = ADMISSION_STATE(REJECTED);
        subject->status->configuration_admission->error = arena_strdup(subject->arena, "bad");
    }
}

static void test_every_phase_with_every_event(void **state)
{
    (void)state;
    for (size_t event = 0; event < LIFECYCLE_EVENT_COUNT; event++) {
        assert_int_equal(TABLE[event].event, event);
        for (size_t column = 0; column < LIFECYCLE_PHASE_COUNT; column++) {
            struct subject subject = subject_in(COLUMNS[column]);
            prepare(&subject, TABLE[event].event);
            expect(&subject, TABLE[event].event, TABLE[event].cells[column]);
            subject_free(&subject);
        }
    }
}

/* ---- what else counts, beside the phase ---- */

static void pending(struct subject *subject)
{
    subject->status->provisioning->driver_operation_pending = true;
    subject->status->provisioning->driver_operation_id = arena_strdup(subject->arena, "op");
}

static void not_activated(struct subject *subject)
{
    set_activated(subject, false);
}

static void never_said(struct subject *subject)
{
    subject->status->configuration_activated_presence_case =
        OPENSHELL__V1__SANDBOX_STATUS__CONFIGURATION_ACTIVATED_PRESENCE__NOT_SET;
}

static void refused(struct subject *subject)
{
    record_set_annotation(subject->sandbox, subject->arena, ANNOTATION_REFUSED, INSTANCE_A);
    subject->status->configuration_admission->state = ADMISSION_STATE(REJECTED);
}

static void lost(struct subject *subject)
{
    subject->status->exit_code_presence_case =
        OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE__NOT_SET;
    set_ready_reason(subject, "SupervisorLost");
}

static void container_exited(struct subject *subject)
{
    lost(subject);
    set_ready_reason(subject, "ContainerExited");
}

static void timed_out(struct subject *subject)
{
    lost(subject);
    set_ready_reason(subject, "ProvisioningTimedOut");
    subject->status->provisioning->timeout_time = record_timestamp(subject->arena, NOW - 1);
}

static void timed_out_and_clean(struct subject *subject)
{
    timed_out(subject);
    subject->status->provisioning->cleanup_completed_time = record_timestamp(subject->arena, NOW);
}

static void other_instance(struct subject *subject)
{
    subject->facts.instance_id = INSTANCE_B;
}

static void admitted_b(struct subject *subject)
{
    subject->status->configuration_admission->instance_id =
        arena_strdup(subject->arena, INSTANCE_B);
}

static void other_instance_admitted(struct subject *subject)
{
    other_instance(subject);
    admitted_b(subject);
}

static void no_instance(struct subject *subject)
{
    subject->status->main_process_instance_id = arena_strdup(subject->arena, "");
}

static void no_instance_rejected(struct subject *subject)
{
    no_instance(subject);
    subject->status->configuration_admission->state = ADMISSION_STATE(REJECTED);
}

static void unadmitted(struct subject *subject)
{
    subject->status->configuration_admission->state = ADMISSION_STATE(PENDING);
}

static void rejected(struct subject *subject)
{
    subject->status->configuration_admission->state = ADMISSION_STATE(REJECTED);
}

static void no_admission(struct subject *subject)
{
    subject->status->configuration_admission = NULL;
}

static void no_session(struct subject *subject)
{
    subject->facts.session_connected = false;
}

static void exit_one(struct subject *subject)
{
    subject->facts.exit_code = 1;
}

static void lost_exit_one(struct subject *subject)
{
    lost(subject);
    exit_one(subject);
}

static void container_exited_exit_one(struct subject *subject)
{
    container_exited(subject);
    exit_one(subject);
}

static void running(struct subject *subject)
{
    subject->facts.compute_running = true;
}

static void running_without_session(struct subject *subject)
{
    running(subject);
    no_session(subject);
}

static void transient(struct subject *subject)
{
    subject->facts.reason = "containerstarting";
}

static void reason_container_exited(struct subject *subject)
{
    subject->facts.reason = "ContainerExited";
}

static void reason_container_stopped(struct subject *subject)
{
    subject->facts.reason = "containerstopped";
}

static void reason_runtime_restart(struct subject *subject)
{
    subject->facts.reason = "ContainerRuntimeRestart";
}

static void older_generation(struct subject *subject)
{
    subject->facts.generation = "22222222-0000-4000-8000-000000000000";
}

static void this_generation(struct subject *subject)
{
    subject->facts.generation = GENERATION;
}

static void preparing(struct subject *subject)
{
    subject->status->provisioning->deadline = record_timestamp(subject->arena, NOW);
}

static void preparing_early(struct subject *subject)
{
    subject->status->provisioning->deadline = record_timestamp(subject->arena, NOW + 1);
}

static void repairing(struct subject *subject)
{
    preparing(subject);
    subject->status->provisioning->admission_start_time =
        record_timestamp(subject->arena, NOW - LIFECYCLE_REPAIR_WINDOW);
}

/* ---- the restart policy (1.4) ---- */

#define POLICY(name) OPENSHELL__V1__SANDBOX_RESTART_POLICY__SANDBOX_RESTART_POLICY_##name

static void always(struct subject *subject)
{
    subject->sandbox->spec->restart_policy = POLICY(ALWAYS);
}

static void always_exit_one(struct subject *subject)
{
    always(subject);
    exit_one(subject);
}

static void on_failure(struct subject *subject)
{
    subject->sandbox->spec->restart_policy = POLICY(ON_FAILURE);
}

static void on_failure_exit_one(struct subject *subject)
{
    on_failure(subject);
    exit_one(subject);
}

static void always_other_instance(struct subject *subject)
{
    always(subject);
    other_instance(subject);
}

static void always_other_admitted(struct subject *subject)
{
    always(subject);
    other_instance_admitted(subject);
}

static void always_lost(struct subject *subject)
{
    always(subject);
    lost(subject);
}

/* Starting, as the policy does it: instance A ended with 1 half a second ago. */
static void draining_count(struct subject *subject, uint32_t count)
{
    always(subject);
    set_result(subject, 1);
    set_ready_reason(subject, "MainProcessExitDraining");
    subject->status->restart_count = count;
    subject->status->next_restart_time =
        record_timestamp(subject->arena, NOW - 500 + lifecycle_restart_delay(count));
}

static void draining(struct subject *subject)
{
    draining_count(subject, 1);
}

static void draining_again(struct subject *subject)
{
    draining_count(subject, 3);
}

static void draining_other_instance(struct subject *subject)
{
    draining(subject);
    other_instance(subject);
}

static void draining_no_session(struct subject *subject)
{
    draining(subject);
    no_session(subject);
}

static void draining_grace_over(struct subject *subject)
{
    draining(subject);
    subject->facts.now = NOW - 500 + LIFECYCLE_RESTART_GRACE;
}

static void draining_grace_almost_over(struct subject *subject)
{
    draining(subject);
    subject->facts.now = NOW - 501 + LIFECYCLE_RESTART_GRACE;
}

static void waiting(struct subject *subject)
{
    draining_again(subject);
    set_ready_reason(subject, "MainProcessRestartBackoff");
}

static void waiting_long_enough(struct subject *subject)
{
    waiting(subject);
    subject->facts.now = NOW + 1500;
}

static void waiting_pending(struct subject *subject)
{
    waiting(subject);
    pending(subject);
}

/* The policy's launch: nothing of the new instance was heard yet. */
static void launched(struct subject *subject)
{
    always(subject);
    set_ready_reason(subject, "MainProcessRestartScheduled");
    subject->status->restart_count = 2;
    subject->status->configuration_admission->state = ADMISSION_STATE(PENDING);
    subject->status->configuration_admission->instance_id = arena_strdup(subject->arena, "fence");
}

static void launched_new_instance(struct subject *subject)
{
    launched(subject);
    subject->status->configuration_admission->state = ADMISSION_STATE(ACCEPTED);
    other_instance_admitted(subject);
}

static void launched_too_slow(struct subject *subject)
{
    launched(subject);
    preparing(subject);
}

/* ---- what nobody keeps (1.6) ---- */

static void ephemeral(struct subject *subject)
{
    record_set_annotation(subject->sandbox, subject->arena, ANNOTATION_RETENTION,
                          RETENTION_EPHEMERAL);
}

static void retained(struct subject *subject)
{
    record_set_annotation(subject->sandbox, subject->arena, ANNOTATION_RETENTION, "retain");
}

static void ephemeral_no_session(struct subject *subject)
{
    ephemeral(subject);
    no_session(subject);
}

static void ephemeral_lost(struct subject *subject)
{
    ephemeral(subject);
    lost(subject);
}

static void ephemeral_draining(struct subject *subject)
{
    ephemeral(subject);
    draining(subject);
}

struct special {
    enum lifecycle_event event;
    Openshell__V1__SandboxPhase phase;
    void (*change)(struct subject *subject);
    const char *cell;
};

/* Letters stand for phases as in the table above. */
static const struct special SPECIALS[] = {
    /* A driver call in flight holds up stop and start, and nothing else (1.6). */
    {LIFECYCLE_STOP_REQUESTED, PHASE(READY), pending, "x"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(STOPPING), pending, "x"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(PROVISIONING), pending, "x"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(STOPPED), pending, "= DH"},
    {LIFECYCLE_START_REQUESTED, PHASE(STOPPED), pending, "x"},
    {LIFECYCLE_START_REQUESTED, PHASE(STARTING), pending, "x"},
    {LIFECYCLE_START_REQUESTED, PHASE(COMPLETED), pending, "x"},
    {LIFECYCLE_START_REQUESTED, PHASE(ERROR), pending, "x"},
    {LIFECYCLE_START_REQUESTED, PHASE(READY), pending, "="},
    {LIFECYCLE_DELETE_REQUESTED, PHASE(READY), pending, DELETE_CELL},
    {LIFECYCLE_DELETE_REQUESTED, PHASE(PROVISIONING), pending, DELETE_CELL},
    {LIFECYCLE_DRIVER_CREATED, PHASE(READY), pending, "R:DependenciesReady"},
    {LIFECYCLE_DRIVER_CREATED, PHASE(DELETING), pending, "D:Deleting"},
    {LIFECYCLE_DRIVER_STARTED, PHASE(STARTING), pending, "T:Starting"},
    {LIFECYCLE_DRIVER_STARTED, PHASE(READY), pending, "R:DependenciesReady"},
    {LIFECYCLE_DRIVER_STOPPED, PHASE(STARTING), pending, "="},
    {LIFECYCLE_ADOPTED, PHASE(READY), pending, "R:DependenciesReady"},
    {LIFECYCLE_ADOPTED, PHASE(STOPPING), pending, "G:Stopping S"},

    /* The first start: the driver is done before or after the admission (1.2, P20). */
    {LIFECYCLE_DRIVER_CREATED, PHASE(PROVISIONING), no_instance, "P:SupervisorNotConnected"},
    {LIFECYCLE_DRIVER_CREATED, PHASE(PROVISIONING), no_instance_rejected, "="},
    {LIFECYCLE_ADMISSION_ACCEPTED, PHASE(PROVISIONING), no_session, "P:SupervisorNotConnected"},
    {LIFECYCLE_ADMISSION_ACCEPTED, PHASE(PROVISIONING), no_instance, "P:SupervisorNotConnected"},
    {LIFECYCLE_ADMISSION_ACCEPTED, PHASE(STARTING), no_session, "="},
    {LIFECYCLE_ADMISSION_ACCEPTED, PHASE(STARTING), admitted_b, "="},
    {LIFECYCLE_ADMISSION_ACCEPTED, PHASE(UNKNOWN), no_session, "P:SupervisorNotConnected"},

    /* Who may connect. */
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(PROVISIONING), unadmitted, "P:ConfigurationPending"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(PROVISIONING), rejected, "P:ConfigurationInvalid"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(PROVISIONING), no_admission, "P:ConfigurationPending"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(READY), unadmitted, "P:ConfigurationPending"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), unadmitted, "="},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(PROVISIONING), other_instance, "x"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(READY), other_instance, "x"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), other_instance, "x"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(PROVISIONING), other_instance_admitted, READY_CELL},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), other_instance_admitted, READY_CELL},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), admitted_b, "a"}, /* A was before */
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(COMPLETED), other_instance, "x"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(ERROR), other_instance, "x"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(ERROR), lost, "="},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(ERROR), timed_out, "a"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(PROVISIONING), repairing,
     "P:ProvisioningDeadlineElapsed"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), repairing, "P:ProvisioningDeadlineElapsed"},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(PROVISIONING), preparing_early, READY_CELL},
    {LIFECYCLE_ADMISSION_ACCEPTED, PHASE(PROVISIONING), repairing, "P:ProvisioningDeadlineElapsed"},
    {LIFECYCLE_SUPERVISOR_DISCONNECTED, PHASE(READY), other_instance, "="},

    /* The main process's result (1.4). */
    {LIFECYCLE_MAIN_EXITED, PHASE(READY), exit_one, "E:MainProcessFailed"},
    {LIFECYCLE_MAIN_EXITED, PHASE(PROVISIONING), no_instance, "C:MainProcessCompleted"},
    {LIFECYCLE_MAIN_EXITED, PHASE(READY), other_instance, "="},
    {LIFECYCLE_MAIN_EXITED, PHASE(PROVISIONING), other_instance, "="},
    {LIFECYCLE_MAIN_EXITED, PHASE(STARTING), admitted_b, "="}, /* A was before */
    {LIFECYCLE_MAIN_EXITED, PHASE(STARTING), other_instance_admitted, "C:MainProcessCompleted"},
    {LIFECYCLE_MAIN_EXITED, PHASE(COMPLETED), exit_one, "="}, /* the first result wins */
    {LIFECYCLE_MAIN_EXITED, PHASE(ERROR), exit_one, "="},     /* the same again */
    {LIFECYCLE_MAIN_EXITED, PHASE(ERROR), timed_out, "="},
    {LIFECYCLE_MAIN_EXITED, PHASE(ERROR), lost_exit_one, "E:SupervisorLost"},
    {LIFECYCLE_MAIN_EXITED, PHASE(ERROR), lost, "E:SupervisorLost"},
    {LIFECYCLE_MAIN_EXITED, PHASE(ERROR), container_exited, "C:MainProcessCompleted"},
    {LIFECYCLE_MAIN_EXITED, PHASE(ERROR), container_exited_exit_one, "E:MainProcessFailed"},
    {LIFECYCLE_FINALIZED, PHASE(COMPLETED), other_instance, "x"},
    {LIFECYCLE_FINALIZED, PHASE(COMPLETED), no_session, "x"},
    {LIFECYCLE_FINALIZED, PHASE(ERROR), lost, "x"},
    {LIFECYCLE_FINALIZED, PHASE(STOPPED), no_session, "="},

    /* Ways out (1.6, P11). */
    {LIFECYCLE_STOP_REQUESTED, PHASE(PROVISIONING), not_activated, "x"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(PROVISIONING), never_said, "x"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(ERROR), lost, "x"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(ERROR), timed_out, "x"},
    {LIFECYCLE_START_REQUESTED, PHASE(ERROR), lost, "T:Starting DHSR"},
    {LIFECYCLE_START_REQUESTED, PHASE(ERROR), timed_out, "x"},
    {LIFECYCLE_START_REQUESTED, PHASE(ERROR), timed_out_and_clean, "T:Starting DHSR"},
    {LIFECYCLE_DELETE_REQUESTED, PHASE(ERROR), timed_out, DELETE_CELL},
    {LIFECYCLE_DRIVER_STOPPED, PHASE(ERROR), timed_out, "E:ProvisioningTimedOut"},
    {LIFECYCLE_DRIVER_STOPPED, PHASE(ERROR), timed_out_and_clean, "="},
    {LIFECYCLE_DRIVER_STOP_FAILED, PHASE(ERROR), timed_out, "E:ProvisioningTimedOut"},
    {LIFECYCLE_DRIVER_STOP_FAILED, PHASE(STOPPING), running, READY_CELL},
    {LIFECYCLE_DRIVER_STOP_FAILED, PHASE(STOPPING), running_without_session,
     "P:DependenciesNotReady"},

    /* Refused before the start (A2). */
    {LIFECYCLE_START_REQUESTED, PHASE(PROVISIONING), refused, "x"},
    {LIFECYCLE_START_REQUESTED, PHASE(STARTING), refused, "x"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(PROVISIONING), refused, "x"},
    {LIFECYCLE_DELETE_REQUESTED, PHASE(PROVISIONING), refused, DELETE_CELL},
    {LIFECYCLE_SUPERVISOR_LOST, PHASE(PROVISIONING), refused, "="},
    {LIFECYCLE_SUPERVISOR_LOST, PHASE(STARTING), refused, "="},
    {LIFECYCLE_RUNTIME_LOST, PHASE(PROVISIONING), refused, "="},
    {LIFECYCLE_DRIVER_FAILED, PHASE(PROVISIONING), refused, "="},
    {LIFECYCLE_BACKEND_MISSING, PHASE(PROVISIONING), refused, "="},
    {LIFECYCLE_BACKEND_MISSING, PHASE(STARTING), refused, "="},

    /* What drivers see (1.2). */
    {LIFECYCLE_DRIVER_FAILED, PHASE(READY), transient, "="},
    {LIFECYCLE_DRIVER_FAILED, PHASE(PROVISIONING), transient, "="},
    {LIFECYCLE_DRIVER_FAILED, PHASE(READY), reason_container_exited, "E:ContainerExited DS"},
    {LIFECYCLE_DRIVER_FAILED, PHASE(STOPPING), reason_container_exited, "S:Stopped DH"},
    {LIFECYCLE_DRIVER_FAILED, PHASE(STOPPING), reason_container_stopped, "S:Stopped DH"},
    {LIFECYCLE_DRIVER_FAILED, PHASE(STOPPING), reason_runtime_restart, "="},
    {LIFECYCLE_DRIVER_FAILED, PHASE(STOPPED), reason_runtime_restart, "="},
    {LIFECYCLE_DRIVER_FAILED, PHASE(ERROR), lost, "="},
    {LIFECYCLE_ADOPTED, PHASE(ERROR), lost, "= S"},
    {LIFECYCLE_BACKEND_MISSING, PHASE(ERROR), timed_out, "E:ProvisioningTimedOut"},

    /* Word of an older launch (P9, P10). */
    {LIFECYCLE_SUPERVISOR_LOST, PHASE(READY), older_generation, "="},
    {LIFECYCLE_RUNTIME_LOST, PHASE(STARTING), older_generation, "="},
    {LIFECYCLE_SUPERVISOR_LOST, PHASE(READY), this_generation, LOST_CELL},

    /* Deadlines (1.7). */
    {LIFECYCLE_PREPARATION_DEADLINE, PHASE(PROVISIONING), preparing,
     "E:ImagePreparationTimedOut DS"},
    {LIFECYCLE_PREPARATION_DEADLINE, PHASE(STARTING), preparing, "E:ImagePreparationTimedOut DS"},
    {LIFECYCLE_PREPARATION_DEADLINE, PHASE(PROVISIONING), preparing_early, "="},
    {LIFECYCLE_PREPARATION_DEADLINE, PHASE(PROVISIONING), repairing, "="},
    {LIFECYCLE_PREPARATION_DEADLINE, PHASE(READY), preparing, "="},
    {LIFECYCLE_REPAIR_DEADLINE, PHASE(PROVISIONING), repairing, "E:ProvisioningTimedOut DS"},
    {LIFECYCLE_REPAIR_DEADLINE, PHASE(STARTING), repairing, "E:ProvisioningTimedOut DS"},
    {LIFECYCLE_REPAIR_DEADLINE, PHASE(PROVISIONING), preparing, "="},
    {LIFECYCLE_REPAIR_DEADLINE, PHASE(STOPPING), repairing, "="},

    /* The restart policy answers exits of the main process, and nothing else (1.4). */
    {LIFECYCLE_MAIN_EXITED, PHASE(READY), always, "T:MainProcessExitDraining"},
    {LIFECYCLE_MAIN_EXITED, PHASE(READY), always_exit_one, "T:MainProcessExitDraining"},
    {LIFECYCLE_MAIN_EXITED, PHASE(PROVISIONING), always, "T:MainProcessExitDraining"},
    {LIFECYCLE_MAIN_EXITED, PHASE(UNKNOWN), always, "T:MainProcessExitDraining"},
    {LIFECYCLE_MAIN_EXITED, PHASE(READY), on_failure, "C:MainProcessCompleted"},
    {LIFECYCLE_MAIN_EXITED, PHASE(READY), on_failure_exit_one, "T:MainProcessExitDraining"},
    {LIFECYCLE_MAIN_EXITED, PHASE(READY), always_other_instance, "="},
    {LIFECYCLE_MAIN_EXITED, PHASE(STARTING), always_other_admitted, "T:MainProcessExitDraining"},
    {LIFECYCLE_MAIN_EXITED, PHASE(STOPPING), always, "="},
    {LIFECYCLE_MAIN_EXITED, PHASE(STOPPED), always, "="},
    {LIFECYCLE_MAIN_EXITED, PHASE(DELETING), always, "="},
    {LIFECYCLE_MAIN_EXITED, PHASE(ERROR), always_lost, "E:SupervisorLost"},
    {LIFECYCLE_SUPERVISOR_LOST, PHASE(READY), always, LOST_CELL},
    {LIFECYCLE_RUNTIME_LOST, PHASE(READY), always, "E:RuntimeLost DS"},
    {LIFECYCLE_BACKEND_MISSING, PHASE(READY), always, "E:BackendResourceMissing D"},

    /* Until the output was delivered, or the grace is over. */
    {LIFECYCLE_MAIN_EXITED, PHASE(STARTING), draining, "="},
    {LIFECYCLE_FINALIZED, PHASE(STARTING), draining, "T:MainProcessRestartScheduled"},
    {LIFECYCLE_FINALIZED, PHASE(STARTING), draining_again, "T:MainProcessRestartBackoff"},
    {LIFECYCLE_FINALIZED, PHASE(STARTING), draining_other_instance, "x"},
    {LIFECYCLE_FINALIZED, PHASE(STARTING), draining_no_session, "x"},
    {LIFECYCLE_FINALIZED, PHASE(STARTING), waiting, "="},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), draining, "="},
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), draining_other_instance, "a"},
    {LIFECYCLE_ADMISSION_ACCEPTED, PHASE(STARTING), draining, "="},
    {LIFECYCLE_RESTART_DUE, PHASE(STARTING), draining, "="},
    {LIFECYCLE_RESTART_DUE, PHASE(STARTING), draining_grace_almost_over, "="},
    {LIFECYCLE_RESTART_DUE, PHASE(STARTING), draining_grace_over,
     "T:MainProcessRestartScheduled DHSR"},
    {LIFECYCLE_PREPARATION_DEADLINE, PHASE(STARTING), draining_grace_over, "="},

    /* While it waits for its time. */
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), waiting, "a"},
    {LIFECYCLE_ADMISSION_ACCEPTED, PHASE(STARTING), waiting, "="},
    {LIFECYCLE_RESTART_DUE, PHASE(STARTING), waiting, "="},
    {LIFECYCLE_RESTART_DUE, PHASE(STARTING), waiting_long_enough,
     "T:MainProcessRestartScheduled DHSR"},
    {LIFECYCLE_SUPERVISOR_LOST, PHASE(STARTING), waiting, "= DS"},
    {LIFECYCLE_RUNTIME_LOST, PHASE(STARTING), waiting, "= DS"},
    {LIFECYCLE_SUPERVISOR_REFUSED, PHASE(STARTING), waiting, "= DS"},
    {LIFECYCLE_DRIVER_FAILED, PHASE(STARTING), waiting, "= DS"},
    {LIFECYCLE_BACKEND_MISSING, PHASE(STARTING), waiting, "="},
    {LIFECYCLE_DRIVER_STOPPED, PHASE(STARTING), waiting, "="},
    {LIFECYCLE_ADOPTED, PHASE(STARTING), waiting, "="},
    {LIFECYCLE_STOP_REQUESTED, PHASE(STARTING), draining, "G:Stopping S"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(STARTING), waiting, "G:Stopping S"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(STARTING), waiting_pending, "x"},
    {LIFECYCLE_START_REQUESTED, PHASE(STARTING), waiting, "T:Starting DHSR"},
    {LIFECYCLE_DELETE_REQUESTED, PHASE(STARTING), waiting, DELETE_CELL},

    /* And when it was launched. */
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), launched, "a"}, /* A was before */
    {LIFECYCLE_SUPERVISOR_CONNECTED, PHASE(STARTING), launched_new_instance, READY_CELL},
    {LIFECYCLE_START_FAILED, PHASE(STARTING), launched, "T:MainProcessRestartBackoff"},
    {LIFECYCLE_STOP_REQUESTED, PHASE(STARTING), launched, "G:Stopping S"},
    {LIFECYCLE_SUPERVISOR_LOST, PHASE(STARTING), launched, LOST_CELL},
    {LIFECYCLE_PREPARATION_DEADLINE, PHASE(STARTING), launched_too_slow,
     "E:ImagePreparationTimedOut DS"},

    /* What nobody keeps goes when its result was delivered, or cannot be any more (1.6). */
    {LIFECYCLE_FINALIZED, PHASE(COMPLETED), ephemeral, DELETE_CELL},
    {LIFECYCLE_FINALIZED, PHASE(ERROR), ephemeral, DELETE_CELL},
    {LIFECYCLE_FINALIZED, PHASE(COMPLETED), retained, "="},
    {LIFECYCLE_FINALIZED, PHASE(COMPLETED), ephemeral_no_session, "x"},
    {LIFECYCLE_FINALIZED, PHASE(ERROR), ephemeral_lost, "x"},
    {LIFECYCLE_FINALIZED, PHASE(STARTING), ephemeral_draining, "T:MainProcessRestartScheduled"},
    {LIFECYCLE_FINALIZED, PHASE(STOPPED), ephemeral, "="},
    {LIFECYCLE_MAIN_EXITED, PHASE(READY), ephemeral, "C:MainProcessCompleted"},
    {LIFECYCLE_SUPERVISOR_LOST, PHASE(COMPLETED), ephemeral, DELETE_CELL},
    {LIFECYCLE_RUNTIME_LOST, PHASE(ERROR), ephemeral, DELETE_CELL},
    {LIFECYCLE_SUPERVISOR_REFUSED, PHASE(COMPLETED), ephemeral, DELETE_CELL},
    {LIFECYCLE_DRIVER_FAILED, PHASE(COMPLETED), ephemeral, DELETE_CELL},
    {LIFECYCLE_BACKEND_MISSING, PHASE(COMPLETED), ephemeral, DELETE_CELL},
    {LIFECYCLE_SUPERVISOR_LOST, PHASE(READY), ephemeral, LOST_CELL},
    {LIFECYCLE_BACKEND_MISSING, PHASE(ERROR), ephemeral_lost, "="},
};

static void test_what_counts_beside_the_phase(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(SPECIALS) / sizeof(SPECIALS[0]); i++) {
        struct subject subject = subject_in(SPECIALS[i].phase);
        SPECIALS[i].change(&subject);
        expect(&subject, SPECIALS[i].event, SPECIALS[i].cell);
        subject_free(&subject);
    }
}

/* ERROR and COMPLETED, and a sandbox that goes, stay what they are under all that a driver sees. */
static void test_ended_phases_stick(void **state)
{
    (void)state;
    static const Openshell__V1__SandboxPhase phases[] = {PHASE(ERROR), PHASE(COMPLETED),
                                                         PHASE(DELETING)};
    static const enum lifecycle_event seen[] = {
        LIFECYCLE_DRIVER_CREATED,  LIFECYCLE_DRIVER_STARTED,         LIFECYCLE_START_FAILED,
        LIFECYCLE_DRIVER_STOPPED,  LIFECYCLE_DRIVER_STOP_FAILED,     LIFECYCLE_DRIVER_FAILED,
        LIFECYCLE_SUPERVISOR_LOST, LIFECYCLE_RUNTIME_LOST,           LIFECYCLE_SUPERVISOR_REFUSED,
        LIFECYCLE_ADOPTED,         LIFECYCLE_BACKEND_MISSING,        LIFECYCLE_PREPARATION_DEADLINE,
        LIFECYCLE_REPAIR_DEADLINE, LIFECYCLE_SUPERVISOR_DISCONNECTED};
    static void (*const reasons[])(struct subject *) = {transient,
                                                        reason_container_exited,
                                                        reason_container_stopped,
                                                        reason_runtime_restart,
                                                        this_generation,
                                                        preparing,
                                                        repairing,
                                                        pending};
    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
        for (size_t j = 0; j < sizeof(seen) / sizeof(seen[0]); j++)
            for (size_t k = 0; k < sizeof(reasons) / sizeof(reasons[0]); k++) {
                struct subject subject = subject_in(phases[i]);
                struct lifecycle_result result;
                struct error error = {0};
                reasons[k](&subject);
                assert_true(lifecycle_apply(subject.sandbox, subject.arena, seen[j], &subject.facts,
                                            &result, &error));
                assert_int_equal(subject.status->phase, phases[i]);
                assert_false(result.remove);
                assert_string_equal(conditions_reason(subject.status, CONDITION_READY),
                                    READY_REASONS[column_of(phases[i])]);
                subject_free(&subject);
            }
}

/* ---- the record after an event ---- */

static void apply(struct subject *subject, enum lifecycle_event event)
{
    struct lifecycle_result result;
    struct error error = {0};
    if (!lifecycle_apply(subject->sandbox, subject->arena, event, &subject->facts, &result, &error))
        fail_msg("%s: %s", lifecycle_event_name(event), error.message);
}

static void expect_annotation(const struct subject *subject, const char *key, const char *value)
{
    const char *found = record_annotation(subject->sandbox, key);
    if (value == NULL) {
        assert_null(found);
        return;
    }
    assert_non_null(found);
    assert_string_equal(found, value);
}

static void test_create_fills_the_record(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(UNSPECIFIED));
    subject.sandbox->status = NULL;
    apply(&subject, LIFECYCLE_CREATE);
    const Openshell__V1__SandboxStatus *status = subject.sandbox->status;
    assert_int_equal(status->phase, PHASE(PROVISIONING));
    assert_int_equal(
        status->configuration_activated_presence_case,
        OPENSHELL__V1__SANDBOX_STATUS__CONFIGURATION_ACTIVATED_PRESENCE_CONFIGURATION_ACTIVATED);
    assert_false(status->configuration_activated);
    assert_int_equal(status->configuration_admission->state, ADMISSION_STATE(PENDING));
    assert_string_equal(status->configuration_admission->instance_id, "fence");
    assert_string_equal(status->provisioning->attempt_id, "attempt");
    assert_string_equal(status->provisioning->configuration_change_id, "initial:attempt");
    assert_int_equal(record_milliseconds(status->provisioning->preparation_deadline),
                     NOW + 1800 * 1000);
    assert_int_equal(record_milliseconds(status->provisioning->deadline), NOW + 1800 * 1000);
    assert_int_equal(lifecycle_next_deadline(subject.sandbox), NOW + 1800 * 1000);
    assert_true(status->provisioning->driver_operation_pending);
    assert_string_equal(status->provisioning->driver_operation_id, "operation");
    assert_string_equal(subject.sandbox->spec->provider_attachment_epoch, "epoch");
    assert_int_equal(subject.sandbox->spec->restart_policy,
                     OPENSHELL__V1__SANDBOX_RESTART_POLICY__SANDBOX_RESTART_POLICY_NEVER);
    expect_annotation(&subject, ANNOTATION_GENERATION, "generation");
    expect_annotation(&subject, ANNOTATION_AUTH_EPOCH, "1");
    assert_string_equal(conditions_reason(status, CONDITION_CONFIGURATION_READY),
                        "ConfigurationPending");
    assert_int_equal(status->exit_code_presence_case,
                     OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE__NOT_SET);
    subject_free(&subject);
}

static void test_start_begins_anew(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(COMPLETED));
    record_set_annotation(subject.sandbox, subject.arena, ANNOTATION_REFUSED, INSTANCE_A);
    subject.status->restart_count = 3;
    subject.facts.preparation_timeout = 5000;
    apply(&subject, LIFECYCLE_START_REQUESTED);
    assert_int_equal(subject.status->exit_code_presence_case,
                     OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE__NOT_SET);
    assert_int_equal(subject.status->restart_count, 0);
    assert_string_equal(subject.status->main_process_instance_id, INSTANCE_A); /* a tombstone */
    assert_null(subject.status->main_process_started_time);
    assert_int_equal(subject.status->configuration_admission->state, ADMISSION_STATE(PENDING));
    assert_string_equal(subject.status->configuration_admission->instance_id, "fence");
    assert_true(subject.status->configuration_activated); /* for ever (A1) */
    assert_int_equal(record_milliseconds(subject.status->provisioning->deadline), NOW + 5000);
    expect_annotation(&subject, ANNOTATION_GENERATION, "generation");
    expect_annotation(&subject, ANNOTATION_AUTH_EPOCH, "5");
    assert_false(lifecycle_refused(subject.sandbox));
    subject_free(&subject);
}

/* The table of 1.4: at once, 1 s, then twice as long each time, 3 min at most. */
static void test_restart_delays(void **state)
{
    (void)state;
    static const int64_t delays[] = {0,     0,     1000,  2000,   4000,   8000,
                                     16000, 32000, 64000, 128000, 180000, 180000};
    for (uint32_t i = 0; i < sizeof(delays) / sizeof(delays[0]); i++)
        assert_int_equal(lifecycle_restart_delay(i), delays[i]);
    assert_int_equal(lifecycle_restart_delay(UINT32_MAX), 180000);
}

static void exit_after(struct subject *subject, int64_t run)
{
    subject->facts.now += 1000;
    subject->status->main_process_started_time =
        run >= 0 ? record_timestamp(subject->arena, subject->facts.now - run) : NULL;
    subject->status->phase = PHASE(READY);
    subject->status->exit_code_presence_case =
        OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE__NOT_SET;
    apply(subject, LIFECYCLE_MAIN_EXITED);
    assert_int_equal(subject->status->phase, PHASE(STARTING));
}

static void test_quick_exits_count_and_a_long_run_begins_anew(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(READY));
    always_exit_one(&subject);
    for (uint32_t count = 1; count <= 4; count++) {
        exit_after(&subject, count % 2 == 0 ? -1 : LIFECYCLE_RESTART_STABLE - 1);
        assert_int_equal(subject.status->restart_count, count);
        assert_int_equal(record_milliseconds(subject.status->next_restart_time),
                         subject.facts.now + lifecycle_restart_delay(count));
        assert_int_equal(subject.status->exit_code, 1);
    }
    exit_after(&subject, LIFECYCLE_RESTART_STABLE);
    assert_int_equal(subject.status->restart_count, 1);
    assert_int_equal(record_milliseconds(subject.status->next_restart_time), subject.facts.now);
    subject_free(&subject);
}

/* Its time is the end of the grace, then its own, then that of a launch that must become ready. */
static void test_the_next_deadline_of_a_restart(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(STARTING));
    draining_again(&subject);
    int64_t exit_time = NOW - 500;
    assert_int_equal(lifecycle_next_deadline(subject.sandbox), exit_time + LIFECYCLE_RESTART_GRACE);
    apply(&subject, LIFECYCLE_FINALIZED);
    assert_int_equal(lifecycle_next_deadline(subject.sandbox), exit_time + 2000);
    subject.facts.now = exit_time + 2000;
    apply(&subject, LIFECYCLE_RESTART_DUE);
    assert_null(subject.status->next_restart_time);
    assert_int_equal(subject.status->restart_count, 3);
    assert_int_equal(lifecycle_next_deadline(subject.sandbox),
                     subject.facts.now + LIFECYCLE_RESTART_TIMEOUT);
    assert_string_equal(subject.status->configuration_admission->instance_id, "fence");
    expect_annotation(&subject, ANNOTATION_GENERATION, "generation");
    expect_annotation(&subject, ANNOTATION_AUTH_EPOCH, "5");

    apply(&subject, LIFECYCLE_START_FAILED);
    assert_int_equal(lifecycle_next_deadline(subject.sandbox),
                     subject.facts.now + LIFECYCLE_RESTART_RETRY);
    subject_free(&subject);

    subject = subject_in(PHASE(STARTING));
    draining_count(&subject, 9); /* its own time is after the grace */
    assert_int_equal(lifecycle_next_deadline(subject.sandbox), exit_time + 128000);
    subject_free(&subject);
}

/* A start that somebody asks for, and a stop, end what the policy had in mind. */
static void test_the_user_wins_over_the_policy(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(STARTING));
    waiting(&subject);
    apply(&subject, LIFECYCLE_STOP_REQUESTED);
    assert_null(subject.status->next_restart_time);
    assert_int_equal(lifecycle_next_deadline(subject.sandbox), 0);
    apply(&subject, LIFECYCLE_DRIVER_STOPPED);
    apply(&subject, LIFECYCLE_START_REQUESTED);
    assert_int_equal(subject.status->restart_count, 0);
    subject_free(&subject);

    subject = subject_in(PHASE(STARTING));
    waiting(&subject);
    apply(&subject, LIFECYCLE_START_REQUESTED);
    assert_int_equal(subject.status->restart_count, 0);
    assert_null(subject.status->next_restart_time);
    subject_free(&subject);
}

/* Who creates a sandbox waits for its first main process, and for no other. */
static void test_the_creator_awaits_the_first_launch_only(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(UNSPECIFIED));
    record_set_annotation(subject.sandbox, subject.arena, ANNOTATION_AWAIT_ATTACHMENT, "true");
    apply(&subject, LIFECYCLE_CREATE);
    expect_annotation(&subject, ANNOTATION_AWAIT_ATTACHMENT, "true");
    subject_free(&subject);

    subject = subject_in(PHASE(STOPPED));
    record_set_annotation(subject.sandbox, subject.arena, ANNOTATION_AWAIT_ATTACHMENT, "true");
    apply(&subject, LIFECYCLE_START_REQUESTED);
    expect_annotation(&subject, ANNOTATION_AWAIT_ATTACHMENT, NULL);
    subject_free(&subject);

    subject = subject_in(PHASE(STARTING));
    waiting_long_enough(&subject);
    record_set_annotation(subject.sandbox, subject.arena, ANNOTATION_AWAIT_ATTACHMENT, "true");
    apply(&subject, LIFECYCLE_RESTART_DUE);
    expect_annotation(&subject, ANNOTATION_AWAIT_ATTACHMENT, NULL);
    subject_free(&subject);
}

static void test_restart_conditions_speak(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(STARTING));
    draining_again(&subject);
    apply(&subject, LIFECYCLE_FINALIZED);
    assert_string_equal(conditions_get(subject.status, CONDITION_READY)->message,
                        "The main process is started again 2 s after its end (restart 3)");
    subject_free(&subject);
}

static void test_a_repeated_start_keeps_its_identity(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(STARTING));
    apply(&subject, LIFECYCLE_START_REQUESTED);
    expect_annotation(&subject, ANNOTATION_GENERATION, GENERATION);
    expect_annotation(&subject, ANNOTATION_AUTH_EPOCH, "4");
    assert_string_equal(subject.status->configuration_admission->instance_id, INSTANCE_A);
    assert_true(subject.status->provisioning->driver_operation_pending);
    subject_free(&subject);
}

static void test_ready_disarms_and_replaces(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(STARTING));
    other_instance_admitted(&subject);
    preparing_early(&subject);
    set_result(&subject, 9);
    subject.status->main_process_started_time = NULL;
    apply(&subject, LIFECYCLE_SUPERVISOR_CONNECTED);
    assert_int_equal(subject.status->phase, PHASE(READY));
    assert_null(subject.status->provisioning->deadline);
    assert_int_equal(lifecycle_next_deadline(subject.sandbox), 0);
    assert_string_equal(subject.status->main_process_instance_id, INSTANCE_B);
    assert_int_equal(subject.status->exit_code_presence_case,
                     OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE__NOT_SET);
    assert_int_equal(record_milliseconds(subject.status->main_process_started_time), NOW);
    const Openshell__V1__SandboxCondition *ready = conditions_get(subject.status, CONDITION_READY);
    assert_string_equal(ready->status, "True");
    assert_int_equal(record_milliseconds(ready->transition_time), NOW);
    subject_free(&subject);
}

/* A gateway that comes back finds a finished sandbox's supervisor connecting: nothing is lost. */
static void test_a_result_survives_a_reconnect(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(ERROR));
    apply(&subject, LIFECYCLE_SUPERVISOR_CONNECTED);
    assert_int_equal(subject.status->exit_code_presence_case,
                     OPENSHELL__V1__SANDBOX_STATUS__EXIT_CODE_PRESENCE_EXIT_CODE);
    assert_int_equal(subject.status->exit_code, 1);
    assert_true(lifecycle_main_failed(subject.sandbox));
    subject_free(&subject);
}

static void test_an_early_result_is_kept(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(PROVISIONING));
    no_instance(&subject);
    preparing_early(&subject);
    subject.facts.exit_code = 137;
    apply(&subject, LIFECYCLE_MAIN_EXITED);
    assert_int_equal(subject.status->phase, PHASE(ERROR));
    assert_int_equal(subject.status->exit_code, 137);
    assert_string_equal(subject.status->main_process_instance_id, INSTANCE_A);
    assert_null(subject.status->provisioning->deadline);
    const Openshell__V1__SandboxCondition *ready = conditions_get(subject.status, CONDITION_READY);
    assert_non_null(strstr(ready->message, "137"));
    apply(&subject, LIFECYCLE_SUPERVISOR_CONNECTED);
    apply(&subject, LIFECYCLE_FINALIZED);
    assert_int_equal(subject.status->exit_code, 137);
    subject_free(&subject);
}

static void test_an_infrastructure_error_takes_only_the_result(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(ERROR));
    lost_exit_one(&subject);
    apply(&subject, LIFECYCLE_MAIN_EXITED);
    assert_int_equal(subject.status->exit_code, 1);
    assert_string_equal(conditions_reason(subject.status, CONDITION_READY), "SupervisorLost");
    assert_false(lifecycle_main_failed(subject.sandbox));
    subject_free(&subject);
}

static void test_an_expired_attempt_is_cleared_away(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(PROVISIONING));
    repairing(&subject);
    enum lifecycle_event due;
    assert_true(lifecycle_deadline_due(subject.sandbox, NOW, &due));
    assert_int_equal(due, LIFECYCLE_REPAIR_DEADLINE);
    assert_false(lifecycle_deadline_due(subject.sandbox, NOW - 1, &due));
    apply(&subject, LIFECYCLE_REPAIR_DEADLINE);
    const Openshell__V1__SandboxProvisioning *provisioning = subject.status->provisioning;
    assert_null(provisioning->deadline);
    assert_int_equal(record_milliseconds(provisioning->timeout_time), NOW);
    assert_true(lifecycle_timed_out(subject.sandbox));
    apply(&subject, LIFECYCLE_DRIVER_STOP_FAILED);
    assert_string_equal(provisioning->cleanup_error, "words of the driver");
    assert_true(record_milliseconds(provisioning->cleanup_retry_time) > NOW);
    expect(&subject, LIFECYCLE_START_REQUESTED, "x");
    apply(&subject, LIFECYCLE_DRIVER_STOPPED);
    assert_int_equal(record_milliseconds(provisioning->cleanup_completed_time), NOW);
    assert_string_equal(provisioning->cleanup_error, "");
    apply(&subject, LIFECYCLE_START_REQUESTED);
    assert_false(lifecycle_timed_out(subject.sandbox));
    subject_free(&subject);
}

static void test_delete_notes_its_time(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(READY));
    apply(&subject, LIFECYCLE_DELETE_REQUESTED);
    assert_int_equal(record_milliseconds(subject.sandbox->metadata->deletion_time), NOW);
    apply(&subject, LIFECYCLE_DRIVER_DELETE_FAILED);
    const Openshell__V1__SandboxCondition *ready = conditions_get(subject.status, CONDITION_READY);
    assert_non_null(strstr(ready->message, "words of the driver"));
    subject_free(&subject);
}

static void test_refusals_say_phase_and_way_out(void **state)
{
    (void)state;
    static const struct {
        enum lifecycle_event event;
        Openshell__V1__SandboxPhase phase;
        void (*change)(struct subject *subject);
        const char *says[2];
    } cases[] = {
        {LIFECYCLE_STOP_REQUESTED,
         PHASE(ERROR),
         lost,
         {"'job' is in error (SupervisorLost)", "openshell sandbox start job"}},
        {LIFECYCLE_STOP_REQUESTED,
         PHASE(STARTING),
         this_generation,
         {"'job' is starting", "openshell sandbox delete job"}},
        {LIFECYCLE_START_REQUESTED,
         PHASE(STOPPING),
         this_generation,
         {"'job' is stopping", "openshell sandbox start job"}},
        {LIFECYCLE_START_REQUESTED,
         PHASE(PROVISIONING),
         refused,
         {"'job' is being prepared", "cannot be repaired"}},
        {LIFECYCLE_START_REQUESTED, PHASE(STOPPED), pending, {"'job' is stopped", "try again"}},
        {LIFECYCLE_FINALIZED,
         PHASE(COMPLETED),
         no_session,
         {"'job' is completed", "supervisor session is not connected"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct subject subject = subject_in(cases[i].phase);
        struct lifecycle_result result;
        struct error error = {0};
        cases[i].change(&subject);
        assert_false(lifecycle_apply(subject.sandbox, subject.arena, cases[i].event, &subject.facts,
                                     &result, &error));
        for (size_t j = 0; j < 2; j++)
            if (strstr(error.message, cases[i].says[j]) == NULL)
                fail_msg("'%s' does not say '%s'", error.message, cases[i].says[j]);
        error_clear(&error);
        subject_free(&subject);
    }
}

/* A driver's words are shown, but cannot act on a terminal. */
static void test_foreign_words_are_escaped(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(READY));
    subject.facts.reason = "Bad\033[2J";
    subject.facts.text = "red \033[31m %name %code";
    apply(&subject, LIFECYCLE_DRIVER_FAILED);
    const Openshell__V1__SandboxCondition *ready = conditions_get(subject.status, CONDITION_READY);
    assert_string_equal(ready->reason, "Bad\\x1b[2J");
    assert_string_equal(ready->message, "red \\x1b[31m %name %code");
    subject_free(&subject);
}

/* ---- conditions ---- */

static void test_a_condition_keeps_its_time(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    Openshell__V1__SandboxStatus status = OPENSHELL__V1__SANDBOX_STATUS__INIT;
    assert_true(conditions_set(&status, arena, "Ready", false, "Starting", "a", 1000));
    assert_true(conditions_set(&status, arena, "Other", true, "Fine", "", 1500));
    assert_false(conditions_set(&status, arena, "Ready", false, "Starting", "a", 2000));
    assert_true(conditions_set(&status, arena, "Ready", false, "Starting", "b", 3000));
    assert_int_equal(record_milliseconds(conditions_get(&status, "Ready")->transition_time), 1000);
    assert_true(conditions_set(&status, arena, "Ready", true, "Ready", "", 4000));
    assert_int_equal(record_milliseconds(conditions_get(&status, "Ready")->transition_time), 4000);
    assert_int_equal(status.n_conditions, 2);
    assert_true(conditions_remove(&status, "Ready"));
    assert_false(conditions_remove(&status, "Ready"));
    assert_null(conditions_get(&status, "Ready"));
    assert_string_equal(conditions_reason(&status, "Other"), "Fine");
    assert_true(conditions_set_identity(&status, arena, 1000, 1001, 5000));
    assert_string_equal(conditions_get(&status, "WorkloadIdentity")->message, "1000:1001");
    assert_string_equal(conditions_reason(&status, "WorkloadIdentity"), "DriverResolved");
    arena_free(arena);
}

static void test_configuration_conditions_follow_the_admission(void **state)
{
    (void)state;
    struct subject subject = subject_in(PHASE(READY));
    Openshell__V1__SandboxStatus *status = subject.status;
    Openshell__V1__SandboxConfigurationAdmission *admission = status->configuration_admission;
    conditions_set_configuration(status, subject.arena, NOW);
    assert_string_equal(conditions_get(status, "ConfigurationReady")->status, "True");
    assert_string_equal(conditions_reason(status, "ConfigurationReady"), "ConfigurationAccepted");
    assert_null(conditions_get(status, "DesiredConfigurationReady"));
    admission->error = arena_strdup(subject.arena, "bad");
    conditions_set_configuration(status, subject.arena, NOW);
    assert_string_equal(conditions_get(status, "ConfigurationReady")->status, "True");
    assert_string_equal(conditions_reason(status, "DesiredConfigurationReady"),
                        "ConfigurationInvalid");
    admission->state = ADMISSION_STATE(REJECTED);
    conditions_set_configuration(status, subject.arena, NOW);
    assert_string_equal(conditions_reason(status, "ConfigurationReady"), "ConfigurationInvalid");
    assert_string_equal(conditions_get(status, "ConfigurationReady")->message, "bad");
    assert_null(conditions_get(status, "DesiredConfigurationReady"));
    admission->state = ADMISSION_STATE(PENDING);
    conditions_set_configuration(status, subject.arena, NOW);
    assert_string_equal(conditions_reason(status, "ConfigurationReady"), "ConfigurationPending");
    status->configuration_admission = NULL;
    conditions_set_configuration(status, subject.arena, NOW);
    assert_null(conditions_get(status, "ConfigurationReady"));
    subject_free(&subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_phase_with_every_event),
        cmocka_unit_test(test_what_counts_beside_the_phase),
        cmocka_unit_test(test_ended_phases_stick),
        cmocka_unit_test(test_create_fills_the_record),
        cmocka_unit_test(test_start_begins_anew),
        cmocka_unit_test(test_restart_delays),
        cmocka_unit_test(test_quick_exits_count_and_a_long_run_begins_anew),
        cmocka_unit_test(test_the_next_deadline_of_a_restart),
        cmocka_unit_test(test_the_user_wins_over_the_policy),
        cmocka_unit_test(test_the_creator_awaits_the_first_launch_only),
        cmocka_unit_test(test_restart_conditions_speak),
        cmocka_unit_test(test_a_repeated_start_keeps_its_identity),
        cmocka_unit_test(test_ready_disarms_and_replaces),
        cmocka_unit_test(test_a_result_survives_a_reconnect),
        cmocka_unit_test(test_an_early_result_is_kept),
        cmocka_unit_test(test_an_infrastructure_error_takes_only_the_result),
        cmocka_unit_test(test_an_expired_attempt_is_cleared_away),
        cmocka_unit_test(test_delete_notes_its_time),
        cmocka_unit_test(test_refusals_say_phase_and_way_out),
        cmocka_unit_test(test_foreign_words_are_escaped),
        cmocka_unit_test(test_a_condition_keeps_its_time),
        cmocka_unit_test(test_configuration_conditions_follow_the_admission),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
