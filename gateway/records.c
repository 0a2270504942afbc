#include "gateway/records.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/uuid.h"
#include "gateway/lifecycle.h"
#include "gateway/names.h"

#define RECORD_PAGE_KEY_ID "gateway-secret:page-token-key"

/* What hangs on a sandbox, in whose rows `scope` is its id (behaviour reference 1.6). */
static const char *const CASCADE[] = {
    "ssh_session", "service_endpoint", "sandbox_settings", "sandbox_policy", "draft_policy_chunk",
};

/* ---- parts of a sandbox record ---- */

Google__Protobuf__Timestamp *record_timestamp(struct arena *arena, int64_t milliseconds)
{
    Google__Protobuf__Timestamp *timestamp = arena_new_of(arena, Google__Protobuf__Timestamp);
    google__protobuf__timestamp__init(timestamp);
    int64_t rest = milliseconds % 1000;
    timestamp->seconds = milliseconds / 1000 - (rest < 0);
    timestamp->nanos = (int32_t)(rest < 0 ? rest + 1000 : rest) * 1000000;
    return timestamp;
}

int64_t record_milliseconds(const Google__Protobuf__Timestamp *timestamp)
{
    return timestamp == NULL ? 0 : timestamp->seconds * 1000 + timestamp->nanos / 1000000;
}

const char *record_annotation(const Openshell__V1__Sandbox *sandbox, const char *key)
{
    if (sandbox->metadata == NULL)
        return NULL;
    for (size_t i = 0; i < sandbox->metadata->n_annotations; i++)
        if (strcmp(sandbox->metadata->annotations[i]->key, key) == 0)
            return sandbox->metadata->annotations[i]->value;
    return NULL;
}

void record_set_annotation(Openshell__V1__Sandbox *sandbox, struct arena *arena, const char *key,
                           const char *value)
{
    Openshell__Datamodel__V1__ObjectMeta *metadata = sandbox->metadata;
    if (metadata == NULL)
        return;
    /* A new array: the old one may be a request's, or full. */
    Openshell__Datamodel__V1__ObjectMeta__AnnotationsEntry **entries =
        arena_array_of(arena, Openshell__Datamodel__V1__ObjectMeta__AnnotationsEntry *,
                       metadata->n_annotations + 1);
    size_t count = 0;
    for (size_t i = 0; i < metadata->n_annotations; i++)
        if (strcmp(metadata->annotations[i]->key, key) != 0)
            entries[count++] = metadata->annotations[i];
    if (value != NULL) {
        entries[count] =
            arena_new_of(arena, Openshell__Datamodel__V1__ObjectMeta__AnnotationsEntry);
        openshell__datamodel__v1__object_meta__annotations_entry__init(entries[count]);
        entries[count]->key = arena_strdup(arena, key);
        entries[count++]->value = arena_strdup(arena, value);
    }
    metadata->annotations = entries;
    metadata->n_annotations = count;
}

void record_public_view(Openshell__V1__Sandbox *sandbox)
{
    Openshell__Datamodel__V1__ObjectMeta *metadata = sandbox->metadata;
    if (metadata == NULL)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < metadata->n_annotations; i++)
        if (!text_has_prefix(metadata->annotations[i]->key, ANNOTATION_INTERNAL_PREFIX))
            metadata->annotations[kept++] = metadata->annotations[i];
    metadata->n_annotations = kept;
}

/* ---- between messages and rows ---- */

static void *unpack(const ProtobufCMessageDescriptor *type, const struct store_record *record,
                    struct arena *arena, struct error *error)
{
    void *message = protobuf_c_message_unpack(type, arena_protobuf_allocator(arena),
                                              record->payload_size, record->payload);
    if (message == NULL)
        error_set(error, ERROR_DATA_LOSS,
                  "the record of the %s '%s' cannot be read; put a backup of the database in its "
                  "place",
                  record->object_type, record->name != NULL ? record->name : record->id);
    return message;
}

static const void *pack(const ProtobufCMessage *message, struct arena *arena, size_t *ret_size)
{
    *ret_size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(arena, *ret_size + 1);
    protobuf_c_message_pack(message, bytes);
    return bytes;
}

