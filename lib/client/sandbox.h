/* A sandbox's record as commands show it, and what the gateway says about it.
 *
 * Phases are for display alone. What a command does next follows from the condition Ready, its
 * reason, and the exit code: only the gateway knows which phase means what. */
#ifndef CLIENT_SANDBOX_H
#define CLIENT_SANDBOX_H

#include <jansson.h>
#include <stdbool.h>

#include "client/connection.h"
#include "client/terminal.h"
#include "proto/openshell.pb-c.h"
#include "proto/sandbox.pb-c.h"

/* "Ready", "Stopped", ...; "Unknown" for a number that this version does not know. */
const char *sandbox_phase_word(Openshell__V1__SandboxPhase phase);
enum colour sandbox_phase_colour(Openshell__V1__SandboxPhase phase);

/* The condition of that type, or NULL. */
const Openshell__V1__SandboxCondition *sandbox_condition(const Openshell__V1__Sandbox *sandbox,
                                                         const char *type);

enum sandbox_outcome {
    SANDBOX_READY,    /* can be used */
    SANDBOX_ENDED,    /* its main process ended by itself */
    SANDBOX_STOPPED,  /* somebody stopped it */
    SANDBOX_UNUSABLE, /* not ready, for another reason: pending, or failed */
};

/* `ret_exit_code` (may be NULL) is written for SANDBOX_ENDED. */
enum sandbox_outcome sandbox_outcome(const Openshell__V1__Sandbox *sandbox, int *ret_exit_code);

/* Sets the error to why it is not ready: the condition's reason and message. */
bool sandbox_failure(const Openshell__V1__Sandbox *sandbox, struct error *error);

/* The list record of command-line reference 2.3. Owned by the caller. */
json_t *sandbox_document(const Openshell__V1__Sandbox *sandbox);
/* Adds what `get` shows beside it; `config` may be NULL. */
void sandbox_document_add_detail(json_t *document, const Openshell__V1__Sandbox *sandbox,
                                 const Openshell__Sandbox__V1__GetSandboxConfigResponse *config);

/* "2026-11-30 23:31:14", or "" for a time that is not set; newly allocated. */
char *sandbox_created(const Openshell__V1__Sandbox *sandbox);

/* The word for the restart policy: "never", "on-failure", "always". */
const char *sandbox_restart_policy_word(Openshell__V1__SandboxRestartPolicy policy);

/* "pending", "accepted", "rejected" or "unknown". */
const char *sandbox_admission_word(Openshell__V1__ConfigurationAdmissionState state);
/* "preparation", "admission" or "ready": which part of the attempt is going on. */
const char *sandbox_provisioning_word(const Openshell__V1__SandboxProvisioning *provisioning);
/* "sandbox" or "global". */
const char *sandbox_policy_source_word(Openshell__Sandbox__V1__PolicySource source);
/* RFC 3339, or "" for a time that is not set; newly allocated. */
char *sandbox_time(const Google__Protobuf__Timestamp *time);

/* A deep copy that lives in the arena. */
Openshell__V1__Sandbox *sandbox_copy(const Openshell__V1__Sandbox *sandbox, struct arena *arena);

/* The name, never NULL. */
const char *sandbox_name(const Openshell__V1__Sandbox *sandbox);

#endif
