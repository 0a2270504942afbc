/* WatchSandbox: a snapshot, then each change, and what the journal of the sandbox has and gets. A
 * watcher that does not keep up gets the newest state and misses those in between, and is told how
 * many lines it missed; nothing but its place in the journal waits for it. */
#ifndef GATEWAY_WATCH_H
#define GATEWAY_WATCH_H

#include "gateway/gateway.h"
#include "openshell.pb-c.h"

enum { WATCH_LIMIT = 1024 /* watchers of the gateway */ };

/* Handles WatchSandbox. */
void watch_sandbox(struct rpc_call *call, void *gateway);

/* Shows a changed record to those who watch it; with `removed` they are told that it is gone. */
void watch_publish(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox, bool removed);

/* Passes on what was added to a sandbox's journal. */
void watch_journal_changed(struct gateway *gateway, const char *sandbox_id);

#endif
