/* Page tokens: opaque base64url, bound to the RPC and to every parameter except the page's size
 * (behaviour reference 1.10). They survive a restart: the key is a record. */
#ifndef GATEWAY_PAGES_H
#define GATEWAY_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/error.h"

enum {
    PAGES_KEY_SIZE = 32,
    PAGES_TOKEN_MAX = 1024, /* characters */
    PAGES_SIZE_DEFAULT = 100,
    PAGES_SIZE_MAX = 1000,
};

/* Loaded or made by record_load_page_key at the start of the gateway. */
struct pages_key {
    unsigned char bytes[PAGES_KEY_SIZE];
};

/* The last record of the page before. */
struct pages_position {
    const char *workspace; /* "" where the list has one workspace */
    const char *name;
};

/* `request` is the list request: its fields page_size and page_token are left out, everything else
 * is bound, as is the type of the message (one for each RPC). The result lives in the arena. */
char *pages_make(const struct pages_key *key, const ProtobufCMessage *request,
                 const struct pages_position *position, struct arena *arena);

/* Reads the page_token of `request`. An empty one is the start: both strings NULL. Garbage, and a
 * token of another RPC or of other parameters: INVALID_ARGUMENT with a violation of page_token. */
bool pages_parse(const struct pages_key *key, const ProtobufCMessage *request, struct arena *arena,
                 struct pages_position *ret_position, struct error *error);

/* 0 is the default, more than the maximum is the maximum; negative: INVALID_ARGUMENT. */
bool pages_size(int32_t page_size, size_t *ret_size, struct error *error);

#endif
