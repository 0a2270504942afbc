#include "policy/policy.h"

/* Policy reference 1.11. */
static const char *const READ_ONLY[] = {"/bin",         "/usr", "/lib",    "/proc",
                                        "/dev/urandom", "/etc", "/var/log"};
static const char *const READ_WRITE[] = {"/tmp", "/dev/null"};

static char **copy_words(struct arena *arena, const char *const *words, size_t count)
{
    char **copy = arena_array_of(arena, char *, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = arena_strdup(arena, words[i]);
    return copy;
}

Openshell__Sandbox__V1__SandboxPolicy *policy_default(struct arena *arena)
{
    Openshell__Sandbox__V1__SandboxPolicy *policy =
        arena_new_of(arena, Openshell__Sandbox__V1__SandboxPolicy);
    openshell__sandbox__v1__sandbox_policy__init(policy);
    policy->version = 1;

    Openshell__Sandbox__V1__FilesystemPolicy *filesystem =
        arena_new_of(arena, Openshell__Sandbox__V1__FilesystemPolicy);
    openshell__sandbox__v1__filesystem_policy__init(filesystem);
    filesystem->include_workdir = true;
    filesystem->n_read_only = sizeof(READ_ONLY) / sizeof(READ_ONLY[0]);
    filesystem->read_only = copy_words(arena, READ_ONLY, filesystem->n_read_only);
    filesystem->n_read_write = sizeof(READ_WRITE) / sizeof(READ_WRITE[0]);
    filesystem->read_write = copy_words(arena, READ_WRITE, filesystem->n_read_write);
    policy->filesystem = filesystem;

    policy->landlock = arena_new_of(arena, Openshell__Sandbox__V1__LandlockPolicy);
    openshell__sandbox__v1__landlock_policy__init(policy->landlock);
    policy->landlock->compatibility = arena_strdup(arena, "best_effort");
    return policy;
}

const Openshell__Sandbox__V1__SandboxPolicy *
policy_effective(const Openshell__Sandbox__V1__SandboxPolicy *global,
                 const Openshell__Sandbox__V1__SandboxPolicy *sandbox,
                 const Openshell__Sandbox__V1__SandboxPolicy *image, struct arena *arena,
                 Openshell__Sandbox__V1__PolicySource *ret_source)
{
    *ret_source = global != NULL ? OPENSHELL__SANDBOX__V1__POLICY_SOURCE__POLICY_SOURCE_GLOBAL
                                 : OPENSHELL__SANDBOX__V1__POLICY_SOURCE__POLICY_SOURCE_SANDBOX;
    if (global != NULL)
        return global;
    if (sandbox != NULL)
        return sandbox;
    return image != NULL ? image : policy_default(arena);
}
