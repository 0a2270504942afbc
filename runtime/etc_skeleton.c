#include "runtime/etc_skeleton.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "runtime/places.h"

/* On disk:
 *   CACHE/etc-XXXXXX/root      the skeleton
 *   CACHE/etc-XXXXXX/manifest  what it was made from
 *   CACHE/etc-XXXXXX/lock      locked shared by every sandbox that uses it
 *   CACHE/etc-current          link to the newest
 *   CACHE/etc.lock             held by who builds */

enum {
    BUILD_WAIT_MILLISECONDS = 30000,
    DEPTH_MAX = 16,
    FILE_SIZE_MAX = 16 * 1024 * 1024,
    MANIFEST_MAX = 1024 * 1024,
    ACQUIRE_ATTEMPTS = 8,
};

/* Changes with what the skeleton consists of. */
#define FORMAT "openshell etc skeleton 3\n"

const char *const ETC_SKELETON_MOUNTED[] = {"alternatives", "ssl/certs"};
const size_t ETC_SKELETON_MOUNTED_COUNT =
    sizeof(ETC_SKELETON_MOUNTED) / sizeof(ETC_SKELETON_MOUNTED[0]);

/* Names or patterns below the host's /etc. Only what is readable by everybody is taken. What may
 * hold a credential (gitconfig, npmrc, pip.conf) or a way to a host service is not here. */
static const char *const SOURCES[] = {
    "ImageMagick-*",
    "R",
    "alternatives",
    "bindresvport.blacklist",
    "crypto-policies",
    "debian_version",
    "emacs",
    "ethertypes",
    "fonts",
    "gai.conf",
    "gdb",
    "ghostscript",
    "groff",
    "host.conf",
    "inputrc",
    "java",
    "java-*",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "login.defs",
    "lsb-release",
    "magic",
    "magic.mime",
    "mailcap",
    "manpath.config",
    "maven",
    "mime.types",
    "nanorc",
    "netconfig",
    "networks",
    "os-release",
    "perl",
    "pki",
    "protocols",
    "python*",
    "rpc",
    "services",
    "sgml",
    "shells",
    "ssl",
    "terminfo",
    "timezone",
    "vim",
    "xml",
    "zsh",
};

/* Below a source, never taken: keys, and files that people put passwords and tokens into. */
static const char *const EXCLUDED[] = {
    "ssl/private",     "ssl/openssl.cnf",    "pki/private",
    "pki/tls/private", "maven/settings.xml", "maven/settings-security.xml",
    "R/Renviron.site",
};

static const struct generated {
    const char *path;
    const char *text;
} GENERATED[] = {
    /* Starts no process: an exec goes through it each time (decision P3). */
    {"profile", "# Read by every login shell; starts no process.\n"
                "if [ \"${BASH-}\" ] && [ \"${PS1-}\" ]; then\n"
                "    . /etc/bash.bashrc\n"
                "fi\n"},
    {"bash.bashrc", "# Read by every interactive bash; starts no process.\n"
                    "[ -z \"${PS1-}\" ] && return\n"
                    "shopt -s checkwinsize\n"
                    "PS1='\\u@\\h:\\w\\$ '\n"},
    {"nsswitch.conf", "passwd: files\n"
                      "group: files\n"
                      "shadow: files\n"
                      "hosts: files dns\n"
                      "networks: files\n"
                      "protocols: files\n"
                      "services: files\n"
                      "ethers: files\n"
                      "rpc: files\n"},
    {"ssl/openssl.cnf", "openssl_conf = default\n"
                        "[default]\n"
                        "ssl_conf = ssl\n"
                        "[ssl]\n"
                        "system_default = system\n"
                        "[system]\n"
                        "MinProtocol = TLSv1.2\n"
                        "CipherString = DEFAULT@SECLEVEL=2\n"
                        "[req]\n"
                        "distinguished_name = name\n"
                        "[name]\n"
                        "commonName = Common Name\n"},
    {"environment", ""},
    {"shadow", ""},
    {"gshadow", ""},
};

/* One line: what makes a source the same source as before. */
static void describe(struct buffer *manifest, const char *path, const struct stat *status)
{
    buffer_printf(manifest, "%o %llu %lld %lld.%09ld %lld.%09ld %s\n", status->st_mode,
                  (unsigned long long)status->st_ino, (long long)status->st_size,
                  (long long)status->st_mtim.tv_sec, status->st_mtim.tv_nsec,
                  (long long)status->st_ctim.tv_sec, status->st_ctim.tv_nsec, path);
}

