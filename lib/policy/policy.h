/* The policy of a sandbox as bytes, as a hash, and as the one that is in force. */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sandbox.pb-c.h"

enum {
    POLICY_HASH_SIZE = 65,      /* SHA-256 in lowercase hex, with the NUL */
    POLICY_ENCODED_MAX = 262144 /* bytes of a policy within a sandbox's spec */
};

/* A message as bytes that depend on nothing but its meaning: fields by number, map entries by key
 * (the last of equal ones counts), unknown fields left out. For any message of ours. The bytes live
 * in the arena. INVALID_ARGUMENT for one that is nested deeper than 64. */
bool policy_canonical_bytes(const ProtobufCMessage *message, struct arena *arena,
                            const uint8_t **ret_bytes, size_t *ret_size, struct error *error);

/* The same as a message: a deep copy in the arena. */
ProtobufCMessage *policy_canonical_copy(const ProtobufCMessage *message, struct arena *arena,
                                        struct error *error);

/* SHA-256 of the canonical bytes (behaviour reference 3.6). */
bool policy_hash(const Openshell__Sandbox__V1__SandboxPolicy *policy,
                 char ret_hash[POLICY_HASH_SIZE], struct error *error);

/* A nonzero token of what a configuration consists of, for comparing only (2.7). */
uint64_t policy_config_revision(const char *hash, Openshell__Sandbox__V1__PolicySource source,
                                uint64_t settings_revision);

/* The policy of policy reference 1.11, in the arena. */
Openshell__Sandbox__V1__SandboxPolicy *policy_default(struct arena *arena);

/* The policy in force: a global one applies whole, else the sandbox's, else the image's, else the
 * default; each may be NULL. The result may be one of them or live in the arena. Everything that
 * composes policies belongs in here. */
const Openshell__Sandbox__V1__SandboxPolicy *
policy_effective(const Openshell__Sandbox__V1__SandboxPolicy *global,
                 const Openshell__Sandbox__V1__SandboxPolicy *sandbox,
                 const Openshell__Sandbox__V1__SandboxPolicy *image, struct arena *arena,
                 Openshell__Sandbox__V1__PolicySource *ret_source);

/* The static sections: version 1; paths absolute, without "..", at most 4096 bytes and 256 in all,
 * none of read_write is "/"; identities `sandbox` or 1..4294967294; the words of landlock. Also no
 * rule key with the reserved prefix "_provider_", and the size. One violation of
 * `FIELD.filesystem.read_only[3]` and so on for each (policy reference 1.3, 1.8). */
bool policy_validate_static(const char *field, const Openshell__Sandbox__V1__SandboxPolicy *policy,
                            struct error *error);

#endif
