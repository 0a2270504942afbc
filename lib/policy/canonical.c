#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/text.h"
#include "policy/policy.h"

enum { DEPTH_MAX = 64, DIGEST_SIZE = 32 };

/* One entry of a map: protobuf-c shows maps as repeated messages with a key and a value. */
struct entry {
    ProtobufCMessage *message;
    const char *key;
    size_t index; /* where it stood */
};

static bool is_map_with_text_keys(const ProtobufCFieldDescriptor *field)
{
    if (field->label != PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    const ProtobufCMessageDescriptor *type = field->descriptor;
    return text_has_suffix(type->name, "Entry") && type->n_fields == 2 &&
           strcmp(type->fields[0].name, "key") == 0 && strcmp(type->fields[1].name, "value") == 0 &&
           type->fields[0].type == PROTOBUF_C_TYPE_STRING;
}

static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    int order = strcmp(a->key, b->key);
    return order != 0 ? order : a->index < b->index ? -1 : a->index > b->index;
}

/* Sorts by key and keeps the last of equal keys. Returns how many remain. */
static size_t sort_map(ProtobufCMessage **messages, size_t count, size_t key_offset,
                       struct arena *arena)
{
    struct entry *entries = arena_array_of(arena, struct entry, count);
    for (size_t i = 0; i < count; i++) {
        const char *key = *(char *const *)((const char *)messages[i] + key_offset);
        entries[i] = (struct entry){messages[i], key != NULL ? key : "", i};
    }
    qsort(entries, count, sizeof(*entries), compare_entries);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (i + 1 == count || strcmp(entries[i].key, entries[i + 1].key) != 0)
            messages[kept++] = entries[i].message;
    return kept;
}

static bool order(ProtobufCMessage *message, struct arena *arena, unsigned depth,
                  struct error *error);

static bool order_repeated(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                           struct arena *arena, unsigned depth, struct error *error)
{
    size_t *count = (size_t *)((char *)message + field->quantifier_offset);
    ProtobufCMessage **messages = *(ProtobufCMessage ***)((char *)message + field->offset);
    for (size_t i = 0; i < *count; i++)
        if (!order(messages[i], arena, depth + 1, error))
            return false;
    if (*count > 1 && is_map_with_text_keys(field)) {
        const ProtobufCMessageDescriptor *type = field->descriptor;
        *count = sort_map(messages, *count, type->fields[0].offset, arena);
    }
    return true;
}

static bool order_single(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                         struct arena *arena, unsigned depth, struct error *error)
{
    if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
        const uint32_t *chosen =
            (const uint32_t *)((const char *)message + field->quantifier_offset);
        if (*chosen != field->id)
            return true;
    }
    ProtobufCMessage *inner = *(ProtobufCMessage **)((char *)message + field->offset);
    return inner == NULL || order(inner, arena, depth + 1, error);
}

static bool order(ProtobufCMessage *message, struct arena *arena, unsigned depth,
                  struct error *error)
{
    if (depth > DEPTH_MAX)
        return error_set(error, ERROR_INVALID_ARGUMENT, "messages are nested deeper than %d levels",
                         DEPTH_MAX);
    message->n_unknown_fields = 0;
    message->unknown_fields = NULL;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        if (field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        bool ordered = field->label == PROTOBUF_C_LABEL_REPEATED
                           ? order_repeated(message, field, arena, depth, error)
                           : order_single(message, field, arena, depth, error);
        if (!ordered)
            return false;
    }
    return true;
}

static uint8_t *pack(const ProtobufCMessage *message, struct arena *arena, size_t *ret_size)
{
    *ret_size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = arena_alloc(arena, *ret_size + 1);
    protobuf_c_message_pack(message, bytes);
    return bytes;
}

ProtobufCMessage *policy_canonical_copy(const ProtobufCMessage *message, struct arena *arena,
                                        struct error *error)
{
    size_t size;
    const uint8_t *bytes = pack(message, arena, &size);
    ProtobufCMessage *copy = protobuf_c_message_unpack(
        message->descriptor, arena_protobuf_allocator(arena), size, bytes);
    if (copy == NULL) {
        error_set(error, ERROR_INVALID_ARGUMENT, "a %s cannot be copied",
                  message->descriptor->short_name);
        return NULL;
    }
    return order(copy, arena, 0, error) ? copy : NULL;
}

bool policy_canonical_bytes(const ProtobufCMessage *message, struct arena *arena,
                            const uint8_t **ret_bytes, size_t *ret_size, struct error *error)
{
    const ProtobufCMessage *copy = policy_canonical_copy(message, arena, error);
    if (copy == NULL)
        return false;
    *ret_bytes = pack(copy, arena, ret_size);
    return true;
}

static bool digest(const void *data, size_t size, unsigned char result[DIGEST_SIZE])
{
    unsigned length = DIGEST_SIZE;
    return EVP_Digest(data, size, result, &length, EVP_sha256(), NULL) == 1;
}

bool policy_hash(const Openshell__Sandbox__V1__SandboxPolicy *policy,
                 char ret_hash[POLICY_HASH_SIZE], struct error *error)
{
    struct arena *arena = arena_new(0);
    const uint8_t *bytes;
    size_t size;
    unsigned char result[DIGEST_SIZE];
    bool hashed = policy_canonical_bytes(&policy->base, arena, &bytes, &size, error);
    if (hashed && !digest(bytes, size, result))
        hashed = error_set(error, ERROR_INTERNAL, "cannot compute a policy's hash");
    arena_free(arena);
    for (size_t i = 0; hashed && i < DIGEST_SIZE; i++)
        snprintf(ret_hash + 2 * i, 3, "%02x", result[i]);
    return hashed;
}

uint64_t policy_config_revision(const char *hash, Openshell__Sandbox__V1__PolicySource source,
                                uint64_t settings_revision)
{
    char text[256];
    int length =
        snprintf(text, sizeof(text), "%.128s %d %" PRIu64, hash, (int)source, settings_revision);
    unsigned char result[DIGEST_SIZE] = {0};
    uint64_t revision = 0;
    if (digest(text, (size_t)length, result))
        for (size_t i = 0; i < sizeof(revision); i++)
            revision = revision << 8 | result[i];
    return revision != 0 ? revision : 1;
}
