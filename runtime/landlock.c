#include "runtime/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "runtime/policy_path.h"
#include "runtime/syscalls.h"

#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#ifndef LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
#define LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET (1ULL << 0)
#endif

enum {
    /* The first version that restricts truncation; without it a read-only file can be emptied by
     * whoever may write to it otherwise. */
    ABI_TRUNCATE = 3,
    ABI_SCOPED = 6,
    WARNINGS_MAX = 32,
};

#define RIGHTS_READ                                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
/* What can be asked for on something that is not a directory. */
#define RIGHTS_FILE                                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE |   \
     LANDLOCK_ACCESS_FS_TRUNCATE | LANDLOCK_ACCESS_FS_IOCTL_DEV)

/* Policy reference 1.11; and the places that are part of /usr wherever these are links, so that a
 * root in which they are not has its loader. */
static const char *const DEFAULT_READ_ONLY[] = {
    "/bin",     "/usr",  "/lib",   "/proc",  "/etc",    "/dev/urandom",
    "/var/log", "/sbin", "/lib32", "/lib64", "/libx32",
};
static const char *const DEFAULT_READ_WRITE[] = {"/tmp", "/dev/null"};

/* Decision B13: what the runtime made for the workload, whatever the policy says; a policy that
 * lists one of them itself chooses its access. The home follows. */
static const struct base_entry {
    const char *path;
    bool writable;
} BASE[] = {
    {"/dev/null", true},    {"/dev/zero", true}, {"/dev/full", true}, {"/dev/random", true},
    {"/dev/urandom", true}, {"/dev/tty", true},  {"/dev/ptmx", true}, {"/dev/pts", true},
    {"/dev/shm", true},     {"/tmp", true},      {"/var/tmp", true},  {"/run", true},
    {"/opt", false},
};

struct builder {
    const struct landlock_request *request;
    int ruleset;
    uint64_t handled;
    void (*on_warning)(const char *text, void *user);
    void *user;
    size_t warnings;
};

static uint64_t handled_rights(int abi)
{
    uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
    if (abi >= 2)
        rights |= LANDLOCK_ACCESS_FS_REFER;
    if (abi >= ABI_TRUNCATE)
        rights |= LANDLOCK_ACCESS_FS_TRUNCATE;
    if (abi >= 5)
        rights |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
    return rights;
}

static void warn(struct builder *builder, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(struct builder *builder, const char *format, ...)
{
    if (builder->warnings++ >= WARNINGS_MAX)
        return;
    char text[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    builder->on_warning(text, builder->user);
}

/* Whether `path` lies below `parent`, by its text. */
static bool is_below(const char *path, const char *parent)
{
    size_t length = strlen(parent);
    while (length > 0 && parent[length - 1] == '/')
        length--;
    return strncmp(path, parent, length) == 0 && path[length] == '/' && path[length + 1] != '\0';
}

static bool lists(const char *const *paths, size_t count, const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < count; i++)
        if (strncmp(paths[i], path, length) == 0 &&
            (paths[i][length] == '\0' || strcmp(paths[i] + length, "/") == 0))
            return true;
    return false;
}

static bool policy_lists(const struct landlock_request *request, const char *path)
{
    return lists(request->read_only, request->read_only_count, path) ||
           lists(request->read_write, request->read_write_count, path);
}

/* Whether the workload may write to a directory above `path`. Then it could have put a link there,
 * in an earlier run, that leads the rule anywhere; and it needs no rule: the one above covers it.
 */
static bool is_covered(const struct landlock_request *request, const char *path)
{
    for (size_t i = 0; i < request->read_write_count; i++)
        if (is_below(path, request->read_write[i]))
            return true;
    for (size_t i = 0; i < sizeof(BASE) / sizeof(BASE[0]); i++)
        if (BASE[i].writable && is_below(path, BASE[i].path) &&
            !lists(request->read_only, request->read_only_count, BASE[i].path))
            return true;
    return is_below(path, request->home) &&
           !lists(request->read_only, request->read_only_count, request->home);
}

static bool add_descriptor(struct builder *builder, int descriptor, const char *path, bool writable,
                           struct error *error)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot look at '%s'", path);
    uint64_t rights = writable ? builder->handled : builder->handled & RIGHTS_READ;
    if (!S_ISDIR(status.st_mode))
        rights &= RIGHTS_FILE;
    if (syscall_landlock_add_path(builder->ruleset, rights, descriptor) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "Landlock takes no rule for '%s'", path);
    return true;
}

/* Whether the workload may have written to a directory of the root. */
static bool is_writable(const char *directory, void *user)
{
    const struct builder *builder = user;
    char entry[PATH_MAX];
    snprintf(entry, sizeof(entry), "%.*s/entry", PATH_MAX - 8, directory);
    return is_covered(builder->request, entry);
}

/* A path of the policy. One that cannot be had is no grant, so leaving it out is safe; but a hard
 * requirement is refused, since the policy is not what its author believes. */
static bool add_policy_path(struct builder *builder, const char *path, bool writable,
                            struct error *error)
{
    if (strcmp(path, LANDLOCK_WITHHELD) == 0 || is_below(path, LANDLOCK_WITHHELD) ||
        is_covered(builder->request, path))
        return true;
    CLEANUP_CLOSE int descriptor = policy_path_open(path, is_writable, builder);
    struct error problem = {0};
    if (descriptor >= 0 && add_descriptor(builder, descriptor, path, writable, &problem))
        return true;
    if (descriptor < 0)
        error_set_errno(&problem, ERROR_FAILED_PRECONDITION, errno, "'%s'", path);
    bool added = true;
    if (builder->request->required && builder->request->has_filesystem)
        added = error_set(error, ERROR_FAILED_PRECONDITION,
                          "the policy demands Landlock rules (hard_requirement), but a path in it "
                          "cannot be used: %s; remove it from the policy or make it",
                          problem.message);
    else if (builder->request->has_filesystem)
        warn(builder, "a path of the policy cannot be used and is left out: %s", problem.message);
    error_clear(&problem);
    return added;
}