static struct store_label *labels_of(const Openshell__Datamodel__V1__ObjectMeta *metadata,
                                     struct arena *arena)
{
    struct store_label *labels = arena_array_of(arena, struct store_label, metadata->n_labels);
    for (size_t i = 0; i < metadata->n_labels; i++)
        labels[i] = (struct store_label){metadata->labels[i]->key, metadata->labels[i]->value};
    return labels;
}

static struct store_record row_of(Openshell__V1__Sandbox *sandbox, struct arena *arena)
{
    const Openshell__Datamodel__V1__ObjectMeta *metadata = sandbox->metadata;
    struct store_record record = {
        .object_type = RECORD_SANDBOX,
        .id = metadata->id,
        .workspace = metadata->workspace,
        .name = metadata->name,
        .status = lifecycle_phase_name(sandbox->status != NULL ? sandbox->status->phase
                                                               : PHASE(UNSPECIFIED)),
        .labels = labels_of(metadata, arena),
        .label_count = metadata->n_labels,
        .created_at = record_milliseconds(metadata->created_time),
    };
    record.payload = pack(&sandbox->base, arena, &record.payload_size);
    return record;
}

static Openshell__V1__Sandbox *sandbox_of(const struct store_record *record, struct arena *arena,
                                          struct error *error)
{
    Openshell__V1__Sandbox *sandbox =
        unpack(&openshell__v1__sandbox__descriptor, record, arena, error);
    if (sandbox == NULL)
        return NULL;
    if (sandbox->metadata == NULL) {
        error_set(error, ERROR_DATA_LOSS, "the record of the sandbox '%s' has no metadata",
                  record->name != NULL ? record->name : record->id);
        return NULL;
    }
    sandbox->metadata->resource_version = record->resource_version;
    return sandbox;
}

/* ---- sandboxes ---- */

bool record_load_sandbox(struct store_transaction *transaction, struct arena *arena,
                         const char *workspace, const char *name,
                         Openshell__V1__Sandbox **ret_sandbox, struct error *error)
{
    struct store_record record;
    if (!store_get(transaction, RECORD_SANDBOX, workspace, name, arena, &record, error)) {
        if (error != NULL && error->code == ERROR_NOT_FOUND) {
            char shown[128];
            text_escape(name, shown, sizeof(shown));
            error_set(error, ERROR_NOT_FOUND, "sandbox '%s' does not exist in workspace '%.64s'",
                      shown, workspace);
        }
        return false;
    }
    *ret_sandbox = sandbox_of(&record, arena, error);
    return *ret_sandbox != NULL;
}

bool record_load_sandbox_by_id(struct store_transaction *transaction, struct arena *arena,
                               const char *id, Openshell__V1__Sandbox **ret_sandbox,
                               struct error *error)
{
    struct store_record record;
    if (!store_get_by_id(transaction, RECORD_SANDBOX, id, arena, &record, error)) {
        if (error != NULL && error->code == ERROR_NOT_FOUND) {
            char shown[128];
            text_escape(id, shown, sizeof(shown));
            error_set(error, ERROR_NOT_FOUND, "no sandbox has the id '%s'", shown);
        }
        return false;
    }
    *ret_sandbox = sandbox_of(&record, arena, error);
    return *ret_sandbox != NULL;
}

static bool name_is_free(struct store_transaction *transaction, struct arena *arena,
                         const char *workspace, const char *name, bool *ret_free,
                         struct error *error)
{
    struct store_record record;
    struct error outcome = {0};
    *ret_free = false;
    if (store_get(transaction, RECORD_SANDBOX, workspace, name, arena, &record, &outcome))
        return true;
    *ret_free = outcome.code == ERROR_NOT_FOUND;
    if (!*ret_free && error != NULL)
        error_copy(error, &outcome);
    error_clear(&outcome);
    return *ret_free;
}

