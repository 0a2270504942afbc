/* What a request may say (behaviour reference 1.5, 1.9, 5.2; decisions W7, P22).
 *
 * Every function adds one violation for each bad field to the error (at most ERROR_VIOLATIONS_MAX),
 * which makes it INVALID_ARGUMENT, and returns whether there was none. A description names the
 * limit and the value, escaped and cut. No I/O. */
#ifndef GATEWAY_VALIDATE_H
#define GATEWAY_VALIDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "openshell.pb-c.h"

enum {
    VALIDATE_SANDBOX_NAME_MAX = 63, /* decision W7 */
    VALIDATE_ROUTABLE_NAME_MAX = 19,
    VALIDATE_OTHER_NAME_MAX = 253,
    VALIDATE_PROVIDERS_MAX = 32,
    VALIDATE_LOG_LEVEL_MAX = 32,
    VALIDATE_ENVIRONMENT_MAX = 128,
    VALIDATE_ENVIRONMENT_KEY_MAX = 256,
    VALIDATE_ENVIRONMENT_VALUE_MAX = 8192,
    VALIDATE_ENVIRONMENT_TOTAL_MAX = 256 * 1024,
    VALIDATE_TEMPLATE_STRING_MAX = 1024,
    VALIDATE_MAP_MAX = 128,
    VALIDATE_STRUCT_MAX = 65536,
    VALIDATE_POLICY_MAX = 262144,
    VALIDATE_COMMAND_MAX = 256,
    VALIDATE_COMMAND_TOTAL_MAX = 262144,
    VALIDATE_ARGUMENT_MAX = 32768,
    VALIDATE_EXEC_COMMAND_MAX = 1024,
    VALIDATE_EXEC_VALUE_MAX = 32768,
    VALIDATE_WORKDIR_MAX = 4096,
    VALIDATE_SERVICE_EXPOSURES_MAX = 32,
};

/* Without I/O and before anything else. An empty name is right: one is made. A spec is required
 * where no workload_template is named; with one, spec may carry only policy, providers, command,
 * tty and restart_policy. */
bool validate_create_sandbox(const Openshell__V1__CreateSandboxRequest *request,
                             struct error *error);

/* For ExecSandbox, and for the start message of ExecSandboxInteractive with `field_prefix`
 * "start.". */
bool validate_exec_sandbox(const Openshell__V1__ExecSandboxRequest *request,
                           const char *field_prefix, struct error *error);

/* The name of an existing sandbox as a request gives it: required, of the published alphabet. */
bool validate_sandbox_reference(const char *field, const char *name, struct error *error);

/* 1 to `maximum` lowercase letters, digits and hyphens; no hyphen first, last or twice. */
bool validate_name(const char *field, const char *name, size_t maximum, struct error *error);

/* A workspace selector. A missing one, and one without a choice or with an empty name, are
 * INVALID_ARGUMENT: `default` is never a fallback (reference 0). all_workspaces is right only where
 * `all_allowed`. *ret_workspace becomes the request's string, or NULL for all. */
bool validate_workspace_scope(const Openshell__Datamodel__V1__WorkspaceSelector *scope,
                              bool all_allowed, const char **ret_workspace, struct error *error);

/* Empty, or a hyphenated UUID of 36 characters that is not nil, in either case (1.9). */
bool validate_request_id(const char *request_id, struct error *error);

/* The same for an id that is required. */
bool validate_uuid(const char *field, const char *text, struct error *error);
/* Whether the text is a hyphenated UUID; canonical: in lowercase. */
bool validate_is_uuid(const char *text, bool canonical);

#endif
