/* What the kernel says about the waiting main process (decision B9). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/maker_internal.h"
#include "runtime/namespaces.h"

enum { PROC_FILE_MAX = 64 * 1024 };

/* Reads /proc/PID/NAME of the main process; owned by the caller, or NULL. */
static char *read_file(pid_t process, const char *name, struct error *error)
{
    CLEANUP_FREE char *path = memory_printf("/proc/%d/%s", process, name);
    struct buffer buffer = BUFFER_INIT(PROC_FILE_MAX);
    if (!file_read(path, &buffer, error)) {
        buffer_free(&buffer);
        return NULL;
    }
    char *text = memory_strdup(buffer_text(&buffer));
    buffer_free(&buffer);
    return text;
}

/* What follows `name` at the start of a line, or "". */
static const char *find_field(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0)
            return line + length + strspn(line + length, " \t");
    }
    return "";
}

static bool is_zero_mask(const char *status, const char *name)
{
    const char *mask = find_field(status, name);
    return *mask == '0' && mask[strspn(mask, "0")] == '\n';
}

/* Real, effective, saved and file-system id, which have to be one. */
static bool read_ids(const char *status, const char *name, uint32_t *ret_id)
{
    unsigned ids[4];
    if (sscanf(find_field(status, name), "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) != 4 ||
        ids[0] != ids[1] || ids[0] != ids[2] || ids[0] != ids[3])
        return false;
    *ret_id = ids[0];
    return true;
}

static int compare_groups(const void *left, const void *right)
{
    gid_t one = *(const gid_t *)left, other = *(const gid_t *)right;
    return (one > other) - (one < other);
}

static void read_groups(const char *status, struct maker_evidence *evidence)
{
    const char *text = find_field(status, "Groups:");
    const size_t maximum =
        sizeof(evidence->supplementary_groups) / sizeof(evidence->supplementary_groups[0]);
    while (*text >= '0' && *text <= '9' && evidence->supplementary_group_count < maximum) {
        char *end;
        gid_t group = (gid_t)strtoul(text, &end, 10);
        text = end + strspn(end, " ");
        /* The workload's own group is no additional one. */
        if (group != evidence->host_group_id)
            evidence->supplementary_groups[evidence->supplementary_group_count++] = group;
    }
    qsort(evidence->supplementary_groups, evidence->supplementary_group_count, sizeof(gid_t),
          compare_groups);
}

static bool read_status(pid_t process, struct maker_evidence *evidence, struct error *error)
{
    CLEANUP_FREE char *status = read_file(process, "status", error);
    if (status == NULL)
        return false;
    evidence->seccomp_filter = find_field(status, "Seccomp:")[0] == '2';
    evidence->no_new_privileges = find_field(status, "NoNewPrivs:")[0] == '1';
    evidence->no_capabilities = is_zero_mask(status, "CapInh:") &&
                                is_zero_mask(status, "CapPrm:") &&
                                is_zero_mask(status, "CapEff:") &&
                                is_zero_mask(status, "CapBnd:") && is_zero_mask(status, "CapAmb:");
    if (!read_ids(status, "Uid:", &evidence->host_user_id) ||
        !read_ids(status, "Gid:", &evidence->host_group_id))
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the main process has more than one identity");
    read_groups(status, evidence);
    return true;
}

static bool read_limits(const struct maker *maker, pid_t process, struct maker_evidence *evidence,
                        struct error *error)
{
    CLEANUP_FREE char *limits = read_file(process, "limits", error);
    if (limits == NULL)
        return false;
    unsigned soft, hard;
    evidence->not_dumpable_core =
        sscanf(find_field(limits, "Max core file size"), "%u %u", &soft, &hard) == 2 && soft == 0 &&
        hard == 0;
    bool limited = sscanf(find_field(limits, "Max processes"), "%u %u", &soft, &hard) == 2 &&
                   hard <= maker->process_limit && soft <= hard;
    snprintf(evidence->process_limit_mechanism, sizeof(evidence->process_limit_mechanism), "%s",
             limited ? "rlimit" : "none");
    evidence->process_limit = limited ? maker->process_limit : 0;
    return true;
}

static bool compare_namespaces(const struct maker *maker, struct maker_evidence *evidence,
                               struct error *error)
{
    struct namespace_identities own;
    if (!namespaces_identify(&own))
        return error_set(error, ERROR_INTERNAL, "cannot look at the namespaces of the runtime");
    bool *const differs[NAMESPACE_KINDS] = {
        [NAMESPACE_USER] = &evidence->user_namespace,
        [NAMESPACE_MOUNT] = &evidence->mount_namespace,
        [NAMESPACE_PID] = &evidence->pid_namespace,
        [NAMESPACE_NETWORK] = &evidence->network_namespace,
        [NAMESPACE_IPC] = &evidence->ipc_namespace,
        [NAMESPACE_UTS] = &evidence->uts_namespace,
        [NAMESPACE_CGROUP] = &evidence->cgroup_namespace,
    };
    for (size_t i = 0; i < NAMESPACE_KINDS; i++)
        *differs[i] = maker->main_facts.namespaces.inode[i] != 0 &&
                      maker->main_facts.namespaces.inode[i] != own.inode[i];
    return true;
}

bool evidence_collect(const struct maker *maker, struct maker_evidence *ret_evidence,
                      struct error *error)
{
    struct maker_evidence evidence = {
        .landlock_abi = maker->controls.landlock_installed ? maker->controls.landlock_abi : 0,
        .landlock_denies = maker->main_facts.landlock_denies,
        .seccomp_denies = maker->main_facts.seccomp_denies,
        .loopback_only = maker->main_facts.loopback_only,
        .death_link = maker->measure_ponged,
        .user_id = maker->main_facts.user_id,
        .group_id = maker->main_facts.group_id,
    };
    memcpy(evidence.root_kind, maker->root.root_kind, sizeof(evidence.root_kind));
    memcpy(evidence.usr_mechanism, maker->root.usr_mechanism, sizeof(evidence.usr_mechanism));
    pid_t process = maker->main != NULL ? maker->main->host_process : 0;
    if (process <= 0)
        return error_set(error, ERROR_FAILED_PRECONDITION, "the main process is gone");
    if (!compare_namespaces(maker, &evidence, error) || !read_status(process, &evidence, error) ||
        !read_limits(maker, process, &evidence, error))
        return false;
    *ret_evidence = evidence;
    return true;
}