static bool generate_name(struct store_transaction *transaction, struct arena *arena,
                          Openshell__V1__Sandbox *sandbox, struct error *error)
{
    for (unsigned attempt = 0; attempt < NAMES_ATTEMPTS; attempt++) {
        char name[NAMES_GENERATED_MAX + 1];
        bool is_free;
        names_generate(attempt, name);
        if (!name_is_free(transaction, arena, sandbox->metadata->workspace, name, &is_free, error))
            return false;
        if (is_free) {
            sandbox->metadata->name = arena_strdup(arena, name);
            return true;
        }
    }
    return error_set(error, ERROR_RESOURCE_EXHAUSTED,
                     "no free name was found in %d attempts; give the sandbox a name",
                     NAMES_ATTEMPTS);
}

bool record_insert_sandbox(struct store_transaction *transaction, struct arena *arena,
                           Openshell__V1__Sandbox *sandbox, struct error *error)
{
    Openshell__Datamodel__V1__ObjectMeta *metadata = sandbox->metadata;
    if (metadata->name[0] == '\0' && !generate_name(transaction, arena, sandbox, error))
        return false;
    metadata->resource_version = 1;
    if (metadata->created_time == NULL)
        metadata->created_time = record_timestamp(arena, clock_realtime_milliseconds());
    struct store_record record = row_of(sandbox, arena);
    if (store_insert(transaction, &record, error))
        return true;
    if (error != NULL && error->code == ERROR_ALREADY_EXISTS)
        error_set(error, ERROR_ALREADY_EXISTS, "sandbox '%s' exists already in workspace '%s'",
                  metadata->name, metadata->workspace);
    return false;
}

bool record_save_sandbox(struct store_transaction *transaction, struct arena *arena,
                         Openshell__V1__Sandbox *sandbox, struct error *error)
{
    Openshell__Datamodel__V1__ObjectMeta *metadata = sandbox->metadata;
    uint64_t expected = metadata->resource_version;
    metadata->resource_version = expected + 1;
    struct store_record record = row_of(sandbox, arena);
    if (store_update(transaction, &record, expected, NULL, error))
        return true;
    metadata->resource_version = expected;
    return false;
}

bool record_delete_sandbox(struct store_transaction *transaction, const char *id,
                           struct error *error)
{
    for (size_t i = 0; i < sizeof(CASCADE) / sizeof(CASCADE[0]); i++)
        if (!store_delete_scope(transaction, CASCADE[i], id, NULL, error))
            return false;
    return store_delete(transaction, RECORD_SANDBOX, id, 0, error);
}

bool record_list_sandboxes(struct store_transaction *transaction, struct arena *arena,
                           const char *workspace, const struct pages_position *after, size_t limit,
                           const struct store_label *selector, size_t selector_count,
                           Openshell__V1__Sandbox ***ret_sandboxes, size_t *ret_count,
                           struct pages_position *ret_last, struct error *error)
{
    struct store_query query = {
        .object_type = RECORD_SANDBOX,
        .workspace = workspace,
        .after_workspace = after != NULL ? after->workspace : NULL,
        .after_name = after != NULL ? after->name : NULL,
        .limit = limit,
        .selector = selector,
        .selector_count = selector_count,
    };
    struct store_record *records;
    size_t count;
    bool more;
    if (!store_list(transaction, &query, arena, &records, &count, &more, error))
        return false;
    Openshell__V1__Sandbox **sandboxes = arena_array_of(arena, Openshell__V1__Sandbox *, count + 1);
    for (size_t i = 0; i < count; i++)
        if ((sandboxes[i] = sandbox_of(&records[i], arena, error)) == NULL)
            return false;
    *ret_sandboxes = sandboxes;
    *ret_count = count;
    *ret_last = (struct pages_position){NULL, NULL};
    if (more && count > 0)
        *ret_last = (struct pages_position){records[count - 1].workspace, records[count - 1].name};
    return true;
}

/* ---- workspaces ---- */

bool record_load_workspace(struct store_transaction *transaction, struct arena *arena,
                           const char *name, Openshell__Datamodel__V1__Workspace **ret_workspace,
                           struct error *error)
{
    struct store_record record;
    if (!store_get(transaction, RECORD_WORKSPACE, "", name, arena, &record, error)) {
        if (error != NULL && error->code == ERROR_NOT_FOUND) {
            char shown[128];
            text_escape(name, shown, sizeof(shown));
            error_set(error, ERROR_NOT_FOUND, "workspace '%s' does not exist", shown);
        }
        return false;
    }
    Openshell__Datamodel__V1__Workspace *workspace =
        unpack(&openshell__datamodel__v1__workspace__descriptor, &record, arena, error);
    if (workspace == NULL)
        return false;
    if (workspace->metadata != NULL)
        workspace->metadata->resource_version = record.resource_version;
    *ret_workspace = workspace;
    return true;
}

