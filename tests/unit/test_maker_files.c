/* The parts of the process-maker that make and read files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "runtime/copied_root.h"
#include "runtime/etc_skeleton.h"
#include "runtime/maker_protocol.h"
#include "runtime/places.h"
#include "runtime/policy_path.h"

static char *make_directory(void)
{
    const char *parent = getenv("TMPDIR");
    char *path = memory_printf("%s/parts-XXXXXX", parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(path));
    return path;
}

static void remove_directory(char *path)
{
    assert_true(file_remove_tree(path, NULL));
    free(path);
}

static void write_text(const char *directory, const char *name, const char *text)
{
    CLEANUP_FREE char *path = memory_printf("%s/%s", directory, name);
    CLEANUP_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_true(file_write_all(file, text, strlen(text), NULL));
}

struct writable {
    const char *directory;
};

static bool is_writable(const char *directory, void *user)
{
    const struct writable *writable = user;
    size_t length = strlen(writable->directory);
    return strncmp(directory, writable->directory, length) == 0 &&
           (directory[length] == '\0' || directory[length] == '/');
}

static int try_policy_path(const char *root, const char *name, struct writable *writable)
{
    CLEANUP_FREE char *path = memory_printf("%s/%s", root, name);
    int descriptor = policy_path_open(path, is_writable, writable);
    int result = descriptor < 0 ? errno : 0;
    if (descriptor >= 0)
        close(descriptor);
    return result;
}

static void test_policy_path(void **state)
{
    (void)state;
    char *root = make_directory();
    CLEANUP_FREE char *theirs = memory_printf("%s/theirs", root);
    struct writable writable = {theirs};
    assert_int_equal(0, mkdir(theirs, 0755));
    write_text(root, "file", "x");
    CLEANUP_FREE char *ours_link = memory_printf("%s/ours-link", root);
    CLEANUP_FREE char *their_link = memory_printf("%s/theirs/link", root);
    CLEANUP_FREE char *mixed = memory_printf("%s/mixed", root);
    CLEANUP_FREE char *loop = memory_printf("%s/loop", root);
    CLEANUP_FREE char *absolute = memory_printf("%s/absolute", root);
    assert_int_equal(0, symlink("file", ours_link));
    assert_int_equal(0, symlink("/", their_link));
    assert_int_equal(0, symlink("theirs/link", mixed));
    assert_int_equal(0, symlink("loop", loop));
    assert_int_equal(0, symlink(theirs, absolute));

    assert_int_equal(0, try_policy_path(root, "file", &writable));
    assert_int_equal(0, try_policy_path(root, "theirs", &writable));
    assert_int_equal(0, try_policy_path(root, "ours-link", &writable));
    assert_int_equal(0, try_policy_path(root, "absolute", &writable));
    assert_int_equal(0, try_policy_path(root, "absolute/../file", &writable));
    assert_int_equal(ELOOP, try_policy_path(root, "theirs/link", &writable));
    assert_int_equal(ELOOP, try_policy_path(root, "theirs/link/etc", &writable));
    assert_int_equal(ELOOP, try_policy_path(root, "mixed", &writable));
    assert_int_equal(ELOOP, try_policy_path(root, "absolute/link", &writable));
    assert_int_equal(ELOOP, try_policy_path(root, "loop", &writable));
    assert_int_equal(ENOENT, try_policy_path(root, "missing", &writable));
    assert_int_equal(ENOENT, try_policy_path(root, "absolute/missing", &writable));
    remove_directory(root);
}

static void ignore_warning(const char *text, void *user)
{
    (void)text;
    unsigned *count = user;
    (*count)++;
}

/* Makes a source and a request to copy it. */
static struct copied_root_request make_source(char *root, int link)
{
    static char from[512], to[512];
    snprintf(from, sizeof(from), "%s/from", root);
    snprintf(to, sizeof(to), "%s/to", root);
    assert_int_equal(0, mkdir(from, 0755));
    assert_int_equal(0, mkdir(to, 0700));
    return (struct copied_root_request){
        .from = from, .state = to, .sandbox_name = "name", .link = link};
}

static struct stat look(const char *root, const char *name)
{
    struct stat status;
    CLEANUP_FREE char *path = memory_printf("%s/%s", root, name);
    assert_int_equal(0, lstat(path, &status));
    return status;
}

static void test_copied_root(void **state)
{
    (void)state;
    int ends[2];
    assert_true(message_socketpair(ends, NULL));
    char *root = make_directory();
    struct copied_root_request request = make_source(root, ends[0]);
    CLEANUP_FREE char *one = memory_printf("%s/from/one", root);
    CLEANUP_FREE char *two = memory_printf("%s/from/two", root);
    CLEANUP_FREE char *etc = memory_printf("%s/from/etc", root);
    CLEANUP_FREE char *fifo = memory_printf("%s/from/fifo", root);
    write_text(request.from, "one", "content");
    assert_int_equal(0, link(one, two));
    assert_int_equal(0, truncate(one, 1 << 30));
    assert_int_equal(0, chmod(one, 06751));
    assert_int_equal(0, mkdir(etc, 0755));
    assert_int_equal(0, chmod(etc, 0555));
    assert_int_equal(0, mkfifo(fifo, 0644));

    unsigned warnings = 0;
    struct error error = {0};
    assert_false(copied_root_exists(request.state));
    assert_true(copied_root_make(&request, ignore_warning, &warnings, &error));
    assert_true(copied_root_exists(request.state));
    assert_int_equal(1, warnings);
    struct stat first = look(request.state, "rootfs/one");
    struct stat second = look(request.state, "rootfs/two");
    assert_true(first.st_ino == second.st_ino && first.st_nlink == 2);
    assert_int_equal(1 << 30, first.st_size);
    assert_true(first.st_blocks < 1000);
    assert_int_equal(0751, first.st_mode & 07777);
    assert_int_equal(0755, look(request.state, "rootfs/etc").st_mode & 07777);
    assert_true(look(request.state, "rootfs/etc/hosts").st_size > 0);
    close(ends[0]);
    close(ends[1]);
    remove_directory(root);
}

