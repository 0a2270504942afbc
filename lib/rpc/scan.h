/* The check of a message's wire bytes before protobuf-c unpacks them (decision W5).
 *
 * protobuf-c recurses without a limit, cuts strings at NUL, takes invalid UTF-8 and allocates a
 * hundred times the bytes it reads. No message from outside the process is unpacked without this
 * scan, and what passes it unpacks within the limits. */
#ifndef RPC_SCAN_H
#define RPC_SCAN_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum {
    RPC_SCAN_DEPTH = 64,                      /* messages within each other, the outermost too */
    RPC_SCAN_ELEMENTS = 100000,               /* fields, map entries and packed elements */
    RPC_SCAN_TEXT_BYTES = 4 * 1024 * 1024,    /* strings and bytes together */
    RPC_SCAN_MEMORY_BYTES = 32 * 1024 * 1024, /* what unpacking allocates, its own overhead too */
};

/* A zero member stands for the default above; depth cannot be raised above RPC_SCAN_DEPTH. */
struct rpc_scan_limits {
    unsigned depth;
    size_t elements;
    size_t text_bytes;
    size_t memory_bytes;
};

/* Whether the bytes are a well-formed message of this type within the limits (NULL: the defaults).
 * Otherwise false, and `error` is INVALID_ARGUMENT with one violation that names the field by its
 * path (`spec.environment.key`; the message's own short name where no field is known).
 *
 * Refused: what is cut short, lengths past the end, varints that are too long, field number 0 or
 * above 2^29-1, groups, a known field with the wrong wire type, strings with NUL or invalid UTF-8,
 * a second value for a single message field (merging those is quadratic), and anything over a
 * limit. Unknown fields are allowed and count. The contents of google.protobuf.Any are bytes here:
 * scan them with their own descriptor before unpacking them. Allocates nothing but the error's
 * text. */
bool rpc_scan(const ProtobufCMessageDescriptor *descriptor, const void *data, size_t length,
              const struct rpc_scan_limits *limits, struct error *error);

#endif
