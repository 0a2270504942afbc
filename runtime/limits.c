#include "runtime/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define GROUP_PREFIX "sandbox-"

enum { GROUPS_PER_RUNTIME_MAX = 64 };

static bool write_text(const char *directory, const char *name, const char *text)
{
    CLEANUP_FREE char *path = memory_printf("%s/%s", directory, name);
    CLEANUP_CLOSE int file = open(path, O_WRONLY | O_CLOEXEC);
    return file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool has_word(const char *path, const char *word)
{
    FILE *file = fopen(path, "re");
    char text[512];
    bool found = false;
    if (file != NULL && fgets(text, sizeof(text), file) != NULL)
        for (char *rest = text, *token; !found && (token = strsep(&rest, " \n")) != NULL;)
            found = strcmp(token, word) == 0;
    if (file != NULL)
        fclose(file);
    return found;
}

/* A group for all our sandboxes in the hierarchy that has a pids controller, or NULL. */
static char *find_parent(void)
{
    static const char *const LEGACY = "/sys/fs/cgroup/pids";
    static const char *const UNIFIED = "/sys/fs/cgroup";
    const char *hierarchy = NULL;
    CLEANUP_FREE char *probe = memory_printf("%s/cgroup.procs", LEGACY);
    bool unified = false;
    if (access(probe, W_OK) == 0) {
        hierarchy = LEGACY;
    } else if (has_word("/sys/fs/cgroup/cgroup.controllers", "pids")) {
        hierarchy = UNIFIED;
        unified = true;
    }
    if (hierarchy == NULL)
        return NULL;
    if (unified && !has_word("/sys/fs/cgroup/cgroup.subtree_control", "pids") &&
        !write_text(UNIFIED, "cgroup.subtree_control", "+pids"))
        return NULL;
    char *parent = memory_printf("%s/openshell", hierarchy);
    if ((mkdir(parent, 0755) != 0 && errno != EEXIST) ||
        (unified && !write_text(parent, "cgroup.subtree_control", "+pids"))) {
        free(parent);
        return NULL;
    }
    return parent;
}

/* Groups are named after the runtime that made them; rmdir only takes empty ones. */
static void remove_stale(const char *parent)
{
    DIR *stream = opendir(parent);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        int owner;
        if (sscanf(entry->d_name, GROUP_PREFIX "%d-", &owner) != 1 || owner <= 0 ||
            kill(owner, 0) == 0 || errno != ESRCH)
            continue;
        CLEANUP_FREE char *path = memory_printf("%s/%s", parent, entry->d_name);
        rmdir(path);
    }
    if (stream != NULL)
        closedir(stream);
}

/* Makes PARENT/sandbox-PID-NUMBER. NULL with errno. */
static char *make_numbered(const char *parent, int number, const char *limit)
{
    char *group = memory_printf("%s/" GROUP_PREFIX "%d-%d", parent, getpid(), number);
    if (mkdir(group, 0755) == 0) {
        if (write_text(group, "pids.max", limit))
            return group;
        rmdir(group);
        errno = EIO;
    }
    int saved = errno;
    free(group);
    errno = saved;
    return NULL;
}

static char *make_group(unsigned process_limit)
{
    char limit[32];
    snprintf(limit, sizeof(limit), "%u", process_limit);
    for (int number = 0; number < GROUPS_PER_RUNTIME_MAX; number++) {
        CLEANUP_FREE char *parent = find_parent();
        if (parent == NULL)
            return NULL;
        if (number == 0)
            remove_stale(parent);
        char *group = make_numbered(parent, number, limit);
        /* ENOENT: another runtime just removed the parent, which was empty. */
        if (group != NULL || (errno != EEXIST && errno != ENOENT))
            return group;
    }
    return NULL;
}

static void use_resource_limit(struct limits *limits)
{
    struct rlimit now;
    limits->mechanism = "rlimit";
    if (getrlimit(RLIMIT_NPROC, &now) == 0 && now.rlim_max != RLIM_INFINITY &&
        now.rlim_max < limits->process_limit)
        limits->process_limit = (unsigned)now.rlim_max;
}

void limits_prepare(unsigned process_limit, struct limits *ret_limits)
{
    *ret_limits = (struct limits){.mechanism = "cgroup", .process_limit = process_limit};
    if (geteuid() == 0)
        ret_limits->cgroup = make_group(process_limit);
    if (ret_limits->cgroup == NULL)
        use_resource_limit(ret_limits);
}

void limits_place(struct limits *limits, pid_t process)
{
    if (limits->cgroup == NULL)
        return;
    char text[32];
    snprintf(text, sizeof(text), "%d", process);
    if (write_text(limits->cgroup, "cgroup.procs", text))
        return;
    limits_release(limits);
    use_resource_limit(limits);
}

unsigned limits_resource_limit(const struct limits *limits)
{
    return limits->cgroup != NULL ? 0 : limits->process_limit;
}

bool limits_enforce(unsigned resource_limit, struct error *error)
{
    struct rlimit limit = {.rlim_cur = resource_limit, .rlim_max = resource_limit};
    if (resource_limit != 0 && setrlimit(RLIMIT_NPROC, &limit) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot limit the number of processes");
    return true;
}

void limits_release(struct limits *limits)
{
    if (limits->cgroup != NULL && rmdir(limits->cgroup) == 0) {
        /* With the last one goes the parent. */
        *strrchr(limits->cgroup, '/') = '\0';
        rmdir(limits->cgroup);
    }
    free(limits->cgroup);
    limits->cgroup = NULL;
}
