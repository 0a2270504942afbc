/* The static sections (policy reference 1.3, 1.8). */
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "policy/policy.h"

enum { PATH_LENGTH_MAX = 4096, PATHS_MAX = 256, SHOWN_MAX = 96 };

#define RESERVED_KEY_PREFIX "_provider_"

/* "." and "" count for nothing: "/", "//" and "/./" are the whole file system. */
static void scan_components(const char *path, bool *ret_parent, size_t *ret_count)
{
    *ret_parent = false;
    *ret_count = 0;
    for (const char *start = path; *start != '\0';) {
        size_t length = strcspn(start, "/");
        if (length == 2 && strncmp(start, "..", 2) == 0)
            *ret_parent = true;
        if (length > 0 && !(length == 1 && start[0] == '.'))
            (*ret_count)++;
        start += length;
        start += strspn(start, "/");
    }
}

static bool check_path(const char *field, const char *path, bool writable, struct error *error)
{
    char shown[SHOWN_MAX];
    text_escape(path, shown, sizeof(shown));
    if (strlen(path) > PATH_LENGTH_MAX) {
        error_add_violation(error, field, "the path is longer than %d bytes", PATH_LENGTH_MAX);
        return false;
    }
    bool parent;
    size_t components;
    scan_components(path, &parent, &components);
    bool valid = path[0] == '/' && !parent;
    if (path[0] != '/')
        error_add_violation(error, field, "'%s' is not an absolute path", shown);
    if (parent)
        error_add_violation(error, field, "'%s' has a '..' component", shown);
    if (writable && path[0] == '/' && components == 0) {
        error_add_violation(error, field, "'%s' would make everything writable", shown);
        valid = false;
    }
    return valid;
}

static bool check_paths(const char *field, const char *list, char *const *paths, size_t count,
                        bool writable, struct error *error)
{
    bool valid = true;
    for (size_t i = 0; i < count && i < PATHS_MAX; i++) {
        CLEANUP_FREE char *name = memory_printf("%s.filesystem.%s[%zu]", field, list, i);
        if (!check_path(name, paths[i], writable, error))
            valid = false;
    }
    return valid;
}

static bool check_filesystem(const char *field,
                             const Openshell__Sandbox__V1__FilesystemPolicy *filesystem,
                             struct error *error)
{
    bool valid = check_paths(field, "read_only", filesystem->read_only, filesystem->n_read_only,
                             false, error);
    if (!check_paths(field, "read_write", filesystem->read_write, filesystem->n_read_write, true,
                     error))
        valid = false;
    if (filesystem->n_read_only + filesystem->n_read_write > PATHS_MAX) {
        CLEANUP_FREE char *name = memory_printf("%s.filesystem", field);
        error_add_violation(error, name, "%zu paths are more than %d",
                            filesystem->n_read_only + filesystem->n_read_write, PATHS_MAX);
        valid = false;
    }
    return valid;
}

/* Root, and the id that setuid takes for "leave it", can never be asked for. */
static bool check_identity(const char *field, const char *member, const char *identity,
                           struct error *error)
{
    long long number;
    if (identity[0] == '\0' || strcmp(identity, "sandbox") == 0 ||
        (identity[0] != '0' && text_parse_integer(identity, 1, 4294967294LL, &number)))
        return true;
    char shown[SHOWN_MAX];
    text_escape(identity, shown, sizeof(shown));
    CLEANUP_FREE char *name = memory_printf("%s.process.%s", field, member);
    error_add_violation(error, name, "'%s' is neither 'sandbox' nor a number from 1 to 4294967294",
                        shown);
    return false;
}

static bool check_landlock(const char *field, const char *compatibility, struct error *error)
{
    if (compatibility[0] == '\0' || strcmp(compatibility, "best_effort") == 0 ||
        strcmp(compatibility, "hard_requirement") == 0)
        return true;
    char shown[SHOWN_MAX];
    text_escape(compatibility, shown, sizeof(shown));
    CLEANUP_FREE char *name = memory_printf("%s.landlock.compatibility", field);
    error_add_violation(error, name, "'%s' is neither 'best_effort' nor 'hard_requirement'", shown);
    return false;
}

static bool check_keys(const char *field, const Openshell__Sandbox__V1__SandboxPolicy *policy,
                       struct error *error)
{
    bool valid = true;
    for (size_t i = 0; i < policy->n_network_policies; i++) {
        const char *key = policy->network_policies[i]->key;
        if (!text_has_prefix(key, RESERVED_KEY_PREFIX))
            continue;
        char shown[SHOWN_MAX];
        text_escape(key, shown, sizeof(shown));
        CLEANUP_FREE char *name = memory_printf("%s.network_policies", field);
        error_add_violation(error, name, "the key '%s' has the reserved prefix '%s'", shown,
                            RESERVED_KEY_PREFIX);
        valid = false;
    }
    return valid;
}

bool policy_validate_static(const char *field, const Openshell__Sandbox__V1__SandboxPolicy *policy,
                            struct error *error)
{
    bool valid = true;
    size_t size = openshell__sandbox__v1__sandbox_policy__get_packed_size(policy);
    if (size > POLICY_ENCODED_MAX) {
        error_add_violation(error, field, "a policy of %zu bytes is over the limit of %d", size,
                            POLICY_ENCODED_MAX);
        return false;
    }
    if (policy->version != 1) {
        CLEANUP_FREE char *name = memory_printf("%s.version", field);
        error_add_violation(error, name, "the version must be 1, not %u", policy->version);
        valid = false;
    }
    if (policy->filesystem != NULL && !check_filesystem(field, policy->filesystem, error))
        valid = false;
    if (policy->landlock != NULL && !check_landlock(field, policy->landlock->compatibility, error))
        valid = false;
    if (policy->process != NULL) {
        if (!check_identity(field, "run_as_user", policy->process->run_as_user, error))
            valid = false;
        if (!check_identity(field, "run_as_group", policy->process->run_as_group, error))
            valid = false;
    }
    return check_keys(field, policy, error) && valid;
}
