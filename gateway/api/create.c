/* CreateSandbox (behaviour reference 1.5): checked, stored, started, answered. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "base/uuid.h"
#include "gateway/api/api.h"
#include "gateway/api/request.h"
#include "gateway/compute.h"
#include "gateway/host_ids.h"
#include "gateway/launch.h"
#include "gateway/lifecycle.h"
#include "gateway/live.h"
#include "gateway/message.h"
#include "gateway/operations.h"
#include "gateway/records.h"
#include "gateway/transition.h"
#include "gateway/validate.h"

struct create {
    struct request *request;
    struct operation *operation;
    Openshell__V1__Sandbox *sandbox;
    struct lifecycle_facts facts;
    struct lifecycle_result result;
};

/* ---- the record ---- */

static void copy_labels(const Openshell__V1__CreateSandboxRequest *message,
                        Openshell__Datamodel__V1__ObjectMeta *metadata, struct arena *arena)
{
    metadata->n_labels = message->n_labels;
    metadata->labels = arena_array_of(arena, Openshell__Datamodel__V1__ObjectMeta__LabelsEntry *,
                                      message->n_labels);
    for (size_t i = 0; i < message->n_labels; i++) {
        Openshell__Datamodel__V1__ObjectMeta__LabelsEntry *entry =
            arena_new_of(arena, Openshell__Datamodel__V1__ObjectMeta__LabelsEntry);
        openshell__datamodel__v1__object_meta__labels_entry__init(entry);
        entry->key = message->labels[i]->key;
        entry->value = message->labels[i]->value;
        metadata->labels[i] = entry;
    }
}

/* What the creator says about itself is not the sandbox's to show. */
static void note_creator(Openshell__V1__Sandbox *sandbox, bool attaches, struct arena *arena)
{
    uint32_t columns, rows;
    const char *size = record_annotation(sandbox, ANNOTATION_REQUEST_TERMINAL_SIZE);
    if (launch_parse_terminal_size(size, &columns, &rows)) {
        record_set_annotation(sandbox, arena, ANNOTATION_TERMINAL_SIZE, size);
        record_set_annotation(sandbox, arena, ANNOTATION_REQUEST_TERMINAL_SIZE, NULL);
    }
    if (attaches)
        record_set_annotation(sandbox, arena, ANNOTATION_AWAIT_ATTACHMENT, "true");
}

/* The request lives in the same arena, so its parts are used as they are. */
static Openshell__V1__Sandbox *make_record(const Openshell__V1__CreateSandboxRequest *message,
                                           const char *workspace, struct arena *arena)
{
    Openshell__V1__Sandbox *sandbox = arena_new_of(arena, Openshell__V1__Sandbox);
    openshell__v1__sandbox__init(sandbox);
    Openshell__Datamodel__V1__ObjectMeta *metadata =
        arena_new_of(arena, Openshell__Datamodel__V1__ObjectMeta);
    openshell__datamodel__v1__object_meta__init(metadata);
    char id[UUID_SIZE];
    uuid_generate(id);
    metadata->id = arena_strdup(arena, id);
    metadata->name = message->name;
    metadata->workspace = (char *)workspace;
    sandbox->metadata = metadata;
    copy_labels(message, metadata, arena);
    for (size_t i = 0; i < message->n_annotations; i++)
        record_set_annotation(sandbox, arena, message->annotations[i]->key,
                              message->annotations[i]->value);
    note_creator(sandbox, message->await_main_process_attachment, arena);
    sandbox->spec = message->spec;
    char epoch[UUID_SIZE];
    uuid_generate(epoch);
    sandbox->spec->provider_attachment_epoch = arena_strdup(arena, epoch);
    if (sandbox->spec->n_command == 0)
        sandbox->spec->tty = true; /* a login shell (1.5) */
    if (sandbox->spec->restart_policy ==
        OPENSHELL__V1__SANDBOX_RESTART_POLICY__SANDBOX_RESTART_POLICY_UNSPECIFIED)
        sandbox->spec->restart_policy =
            OPENSHELL__V1__SANDBOX_RESTART_POLICY__SANDBOX_RESTART_POLICY_NEVER;
    return sandbox;
}

/* ---- what the local driver can place ---- */

static bool check_image(const Openshell__V1__Sandbox *sandbox, struct error *error)
{
    const Openshell__V1__SandboxTemplate *template = sandbox->spec->template_;
    if (template == NULL || template->image[0] == '\0')
        return true;
    const char *directory = launch_from_directory(sandbox);
    if (directory == NULL)
        error_add_violation(error, "spec.template.image",
                            "the local driver runs the composed root (empty) or a directory "
                            "(dir:/absolute/path), not a container image");
    else if (directory[0] != '/')
        error_add_violation(error, "spec.template.image", "the directory must be an absolute path");
    return error->code == ERROR_OK;
}