/* The other end of the link is closed: nothing is left of the copy. */
static void test_copied_root_given_up(void **state)
{
    (void)state;
    int ends[2];
    assert_true(message_socketpair(ends, NULL));
    char *root = make_directory();
    struct copied_root_request request = make_source(root, ends[0]);
    write_text(request.from, "one", "content");
    close(ends[1]);
    unsigned warnings = 0;
    struct error error = {0};
    assert_false(copied_root_make(&request, ignore_warning, &warnings, &error));
    assert_int_equal(ERROR_CANCELLED, error.code);
    assert_false(copied_root_exists(request.state));
    CLEANUP_FREE char *partial = memory_printf("%s/rootfs.partial", request.state);
    assert_int_equal(-1, access(partial, F_OK));
    close(ends[0]);
    remove_directory(root);
}

/* A source that holds the copy's own place: it is not copied into itself. */
static void test_copied_root_of_itself(void **state)
{
    (void)state;
    int ends[2];
    assert_true(message_socketpair(ends, NULL));
    char *root = make_directory();
    struct copied_root_request request = make_source(root, ends[0]);
    request.from = root;
    unsigned warnings = 0;
    struct error error = {0};
    assert_true(copied_root_make(&request, ignore_warning, &warnings, &error));
    look(request.state, "rootfs/from");
    CLEANUP_FREE char *inner = memory_printf("%s/rootfs/to", request.state);
    assert_int_equal(-1, access(inner, F_OK));
    close(ends[0]);
    close(ends[1]);
    remove_directory(root);
}

static void test_copied_root_too_deep(void **state)
{
    (void)state;
    int ends[2];
    assert_true(message_socketpair(ends, NULL));
    char *root = make_directory();
    struct copied_root_request request = make_source(root, ends[0]);
    int here = open(request.from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(0, mkdirat(here, "d", 0755));
        int next = openat(here, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(here);
        here = next;
    }
    close(here);
    unsigned warnings = 0;
    struct error error = {0};
    assert_false(copied_root_make(&request, ignore_warning, &warnings, &error));
    assert_int_equal(ERROR_INVALID_ARGUMENT, error.code);
    close(ends[0]);
    close(ends[1]);
    remove_directory(root);
}

static void test_skeleton(void **state)
{
    (void)state;
    char *cache = make_directory();
    struct error error = {0};
    int first_lock = -1, second_lock = -1, third_lock = -1;
    CLEANUP_FREE char *first = etc_skeleton_acquire(cache, &first_lock, &error);
    CLEANUP_FREE char *second = etc_skeleton_acquire(cache, &second_lock, &error);
    assert_non_null(first);
    assert_non_null(second);
    assert_string_equal(first, second);
    look(first, "profile");
    look(first, "passwd");
    look(first, "nsswitch.conf");
    struct stat status = look(first, "ssl/openssl.cnf");
    assert_true(S_ISREG(status.st_mode));

    /* A manifest that does not describe the sources: built anew, the old one stays as long as it
     * is locked. */
    CLEANUP_FREE char *manifest = memory_printf("%s/../manifest", first);
    assert_int_equal(0, truncate(manifest, 10));
    CLEANUP_FREE char *third = etc_skeleton_acquire(cache, &third_lock, &error);
    assert_non_null(third);
    assert_string_not_equal(first, third);
    look(first, "profile");
    close(first_lock);
    close(second_lock);
    close(third_lock);
    remove_directory(cache);
}

static void test_places(void **state)
{
    (void)state;
    char *root = make_directory();
    CLEANUP_FREE char *state_directory = memory_printf("%s/state", root);
    CLEANUP_FREE char *cache = memory_printf("%s/cache", root);
    struct maker_config config = {
        .sandbox_name = "name",
        .state_directory = state_directory,
        .cache_directory = cache,
    };
    struct places places;
    struct error error = {0};
    assert_true(places_prepare(&config, &places, &error));
    places_release(&places);
    assert_int_equal(01777, look(state_directory, "tmp").st_mode & 07777);
    assert_int_equal(01777, look(state_directory, "var/tmp").st_mode & 07777);
    assert_true(S_ISLNK(look(state_directory, "var/run").st_mode));

    /* What the workload made of a place stays, whatever it is. */
    CLEANUP_FREE char *run = memory_printf("%s/var/run", state_directory);
    CLEANUP_FREE char *tmp = memory_printf("%s/var/tmp", state_directory);
    CLEANUP_FREE char *outside = memory_printf("%s/outside", root);
    assert_int_equal(0, mkdir(outside, 0700));
    assert_int_equal(0, unlink(run));
    assert_int_equal(0, rmdir(tmp));
    assert_int_equal(0, symlink(outside, tmp));
    assert_true(places_prepare(&config, &places, &error));
    places_release(&places);
    assert_int_equal(-1, access(run, F_OK));
    assert_int_equal(0700, look(root, "outside").st_mode & 07777);
    remove_directory(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy_path),
        cmocka_unit_test(test_copied_root),
        cmocka_unit_test(test_copied_root_given_up),
        cmocka_unit_test(test_copied_root_of_itself),
        cmocka_unit_test(test_copied_root_too_deep),
        cmocka_unit_test(test_skeleton),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