static bool is_excluded(const char *path)
{
    for (size_t i = 0; i < sizeof(EXCLUDED) / sizeof(EXCLUDED[0]); i++)
        if (strcmp(path, EXCLUDED[i]) == 0)
            return true;
    return false;
}

static bool is_mounted(const char *path)
{
    for (size_t i = 0; i < ETC_SKELETON_MOUNTED_COUNT; i++)
        if (strcmp(path, ETC_SKELETON_MOUNTED[i]) == 0)
            return true;
    return false;
}

static bool matches_source(const char *name)
{
    for (size_t i = 0; i < sizeof(SOURCES) / sizeof(SOURCES[0]); i++)
        if (fnmatch(SOURCES[i], name, FNM_PERIOD) == 0)
            return true;
    return false;
}

struct copy {
    int etc;  /* the host's /etc */
    int root; /* the new skeleton */
    struct buffer *manifest;
    struct error *error;
};

static bool copy_file(const struct copy *copy, const char *path, mode_t mode)
{
    CLEANUP_CLOSE int from = openat(copy->etc, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (from < 0)
        return true; /* it went away; the manifest will differ */
    struct buffer content = BUFFER_INIT(FILE_SIZE_MAX);
    bool copied = file_read_descriptor(from, &content, copy->error);
    CLEANUP_CLOSE int to = -1;
    if (copied) {
        to = openat(copy->root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        copied = to >= 0 && file_write_all(to, content.data, content.length, NULL) &&
                 fchmod(to, (mode & 0111) != 0 ? 0755 : 0644) == 0;
        if (!copied)
            error_set_errno(copy->error, ERROR_INTERNAL, errno, "cannot write");
    }
    buffer_free(&content);
    if (!copied)
        error_prefix(copy->error, "copying '/etc/%s'", path);
    return copied;
}

/* A link stays one unless it leads where the sandbox has nothing. */
static bool copy_link(const struct copy *copy, const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(copy->etc, path, target, sizeof(target) - 1);
    if (length < 0)
        return true;
    target[length] = '\0';
    bool elsewhere = target[0] == '/' && !text_has_prefix(target, "/usr/") &&
                     !text_has_prefix(target, "/etc/") && !text_has_prefix(target, "/opt/");
    struct stat status;
    if (elsewhere && fstatat(copy->etc, path, &status, 0) == 0 && S_ISREG(status.st_mode) &&
        (status.st_mode & S_IROTH) != 0) {
        describe(copy->manifest, path, &status);
        return copy_file(copy, path, status.st_mode);
    }
    if (symlinkat(target, copy->root, path) != 0)
        return error_set_errno(copy->error, ERROR_INTERNAL, errno, "cannot link '/etc/%s'", path);
    return true;
}

static bool copy_entry(const struct copy *copy, const char *path, unsigned depth);

static bool copy_directory(const struct copy *copy, const char *path, unsigned depth)
{
    if (mkdirat(copy->root, path, 0755) != 0 && errno != EEXIST)
        return error_set_errno(copy->error, ERROR_INTERNAL, errno, "cannot make '%s'", path);
    if (is_mounted(path))
        return true;
    int directory = openat(copy->etc, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = directory >= 0 ? fdopendir(directory) : NULL;
    if (stream == NULL) {
        if (directory >= 0)
            close(directory);
        return true;
    }
    bool copied = true;
    struct dirent *entry;
    while (copied && (entry = readdir(stream)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        CLEANUP_FREE char *child = memory_printf("%s/%s", path, entry->d_name);
        copied = copy_entry(copy, child, depth + 1);
    }
    closedir(stream);
    return copied;
}

static bool copy_entry(const struct copy *copy, const char *path, unsigned depth)
{
    struct stat status;
    if (depth > DEPTH_MAX || is_excluded(path) || strchr(path, '\n') != NULL ||
        fstatat(copy->etc, path, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return true;
    if (S_ISLNK(status.st_mode)) {
        /* Changing a link changes its directory; only one at the top has none that is listed. */
        if (depth == 0)
            describe(copy->manifest, path, &status);
        return copy_link(copy, path);
    }
    if ((status.st_mode & S_IROTH) == 0)
        return true;
    if (S_ISDIR(status.st_mode)) {
        if (!is_mounted(path))
            describe(copy->manifest, path, &status);
        return copy_directory(copy, path, depth);
    }
    if (!S_ISREG(status.st_mode))
        return true;
    describe(copy->manifest, path, &status);
    return copy_file(copy, path, status.st_mode);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The names below /etc that match a source, sorted, NULL-terminated; owned by the caller. */
static char **list_sources(int etc)
{
    size_t count = 0;
    char **names = memory_new(sizeof(char *));
    int directory = openat(etc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = directory >= 0 ? fdopendir(directory) : NULL;
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        if (!matches_source(entry->d_name))
            continue;
        names = memory_resize(names, sizeof(char *) * (count + 2));
        names[count++] = memory_strdup(entry->d_name);
        names[count] = NULL;
    }
    if (stream != NULL)
        closedir(stream);
    qsort(names, count, sizeof(char *), compare_names);
    return names;
}

static void free_names(char **names)
{
    for (char **name = names; *name != NULL; name++)
        free(*name);
    free(names);
}

/* The head of a manifest: the format, this boot, and the list of sources that exist. A skeleton is
 * not synced, which takes longer than all the rest; so none is believed in after a crash. */
static void describe_sources(struct buffer *manifest, char *const *names)
{
    struct buffer boot = BUFFER_INIT(64);
    buffer_append_text(manifest, FORMAT);
    if (file_read("/proc/sys/kernel/random/boot_id", &boot, NULL))
        buffer_append_text(manifest, buffer_text(&boot));
    buffer_free(&boot);
    for (char *const *name = names; *name != NULL; name++)
        buffer_printf(manifest, "%s\n", *name);
    buffer_append_text(manifest, "--\n");
}

/* Whether a line of a manifest still describes its source. A link at the top was described as
 * itself and, where its target was copied, as that too. */
static bool is_unchanged(int etc, const char *line, size_t length)
{
    const char *path = line;
    for (int field = 0; field < 5 && path != NULL; field++) {
        path = memchr(path, ' ', length - (size_t)(path - line));
        path = path != NULL ? path + 1 : NULL;
    }
    if (path == NULL)
        return false;
    CLEANUP_FREE char *name = memory_new(length + 1);
    memcpy(name, path, length - (size_t)(path - line));
    bool same = false;
    const int flags[] = {AT_SYMLINK_NOFOLLOW, 0};
    for (size_t i = 0; i < 2 && !same; i++) {
        struct stat status;
        struct buffer now = BUFFER_INIT(2 * PATH_MAX);
        if (fstatat(etc, name, &status, flags[i]) == 0)
            describe(&now, name, &status);
        same = now.length == length + 1 && memcmp(now.data, line, length) == 0;
        buffer_free(&now);
    }
    return same;
}

/* Whether the sources are what they were when `manifest` was written. */
static bool is_current(const char *manifest)
{
    CLEANUP_CLOSE int etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (etc < 0)
        return false;
    struct buffer head = BUFFER_INIT(MANIFEST_MAX);
    char **names = list_sources(etc);
    describe_sources(&head, names);
    free_names(names);
    bool same = text_has_prefix(manifest, buffer_text(&head));
    const char *line = manifest + head.length;
    buffer_free(&head);
    while (same && *line != '\0') {
        size_t length = strcspn(line, "\n");
        same = is_unchanged(etc, line, length);
        line += length + (line[length] == '\n');
    }
    return same;
}

static bool write_generated(int root, struct error *error)
{
    if (mkdirat(root, "ssl", 0755) != 0 && errno != EEXIST)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make 'ssl'");
    for (size_t i = 0; i < sizeof(GENERATED) / sizeof(GENERATED[0]); i++) {
        CLEANUP_CLOSE int file =
            openat(root, GENERATED[i].path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (file < 0 ||
            !file_write_all(file, GENERATED[i].text, strlen(GENERATED[i].text), error) ||
            fchmod(file, 0644) != 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot write '%s'",
                                   GENERATED[i].path);
    }
    for (size_t i = 0; i < PLACES_ETC_FILES_COUNT; i++) {
        CLEANUP_CLOSE int file =
            openat(root, PLACES_ETC_FILES[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (file < 0)
            return error_set_errno(error, ERROR_INTERNAL, errno, "cannot write '%s'",
                                   PLACES_ETC_FILES[i]);
    }
    if (symlinkat("/proc/self/mounts", root, "mtab") != 0 && errno != EEXIST)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot write 'mtab'");
    return true;
}

static bool write_manifest(const char *path, const struct buffer *manifest, struct error *error)
{
    CLEANUP_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '%s'", path);
    return file_write_all(file, manifest->data, manifest->length, error);
}

/* Fills CACHE/etc-XXXXXX, an empty directory. */
static bool build_into(const char *version, struct error *error)
{
    CLEANUP_FREE char *root_path = memory_printf("%s/root", version);
    CLEANUP_FREE char *manifest_path = memory_printf("%s/manifest", version);
    CLEANUP_FREE char *lock_path = memory_printf("%s/lock", version);
    if (mkdir(root_path, 0755) != 0 || chmod(root_path, 0755) != 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '%s'", root_path);
    CLEANUP_CLOSE int lock = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CLEANUP_CLOSE int etc = open("/etc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP_CLOSE int root = open(root_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (lock < 0 || etc < 0 || root < 0)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot open '%s'", version);
    struct buffer manifest = BUFFER_INIT(MANIFEST_MAX);
    struct copy copy = {.etc = etc, .root = root, .manifest = &manifest, .error = error};
    char **names = list_sources(etc);
    describe_sources(&manifest, names);
    mode_t mask = umask(022);
    bool built = true;
    for (char **name = names; built && *name != NULL; name++)
        built = copy_entry(&copy, *name, 0);
    built =
        built && write_generated(root, error) && write_manifest(manifest_path, &manifest, error);
    umask(mask);
    free_names(names);
    buffer_free(&manifest);
    return built;
}

/* Removes versions that no sandbox uses any more. */
static void remove_old(const char *cache, const char *current)
{
    DIR *stream = opendir(cache);
    struct dirent *entry;
    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        if (fnmatch("etc-??????", entry->d_name, 0) != 0 || strcmp(entry->d_name, current) == 0)
            continue;
        CLEANUP_FREE char *version = memory_printf("%s/%s", cache, entry->d_name);
        CLEANUP_FREE char *lock_path = memory_printf("%s/lock", version);
        CLEANUP_CLOSE int lock = open(lock_path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0)
            continue;
        file_remove_tree(version, NULL);
    }
    if (stream != NULL)
        closedir(stream);
}

/* Builds a new version and makes it the current one. The caller holds the builder's lock. */
static bool build(const char *cache, struct error *error)
{
    CLEANUP_FREE char *version = memory_printf("%s/etc-XXXXXX", cache);
    if (mkdtemp(version) == NULL)
        return error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '%s'", version);
    CLEANUP_FREE char *link = memory_printf("%s/etc-current", cache);
    CLEANUP_FREE char *fresh = memory_printf("%s/.etc-current.new", cache);
    const char *name = strrchr(version, '/') + 1;
    bool built = build_into(version, error);
    unlink(fresh);
    if (built && (symlink(name, fresh) != 0 || rename(fresh, link) != 0))
        built = error_set_errno(error, ERROR_INTERNAL, errno, "cannot make '%s'", link);
    if (!built) {
        file_remove_tree(version, NULL);
        error_prefix(error, "building the sandbox's /etc");
        return false;
    }
    remove_old(cache, name);
    return true;
}

/* The current version, locked, when it is there and its sources are the same; else NULL. */
static char *take_current(const char *cache, int *ret_lock)
{
    char name[32];
    CLEANUP_FREE char *link = memory_printf("%s/etc-current", cache);
    ssize_t length = readlink(link, name, sizeof(name) - 1);
    if (length <= 0)
        return NULL;
    name[length] = '\0';
    CLEANUP_FREE char *lock_path = memory_printf("%s/%s/lock", cache, name);
    CLEANUP_FREE char *manifest_path = memory_printf("%s/%s/manifest", cache, name);
    int lock = open(lock_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat status;
    struct buffer manifest = BUFFER_INIT(MANIFEST_MAX);
    /* Locked and still linked: whoever removes it locks it first. */
    bool usable = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) == 0 && fstat(lock, &status) == 0 &&
                  status.st_nlink > 0 && file_read(manifest_path, &manifest, NULL) &&
                  is_current(buffer_text(&manifest));
    buffer_free(&manifest);
    if (!usable) {
        if (lock >= 0)
            close(lock);
        return NULL;
    }
    *ret_lock = lock;
    return memory_printf("%s/%s/root", cache, name);
}

char *etc_skeleton_acquire(const char *cache_directory, int *ret_lock, struct error *error)
{
    char *skeleton = take_current(cache_directory, ret_lock);
    if (skeleton != NULL)
        return skeleton;
    CLEANUP_FREE char *lock_path = memory_printf("%s/etc.lock", cache_directory);
    CLEANUP_CLOSE int lock = file_lock(lock_path, BUILD_WAIT_MILLISECONDS, error);
    if (lock < 0)
        return NULL;
    /* Another process may have built it meanwhile; and a source may change while it is built. */
    for (int attempt = 0; attempt < ACQUIRE_ATTEMPTS; attempt++) {
        skeleton = take_current(cache_directory, ret_lock);
        if (skeleton != NULL)
            return skeleton;
        if (!build(cache_directory, error))
            return NULL;
    }
    error_set(error, ERROR_UNAVAILABLE, "the host's /etc keeps changing while it is copied");
    return NULL;
}
