#include "gateway/pages.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base64.h"
#include "base/memory.h"
#include "policy/policy.h"

enum { VERSION = 1, TAG_SIZE = 16, DIGEST_SIZE = 32 };

/* Puts the field's default where the copy of a request has it, so that it does not bind. */
static void leave_out(ProtobufCMessage *message, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);
    if (field == NULL)
        return;
    void *member = (char *)message + field->offset;
    if (field->type == PROTOBUF_C_TYPE_STRING)
        *(const char **)member = protobuf_c_empty_string;
    else if (field->type == PROTOBUF_C_TYPE_INT32 || field->type == PROTOBUF_C_TYPE_UINT32)
        *(uint32_t *)member = 0;
}

/* The tag over the RPC, its parameters and the position. */
static bool make_tag(const struct pages_key *key, const ProtobufCMessage *request,
                     const void *position, size_t position_size, struct arena *arena,
                     unsigned char ret_tag[TAG_SIZE])
{
    ProtobufCMessage *parameters = policy_canonical_copy(request, arena, NULL);
    if (parameters == NULL)
        return false;
    leave_out(parameters, "page_size");
    leave_out(parameters, "page_token");
    const char *type = request->descriptor->name;
    size_t type_size = strlen(type) + 1;
    size_t packed_size = protobuf_c_message_get_packed_size(parameters);
    uint64_t sizes[] = {packed_size, position_size};
    size_t total = type_size + sizeof(sizes) + packed_size + position_size;
    unsigned char *bytes = arena_alloc(arena, total);
    unsigned char *at = mempcpy(bytes, type, type_size);
    at = mempcpy(at, sizes, sizeof(sizes));
    at += protobuf_c_message_pack(parameters, at);
    memcpy(at, position, position_size);
    unsigned char digest[DIGEST_SIZE];
    unsigned digest_size = sizeof(digest);
    if (HMAC(EVP_sha256(), key->bytes, sizeof(key->bytes), bytes, total, digest, &digest_size) ==
        NULL)
        memory_exhausted();
    memcpy(ret_tag, digest, TAG_SIZE);
    return true;
}

char *pages_make(const struct pages_key *key, const ProtobufCMessage *request,
                 const struct pages_position *position, struct arena *arena)
{
    size_t workspace_size = strlen(position->workspace) + 1;
    size_t name_size = strlen(position->name) + 1;
    size_t size = 1 + TAG_SIZE + workspace_size + name_size;
    unsigned char *bytes = arena_alloc(arena, size);
    bytes[0] = VERSION;
    unsigned char *text = bytes + 1 + TAG_SIZE;
    memcpy(text, position->workspace, workspace_size);
    memcpy(text + workspace_size, position->name, name_size);
    if (!make_tag(key, request, text, workspace_size + name_size, arena, bytes + 1))
        return arena_strdup(arena, "");
    CLEANUP_FREE char *token = base64url_encode(bytes, size);
    return arena_strdup(arena, token);
}

/* The tag differs, or the bytes are no position. */
static bool read_position(const struct pages_key *key, const ProtobufCMessage *request,
                          const unsigned char *bytes, size_t size, struct arena *arena,
                          struct pages_position *ret_position)
{
    unsigned char tag[TAG_SIZE];
    if (size < 1 + TAG_SIZE + 2 || bytes[0] != VERSION || bytes[size - 1] != '\0')
        return false;
    const unsigned char *text = bytes + 1 + TAG_SIZE;
    size_t text_size = size - 1 - TAG_SIZE;
    if (!make_tag(key, request, text, text_size, arena, tag) ||
        CRYPTO_memcmp(tag, bytes + 1, TAG_SIZE) != 0)
        return false;
    size_t workspace_size = strlen((const char *)text) + 1;
    if (workspace_size >= text_size)
        return false;
    ret_position->workspace = arena_strdup(arena, (const char *)text);
    ret_position->name = arena_strdup(arena, (const char *)text + workspace_size);
    return true;
}

bool pages_parse(const struct pages_key *key, const ProtobufCMessage *request, struct arena *arena,
                 struct pages_position *ret_position, struct error *error)
{
    *ret_position = (struct pages_position){NULL, NULL};
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(request->descriptor, "page_token");
    const char *token =
        field != NULL ? *(char *const *)((const char *)request + field->offset) : "";
    if (token == NULL || token[0] == '\0')
        return true;
    size_t size = 0;
    unsigned char *bytes = NULL;
    if (strlen(token) <= PAGES_TOKEN_MAX)
        bytes = base64url_decode(token, strlen(token), &size);
    bool valid = bytes != NULL && read_position(key, request, bytes, size, arena, ret_position);
    free(bytes);
    if (!valid)
        error_add_violation(error, "page_token",
                            "the token is not one that this list gave for the same parameters; "
                            "begin again without it");
    return valid;
}

bool pages_size(int32_t page_size, size_t *ret_size, struct error *error)
{
    if (page_size < 0) {
        error_add_violation(error, "page_size", "the size must not be negative, as %d is",
                            page_size);
        return false;
    }
    *ret_size = page_size == 0               ? PAGES_SIZE_DEFAULT
                : page_size > PAGES_SIZE_MAX ? PAGES_SIZE_MAX
                                             : (size_t)page_size;
    return true;
}
