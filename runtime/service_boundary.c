/* The operations that move the stage of a boundary: attach, confirm, start, terminate. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "boundary/failure.h"
#include "boundary/owner_lock.h"
#include "runtime/process.h"
#include "runtime/service.h"

enum {
    WARNINGS_LIMIT = 32,
    SKEW_LIMIT_MILLISECONDS = 5 * 1000, /* more than that is said (isolation IB-41) */
    /* Decision P13. */
    RECOVERY_LEAST_SECONDS = 5,
    RECOVERY_MOST_SECONDS = 600,
};

static void fail(struct exchange_stream *stream, enum failure_kind kind, const char *text)
{
    struct error error = {0};
    failure_set(&error, kind, "%s", text);
    exchange_stream_fail(stream, &error);
}

/* Only one operation moves the stage at a time. */
static bool begin_moving(struct exchange_stream *stream)
{
    if (stream->service->moving) {
        fail(stream, FAILURE_PROTOCOL_VIOLATION,
             "the call is out of order: another one that moves the boundary is under way");
        return false;
    }
    stream->service->moving = true;
    return true;
}

/* Ends a move; the stage advances when it succeeded and nobody terminated meanwhile. */
static bool end_moving(struct service *service, enum exchange_operation operation, bool success)
{
    service->moving = false;
    if (!success || service->stage == STAGE_TERMINATED)
        return false;
    service->stage = stage_after(service->stage, operation);
    return true;
}

/* What an operation under way knows. The stream is NULL once its call is over. */
struct move {
    struct service *service;
    struct exchange_stream *stream;
    struct maker_evidence evidence;
    char *warnings[WARNINGS_LIMIT];
    size_t warning_count;
    char *policy_hash;
};

static struct move *move_new(struct exchange_stream *stream)
{
    struct move *move = memory_new_of(struct move);
    move->service = stream->service;
    move->stream = stream;
    stream->service->move = move;
    return move;
}

static void move_free(struct move *move)
{
    for (size_t i = 0; i < move->warning_count; i++)
        free(move->warnings[i]);
    free(move->policy_hash);
    if (move->service->move == move)
        move->service->move = NULL;
    free(move);
}

void service_stream_gone(struct exchange_stream *stream)
{
    struct service *service = stream->service;
    if (service->attaching == stream)
        service->attaching = NULL;
    if (service->terminating == stream) {
        service->terminating = NULL;
        if (service->maker_gone) /* the answer is out */
            reactor_stop(service->options.reactor);
    }
    if (service->move != NULL && service->move->stream == stream)
        service->move->stream = NULL;
}

/* ---- discover_policy ---- */

/* The root's own policy. A composed root has none. One that was copied with --from may have
 * /etc/openshell/policy.yaml: reading it belongs here, with what the process-maker sees. */
void service_discover_policy(struct exchange_stream *stream)
{
    Openshell__Sandbox__Protocol__V1__ImagePolicy policy;
    openshell__sandbox__protocol__v1__image_policy__init(&policy);
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(IMAGE_POLICY);
    frame.image_policy = &policy;
    exchange_stream_send(stream, &frame);
}

/* ---- attach ---- */

static void keep_warning(struct move *move, const char *text)
{
    log_warn("%s", text);
    if (move->warning_count < WARNINGS_LIMIT)
        move->warnings[move->warning_count++] = memory_strdup(text);
}

static void on_attach_warning(const char *text, void *user)
{
    keep_warning(user, text);
}

static void send_attached(struct exchange_stream *stream, struct move *move)
{
    Openshell__Sandbox__Protocol__V1__Attached attached =
        OPENSHELL__SANDBOX__PROTOCOL__V1__ATTACHED__INIT;
    attached.generation = stream->service->options.launch->generation;
    attached.policy_hash = move->policy_hash;
    attached.warnings = move->warnings;
    attached.n_warnings = move->warning_count;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(ATTACHED);
    frame.attached = &attached;
    exchange_stream_send(stream, &frame);
}

