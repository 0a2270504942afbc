#include "runtime/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/namespaces.h"
#include "runtime/syscalls.h"

enum {
    ACCOUNT_FILE_MAX = 1024 * 1024,
    CAPABILITY_LIMIT = 64,
};

#define ACCOUNT_NAME "sandbox"
#define DEFAULT_HOME "/sandbox"

/* Opens an account file. The workload may own it, so nothing but a regular file of sane size. */
static FILE *open_account_file(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size > ACCOUNT_FILE_MAX) {
        if (descriptor >= 0)
            close(descriptor);
        return NULL;
    }
    return fdopen(descriptor, "re");
}

/* Calls that a static program may make, unlike getpwnam (decision B15). With a name, finds the id;
 * without, the name and home of `id`. */
static bool find_user(const char *name, uid_t *id, struct identity *identity)
{
    FILE *file = open_account_file("/etc/passwd");
    if (file == NULL)
        return false;
    bool found = false;
    struct passwd *entry;
    while (!found && (entry = fgetpwent(file)) != NULL) {
        if (name != NULL ? strcmp(entry->pw_name, name) != 0 : entry->pw_uid != *id)
            continue;
        found = true;
        *id = entry->pw_uid;
        if (name == NULL && entry->pw_name[0] != '\0')
            snprintf(identity->name, sizeof(identity->name), "%s", entry->pw_name);
        if (name == NULL && entry->pw_dir[0] == '/' &&
            strlen(entry->pw_dir) < sizeof(identity->home))
            snprintf(identity->home, sizeof(identity->home), "%s", entry->pw_dir);
    }
    fclose(file);
    return found;
}

static bool find_group(const char *name, gid_t *id)
{
    FILE *file = open_account_file("/etc/group");
    if (file == NULL)
        return false;
    bool found = false;
    struct group *entry;
    while (!found && (entry = fgetgrent(file)) != NULL) {
        found = strcmp(entry->gr_name, name) == 0;
        if (found)
            *id = entry->gr_gid;
    }
    fclose(file);
    return found;
}

/* A decimal id; 0 and the kernel's "no change" are none that a workload may have. */
static bool parse_id(const char *text, const char *what, uint32_t *ret_id, struct error *error)
{
    long long value;
    if (!text_parse_integer(text, 1, 4294967294LL, &value))
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the policy's %s '%s' is neither 'sandbox' nor a number from 1 to "
                         "4294967294",
                         what, text);
    *ret_id = (uint32_t)value;
    return true;
}

static bool choose_user(const char *text, struct identity *identity, struct error *error)
{
    identity->user_id = NAMESPACE_WORKLOAD_ID;
    if (text[0] == '\0')
        return true;
    if (strcmp(text, ACCOUNT_NAME) != 0)
        return parse_id(text, "run_as_user", &identity->user_id, error);
    if (find_user(text, &identity->user_id, identity) && identity->user_id == 0)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the root's /etc/passwd gives '%s' the id 0, which no workload may have",
                         text);
    return true;
}

static bool choose_group(const char *text, struct identity *identity, struct error *error)
{
    identity->group_id = NAMESPACE_WORKLOAD_ID;
    if (text[0] == '\0')
        return true;
    if (strcmp(text, ACCOUNT_NAME) != 0)
        return parse_id(text, "run_as_group", &identity->group_id, error);
    if (find_group(text, &identity->group_id) && identity->group_id == 0)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the root's /etc/group gives '%s' the id 0, which no workload may have",
                         text);
    return true;
}

bool identity_find(const char *run_as_user, const char *run_as_group, bool can_switch,
                   struct identity *ret_identity, struct error *error)
{
    struct identity identity = {
        .name = ACCOUNT_NAME, .home = DEFAULT_HOME, .can_switch = can_switch};
    if (!choose_user(run_as_user, &identity, error) ||
        !choose_group(run_as_group, &identity, error))
        return false;
    find_user(NULL, &identity.user_id, &identity);
    /* The home is granted by every policy (decision B13): only a directory of the workload's own.
     */
    struct stat status;
    if (stat(identity.home, &status) != 0 || !S_ISDIR(status.st_mode) ||
        status.st_uid != identity.user_id || strspn(identity.home, "/.") == strlen(identity.home))
        snprintf(identity.home, sizeof(identity.home), DEFAULT_HOME);
    *ret_identity = identity;
    return true;
}

/* In a child that stayed in the namespace above, which has the right to map: writes the maps of
 * its parent and ends. */
static _Noreturn void write_maps(int go, const char *users, const char *groups)
{
    char byte;
    bool written = read(go, &byte, 1) == 1;
    const char *const names[] = {"uid_map", "gid_map"};
    const char *const maps[] = {users, groups};
    for (size_t i = 0; written && i < 2; i++) {
        char path[64];
        snprintf(path, sizeof(path), "/proc/%d/%s", getppid(), names[i]);
        int file = open(path, O_WRONLY | O_CLOEXEC);
        written = file >= 0 && write(file, maps[i], strlen(maps[i])) == (ssize_t)strlen(maps[i]);
    }
    _exit(written ? 0 : errno != 0 ? errno : EIO);
}

