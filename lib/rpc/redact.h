/* Messages as text for logs, without their secrets.
 *
 * Which fields are secret is said by the `secret` option in the .proto sources; the table is made
 * from them at build time (decision W6). */
#ifndef RPC_REDACT_H
#define RPC_REDACT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

enum { REDACT_TEXT_MAX = 4096 };

/* The secret fields of one message; a message without any has no entry. */
struct redact_entry {
    const char *message;
    const unsigned *fields; /* ascending */
    size_t field_count;
};

/* Sorted by message name; generated. */
extern const struct redact_entry redact_table[];
extern const size_t redact_table_count;

/* Whether the field's value must never be shown or logged. */
bool redact_is_secret(const ProtobufCMessageDescriptor *descriptor, unsigned field_number);

/* One line such as `{name: "job", token: <secret>, data: <12 bytes>}`. Secret values are not shown,
 * bytes are shown as their length and `environment` fields as their count, text is escaped, fields
 * that are not set are left out. At most REDACT_TEXT_MAX bytes with the NUL; what is longer ends in
 * "...". The message must have passed rpc_scan or be one of ours (its depth is trusted up to 64
 * levels, deeper ones show as "..."). Owned by the caller. */
char *redact_text(const ProtobufCMessage *message);

#endif