static bool check_support(const Openshell__V1__CreateSandboxRequest *message,
                          const Openshell__V1__Sandbox *sandbox, struct error *error)
{
    if (message->workload_template[0] != '\0')
        return error_set(error, ERROR_NOT_FOUND, "sandbox template '%s' does not exist",
                         message->workload_template);
    if (sandbox->spec->n_providers > 0) {
        char name[128];
        text_escape(sandbox->spec->providers[0], name, sizeof(name));
        return error_set(error, ERROR_FAILED_PRECONDITION, "provider '%s' does not exist", name);
    }
    if (message->n_service_exposures > 0)
        return error_set(error, ERROR_UNIMPLEMENTED,
                         "exposing services at create is not implemented");
    if (sandbox->spec->resource_requirements != NULL &&
        sandbox->spec->resource_requirements->gpu != NULL)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the local driver cannot give a sandbox a GPU");
    return check_image(sandbox, error);
}

/* On the storage thread: the file system may be slow. */
static bool check_directory(const Openshell__V1__Sandbox *sandbox, struct error *error)
{
    const char *directory = launch_from_directory(sandbox);
    struct stat status;
    if (directory == NULL)
        return true;
    if (stat(directory, &status) == 0 && S_ISDIR(status.st_mode))
        return true;
    char shown[256];
    text_escape(directory, shown, sizeof(shown));
    error_add_violation(error, "spec.template.image", "'%s' is not a directory: %s", shown,
                        strerror(errno));
    return false;
}

/* ---- the steps ---- */

static void finish(struct create *create, const Openshell__V1__Sandbox *sandbox,
                   const struct error *error)
{
    struct request *request = create->request;
    struct operation *operation = create->operation;
    if (error != NULL) {
        request_fail(request, error);
    } else {
        Openshell__V1__SandboxResponse response = OPENSHELL__V1__SANDBOX_RESPONSE__INIT;
        response.sandbox = message_copy(request->arena, &sandbox->base);
        record_public_view(response.sandbox);
        request_respond(request, &response.base);
    }
    operation_finish(operation);
}

static void started(const Openshell__V1__Sandbox *sandbox, const struct error *error, void *user)
{
    struct create *create = user;
    struct error own = {0};
    /* The driver's own refusals keep their code, everything else is ours (1.5). */
    if (error != NULL) {
        error_copy(&own, error);
        if (own.code != ERROR_ALREADY_EXISTS && own.code != ERROR_FAILED_PRECONDITION &&
            own.code != ERROR_DEADLINE_EXCEEDED && own.code != ERROR_ABORTED)
            own.code = ERROR_INTERNAL;
        error_prefix(&own, "cannot start the sandbox");
    } else if (sandbox == NULL) {
        error_set(&own, ERROR_ABORTED, "the sandbox was deleted while it was being created");
    }
    finish(create, sandbox, own.code != ERROR_OK ? &own : NULL);
    error_clear(&own);
}

static bool insert(struct store_transaction *store, void *argument, struct error *error)
{
    struct create *create = argument;
    struct arena *arena = create->request->arena;
    return record_require_active_workspace(store, arena, create->sandbox->metadata->workspace,
                                           error) &&
           check_directory(create->sandbox, error) &&
           lifecycle_apply(create->sandbox, arena, LIFECYCLE_CREATE, &create->facts,
                           &create->result, error) &&
           record_insert_sandbox(store, arena, create->sandbox, error);
}

static void inserted(void *argument, const struct error *error)
{
    struct create *create = argument;
    struct gateway *gateway = create->request->gateway;
    if (error != NULL) {
        host_ids_give(gateway->host_ids, create->sandbox);
        finish(create, NULL, error);
        return;
    }
    transition_publish(gateway, create->sandbox, false);
    compute_perform(gateway, create->sandbox->metadata->id, create->sandbox,
                    LIFECYCLE_START_COMPUTE, true, started, create);
}

static void run(struct operation *operation)
{
    struct create *create = operation->user;
    create->operation = operation;
    store_run(create->request->gateway->store, insert, inserted, create);
}

static bool prepare(struct create *create, const char *workspace, struct error *error)
{
    struct request *request = create->request;
    const Openshell__V1__CreateSandboxRequest *message =
        (const Openshell__V1__CreateSandboxRequest *)request->message;
    if (message->spec == NULL)
        return error_set(error, ERROR_NOT_FOUND, "sandbox template '%s' does not exist",
                         message->workload_template);
    create->sandbox = make_record(message, workspace, request->arena);
    lifecycle_fresh_facts(request->arena, &create->facts);
    create->facts.now = gateway_now(request->gateway);
    return check_support(message, create->sandbox, error) &&
           host_ids_take(request->gateway->host_ids, create->sandbox, request->arena, error);
}

void api_create_sandbox(struct rpc_call *call, void *gateway)
{
    const Openshell__V1__CreateSandboxRequest *message =
        (const Openshell__V1__CreateSandboxRequest *)rpc_call_request(call);
    const char *workspace;
    struct error error = {0};
    bool good = validate_workspace_scope(message->workspace_scope, false, &workspace, &error);
    good &= validate_create_sandbox(message, &error);
    if (!good) {
        request_refuse(call, &error);
        return;
    }
    struct request *request = request_begin(call, gateway);
    struct create *create = arena_new_of(request->arena, struct create);
    create->request = request;
    if (!prepare(create, arena_strdup(request->arena, workspace), &error)) {
        request_fail(request, &error);
        error_clear(&error);
        return;
    }
    operation_submit_own(gateway, create->sandbox->metadata->id, run, create);
}
