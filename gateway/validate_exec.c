/* ExecSandbox and the start of ExecSandboxInteractive (behaviour reference 5.2). */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "gateway/validate.h"
#include "gateway/validate_parts.h"

enum { TERMINAL_SIZE_MAX = 65535, ENVIRONMENT_ENTRIES_MAX = 1024 };

static const struct validate_environment_limits ENVIRONMENT_LIMITS = {
    .entries = ENVIRONMENT_ENTRIES_MAX,
    .value = VALIDATE_EXEC_VALUE_MAX,
    .total = VALIDATE_COMMAND_TOTAL_MAX,
    .exempt = "OPENSHELL_PYFUNC_B64", /* the published SDK sends a function in it */
};

static const struct validate_command_limits COMMAND_LIMITS = {
    .arguments = VALIDATE_EXEC_COMMAND_MAX,
    .argument = VALIDATE_ARGUMENT_MAX,
};

/* The directory, the assignments and the words, as bytes that one command line may have. */
static size_t assembled_size(const Openshell__V1__ExecSandboxRequest *request)
{
    size_t total = strlen(request->workdir);
    for (size_t i = 0; i < request->n_environment; i++)
        total += strlen(request->environment[i]->key) + strlen(request->environment[i]->value) + 2;
    for (size_t i = 0; i < request->n_command; i++)
        total += strlen(request->command[i]) + 1;
    return total;
}

static bool check_workdir(const char *field, const char *workdir, struct error *error)
{
    if (!validate_text_length(field, workdir, VALIDATE_WORKDIR_MAX, error))
        return false;
    if (strpbrk(workdir, "\r\n") == NULL)
        return true;
    error_add_violation(error, field, "a directory must not have a line break in it");
    return false;
}

static bool check_timeout(const char *field, const Google__Protobuf__Duration *timeout,
                          struct error *error)
{
    if (timeout == NULL)
        return true;
    bool positive = timeout->seconds >= 0 && timeout->nanos >= 0 && timeout->nanos < 1000000000 &&
                    (timeout->seconds > 0 || timeout->nanos > 0) &&
                    timeout->seconds <= 315576000000LL;
    if (!positive)
        error_add_violation(error, field,
                            "a time limit must be longer than 0 and at most 10000 years");
    return positive;
}

static bool check_terminal(const char *prefix, const char *member, uint32_t value,
                           struct error *error)
{
    if (value <= TERMINAL_SIZE_MAX)
        return true;
    CLEANUP_FREE char *name = memory_printf("%s%s", prefix, member);
    error_add_violation(error, name, "%u is more than %d", value, TERMINAL_SIZE_MAX);
    return false;
}

static bool check_command(const Openshell__V1__ExecSandboxRequest *request, const char *field,
                          struct error *error)
{
    if (request->n_command == 0) {
        error_add_violation(error, field, "a command is required");
        return false;
    }
    if (!validate_command(field, request->command, request->n_command, &COMMAND_LIMITS, error))
        return false;
    size_t size = assembled_size(request);
    if (size <= VALIDATE_COMMAND_TOTAL_MAX)
        return true;
    error_add_violation(error, field,
                        "%zu bytes of command, environment and directory are more than %d", size,
                        VALIDATE_COMMAND_TOTAL_MAX);
    return false;
}

static bool check_helper(const char *prefix, const Openshell__V1__ExecSandboxRequest *request,
                         struct error *error)
{
    if ((unsigned)request->helper <= OPENSHELL__EXT__V1__EXEC_HELPER__EXEC_HELPER_ARCHIVE_SEND)
        return true;
    CLEANUP_FREE char *name = memory_printf("%shelper", prefix);
    error_add_violation(error, name, "%d is not a helper", (int)request->helper);
    return false;
}

bool validate_exec_sandbox(const Openshell__V1__ExecSandboxRequest *request,
                           const char *field_prefix, struct error *error)
{
    CLEANUP_FREE char *sandbox = memory_printf("%ssandbox", field_prefix);
    CLEANUP_FREE char *command = memory_printf("%scommand", field_prefix);
    CLEANUP_FREE char *environment = memory_printf("%senvironment", field_prefix);
    CLEANUP_FREE char *workdir = memory_printf("%sworkdir", field_prefix);
    CLEANUP_FREE char *timeout = memory_printf("%sexecution_timeout", field_prefix);
    bool valid = validate_sandbox_reference(sandbox, request->sandbox, error);
    if (!check_command(request, command, error))
        valid = false;
    if (!validate_environment(environment, request->environment, request->n_environment,
                              &ENVIRONMENT_LIMITS, error))
        valid = false;
    if (!check_workdir(workdir, request->workdir, error))
        valid = false;
    if (!check_timeout(timeout, request->execution_timeout, error))
        valid = false;
    if (!check_terminal(field_prefix, "cols", request->cols, error))
        valid = false;
    if (!check_terminal(field_prefix, "rows", request->rows, error))
        valid = false;
    if (!check_helper(field_prefix, request, error))
        valid = false;
    return validate_request_id(request->request_id, error) && valid;
}