static bool add_policy(struct builder *builder, struct error *error)
{
    const struct landlock_request *request = builder->request;
    for (size_t i = 0; i < request->read_only_count; i++)
        if (!add_policy_path(builder, request->read_only[i], false, error))
            return false;
    for (size_t i = 0; i < request->read_write_count; i++)
        if (!add_policy_path(builder, request->read_write[i], true, error))
            return false;
    if (request->include_workdir &&
        !lists(request->read_write, request->read_write_count, request->home))
        return add_policy_path(builder, request->home, true, error);
    return true;
}

static bool add_base(struct builder *builder, struct error *error)
{
    for (size_t i = 0; i <= sizeof(BASE) / sizeof(BASE[0]); i++) {
        bool home = i == sizeof(BASE) / sizeof(BASE[0]);
        const char *path = home ? builder->request->home : BASE[i].path;
        if (policy_lists(builder->request, path))
            continue;
        CLEANUP_CLOSE int descriptor = open(path, O_PATH | O_CLOEXEC);
        if (descriptor >= 0 &&
            !add_descriptor(builder, descriptor, path, home || BASE[i].writable, error))
            return false;
    }
    return true;
}

/* Why there is no Landlock, in words. */
static const char *missing_reason(int errnum)
{
    return errnum == EOPNOTSUPP ? "it is disabled at boot (add landlock to the lsm= parameter)"
           : errnum == EPERM    ? "a filter around this process blocks it"
                                : "this kernel has none";
}

/* Checks what the kernel offers. Returns false with an error, or true with *ret_abi 0 when the
 * sandbox has to do without. */
static bool check_kernel(struct builder *builder, int *ret_abi, struct error *error)
{
    int abi = syscall_landlock_abi();
    *ret_abi = abi > 0 ? abi : 0;
    if (abi >= ABI_TRUNCATE)
        return true;
    char text[256];
    if (abi <= 0)
        snprintf(text, sizeof(text), "Landlock is not available: %s", missing_reason(errno));
    else
        snprintf(text, sizeof(text),
                 "Landlock here is version %d: it does not keep read-only files from being emptied "
                 "(version %d does)",
                 abi, ABI_TRUNCATE);
    if (builder->request->required)
        return error_set(error, ERROR_FAILED_PRECONDITION,
                         "the policy demands Landlock rules (hard_requirement): %s", text);
    warn(builder, "%s%s", text,
         abi <= 0 ? "; the policy's file rules are not enforced, only the sandbox's own root is"
                  : "");
    return true;
}

bool landlock_build(const struct landlock_request *request,
                    void (*on_warning)(const char *text, void *user), void *user, int *ret_ruleset,
                    int *ret_abi, struct error *error)
{
    struct landlock_request effective = *request;
    if (!request->has_filesystem) {
        effective.read_only = DEFAULT_READ_ONLY;
        effective.read_only_count = sizeof(DEFAULT_READ_ONLY) / sizeof(DEFAULT_READ_ONLY[0]);
        effective.read_write = DEFAULT_READ_WRITE;
        effective.read_write_count = sizeof(DEFAULT_READ_WRITE) / sizeof(DEFAULT_READ_WRITE[0]);
        effective.include_workdir = true;
    }
    struct builder builder = {.request = &effective, .on_warning = on_warning, .user = user};
    *ret_ruleset = -1;
    if (!check_kernel(&builder, ret_abi, error))
        return false;
    if (*ret_abi == 0)
        return true;
    if (effective.read_only_count + effective.read_write_count == 0 && !effective.include_workdir) {
        if (request->required)
            return error_set(error, ERROR_FAILED_PRECONDITION,
                             "the policy demands Landlock rules (hard_requirement) but names no "
                             "path");
        warn(&builder, "the policy names no path, so no Landlock rules are in force");
        return true;
    }
    builder.handled = handled_rights(*ret_abi);
    /* No signal scope: an exec must be able to signal main (decision P8). */
    struct landlock_ruleset attribute = {
        .handled_access_fs = builder.handled,
        .scoped = *ret_abi >= ABI_SCOPED ? LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET : 0,
    };
    builder.ruleset = syscall_landlock_create(
        &attribute, *ret_abi >= ABI_SCOPED ? sizeof(attribute) : sizeof(uint64_t));
    if (builder.ruleset < 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot make a Landlock ruleset");
    if (!add_policy(&builder, error) || !add_base(&builder, error)) {
        close(builder.ruleset);
        return false;
    }
    *ret_ruleset = builder.ruleset;
    return true;
}

bool landlock_enforce(int ruleset, struct error *error)
{
    if (syscall_landlock_restrict_self(ruleset) != 0)
        return error_set_errno(error, ERROR_FAILED_PRECONDITION, errno,
                               "cannot enforce the Landlock rules");
    return true;
}

bool landlock_probe(void)
{
    /* Owner and mode let everybody write there, and no policy grants it. */
    CLEANUP_CLOSE int file = open(LANDLOCK_WITHHELD, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return file < 0 && errno == EACCES;
}