bool record_require_active_workspace(struct store_transaction *transaction, struct arena *arena,
                                     const char *name, struct error *error)
{
    Openshell__Datamodel__V1__Workspace *workspace;
    if (!record_load_workspace(transaction, arena, name, &workspace, error))
        return false;
    if (workspace->status != NULL &&
        workspace->status->phase ==
            OPENSHELL__DATAMODEL__V1__WORKSPACE_PHASE__WORKSPACE_PHASE_ACTIVE)
        return true;
    return error_set(error, ERROR_FAILED_PRECONDITION,
                     "workspace '%s' is not active: it is being deleted, and takes no changes",
                     name);
}

bool record_ensure_default_workspace(struct store_transaction *transaction, struct arena *arena,
                                     struct error *error)
{
    struct store_record record;
    struct error outcome = {0};
    if (store_get(transaction, RECORD_WORKSPACE, "", RECORD_DEFAULT_WORKSPACE, arena, &record,
                  &outcome))
        return true;
    bool missing = outcome.code == ERROR_NOT_FOUND;
    if (!missing && error != NULL)
        error_copy(error, &outcome);
    error_clear(&outcome);
    if (!missing)
        return false;
    char id[UUID_SIZE];
    uuid_generate(id);
    Openshell__Datamodel__V1__ObjectMeta metadata = OPENSHELL__DATAMODEL__V1__OBJECT_META__INIT;
    Openshell__Datamodel__V1__WorkspaceStatus status =
        OPENSHELL__DATAMODEL__V1__WORKSPACE_STATUS__INIT;
    Openshell__Datamodel__V1__Workspace workspace = OPENSHELL__DATAMODEL__V1__WORKSPACE__INIT;
    metadata.id = id;
    metadata.name = arena_strdup(arena, RECORD_DEFAULT_WORKSPACE);
    metadata.created_time = record_timestamp(arena, clock_realtime_milliseconds());
    metadata.resource_version = 1;
    status.phase = OPENSHELL__DATAMODEL__V1__WORKSPACE_PHASE__WORKSPACE_PHASE_ACTIVE;
    workspace.metadata = &metadata;
    workspace.status = &status;
    struct store_record row = {
        .object_type = RECORD_WORKSPACE,
        .id = id,
        .workspace = "",
        .name = RECORD_DEFAULT_WORKSPACE,
        .status = "WORKSPACE_PHASE_ACTIVE",
    };
    row.payload = pack(&workspace.base, arena, &row.payload_size);
    return store_insert(transaction, &row, error);
}

/* ---- secrets of the gateway ---- */

bool record_load_page_key(struct store_transaction *transaction, struct arena *arena,
                          struct pages_key *ret_key, struct error *error)
{
    struct store_record record;
    struct error outcome = {0};
    if (store_get_by_id(transaction, RECORD_GATEWAY_SECRET, RECORD_PAGE_KEY_ID, arena, &record,
                        &outcome)) {
        if (record.payload_size != sizeof(ret_key->bytes))
            return error_set(error, ERROR_DATA_LOSS, "the key of page tokens cannot be read");
        memcpy(ret_key->bytes, record.payload, sizeof(ret_key->bytes));
        return true;
    }
    bool missing = outcome.code == ERROR_NOT_FOUND;
    if (!missing && error != NULL)
        error_copy(error, &outcome);
    error_clear(&outcome);
    if (!missing)
        return false;
    random_bytes(ret_key->bytes, sizeof(ret_key->bytes));
    struct store_record row = {
        .object_type = RECORD_GATEWAY_SECRET,
        .id = RECORD_PAGE_KEY_ID,
        .workspace = "",
        .payload = ret_key->bytes,
        .payload_size = sizeof(ret_key->bytes),
    };
    return store_insert(transaction, &row, error);
}
