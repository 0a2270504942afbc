/* Typed records on the store: sandboxes and workspaces as the public messages, stored as they are
 * (behaviour reference 6.5). All but the last two run within a transaction, on the storage thread.
 */
#ifndef GATEWAY_RECORDS_H
#define GATEWAY_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "gateway/pages.h"
#include "gateway/store/store.h"
#include "openshell.pb-c.h"

#define RECORD_SANDBOX "sandbox"
#define RECORD_WORKSPACE "workspace"
#define RECORD_GATEWAY_SECRET "gateway_secret" /* ours: keys that only this gateway uses */
#define RECORD_DEFAULT_WORKSPACE "default"

/* ---- sandboxes ---- */

/* NOT_FOUND: "sandbox 'NAME' does not exist in workspace 'WORKSPACE'". The record comes unpacked
 * into the arena, with metadata.resource_version as stored; it may be changed and saved. */
bool record_load_sandbox(struct store_transaction *transaction, struct arena *arena,
                         const char *workspace, const char *name,
                         Openshell__V1__Sandbox **ret_sandbox, struct error *error);
bool record_load_sandbox_by_id(struct store_transaction *transaction, struct arena *arena,
                               const char *id, Openshell__V1__Sandbox **ret_sandbox,
                               struct error *error);

/* metadata.id and metadata.workspace must be set. An empty metadata.name becomes a generated one
 * that is free. Sets metadata.resource_version and, where absent, metadata.created_time.
 * ALREADY_EXISTS: "sandbox 'NAME' exists already". */
bool record_insert_sandbox(struct store_transaction *transaction, struct arena *arena,
                           Openshell__V1__Sandbox *sandbox, struct error *error);

/* Saves under metadata.resource_version and raises it; see store_update for ABORTED. */
bool record_save_sandbox(struct store_transaction *transaction, struct arena *arena,
                         Openshell__V1__Sandbox *sandbox, struct error *error);

/* With everything that hangs on it: SSH sessions, service endpoints, settings, policy revisions,
 * draft chunks (1.6). */
bool record_delete_sandbox(struct store_transaction *transaction, const char *id,
                           struct error *error);

/* A page. `workspace` NULL: all. `after` as pages_parse gives it. Where more follow, *ret_last is
 * the position for pages_make, else its name is NULL. */
bool record_list_sandboxes(struct store_transaction *transaction, struct arena *arena,
                           const char *workspace, const struct pages_position *after, size_t limit,
                           const struct store_label *selector, size_t selector_count,
                           Openshell__V1__Sandbox ***ret_sandboxes, size_t *ret_count,
                           struct pages_position *ret_last, struct error *error);

/* ---- workspaces ---- */

/* Makes `default` where it is missing; at the start of the gateway. */
bool record_ensure_default_workspace(struct store_transaction *transaction, struct arena *arena,
                                     struct error *error);
/* NOT_FOUND: "workspace 'NAME' does not exist". */
bool record_load_workspace(struct store_transaction *transaction, struct arena *arena,
                           const char *name, Openshell__Datamodel__V1__Workspace **ret_workspace,
                           struct error *error);
/* As record_load_workspace; FAILED_PRECONDITION where it is not ACTIVE. */
bool record_require_active_workspace(struct store_transaction *transaction, struct arena *arena,
                                     const char *name, struct error *error);

/* ---- secrets of the gateway ---- */

/* The key of page tokens; made at the first start. */
bool record_load_page_key(struct store_transaction *transaction, struct arena *arena,
                          struct pages_key *ret_key, struct error *error);

/* ---- parts of a sandbox record; no transaction ---- */

/* Takes the gateway's own annotations out of a record that is about to be shown: to be called on
 * every copy that leaves the gateway, never on one that is saved. */
void record_public_view(Openshell__V1__Sandbox *sandbox);

/* The value of an annotation, or NULL. */
const char *record_annotation(const Openshell__V1__Sandbox *sandbox, const char *key);
/* NULL removes it. Strings are copied into the arena. */
void record_set_annotation(Openshell__V1__Sandbox *sandbox, struct arena *arena, const char *key,
                           const char *value);

/* Milliseconds since the epoch to a message in the arena, and back (NULL: 0). */
Google__Protobuf__Timestamp *record_timestamp(struct arena *arena, int64_t milliseconds);
int64_t record_milliseconds(const Google__Protobuf__Timestamp *timestamp);

#endif
