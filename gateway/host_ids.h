/* The ranges of host user ids that the sandboxes of root's gateway are mapped to (decision B15):
 * 65,536 ids for each, noted in an annotation of its record. */
#ifndef GATEWAY_HOST_IDS_H
#define GATEWAY_HOST_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "openshell.pb-c.h"

enum { HOST_IDS_FIRST = 0x70000000, HOST_IDS_RANGE = 65536, HOST_IDS_COUNT = 32768 };

struct host_ids;

/* `needed` is false for an ordinary user's gateway, which has one id to map. */
struct host_ids *host_ids_new(bool needed);
void host_ids_free(struct host_ids *ids);

/* Takes the lowest free range and notes it in the record. RESOURCE_EXHAUSTED when all are taken. */
bool host_ids_take(struct host_ids *ids, Openshell__V1__Sandbox *sandbox, struct arena *arena,
                   struct error *error);
/* Marks the range that a stored record has as taken. */
void host_ids_note(struct host_ids *ids, const Openshell__V1__Sandbox *sandbox);
/* Gives the range of a record back. */
void host_ids_give(struct host_ids *ids, const Openshell__V1__Sandbox *sandbox);
/* The first id of the record's range; 0: none. */
uint32_t host_ids_of(const Openshell__V1__Sandbox *sandbox);

#endif