static void on_attached(struct maker *maker, const struct error *error, void *user)
{
    (void)maker;
    struct move *move = user;
    bool moved = end_moving(move->service, OPERATION_ATTACH, error == NULL);
    log_debug("attach %s", error == NULL ? "done" : error->message);
    if (move->stream != NULL && moved) {
        send_attached(move->stream, move);
    } else if (move->stream != NULL) {
        struct error refusal = {0};
        if (error != NULL)
            error_copy(&refusal, error);
        else
            error_set(&refusal, ERROR_ABORTED, "the boundary is being terminated");
        failure_classify(&refusal, error != NULL ? FAILURE_ATTACH : FAILURE_TERMINATED);
        exchange_stream_fail(move->stream, &refusal);
        error_clear(&refusal);
    }
    move_free(move);
}

static void begin_attach(struct exchange_stream *stream,
                         const Openshell__Sandbox__Protocol__V1__Attach *attach)
{
    const Openshell__Sandbox__V1__SandboxPolicy *policy = attach->policy;
    const Openshell__Sandbox__V1__FilesystemPolicy *filesystem = policy->filesystem;
    struct maker_policy controls = {
        .has_filesystem = filesystem != NULL,
        .landlock_required = policy->landlock != NULL &&
                             strcmp(policy->landlock->compatibility, "hard_requirement") == 0,
        .run_as_user = policy->process != NULL ? policy->process->run_as_user : "",
        .run_as_group = policy->process != NULL ? policy->process->run_as_group : "",
    };
    if (filesystem != NULL) {
        controls.read_only = (const char *const *)filesystem->read_only;
        controls.read_only_count = filesystem->n_read_only;
        controls.read_write = (const char *const *)filesystem->read_write;
        controls.read_write_count = filesystem->n_read_write;
        controls.include_workdir = filesystem->include_workdir;
    }
    stream->service->landlock_required = controls.landlock_required;
    struct move *move = move_new(stream);
    move->policy_hash = memory_strdup(attach->policy_hash);
    if (attach->supervisor_time != NULL) {
        int64_t theirs =
            attach->supervisor_time->seconds * 1000 + attach->supervisor_time->nanos / 1000000;
        int64_t skew = theirs - clock_realtime_milliseconds();
        if (skew > SKEW_LIMIT_MILLISECONDS || skew < -SKEW_LIMIT_MILLISECONDS)
            keep_warning(move, "the clocks of supervisor and runtime differ by more than 5 s; "
                               "exec requests may be refused as expired");
    }
    maker_attach(stream->service->options.maker, &controls, on_attach_warning, on_attached, move);
}

static bool attach_valid(struct service *service,
                         const Openshell__Sandbox__Protocol__V1__Attach *attach,
                         struct error *error)
{
    if (!uuid_valid(attach->supervisor_instance_id))
        return failure_set(error, FAILURE_INVALID, "the supervisor's instance is not a UUID");
    if (service->supervisor_instance[0] != '\0' &&
        strcmp(service->supervisor_instance, attach->supervisor_instance_id) != 0)
        return failure_set(error, FAILURE_DENIED, "another supervisor has attached");
    if (attach->grant[0] != '\0')
        return failure_set(error, FAILURE_UNSUPPORTED, "this runtime takes no takeover grant");
    if (attach->policy == NULL)
        return failure_set(error, FAILURE_INVALID, "attach carries no policy");
    const Openshell__Sandbox__V1__LandlockPolicy *landlock = attach->policy->landlock;
    if (landlock != NULL && landlock->compatibility[0] != '\0' &&
        strcmp(landlock->compatibility, "best_effort") != 0 &&
        strcmp(landlock->compatibility, "hard_requirement") != 0)
        return failure_set(error, FAILURE_INVALID, "landlock.compatibility '%s' is not known",
                           landlock->compatibility);
    const Google__Protobuf__Duration *deadline = attach->recovery_deadline;
    if (deadline != NULL &&
        (deadline->seconds < RECOVERY_LEAST_SECONDS || deadline->seconds > RECOVERY_MOST_SECONDS))
        return failure_set(error, FAILURE_INVALID, "the recovery deadline is not %d to %d s",
                           RECOVERY_LEAST_SECONDS, RECOVERY_MOST_SECONDS);
    return true;
}

