/* What the gateway itself says about sandboxes, what it takes from their supervisors, and telling
 * those who follow. */
#ifndef GATEWAY_LOGS_H
#define GATEWAY_LOGS_H

#include "gateway/gateway.h"
#include "gateway/journal.h"
#include "openshell.pb-c.h"

enum {
    LOGS_BATCH_LIMIT = 100 /* lines of one PushSandboxLogs message; further ones are dropped */
};

/* Notes a line of source "gateway". `fields` ends with a NULL key; NULL: none. Every text is made
 * harmless. */
void logs_note(struct gateway *gateway, const char *sandbox_id, enum log_level level,
               const char *target, const struct log_field *fields, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Notes what has become of a record, as a line and a platform event, unless that was the last thing
 * that was noted of it. */
void logs_note_state(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox);

/* Takes lines of a sandbox's supervisor. */
void logs_take(struct gateway *gateway, const char *sandbox_id,
               Openshell__V1__SandboxLogLine *const *lines, size_t count);

/* Handles PushSandboxLogs and GetSandboxLogs (behaviour reference 2.9). */
void logs_push(struct rpc_call *call, void *gateway);
void logs_get(struct rpc_call *call, void *gateway);

#endif