/* "INNER OUTER 1" lines for a namespace below this one. */
static void format_map(char *buffer, size_t size, uint32_t id, bool keep_root)
{
    snprintf(buffer, size, "%s%u %d 1\n", keep_root ? "0 0 1\n" : "", id, NAMESPACE_WORKLOAD_ID);
}

static bool enter_mapped_namespace(const struct identity *identity, struct error *error)
{
    char users[64], groups[64];
    format_map(users, sizeof(users), identity->user_id, identity->can_switch);
    format_map(groups, sizeof(groups), identity->group_id, identity->can_switch);
    int go[2];
    if (pipe2(go, O_CLOEXEC) != 0)
        return error_set_errno(error, ERROR_RESOURCE_EXHAUSTED, errno, "cannot make a pipe");
    /* The maps are files of the process, readable to its owner only while it is dumpable. Nothing
     * of the workload runs yet. */
    prctl(PR_SET_DUMPABLE, 1);
    pid_t helper = syscall_fork();
    if (helper == 0)
        write_maps(go[0], users, groups);
    bool entered = helper > 0 && unshare(CLONE_NEWUSER) == 0;
    int saved = errno;
    int status = -1;
    if (entered && write(go[1], "", 1) != 1)
        entered = false;
    close(go[0]);
    close(go[1]);
    if (helper > 0)
        while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
            ;
    prctl(PR_SET_DUMPABLE, 0);
    if (entered && status != 0) {
        saved = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
        entered = false;
    }
    return entered || error_set_errno(error, ERROR_FAILED_PRECONDITION, saved,
                                      "the ids %u and %u of the policy cannot be mapped",
                                      identity->user_id, identity->group_id);
}

bool identity_map(struct identity *identity, bool composed, struct error *error)
{
    /* All that a composed root lets the workload write to belongs to the default id; a copied one
     * has owners of its own. */
    bool range = identity->can_switch && !composed;
    uint32_t lowest = range ? 1 : NAMESPACE_WORKLOAD_ID;
    uint32_t highest = range ? NAMESPACE_IDS - 1 : NAMESPACE_WORKLOAD_ID;
    if (identity->user_id >= lowest && identity->user_id <= highest &&
        identity->group_id >= lowest && identity->group_id <= highest)
        return true;
    return enter_mapped_namespace(identity, error);
}

bool identity_become_inner_root(bool can_switch, struct error *error)
{
    if (!can_switch)
        return true;
    if (setgroups(0, NULL) != 0 || setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot become the sandbox's root");
    return true;
}

bool identity_reduce(enum identity_duty duty, struct error *error)
{
#define BIT(capability) (1ULL << (capability))
    uint64_t reaper = BIT(CAP_KILL) | BIT(CAP_CHOWN);
    uint64_t starter = reaper | BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SETPCAP);
    uint64_t builder = starter | BIT(CAP_SYS_ADMIN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_SETFCAP);
#undef BIT
    uint64_t mask = duty == IDENTITY_REAPER ? reaper : duty == IDENTITY_STARTER ? starter : builder;
    if (syscall_set_capabilities(mask) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot give up capabilities");
    return true;
}

static bool clear_bounding_set(struct error *error)
{
    for (int capability = 0; capability < CAPABILITY_LIMIT; capability++) {
        int present = prctl(PR_CAPBSET_READ, capability);
        if (present < 0)
            return true; /* the kernel knows no further one */
        if (present == 1 && prctl(PR_CAPBSET_DROP, capability) != 0)
            return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                                   "cannot drop capability %d", capability);
        if (prctl(PR_CAPBSET_READ, capability) != 0)
            return error_set(error, ERROR_FAILED_PRECONDITION, "capability %d remains", capability);
    }
    return true;
}

bool identity_become_workload(const struct identity *identity, struct error *error)
{
    uid_t uid = identity->user_id;
    gid_t gid = identity->group_id;
    if (identity->can_switch && setgroups(0, NULL) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno, "cannot drop groups");
    gid_t real_group, effective_group, saved_group;
    if (setresgid(gid, gid, gid) != 0 ||
        getresgid(&real_group, &effective_group, &saved_group) != 0 || real_group != gid ||
        effective_group != gid || saved_group != gid)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot take the group id %u", gid);
    if (!clear_bounding_set(error))
        return false;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    uid_t real_user, effective_user, saved_user;
    if (setresuid(uid, uid, uid) != 0 || getresuid(&real_user, &effective_user, &saved_user) != 0 ||
        real_user != uid || effective_user != uid || saved_user != uid)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot take the user id %u", uid);
    if (syscall_set_capabilities(0) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot give up capabilities");
    if (setuid(0) == 0)
        return error_set(error, ERROR_FAILED_PRECONDITION, "the user id 0 is still within reach");
    return true;
}