/* The message lives until its callback returns, and the root may take longer. */
static void remember_attach(struct exchange_stream *stream,
                            const Openshell__Sandbox__Protocol__V1__Attach *attach)
{
    struct arena *arena = rpc_call_arena(stream->call);
    size_t size = protobuf_c_message_get_packed_size(&attach->base);
    uint8_t *packed = arena_alloc(arena, size + 1);
    protobuf_c_message_pack(&attach->base, packed);
    stream->service->attach_request = openshell__sandbox__protocol__v1__attach__unpack(
        arena_protobuf_allocator(arena), size, packed);
    stream->service->attaching = stream;
}

void service_attach(struct exchange_stream *stream,
                    const Openshell__Sandbox__Protocol__V1__Attach *attach)
{
    struct service *service = stream->service;
    struct error error = {0};
    if (!attach_valid(service, attach, &error)) {
        exchange_stream_fail(stream, &error);
        error_clear(&error);
        return;
    }
    if (!begin_moving(stream))
        return;
    strcpy(service->supervisor_instance, attach->supervisor_instance_id);
    if (service->attach_tried) {
        end_moving(service, OPERATION_ATTACH, false);
        fail(stream, FAILURE_ATTACH, "an earlier attach failed; start the sandbox again");
        return;
    }
    remember_attach(stream, attach);
    if (service->root_known)
        service_root_known(service, &service->root_error);
}

void service_root_known(struct service *service, const struct error *error)
{
    if (!service->root_known && error != NULL)
        error_copy(&service->root_error, error);
    service->root_known = true;
    struct exchange_stream *stream = service->attaching;
    if (service->attach_request == NULL)
        return;
    const Openshell__Sandbox__Protocol__V1__Attach *attach = service->attach_request;
    service->attaching = NULL;
    service->attach_request = NULL;
    if (stream == NULL) { /* the call ended while the root was built */
        end_moving(service, OPERATION_ATTACH, false);
        return;
    }
    service->attach_tried = true;
    if (service->root_error.code == ERROR_OK) {
        begin_attach(stream, attach);
        return;
    }
    end_moving(service, OPERATION_ATTACH, false);
    struct error failure = {0};
    error_copy(&failure, &service->root_error);
    failure_classify(&failure, FAILURE_UNAVAILABLE);
    exchange_stream_fail(stream, &failure);
    error_clear(&failure);
}

/* ---- confirm ---- */

static void fill_evidence(exchange_evidence *to, struct maker_evidence *from,
                          const struct service *service, uint32_t *groups)
{
    to->generation = service->options.launch->generation;
    to->user_namespace = from->user_namespace;
    to->mount_namespace = from->mount_namespace;
    to->pid_namespace = from->pid_namespace;
    to->network_namespace = from->network_namespace;
    to->ipc_namespace = from->ipc_namespace;
    to->uts_namespace = from->uts_namespace;
    to->cgroup_namespace = from->cgroup_namespace;
    to->landlock_abi = from->landlock_abi > 0 ? (uint32_t)from->landlock_abi : 0;
    to->landlock_denies = from->landlock_denies;
    to->landlock_required = service->landlock_required;
    to->seccomp_filter = from->seccomp_filter;
    to->seccomp_denies = from->seccomp_denies;
    to->no_new_privileges = from->no_new_privileges;
    to->no_capabilities = from->no_capabilities;
    to->loopback_only = from->loopback_only;
    to->no_core_dumps = from->not_dumpable_core;
    to->death_link = from->death_link;
    to->user_id = from->user_id;
    to->group_id = from->group_id;
    to->host_user_id = from->host_user_id;
    to->host_group_id = from->host_group_id;
    for (size_t i = 0; i < from->supplementary_group_count; i++)
        groups[i] = from->supplementary_groups[i];
    to->supplementary_groups = groups;
    to->n_supplementary_groups = from->supplementary_group_count;
    to->process_limit_mechanism = from->process_limit_mechanism;
    to->process_limit = from->process_limit;
    to->root_kind = from->root_kind;
    to->usr_mechanism = from->usr_mechanism;
}

