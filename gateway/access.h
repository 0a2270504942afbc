/* May this sandbox be reached now? The one rule and the one place (decisions P1, P2, P12, behaviour
 * reference 5.1). Every way to a sandbox acquires access first and opens its relay through the
 * handle. */
#ifndef GATEWAY_ACCESS_H
#define GATEWAY_ACCESS_H

#include "base/error.h"
#include "gateway/gateway.h"
#include "openshell.pb-c.h"

struct access_handle;
struct access_request;
struct live_sandbox;

enum {
    ACCESS_WAITERS_LIMIT = 256,        /* of the gateway */
    ACCESS_SANDBOX_WAITERS_LIMIT = 32, /* of one sandbox */
    ACCESS_WAIT_MILLISECONDS = 15000,
};

enum access_purpose {
    ACCESS_USER,    /* exec, SSH, forwarding: the caller was authenticated */
    ACCESS_ATTACH,  /* the same, to the main process: also to what one left that is replaced */
    ACCESS_SERVICE, /* an exposed service: nobody was */
};

/* ---- the rule; pure ---- */

enum access_verdict { ACCESS_ALLOWED, ACCESS_WAIT, ACCESS_REFUSED };

struct access_facts {
    Openshell__V1__SandboxPhase phase;
    bool main_failed;       /* an ERROR because the main process failed */
    bool exit_draining;     /* STARTING, and the output of the last main process is still there */
    bool session_connected; /* on this gateway or any replica */
    bool session_expected;  /* its supervisor runs and is about to connect again (P12) */
    enum access_purpose purpose;
};

/* *ret_reason is set for a refusal: a constant of decision P2. */
enum access_verdict access_decide(const struct access_facts *facts, const char **ret_reason);

/* ---- the gate ---- */

/* Exactly once unless cancelled: a handle, which the callee owns, or the refusal:
 * FAILED_PRECONDITION "sandbox is not ready" with reason, phase and sandbox name; NOT_FOUND;
 * RESOURCE_EXHAUSTED when too many wait already. */
typedef void (*access_done)(struct access_handle *handle, const struct error *error, void *user);

/* Never calls back before it returned. */
struct access_request *access_acquire(struct gateway *gateway, const char *workspace,
                                      const char *name, enum access_purpose purpose,
                                      access_done done, void *user);
void access_cancel(struct access_request *request);

struct gateway *access_gateway(const struct access_handle *handle);
const char *access_sandbox_id(const struct access_handle *handle);
void access_release(struct access_handle *handle);

/* Something changed that those who wait for this sandbox wait for. */
void access_wake(struct live_sandbox *live);

#endif
