#include "rpc/status.h"

#include <string.h>

#include "base/text.h"
#include "google/rpc/error_details.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "rpc/scan.h"

#define TYPE_PREFIX "type.googleapis.com/"

static const struct rpc_scan_limits LIMITS = {
    .depth = 8,
    .elements = 1024,
    .text_bytes = STATUS_DETAILS_READ_LIMIT,
    .memory_bytes = 512 * 1024,
};

/* ---- to the wire ---- */

static Google__Protobuf__Any *pack_any(const ProtobufCMessage *message, struct arena *arena)
{
    Google__Protobuf__Any *any = arena_new_of(arena, Google__Protobuf__Any);
    google__protobuf__any__init(any);
    any->type_url = arena_printf(arena, TYPE_PREFIX "%s", message->descriptor->name);
    any->value.len = protobuf_c_message_get_packed_size(message);
    any->value.data = arena_alloc(arena, any->value.len);
    protobuf_c_message_pack(message, any->value.data);
    return any;
}

static Google__Protobuf__Any *pack_info(const struct error *error, struct arena *arena)
{
    Google__Rpc__ErrorInfo info = GOOGLE__RPC__ERROR_INFO__INIT;
    info.reason = (char *)error->reason;
    info.domain = (char *)error->domain;
    info.n_metadata = error->metadata_count;
    info.metadata =
        arena_array_of(arena, Google__Rpc__ErrorInfo__MetadataEntry *, error->metadata_count);
    for (size_t i = 0; i < error->metadata_count; i++) {
        info.metadata[i] = arena_new_of(arena, Google__Rpc__ErrorInfo__MetadataEntry);
        google__rpc__error_info__metadata_entry__init(info.metadata[i]);
        info.metadata[i]->key = error->metadata[i].key;
        info.metadata[i]->value = error->metadata[i].value;
    }
    return pack_any(&info.base, arena);
}

static Google__Protobuf__Any *pack_violations(const struct error *error, size_t count,
                                              struct arena *arena)
{
    Google__Rpc__BadRequest bad = GOOGLE__RPC__BAD_REQUEST__INIT;
    bad.n_field_violations = count;
    bad.field_violations = arena_array_of(arena, Google__Rpc__BadRequest__FieldViolation *, count);
    for (size_t i = 0; i < count; i++) {
        bad.field_violations[i] = arena_new_of(arena, Google__Rpc__BadRequest__FieldViolation);
        google__rpc__bad_request__field_violation__init(bad.field_violations[i]);
        bad.field_violations[i]->field = error->violations[i].field;
        bad.field_violations[i]->description = error->violations[i].description;
    }
    return pack_any(&bad.base, arena);
}

/* How many violations fit into `room` bytes; each costs its text and at most 16 bytes. */
static size_t fitting_violations(const struct error *error, size_t room)
{
    size_t count = 0;
    for (; count < error->violation_count; count++) {
        size_t need = strlen(error->violations[count].field) +
                      strlen(error->violations[count].description) + 16;
        if (need > room)
            break;
        room -= need;
    }
    return count;
}

const uint8_t *status_encode(const struct error *error, struct arena *arena, size_t *ret_size)
{
    if (error->reason[0] == '\0' && error->violation_count == 0)
        return NULL;
    Google__Rpc__Status status = GOOGLE__RPC__STATUS__INIT;
    Google__Protobuf__Any *details[2];
    status.code = error->code;
    status.message = (char *)error->message;
    status.details = details;
    if (error->reason[0] != '\0')
        details[status.n_details++] = pack_info(error, arena);
    size_t used = protobuf_c_message_get_packed_size(&status.base) + 64;
    if (used < STATUS_DETAILS_SEND_LIMIT) {
        size_t count = fitting_violations(error, STATUS_DETAILS_SEND_LIMIT - used);
        if (count > 0)
            details[status.n_details++] = pack_violations(error, count, arena);
    }
    size_t size = protobuf_c_message_get_packed_size(&status.base);
    if (size > STATUS_DETAILS_SEND_LIMIT)
        return NULL;
    uint8_t *data = arena_alloc(arena, size);
    protobuf_c_message_pack(&status.base, data);
    *ret_size = size;
    return data;
}

/* ---- from the wire ---- */

static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
                                size_t size, struct arena *arena)
{
    if (!rpc_scan(descriptor, data, size, &LIMITS, NULL))
        return NULL;
    return protobuf_c_message_unpack(descriptor, arena_protobuf_allocator(arena), size, data);
}

static void read_info(const Google__Protobuf__Any *any, struct arena *arena, struct error *error)
{
    const Google__Rpc__ErrorInfo *info = (const Google__Rpc__ErrorInfo *)unpack(
        &google__rpc__error_info__descriptor, any->value.data, any->value.len, arena);
    if (info == NULL || error->reason[0] != '\0')
        return;
    error_set_reason(error, info->domain, info->reason);
    for (size_t i = 0; i < info->n_metadata; i++)
        error_add_metadata(error, info->metadata[i]->key, info->metadata[i]->value);
}

static void read_violations(const Google__Protobuf__Any *any, struct arena *arena,
                            struct error *error)
{
    const Google__Rpc__BadRequest *bad = (const Google__Rpc__BadRequest *)unpack(
        &google__rpc__bad_request__descriptor, any->value.data, any->value.len, arena);
    if (bad == NULL)
        return;
    /* The message already says it all; adding a violation would say it twice. */
    char message[ERROR_MESSAGE_MAX];
    memcpy(message, error->message, sizeof(message));
    for (size_t i = 0; i < bad->n_field_violations; i++)
        error_add_violation(error, bad->field_violations[i]->field, "%s",
                            bad->field_violations[i]->description);
    memcpy(error->message, message, sizeof(message));
}

static void read_details(const uint8_t *details, size_t size, struct arena *arena,
                         struct error *error)
{
    const Google__Rpc__Status *status =
        (const Google__Rpc__Status *)unpack(&google__rpc__status__descriptor, details, size, arena);
    if (status == NULL || status->code != (int32_t)error->code)
        return;
    /* Ours was cut to its bound; theirs must say the same. */
    if (strncmp(status->message, error->message, strlen(error->message)) != 0)
        return;
    for (size_t i = 0; i < status->n_details; i++) {
        const Google__Protobuf__Any *any = status->details[i];
        if (strcmp(any->type_url, TYPE_PREFIX "google.rpc.ErrorInfo") == 0)
            read_info(any, arena, error);
        else if (strcmp(any->type_url, TYPE_PREFIX "google.rpc.BadRequest") == 0)
            read_violations(any, arena, error);
    }
}

void status_decode(int code, const char *message, const uint8_t *details, size_t size,
                   struct error *error)
{
    if (code == ERROR_OK) {
        error_clear(error);
        return;
    }
    if (code < ERROR_OK || code > ERROR_UNAUTHENTICATED)
        code = ERROR_UNKNOWN;
    char clean[ERROR_MESSAGE_MAX];
    if (!text_is_utf8(message, strlen(message))) {
        text_escape(message, clean, sizeof(clean));
        message = clean;
    }
    error_set(error, (enum error_code)code, "%s", message);
    if (details == NULL || size > STATUS_DETAILS_READ_LIMIT)
        return;
    struct arena *arena = arena_new(LIMITS.memory_bytes);
    read_details(details, size, arena, error);
    arena_free(arena);
}