static void send_confirmed(struct exchange_stream *stream, struct maker_evidence *measured)
{
    exchange_evidence evidence = OPENSHELL__SANDBOX__PROTOCOL__V1__EVIDENCE__INIT;
    uint32_t
        groups[sizeof(measured->supplementary_groups) / sizeof(measured->supplementary_groups[0])];
    fill_evidence(&evidence, measured, stream->service, groups);
    Openshell__Sandbox__Protocol__V1__Confirmed confirmed =
        OPENSHELL__SANDBOX__PROTOCOL__V1__CONFIRMED__INIT;
    confirmed.evidence = &evidence;
    confirmed.session_id = stream->service->options.launch->generation;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(CONFIRMED);
    frame.confirmed = &confirmed;
    exchange_stream_send(stream, &frame);
}

static void on_measured(struct maker *maker, const struct error *error, void *user)
{
    (void)maker;
    struct move *move = user;
    bool moved = end_moving(move->service, OPERATION_CONFIRM, error == NULL);
    log_debug("confirm %s", error == NULL ? "done" : error->message);
    if (move->stream != NULL && moved) {
        send_confirmed(move->stream, &move->evidence);
    } else if (move->stream != NULL) {
        struct error refusal = {0};
        if (error != NULL)
            error_copy(&refusal, error);
        failure_classify(&refusal, error != NULL ? FAILURE_UNAVAILABLE : FAILURE_TERMINATED);
        exchange_stream_fail(move->stream, &refusal);
        error_clear(&refusal);
    }
    move_free(move);
}

void service_confirm(struct exchange_stream *stream)
{
    if (!begin_moving(stream))
        return;
    struct move *move = move_new(stream);
    maker_measure(stream->service->options.maker, &move->evidence, on_measured, move);
}

/* ---- start_agent ---- */

void service_start_agent(struct exchange_stream *stream,
                         const Openshell__Sandbox__Protocol__V1__StartAgent *start)
{
    if (!begin_moving(stream))
        return;
    struct error error = {0};
    bool started = process_start_main(stream, start, &error);
    /* From here on it runs: the answer follows when execve has spoken. */
    end_moving(stream->service, OPERATION_START_AGENT, started);
    if (!started) {
        exchange_stream_fail(stream, &error);
        error_clear(&error);
    }
}

/* ---- terminate_boundary ---- */

void service_terminate(struct exchange_stream *stream,
                       const Openshell__Sandbox__Protocol__V1__TerminateBoundary *terminate)
{
    struct service *service = stream->service;
    int64_t grace = 0;
    if (terminate->grace != NULL)
        grace = terminate->grace->seconds * 1000 + terminate->grace->nanos / 1000000;
    if (grace < 0 || grace > PROCESS_GRACE_LIMIT_MILLISECONDS) {
        fail(stream, FAILURE_INVALID, "the grace is not 0 to 600 s");
        return;
    }
    service->stage = STAGE_TERMINATED;
    service->terminating = stream;
    if (service->ending)
        return; /* answered when the process-maker is gone */
    service->ending = true;
    service->exit_status = EXIT_SUCCESS;
    log_info("terminating the boundary, grace %lld ms", (long long)grace);
    owner_lock_end(service->options.lock, OWNER_ENDED_STOPPED);
    if (grace > 0)
        process_hang_up_all(service->processes);
    maker_terminate(service->options.maker, (unsigned)grace);
}

void service_maker_gone(struct service *service)
{
    if (service->terminating == NULL)
        return;
    Openshell__Sandbox__Protocol__V1__BoundaryTerminated terminated =
        OPENSHELL__SANDBOX__PROTOCOL__V1__BOUNDARY_TERMINATED__INIT;
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    frame.frame_case = EXCHANGE_FRAME(BOUNDARY_TERMINATED);
    frame.boundary_terminated = &terminated;
    exchange_stream_send(service->terminating, &frame);
}
