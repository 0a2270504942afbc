#include "supervisor/evidence.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "boundary/failure.h"

/* What must hold whatever the policy says. */
static const struct {
    size_t offset;
    const char *what;
} CONTROLS[] = {
    {offsetof(exchange_evidence, user_namespace), "a user namespace of its own"},
    {offsetof(exchange_evidence, mount_namespace), "a mount namespace of its own"},
    {offsetof(exchange_evidence, pid_namespace), "a pid namespace of its own"},
    {offsetof(exchange_evidence, network_namespace), "a network namespace of its own"},
    {offsetof(exchange_evidence, ipc_namespace), "an ipc namespace of its own"},
    {offsetof(exchange_evidence, uts_namespace), "a uts namespace of its own"},
    {offsetof(exchange_evidence, cgroup_namespace), "a cgroup namespace of its own"},
    {offsetof(exchange_evidence, seccomp_filter), "a seccomp filter"},
    {offsetof(exchange_evidence, seccomp_denies), "a seccomp filter that refuses"},
    {offsetof(exchange_evidence, no_new_privileges), "no_new_privs"},
    {offsetof(exchange_evidence, no_capabilities), "empty capability sets"},
    {offsetof(exchange_evidence, loopback_only), "a network of loopback alone"},
    {offsetof(exchange_evidence, no_core_dumps), "a core file limit of zero"},
    {offsetof(exchange_evidence, death_link), "a death link to the runtime"},
};

static bool lacks(struct error *error, const char *what)
{
    return failure_set(error, FAILURE_DENIED, "the main process was not measured to have %s", what);
}

static bool check_controls(const exchange_evidence *evidence, struct error *error)
{
    for (size_t i = 0; i < sizeof(CONTROLS) / sizeof(CONTROLS[0]); i++) {
        const char *member = (const char *)evidence + CONTROLS[i].offset;
        if (*(const protobuf_c_boolean *)(const void *)member != 1)
            return lacks(error, CONTROLS[i].what);
    }
    return true;
}

static bool check_landlock(const exchange_evidence *evidence, bool required,
                           void (*warn)(const char *, void *), void *user, struct error *error)
{
    if ((evidence->landlock_required != 0) != required)
        return failure_set(error, FAILURE_DENIED,
                           "the runtime applied another landlock.compatibility than the policy's");
    if (evidence->landlock_abi == 0 && !required) {
        warn("landlock-unavailable: the kernel has no Landlock; files are held by the mount "
             "namespace and permissions alone",
             user);
        return true;
    }
    if (evidence->landlock_abi == 0)
        return failure_set(error, FAILURE_DENIED,
                           "the policy demands Landlock, which the kernel does not have");
    return evidence->landlock_denies || lacks(error, "a Landlock domain that refuses");
}

static bool check_identity(const exchange_evidence *evidence, void (*warn)(const char *, void *),
                           void *user, struct error *error)
{
    if (evidence->user_id == 0 || evidence->group_id == 0)
        return failure_set(error, FAILURE_DENIED, "the workload would be root inside");
    if (evidence->host_user_id == 0)
        return failure_set(error, FAILURE_DENIED, "the workload would be root on the host");
    if (evidence->host_group_id == 0)
        warn("the workload has the host's group 0, as the user has whose sandbox it is", user);
    if (evidence->n_supplementary_groups > 0) {
        char text[256];
        int length = snprintf(text, sizeof(text), "groups that could not be dropped:");
        for (size_t i = 0; i < evidence->n_supplementary_groups; i++)
            if (length < (int)sizeof(text))
                length += snprintf(text + length, sizeof(text) - (size_t)length, " %u",
                                   evidence->supplementary_groups[i]);
        warn(text, user);
    }
    return true;
}

static bool check_rest(const exchange_evidence *evidence, void (*warn)(const char *, void *),
                       void *user, struct error *error)
{
    if (strcmp(evidence->root_kind, "composed") != 0 && strcmp(evidence->root_kind, "copied") != 0)
        return failure_set(error, FAILURE_DENIED, "the root is of an unknown kind");
    if (evidence->process_limit_mechanism[0] == '\0')
        return failure_set(error, FAILURE_DENIED, "the limit of processes was not measured");
    if (strcmp(evidence->process_limit_mechanism, "none") == 0)
        warn("nothing limits the number of processes", user);
    else if (evidence->process_limit == 0)
        return failure_set(error, FAILURE_DENIED, "the limit of processes is zero");
    return true;
}

bool evidence_check(const Openshell__Sandbox__Protocol__V1__Confirmed *confirmed,
                    const struct evidence_expectation *expected,
                    void (*warn)(const char *text, void *user), void *user, struct error *error)
{
    const exchange_evidence *evidence = confirmed->evidence;
    if (evidence == NULL)
        return failure_set(error, FAILURE_DENIED, "the runtime sent no evidence");
    if (strcmp(evidence->generation, expected->generation) != 0 ||
        strcmp(confirmed->session_id, expected->session_id) != 0)
        return failure_set(error, FAILURE_DENIED, "the evidence is of another launch");
    return check_controls(evidence, error) &&
           check_landlock(evidence, expected->landlock_required, warn, user, error) &&
           check_identity(evidence, warn, user, error) && check_rest(evidence, warn, user, error);
}
