#include "runtime/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "runtime/etc_skeleton.h"
#include "runtime/namespaces.h"

const char *const PLACES_WRITABLE[] = {"var", "run", "tmp", "home", "sandbox"};
const size_t PLACES_WRITABLE_COUNT = sizeof(PLACES_WRITABLE) / sizeof(PLACES_WRITABLE[0]);

const char *const PLACES_ETC_FILES[] = {"passwd", "group", "hosts", "resolv.conf", "hostname"};
const size_t PLACES_ETC_FILES_COUNT = sizeof(PLACES_ETC_FILES) / sizeof(PLACES_ETC_FILES[0]);

/* What a new place holds. A `link` is a symbolic link to that text. */
static const struct entry {
    const char *path;
    const char *link;
    mode_t mode;
} ENTRIES[] = {
    {"var", NULL, 0755},          {"var/backups", NULL, 0755},
    {"var/cache", NULL, 0755},    {"var/lib", NULL, 0755},
    {"var/local", NULL, 0755},    {"var/log", NULL, 0755},
    {"var/mail", NULL, 0755},     {"var/opt", NULL, 0755},
    {"var/spool", NULL, 0755},    {"var/spool/mail", "../mail", 0},
    {"var/tmp", NULL, 01777},     {"var/run", "/run", 0},
    {"var/lock", "/run/lock", 0}, {"run", NULL, 0755},
    {"run/lock", NULL, 01777},    {"run/shm", "/dev/shm", 0},
    {"run/user", NULL, 0755},     {"run/user/1000", NULL, 0700},
    {"tmp", NULL, 01777},         {"home", NULL, 0755},
    {"sandbox", NULL, 0755},
};

/* The host id that the workload has unless the policy chooses another one. */
static uid_t workload_host_id(const struct maker_config *config)
{
    return config->host_id_base + NAMESPACE_WORKLOAD_ID;
}

static bool make_entry(int directory, const char *path, const struct entry *entry,
                       const struct maker_config *config, struct error *error)
{
    bool made = entry->link != NULL ? symlinkat(entry->link, directory, path) == 0
                                    : mkdirat(directory, path, 0700) == 0 &&
                                          fchmodat(directory, path, entry->mode, 0) == 0;
    if (made && config->host_id_base != 0)
        made = fchownat(directory, path, workload_host_id(config), workload_host_id(config),
                        AT_SYMLINK_NOFOLLOW) == 0;
    return made || error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '%s'", path);
}

