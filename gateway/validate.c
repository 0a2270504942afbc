#include "gateway/validate.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "gateway/validate_parts.h"

void validate_show(const char *text, char buffer[VALIDATE_SHOWN_SIZE])
{
    static const char dots[] = "...";
    text_escape(text, buffer, VALIDATE_SHOWN_SIZE - sizeof(dots) + 1);
    if (strlen(text) >= VALIDATE_SHOWN_SIZE - sizeof(dots) + 1)
        strcat(buffer, dots);
}

bool validate_text_length(const char *field, const char *text, size_t maximum, struct error *error)
{
    if (strlen(text) <= maximum)
        return true;
    char shown[VALIDATE_SHOWN_SIZE];
    validate_show(text, shown);
    error_add_violation(error, field, "%zu bytes are more than %zu: '%s'", strlen(text), maximum,
                        shown);
    return false;
}

static bool is_name(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || name[0] == '-' || name[length - 1] == '-' || strstr(name, "--") != NULL)
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

bool validate_name(const char *field, const char *name, size_t maximum, struct error *error)
{
    if (strlen(name) <= maximum && is_name(name))
        return true;
    char shown[VALIDATE_SHOWN_SIZE];
    validate_show(name, shown);
    error_add_violation(error, field,
                        "a name has 1 to %zu lowercase letters, digits and single hyphens, with a "
                        "letter or digit first and last; '%s' has not",
                        maximum, shown);
    return false;
}

bool validate_sandbox_reference(const char *field, const char *name, struct error *error)
{
    if (name[0] != '\0')
        return validate_name(field, name, VALIDATE_SANDBOX_NAME_MAX, error);
    error_add_violation(error, field, "the name of a sandbox is required");
    return false;
}

bool validate_workspace_scope(const Openshell__Datamodel__V1__WorkspaceSelector *scope,
                              bool all_allowed, const char **ret_workspace, struct error *error)
{
    if (scope != NULL && scope->selection_case ==
                             OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__SELECTION_WORKSPACE) {
        if (scope->workspace[0] == '\0') {
            error_add_violation(error, "workspace_scope.workspace",
                                "the name of a workspace is required");
            return false;
        }
        *ret_workspace = scope->workspace;
        return validate_name("workspace_scope.workspace", scope->workspace,
                             VALIDATE_SANDBOX_NAME_MAX, error);
    }
    if (scope != NULL &&
        scope->selection_case ==
            OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__SELECTION_ALL_WORKSPACES) {
        if (all_allowed) {
            *ret_workspace = NULL;
            return true;
        }
        error_add_violation(error, "workspace_scope.all_workspaces",
                            "this call is about one workspace; name it");
        return false;
    }
    error_add_violation(error, "workspace_scope", "a workspace must be named, as 'default'");
    return false;
}

bool validate_is_uuid(const char *text, bool canonical)
{
    if (!uuid_valid(text))
        return false;
    for (const char *at = text; canonical && *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'F')
            return false;
    return true;
}

bool validate_uuid(const char *field, const char *text, struct error *error)
{
    if (uuid_valid(text))
        return true;
    char shown[VALIDATE_SHOWN_SIZE];
    validate_show(text, shown);
    error_add_violation(error, field, "'%s' is not a hyphenated UUID of 36 characters", shown);
    return false;
}

bool validate_request_id(const char *request_id, struct error *error)
{
    return request_id[0] == '\0' || validate_uuid("request_id", request_id, error);
}