/* Builds one place under a name of its own and renames it: it is whole, or not there. */
static bool make_place(const char *state, int directory, const char *name,
                       const struct maker_config *config, struct error *error)
{
    if (faccessat(directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    CLEANUP_FREE char *fresh = memory_printf(".%s.new", name);
    CLEANUP_FREE char *fresh_path = memory_printf("%s/%s", state, fresh);
    if (!file_remove_tree(fresh_path, error))
        return false;
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof(ENTRIES) / sizeof(ENTRIES[0]); i++) {
        const char *path = ENTRIES[i].path;
        if (strncmp(path, name, length) != 0 || (path[length] != '\0' && path[length] != '/'))
            continue;
        CLEANUP_FREE char *target = memory_printf("%s%s", fresh, path + length);
        if (!make_entry(directory, target, &ENTRIES[i], config, error))
            return false;
    }
    if (renameat(directory, fresh, directory, name) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '%s/%s'", state, name);
    return true;
}

/* Writes unless the content is there already. These files can be made again, so no sync. */
static bool write_small(int directory, const char *name, const char *text, struct error *error)
{
    char present[4096];
    size_t length = strlen(text);
    int old = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = old >= 0 ? read(old, present, sizeof(present)) : -1;
    if (old >= 0)
        close(old);
    if (got == (ssize_t)length && memcmp(present, text, length) == 0)
        return true;
    CLEANUP_FREE char *fresh = memory_printf(".%s.new", name);
    unlinkat(directory, fresh, 0);
    CLEANUP_CLOSE int file =
        openat(directory, fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0 || fchmod(file, 0644) != 0 || !file_write_all(file, text, length, NULL) ||
        renameat(directory, fresh, directory, name) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot write '%s'", name);
    return true;
}

char *places_passwd(uid_t user_id, gid_t group_id)
{
    return memory_printf("root:x:0:0:root:/root:/usr/sbin/nologin\n"
                         "sandbox:x:%u:%u:sandbox:/sandbox:/bin/bash\n"
                         "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
                         user_id, group_id);
}

char *places_group(gid_t group_id)
{
    return memory_printf("root:x:0:\n"
                         "tty:x:5:\n"
                         "sandbox:x:%u:\n"
                         "nogroup:x:65534:\n",
                         group_id);
}

static bool write_etc(const char *path, const struct maker_config *config, struct error *error)
{
    if (!file_make_private_directory(path, error))
        return false;
    CLEANUP_CLOSE int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* The overlay takes the mode of the sandbox's /etc from here. */
    if (directory < 0 || fchmod(directory, 0755) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '%s'", path);
    CLEANUP_FREE char *hosts = memory_printf("127.0.0.1\tlocalhost\n"
                                             "::1\tlocalhost ip6-localhost ip6-loopback\n"
                                             "127.0.1.1\t%s\n",
                                             config->sandbox_name);
    CLEANUP_FREE char *host_name = memory_printf("%s\n", config->sandbox_name);
    CLEANUP_FREE char *passwd = places_passwd(NAMESPACE_WORKLOAD_ID, NAMESPACE_WORKLOAD_ID);
    CLEANUP_FREE char *group = places_group(NAMESPACE_WORKLOAD_ID);
    return write_small(directory, "passwd", passwd, error) &&
           write_small(directory, "group", group, error) &&
           write_small(directory, "hosts", hosts, error) &&
           write_small(directory, "resolv.conf",
                       "# No resolver: this network has a loopback only.\n", error) &&
           write_small(directory, "hostname", host_name, error);
}

static bool prepare_composed(const struct maker_config *config, struct places *places,
                             struct error *error)
{
    CLEANUP_CLOSE int state = open(places->state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (state < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '%s'", places->state);
    for (size_t i = 0; i < PLACES_WRITABLE_COUNT; i++)
        if (!make_place(places->state, state, PLACES_WRITABLE[i], config, error))
            return false;
    if (!write_etc(places->etc, config, error))
        return false;
    places->host_sockets = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
    places->skeleton = etc_skeleton_acquire(config->cache_directory, &places->skeleton_lock, error);
    return places->skeleton != NULL;
}

bool places_prepare(const struct maker_config *config, struct places *ret_places,
                    struct error *error)
{
    struct places places = {
        .state = memory_strdup(config->state_directory),
        .etc = memory_printf("%s/etc", config->state_directory),
        .empty = memory_printf("%s/empty", config->cache_directory),
        .skeleton_lock = -1,
        .host_sockets = -1,
    };
    bool made = file_make_private_directory(places.state, error) &&
                file_make_private_directory(config->cache_directory, error) &&
                file_make_private_directory(places.empty, error);
    /* An overlay takes the mode of its topmost directory. */
    if (made && chmod(places.empty, 0755) != 0)
        made = error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '%s'", places.empty);
    if (made && config->from_directory == NULL)
        made = prepare_composed(config, &places, error);
    else if (made)
        places.rootfs = memory_printf("%s/rootfs", config->state_directory);
    if (!made) {
        places_release(&places);
        return false;
    }
    *ret_places = places;
    return true;
}

void places_release(struct places *places)
{
    free(places->state);
    free(places->etc);
    free(places->empty);
    free(places->skeleton);
    free(places->rootfs);
    if (places->skeleton_lock >= 0)
        close(places->skeleton_lock);
    if (places->host_sockets >= 0)
        close(places->host_sockets);
    *places = (struct places){.skeleton_lock = -1, .host_sockets = -1};
}
