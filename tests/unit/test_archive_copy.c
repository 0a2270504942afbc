/* Copies of trees: what goes in at one end comes out at the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/link_table.h"
#include "archive/staging.h"
#include "archive/transfer.h"
#include "base/memory.h"
#include "base/text.h"
#include "tests/archive/place.h"

static void set_time(const char *path, time_t seconds, long nanoseconds)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {seconds, nanoseconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW), 0);
}

/* Copies and wants everything to arrive, and both trees to be the same. What is merged into gets
 * new times, of course. */
static void copy_exactly(const char *source, const char *directory, bool with_times)
{
    struct place_copy copy;
    place_copy_tree(source, source, directory, &copy);
    assert_string_equal(copy.send_error.message, "");
    assert_string_equal(copy.receive_error.message, "");
    assert_true(copy.send_good);
    assert_true(copy.receive_good);
    assert_int_equal(copy.sent.issue_count, 0);
    assert_int_equal(copy.received.issue_count, 0);
    assert_int_equal(copy.sent.entries, copy.received.entries);
    assert_int_equal(copy.sent.bytes, copy.received.bytes);
    place_copy_clear(&copy);
    CLEANUP_FREE char *path = memory_printf("%s/%s", directory, source);
    CLEANUP_FREE char *want = place_describe(source, with_times);
    CLEANUP_FREE char *have = place_describe(path, with_times);
    assert_string_equal(have, want);
    struct stat from, to;
    assert_int_equal(stat(source, &from), 0);
    assert_int_equal(stat(path, &to), 0);
    assert_int_equal(from.st_mode, to.st_mode);
    if (with_times)
        assert_int_equal(from.st_mtim.tv_nsec, to.st_mtim.tv_nsec);
}

static void test_tree(void **state)
{
    (void)state;
    place_directory("tree", 0755);
    place_directory("tree/empty", 0711);
    place_directory("tree/locked", 0700);
    place_file("tree/locked/inside", "data");
    place_directory("tree/locked/deeper", 0700);
    place_file("tree/locked/deeper/leaf", "leaf");
    place_file("tree/plain", "hello");
    place_file("tree/nothing", "");
    place_file("tree/program", "#!/bin/sh\n");
    place_file("tree/secret", "x");
    assert_int_equal(chmod("tree/program", 0755), 0);
    assert_int_equal(chmod("tree/secret", 0400), 0);
    assert_int_equal(symlink("plain", "tree/to-file"), 0);
    assert_int_equal(symlink("locked", "tree/to-directory"), 0);
    assert_int_equal(symlink("/etc/passwd", "tree/absolute"), 0);
    assert_int_equal(symlink("../../nowhere", "tree/dangling"), 0);
    assert_int_equal(symlink("b", "tree/a"), 0);
    assert_int_equal(symlink("a", "tree/b"), 0);
    assert_int_equal(link("tree/plain", "tree/second-name"), 0);
    assert_int_equal(link("tree/plain", "tree/locked/third-name"), 0);
    set_time("tree/plain", 1234567890, 123456789);
    set_time("tree/nothing", -86400, 999999999);
    set_time("tree/a", 5, 6);
    set_time("tree/secret", 0, 0);
    set_time("tree/locked/deeper", 900, 1);
    assert_int_equal(chmod("tree/locked/deeper", 0500), 0);
    assert_int_equal(chmod("tree/locked", 0500), 0);
    set_time("tree/locked", 1000, 1);
    set_time("tree", 2000, 2);
    place_directory("out", 0755);
    copy_exactly("tree", "out", true);
    /* Once more onto itself: replaced and merged. */
    if (geteuid() == 0)
        copy_exactly("tree", "out", false);
    assert_int_equal(place_count("out"), 1);
}

static void test_special_bits_are_dropped(void **state)
{
    (void)state;
    place_directory("tree", 01777);
    place_file("tree/program", "x");
    assert_int_equal(chmod("tree/program", 06755), 0);
    place_directory("out", 0755);
    struct place_copy copy;
    place_copy_tree("tree", "tree", "out", &copy);
    assert_true(copy.receive_good);
    struct stat status;
    assert_int_equal(stat("out/tree/program", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0755);
    assert_int_equal(stat("out/tree", &status), 0);
    assert_int_equal(status.st_mode & 07777, 0777);
    place_copy_clear(&copy);
}

static const char *const ODD_NAMES[] = {"p[1].q",
                                        "a*b",
                                        "a?b",
                                        "a b",
                                        " lead",
                                        "tr ",
                                        "a:b",
                                        "quote\"",
                                        "it's",
                                        "back\\slash",
                                        "$HOME",
                                        "~x",
                                        "{a,b}",
                                        "tab\there",
                                        "a\nb",
                                        "--checkpoint=1",
                                        "-rf",
                                        "\xF0\x9F\x98\x80",
                                        "\xC3\xA9",
                                        "e\xCC\x81",
                                        "\xFF",
                                        "\xC3(",
                                        "\x01\x02\x7F",
                                        "...",
                                        "%s%n",
                                        "C:\\x",
                                        "#",
                                        "=",
                                        "path=x",
                                        "12 path=y",
                                        "\xE2\x80\xAE"};

static void make_odd_names(const char *directory)
{
    for (size_t i = 0; i < sizeof(ODD_NAMES) / sizeof(ODD_NAMES[0]); i++) {
        CLEANUP_FREE char *path = memory_printf("%s/%s", directory, ODD_NAMES[i]);
        place_file(path, ODD_NAMES[i]);
        CLEANUP_FREE char *link = memory_printf("%s/link-%zu", directory, i);
        assert_int_equal(symlink(ODD_NAMES[i], link), 0);
    }
    char name[256] = "";
    for (int i = 0; i < 85; i++)
        strcat(name, "\xE4\xB8\x80");
    CLEANUP_FREE char *path = memory_printf("%s/%s", directory, name);
    place_file(path, "85 times three bytes");
    CLEANUP_FREE char *hard = memory_printf("%s/\xFE-hard", directory);
    assert_int_equal(link(path, hard), 0);
}

static void test_odd_names(void **state)
{
    (void)state;
    place_directory("tree", 0755);
    make_odd_names("tree");
    place_directory("tree/\xFFsub", 0755);
    make_odd_names("tree/\xFFsub");
    place_directory("out", 0755);
    copy_exactly("tree", "out", true);
    /* Each alone, too: another path through the code. */
    place_directory("alone", 0755);
    for (size_t i = 0; i < sizeof(ODD_NAMES) / sizeof(ODD_NAMES[0]); i++) {
        CLEANUP_FREE char *source = memory_printf("tree/%s", ODD_NAMES[i]);
        struct place_copy copy;
        place_copy_tree(source, ODD_NAMES[i], "alone", &copy);
        assert_true(copy.send_good && copy.receive_good && !copy.received.incomplete);
        place_copy_clear(&copy);
        CLEANUP_FREE char *arrived = memory_printf("alone/%s", ODD_NAMES[i]);
        assert_string_equal(place_read(arrived), ODD_NAMES[i]);
    }
}

/* Makes directories of `length`-byte names, `depth` deep, and goes back; writes the path. */
static void make_deep(const char *top, int depth, int length, char *path, size_t size)
{
    char name[256];
    memset(name, 'd', (size_t)length);
    name[length] = '\0';
    snprintf(path, size, "%s", top);
    place_directory(path, 0755);
    for (int i = 1; i < depth; i++) {
        size_t used = strlen(path);
        snprintf(path + used, size - used, "/%s", name);
        place_directory(path, 0755);
    }
}

static void test_long_and_deep_names(void **state)
{
    (void)state;
    char path[5000];
    make_deep("tree", 15, 250, path, sizeof(path));
    strcat(path, "/leaf");
    place_file(path, "far");
    place_directory("out", 0755);
    copy_exactly("tree", "out", true);

    make_deep("stairs", ARCHIVE_DEPTH_MAX - 1, 1, path, sizeof(path));
    strcat(path, "/leaf");
    place_file(path, "deep");
    copy_exactly("stairs", "out", true);
    copy_exactly("stairs", "out", false); /* merged all the way down */

    /* One step more is refused and named, and the rest arrives. */
    make_deep("steep", ARCHIVE_DEPTH_MAX, 1, path, sizeof(path));
    strcat(path, "/leaf");
    place_file(path, "too deep");
    place_file("steep/near", "near");
    struct place_copy copy;
    place_copy_tree("steep", "steep", "out", &copy);
    assert_true(copy.send_good && copy.receive_good);
    assert_int_equal(copy.sent.issue_count, 1);
    assert_true(place_issue(&copy.sent, ARCHIVE_ISSUE_REFUSED, "leaf"));
    assert_string_equal(place_read("out/steep/near"), "near");
    place_copy_clear(&copy);
}

static void write_at(int file, off_t offset, const char *text)
{
    assert_int_equal(pwrite(file, text, strlen(text), offset), (ssize_t)strlen(text));
}

static void test_sparse(void **state)
{
    (void)state;
    place_directory("tree", 0755);
    int file = open("tree/large", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    write_at(file, 0, "first");
    write_at(file, (off_t)3 << 30, "middle");
    write_at(file, ((off_t)9 << 30) + 12345, "last");
    assert_int_equal(ftruncate(file, ((off_t)10 << 30) + 7), 0);
    struct stat status;
    assert_int_equal(fstat(file, &status), 0);
    close(file);
    if (status.st_blocks * 512 > 1 << 20)
        skip(); /* no holes on this file system */
    file = open("tree/hole", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(ftruncate(file, (off_t)1 << 40), 0);
    close(file);
    file = open("tree/ends-with-data", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    write_at(file, 1 << 20, "data at the end");
    close(file);
    file = open("tree/many", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    for (int i = 0; i < ARCHIVE_EXTENTS_MAX + 500; i++)
        write_at(file, (off_t)i * 16384, "x");
    assert_int_equal(ftruncate(file, (off_t)(ARCHIVE_EXTENTS_MAX + 1000) * 16384), 0);
    close(file);
    place_directory("out", 0755);
    struct place_copy copy;
    place_copy_tree("tree", "tree", "out", &copy);
    assert_string_equal(copy.receive_error.message, "");
    assert_true(copy.send_good && copy.receive_good && !copy.received.incomplete);
    assert_true(copy.received.bytes < 64 << 20);
    place_copy_clear(&copy);

    static const char *const NAMES[] = {"large", "hole", "ends-with-data", "many"};
    for (size_t i = 0; i < 4; i++) {
        CLEANUP_FREE char *from = memory_printf("tree/%s", NAMES[i]);
        CLEANUP_FREE char *to = memory_printf("out/tree/%s", NAMES[i]);
        struct stat want, have;
        assert_int_equal(stat(from, &want), 0);
        assert_int_equal(stat(to, &have), 0);
        assert_int_equal(have.st_size, want.st_size);
        assert_true(have.st_blocks * 512 < 64 << 20);
    }
    char text[16] = "";
    file = open("out/tree/large", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(file, text, 6, (off_t)3 << 30), 6);
    assert_string_equal(text, "middle");
    assert_int_equal(pread(file, text, 15, ((off_t)9 << 30) + 12345), 15);
    assert_string_equal(text, "last");
    close(file);
    file = open("out/tree/many", O_RDONLY | O_CLOEXEC);
    for (int i = 0; i < ARCHIVE_EXTENTS_MAX + 500; i += 7) {
        assert_int_equal(pread(file, text, 2, (off_t)i * 16384), 2);
        assert_memory_equal(text, "x", 2);
    }
    close(file);
}

/* Runs a test as a user for whom permissions count. */
static void as_ordinary_user(CMUnitTestFunction body)
{
    void *nothing = NULL;
    if (geteuid() != 0) {
        body(&nothing);
        return;
    }
    assert_int_equal(chown(".", 65534, 65534), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) { /* a group of its own: a failure must not go on with the parent's tests */
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(3);
        const struct CMUnitTest tests[] = {{"as an ordinary user", body, NULL, NULL, NULL}};
        int failures = cmocka_run_group_tests(tests, NULL, NULL);
        fflush(NULL);
        _exit(failures);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void copy_unreadable(void **state)
{
    (void)state;
    place_directory("tree", 0755);
    place_file("tree/a", "a");
    place_file("tree/z", "z");
    place_file("tree/closed", "secret");
    place_directory("tree/m", 0700);
    place_file("tree/m/inside", "x");
    assert_int_equal(mkfifo("tree/p", 0644), 0);
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "tree/s"};
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(chmod("tree/closed", 0), 0);
    assert_int_equal(chmod("tree/m", 0), 0);
    place_directory("out", 0755);
    struct place_copy copy;
    place_copy_tree("tree", "tree", "out", &copy);
    assert_true(copy.send_good && copy.receive_good);
    assert_true(copy.sent.incomplete);
    assert_int_equal(copy.sent.issue_count, 4);
    assert_true(place_issue(&copy.sent, ARCHIVE_ISSUE_SPECIAL, "tree/p"));
    assert_true(place_issue(&copy.sent, ARCHIVE_ISSUE_SPECIAL, "tree/s"));
    assert_true(place_issue(&copy.sent, ARCHIVE_ISSUE_UNREADABLE, "tree/m"));
    assert_true(place_issue(&copy.sent, ARCHIVE_ISSUE_UNREADABLE, "tree/closed"));
    assert_string_equal(place_read("out/tree/a"), "a");
    assert_string_equal(place_read("out/tree/z"), "z");
    assert_false(place_exists("out/tree/closed"));
    assert_false(place_exists("out/tree/p"));
    struct stat status;
    assert_int_equal(stat("out/tree/m", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0);
    place_copy_clear(&copy);
    close(listener);
    assert_int_equal(chmod("tree/m", 0700), 0);
    assert_int_equal(chmod("out/tree/m", 0700), 0);
}

static void test_unreadable_and_special(void **state)
{
    (void)state;
    as_ordinary_user(copy_unreadable);
}

/* Directories without write permission move, merge and get their permissions for an ordinary user
 * as well. */
static void copy_locked(void **state)
{
    test_tree(state);
    assert_int_equal(chmod("tree/locked/deeper", 0700), 0);
    place_file("tree/locked/deeper/new", "new");
    assert_int_equal(chmod("tree/locked/deeper", 0500), 0);
    struct place_copy copy;
    place_copy_tree("tree", "tree", "out", &copy);
    /* Existing directories keep their permissions, so nothing new gets into a closed one. */
    assert_true(copy.receive_good && copy.received.incomplete);
    assert_true(place_issue(&copy.received, ARCHIVE_ISSUE_CONFLICT, "tree/locked/deeper/new"));
    assert_string_equal(place_read("out/tree/plain"), "hello");
    assert_int_equal(place_count("out"), 1);
    place_copy_clear(&copy);
    for (int i = 0; i < 2; i++) {
        CLEANUP_FREE char *locked = memory_printf("%stree/locked", i == 0 ? "" : "out/");
        CLEANUP_FREE char *deeper = memory_printf("%s/deeper", locked);
        assert_int_equal(chmod(locked, 0700), 0);
        assert_int_equal(chmod(deeper, 0700), 0);
    }
}

static void test_locked_directories(void **state)
{
    (void)state;
    if (geteuid() == 0)
        assert_int_equal(chmod(".", 0755), 0);
    as_ordinary_user(copy_locked);
}

static void test_named_special_source(void **state)
{
    (void)state;
    assert_int_equal(mkfifo("p", 0644), 0);
    assert_int_equal(symlink("/nope", "dangling"), 0);
    place_directory("out", 0755);
    static const struct {
        const char *path;
        enum error_code code;
    } CASES[] = {{"p", ERROR_FAILED_PRECONDITION},
                 {"missing", ERROR_NOT_FOUND},
                 {"dangling/x", ERROR_FAILED_PRECONDITION},
                 {"../x", ERROR_INVALID_ARGUMENT},
                 {"/etc", ERROR_INVALID_ARGUMENT},
                 {"out/../p", ERROR_INVALID_ARGUMENT},
                 {"", ERROR_INVALID_ARGUMENT},
                 {"dangling/", ERROR_FAILED_PRECONDITION}};
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct place_copy copy;
        place_copy_tree(CASES[i].path, "x", "out", &copy);
        assert_false(copy.send_good);
        assert_int_equal(copy.send_error.code, CASES[i].code);
        /* What arrived has no end, so nothing is placed. */
        assert_false(copy.receive_good);
        assert_int_equal(copy.receive_error.code, ERROR_DATA_LOSS);
        assert_int_equal(place_count("out"), 0);
        place_copy_clear(&copy);
    }
    /* A link is sent as a link, whatever it leads to. */
    struct place_copy copy;
    place_copy_tree("dangling", "dangling", "out", &copy);
    assert_true(copy.send_good && copy.receive_good && !copy.received.incomplete);
    char target[16] = "";
    assert_int_equal(readlink("out/dangling", target, sizeof(target)), 5);
    assert_string_equal(target, "/nope");
    place_copy_clear(&copy);
}

static void test_contents_without_a_name(void **state)
{
    (void)state;
    place_directory("tree", 0750);
    place_directory("tree/sub", 0755);
    place_file("tree/sub/f", "f");
    place_file("tree/g", "g");
    place_directory("out", 0711);
    struct place_copy copy;
    place_copy_tree("tree", "", "out", &copy);
    assert_true(copy.send_good && copy.receive_good && !copy.received.incomplete);
    assert_string_equal(place_read("out/sub/f"), "f");
    assert_int_equal(place_count("out"), 2);
    struct stat status;
    assert_int_equal(stat("out", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0711); /* an existing directory keeps what it has */
    place_copy_clear(&copy);
}

static void test_list(void **state)
{
    (void)state;
    place_directory("repo", 0755);
    place_directory("repo/src", 0750);
    place_directory("repo/src/deep", 0755);
    place_directory("repo/other", 0755);
    place_file("repo/src/a", "a");
    place_file("repo/src/deep/b\nb", "b");
    place_file("repo/src/unlisted", "no");
    place_file("repo/other/c", "c");
    assert_int_equal(symlink("/etc", "repo/out"), 0);
    static const char LIST[] = "src/a\0src/deep/b\nb\0gone\0other/c\0../escape\0/etc/passwd\0out/"
                               "passwd\0out\0src/deep/\0";
    place_file("empty", "");
    int list = open("list", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(list, LIST, sizeof(LIST) - 1), sizeof(LIST) - 1);
    lseek(list, 0, SEEK_SET);
    int base = place_open("repo");
    place_directory("dest", 0755);
    struct archive_send_options send = {.from = ARCHIVE_SOURCE_LIST,
                                        .base = base,
                                        .descriptor = list,
                                        .name = "repo",
                                        .control = {.cancel = -1}};
    struct archive_receive_options receive = place_receive_options();
    struct place_copy copy;
    place_copy(&send, "dest", &receive, &copy);
    assert_string_equal(copy.send_error.message, "");
    assert_true(copy.send_good && copy.receive_good);
    assert_int_equal(copy.received.issue_count, 0);
    assert_int_equal(copy.sent.absent, 1);
    assert_int_equal(copy.sent.issue_count, 3);
    assert_true(place_issue(&copy.sent, ARCHIVE_ISSUE_REFUSED, "../escape"));
    assert_true(place_issue(&copy.sent, ARCHIVE_ISSUE_REFUSED, "/etc/passwd"));
    assert_true(place_issue(&copy.sent, ARCHIVE_ISSUE_REFUSED, "out/passwd"));
    assert_string_equal(place_read("dest/repo/src/a"), "a");
    assert_string_equal(place_read("dest/repo/src/deep/b\nb"), "b");
    assert_string_equal(place_read("dest/repo/other/c"), "c");
    assert_false(place_exists("dest/repo/src/unlisted"));
    struct stat status;
    assert_int_equal(stat("dest/repo/src", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0750);
    assert_int_equal(lstat("dest/repo/out", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    place_copy_clear(&copy);
    close(list);
    close(base);
}

static void test_list_without_an_end(void **state)
{
    (void)state;
    place_directory("dest", 0755);
    place_file("list", "name-without-NUL");
    int base = place_open(".");
    struct archive_send_options send = {.from = ARCHIVE_SOURCE_LIST,
                                        .base = base,
                                        .descriptor = open("list", O_RDONLY | O_CLOEXEC),
                                        .control = {.cancel = -1}};
    struct archive_receive_options receive = place_receive_options();
    struct place_copy copy;
    place_copy(&send, "dest", &receive, &copy);
    assert_false(copy.send_good);
    assert_int_equal(copy.send_error.code, ERROR_INVALID_ARGUMENT);
    assert_false(copy.receive_good);
    place_copy_clear(&copy);
    close(send.descriptor);
    close(base);
}

/* Places one file under the name and into the directory that the test wants. */
struct single {
    const char *directory;
    const char *final_name;
    int output;
    bool created;
    enum archive_kind kind;
    char name[256];
    int calls;
};

static bool choose_single(void *data, enum archive_kind kind, const char *name,
                          struct archive_place *ret_place, struct error *error)
{
    (void)error;
    struct single *single = data;
    single->kind = kind;
    single->calls++;
    snprintf(single->name, sizeof(single->name), "%s", name);
    *ret_place = (struct archive_place){
        .directory = single->directory != NULL ? place_open(single->directory) : -1,
        .close_directory = true,
        .created = single->created,
        .output = single->output};
    snprintf(ret_place->final_name, sizeof(ret_place->final_name), "%s",
             single->final_name != NULL ? single->final_name : "");
    return true;
}

static void copy_single(const struct archive_send_options *send, struct single *single,
                        struct place_copy *copy)
{
    struct archive_receive_options receive = place_receive_options();
    receive.choose_place = choose_single;
    receive.choose_place_data = single;
    place_copy(send, NULL, &receive, copy);
}

static void test_single_file(void **state)
{
    (void)state;
    place_file("source", "new");
    place_directory("dest", 0755);
    place_file("dest/final", "old");
    place_file("dest/kept", "kept");
    int base = place_open(".");
    struct archive_send_options send = {
        .base = base, .path = "source", .name = "source", .control = {.cancel = -1}};
    struct single single = {.directory = "dest", .final_name = "final", .output = -1};
    struct place_copy copy;
    copy_single(&send, &single, &copy);
    assert_true(copy.receive_good && !copy.received.incomplete);
    assert_int_equal(single.kind, ARCHIVE_KIND_FILE);
    assert_string_equal(single.name, "source");
    assert_string_equal(place_read("dest/final"), "new");
    assert_int_equal(place_count("dest"), 2);
    place_copy_clear(&copy);

    /* Over a directory: refused, nothing lost. */
    place_directory("dest/box", 0755);
    place_file("dest/box/content", "precious");
    single.final_name = "box";
    copy_single(&send, &single, &copy);
    assert_true(copy.receive_good && copy.received.incomplete);
    assert_true(place_issue(&copy.received, ARCHIVE_ISSUE_CONFLICT, "box"));
    assert_string_equal(place_read("dest/box/content"), "precious");
    assert_int_equal(place_count("dest"), 3);
    place_copy_clear(&copy);

    /* A tree where one file was expected. */
    place_directory("tree", 0755);
    place_file("tree/a", "a");
    send.path = send.name = "tree";
    single.final_name = "final";
    copy_single(&send, &single, &copy);
    assert_true(copy.receive_good && copy.received.incomplete);
    assert_string_equal(place_read("dest/final"), "new");
    assert_int_equal(place_count("dest"), 3);
    assert_int_equal(single.kind, ARCHIVE_KIND_DIRECTORY);
    place_copy_clear(&copy);
    close(base);
}

static void test_file_to_a_descriptor(void **state)
{
    (void)state;
    int file = open("source", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    write_at(file, 100000, "after a hole");
    assert_int_equal(ftruncate(file, 200000), 0);
    close(file);
    int base = place_open(".");
    struct archive_send_options send = {
        .base = base, .path = "source", .name = "source", .control = {.cancel = -1}};
    struct single single = {.output = open("copy", O_RDWR | O_CREAT | O_CLOEXEC, 0644)};
    struct place_copy copy;
    copy_single(&send, &single, &copy);
    assert_true(copy.receive_good && !copy.received.incomplete);
    struct stat status;
    assert_int_equal(fstat(single.output, &status), 0);
    assert_int_equal(status.st_size, 200000);
    char text[16] = "";
    assert_int_equal(pread(single.output, text, 12, 100000), 12);
    assert_string_equal(text, "after a hole");
    close(single.output);
    place_copy_clear(&copy);
    close(base);
}

static void *write_slowly(void *data)
{
    int descriptor = *(int *)data;
    for (int i = 0; i < 3000; i++)
        if (write(descriptor, "0123456789\n", 11) != 11)
            break;
    close(descriptor);
    return NULL;
}

static void test_file_from_a_descriptor(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_slowly, &ends[1]), 0);
    struct archive_send_options send = {.from = ARCHIVE_SOURCE_DESCRIPTOR,
                                        .descriptor = ends[0],
                                        .name = "stdin",
                                        .control = {.cancel = -1}};
    struct archive_receive_options receive = place_receive_options();
    place_directory("dest", 0755);
    struct place_copy copy;
    place_copy(&send, "dest", &receive, &copy);
    pthread_join(thread, NULL);
    assert_string_equal(copy.send_error.message, "");
    assert_true(copy.send_good && copy.receive_good && !copy.received.incomplete);
    struct stat status;
    assert_int_equal(stat("dest/stdin", &status), 0);
    assert_int_equal(status.st_size, 33000);
    assert_int_equal(status.st_mode & 0777, 0644);
    place_copy_clear(&copy);
    close(ends[0]);
    /* An open file is sent as it is. */
    place_file("plain", "content");
    send.descriptor = open("plain", O_RDONLY | O_CLOEXEC);
    place_copy(&send, "dest", &receive, &copy);
    assert_true(copy.receive_good);
    assert_string_equal(place_read("dest/stdin"), "content");
    place_copy_clear(&copy);
    close(send.descriptor);
}

static void test_created_directory_gets_the_source_s(void **state)
{
    (void)state;
    place_directory("tree", 0755);
    place_file("tree/f", "f");
    assert_int_equal(chmod("tree", 0550), 0);
    set_time("tree", 777, 888);
    place_directory("dest", 0755);
    int base = place_open(".");
    struct archive_send_options send = {.base = base, .path = "tree", .control = {.cancel = -1}};
    struct single single = {.directory = "dest", .created = true, .output = -1};
    struct place_copy copy;
    copy_single(&send, &single, &copy);
    assert_true(copy.receive_good && !copy.received.incomplete);
    assert_int_equal(single.kind, ARCHIVE_KIND_CONTENTS);
    assert_int_equal(single.calls, 1);
    struct stat status;
    assert_int_equal(stat("dest", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0550);
    assert_int_equal(status.st_mtim.tv_sec, 777);
    assert_int_equal(status.st_mtim.tv_nsec, 888);
    assert_int_equal(place_count("dest"), 1);
    place_copy_clear(&copy);
    close(base);
}

static void test_merge(void **state)
{
    (void)state;
    place_directory("tree", 0755);
    place_directory("tree/both", 0755);
    place_file("tree/both/new", "new");
    place_file("tree/both/same", "newer");
    place_file("tree/file-here", "f");
    place_directory("tree/directory-here", 0755);
    place_file("tree/directory-here/inside", "i");
    place_directory("tree/directory-too", 0755);
    place_file("tree/directory-too/inside", "i");
    assert_int_equal(symlink("x", "tree/link-here"), 0);
    place_file("tree/was-link", "file now");

    place_directory("out", 0755);
    place_directory("out/tree", 0711);
    place_directory("out/tree/both", 0700);
    place_file("out/tree/both/same", "older");
    place_file("out/tree/both/own", "own");
    place_directory("out/tree/file-here", 0755);
    place_file("out/tree/file-here/precious", "p");
    place_file("out/tree/directory-here", "a file");
    place_directory("elsewhere", 0755);
    assert_int_equal(symlink("../../elsewhere", "out/tree/directory-too"), 0);
    place_directory("out/tree/link-here", 0755);
    place_file("target", "untouched");
    assert_int_equal(symlink("../../target", "out/tree/was-link"), 0);

    struct place_copy copy;
    place_copy_tree("tree", "tree", "out", &copy);
    assert_true(copy.send_good && copy.receive_good && copy.received.incomplete);
    assert_int_equal(copy.received.issue_count, 4);
    assert_true(place_issue(&copy.received, ARCHIVE_ISSUE_CONFLICT, "tree/file-here"));
    assert_true(place_issue(&copy.received, ARCHIVE_ISSUE_CONFLICT, "tree/directory-here"));
    assert_true(place_issue(&copy.received, ARCHIVE_ISSUE_CONFLICT, "tree/directory-too"));
    assert_true(place_issue(&copy.received, ARCHIVE_ISSUE_CONFLICT, "tree/link-here"));
    assert_string_equal(place_read("out/tree/both/new"), "new");
    assert_string_equal(place_read("out/tree/both/same"), "newer");
    assert_string_equal(place_read("out/tree/both/own"), "own");
    assert_string_equal(place_read("out/tree/file-here/precious"), "p");
    assert_string_equal(place_read("out/tree/directory-here"), "a file");
    assert_string_equal(place_read("out/tree/was-link"), "file now");
    assert_string_equal(place_read("target"), "untouched");
    assert_int_equal(place_count("elsewhere"), 0);
    struct stat status;
    assert_int_equal(stat("out/tree", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0711);
    assert_int_equal(stat("out/tree/both", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0700);
    assert_int_equal(place_count("out"), 1);
    place_copy_clear(&copy);
}

/* A file that changes while the sender waits for a full pipe to be read. */
static void change_while_sent(off_t new_size, const char *reason)
{
    place_directory("dest", 0755);
    enum { SIZE = 8 << 20 };
    int file = open("changing", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CLEANUP_FREE char *content = memory_allocate(SIZE);
    memset(content, 'c', SIZE);
    assert_int_equal(write(file, content, SIZE), SIZE);
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    int base = place_open(".");
    struct archive_send_options send = {
        .base = base, .path = "changing", .name = "changing", .control = {.cancel = -1}};
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        struct archive_summary summary;
        bool good = archive_send(ends[1], &send, &summary, NULL);
        _exit(good && summary.issue_count == 1 && summary.issues[0].kind == ARCHIVE_ISSUE_CHANGED &&
                      strcmp(summary.issues[0].reason, reason) == 0
                  ? 0
                  : 1);
    }
    close(ends[1]);
    int waiting = 0;
    while (waiting < 65536) /* the first pieces were read from the file, and no more fit */
        assert_int_equal(ioctl(ends[0], FIONREAD, &waiting), 0);
    assert_int_equal(ftruncate(file, new_size), 0);
    close(file);
    struct archive_summary summary;
    struct archive_receive_options receive = place_receive_options();
    int dest = place_open("dest");
    assert_true(archive_receive(ends[0], dest, &receive, &summary, NULL));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct stat arrived;
    assert_int_equal(stat("dest/changing", &arrived), 0);
    assert_int_equal(arrived.st_size, SIZE);
    archive_summary_clear(&summary);
    close(ends[0]);
    close(dest);
    close(base);
}

static void test_file_that_shrinks(void **state)
{
    (void)state;
    change_while_sent(4 << 20, "became shorter while it was read");
}

static void test_file_that_grows(void **state)
{
    (void)state;
    change_while_sent(9 << 20, "became longer while it was read");
}

static void count_progress(void *data, uint64_t bytes, uint64_t entries)
{
    (void)entries;
    uint64_t *calls = data;
    (*calls)++;
    assert_true(bytes <= (uint64_t)1 << 30);
}

static void test_progress(void **state)
{
    (void)state;
    int file = open("data", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CLEANUP_FREE char *content = memory_new(1 << 20);
    for (int i = 0; i < 64; i++)
        assert_int_equal(write(file, content, 1 << 20), 1 << 20);
    close(file);
    place_directory("out", 0755);
    uint64_t sent = 0, received = 0;
    int base = place_open(".");
    struct archive_send_options send = {
        .base = base, .path = "data", .name = "data", .control = {-1, count_progress, &sent}};
    struct archive_receive_options receive = {.control = {-1, count_progress, &received}};
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    struct place_copy copy;
    place_copy(&send, "out", &receive, &copy);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds =
        (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    assert_true(copy.receive_good);
    assert_true(sent >= 1 && received >= 1);
    assert_true((double)sent <= seconds * 10 + 1 && (double)received <= seconds * 10 + 1);
    place_copy_clear(&copy);
    close(base);
}

/* Both sides end at once when told, and the receiver leaves nothing. */
static void test_cancel(void **state)
{
    (void)state;
    place_directory("dest", 0755);
    place_file("dest/old", "old");
    int input[2], cancel[2];
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(cancel, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        close(input[1]);
        struct archive_receive_options receive = {.control = {.cancel = cancel[0]}};
        struct archive_summary summary;
        struct error error = {0};
        bool good = archive_receive(input[0], place_open("dest"), &receive, &summary, &error);
        _exit(!good && error.code == ERROR_CANCELLED ? 0 : 1);
    }
    /* A whole file and a half, then silence. */
    place_directory("tree", 0755);
    place_file("tree/a", "a");
    int base = place_open("."), spool = open("spool", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct archive_send_options send = {
        .base = base, .path = "tree", .name = "tree", .control = {.cancel = -1}};
    struct archive_summary summary;
    assert_true(archive_send(spool, &send, &summary, NULL));
    char archive[4096];
    assert_int_equal(pread(spool, archive, 1700, 0), 1700);
    assert_int_equal(write(input[1], archive, 1700), 1700);
    int waiting = 1;
    while (waiting > 0)
        assert_int_equal(ioctl(input[0], FIONREAD, &waiting), 0);
    assert_int_equal(write(cancel[1], "x", 1), 1);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(place_count("dest"), 1);

    /* A sender whose reader sleeps. */
    struct error error = {0};
    int file = open("big", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(posix_fallocate(file, 0, 8 << 20), 0);
    close(file);
    send.path = send.name = "big";
    send.control.cancel = cancel[0];
    assert_false(archive_send(input[1], &send, &summary, &error));
    assert_int_equal(error.code, ERROR_CANCELLED);
    char byte;
    assert_int_equal(read(cancel[0], &byte, 1), 1);
    /* Cancelled while it waits for a full pipe. */
    child = fork();
    if (child == 0) {
        bool good = archive_send(input[1], &send, &summary, &error);
        _exit(!good && error.code == ERROR_CANCELLED ? 0 : 1);
    }
    do
        assert_int_equal(ioctl(input[0], FIONREAD, &waiting), 0);
    while (waiting < 65536);
    assert_int_equal(write(cancel[1], "x", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(spool);
    close(base);
    close(input[0]);
    close(input[1]);
    close(cancel[0]);
    close(cancel[1]);
    error_clear(&error);
}

static void test_reader_that_goes_away(void **state)
{
    (void)state;
    int file = open("big", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(posix_fallocate(file, 0, 8 << 20), 0);
    close(file);
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    int base = place_open(".");
    struct archive_send_options send = {
        .base = base, .path = "big", .name = "big", .control = {.cancel = -1}};
    struct archive_summary summary;
    struct error error = {0};
    assert_false(archive_send(ends[1], &send, &summary, &error));
    assert_int_equal(error.code, ERROR_UNAVAILABLE);
    close(ends[1]);
    close(base);
    error_clear(&error);
}

/* What a killed receiver leaves is no final name, and goes with the next transfer; what a living
 * one uses stays. */
static void test_killed_receiver(void **state)
{
    (void)state;
    place_directory("dest", 0755);
    place_directory("tree", 0755);
    place_file("tree/a", "a");
    int input[2];
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        close(input[1]);
        struct archive_receive_options receive = place_receive_options();
        struct archive_summary summary;
        archive_receive(input[0], place_open("dest"), &receive, &summary, NULL);
        _exit(0);
    }
    int base = place_open("."), spool = open("spool", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    struct archive_send_options send = {
        .base = base, .path = "tree", .name = "tree", .control = {.cancel = -1}};
    struct archive_summary summary;
    assert_true(archive_send(spool, &send, &summary, NULL));
    char archive[4096];
    assert_int_equal(pread(spool, archive, 1700, 0), 1700);
    assert_int_equal(write(input[1], archive, 1700), 1700);
    while (place_count("dest") == 0)
        ;
    struct place_copy copy;
    place_copy_tree("tree", "tree", "dest", &copy); /* beside the one that still runs */
    assert_true(copy.receive_good);
    place_copy_clear(&copy);
    assert_int_equal(place_count("dest"), 2);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(place_count("dest"), 2);
    place_copy_tree("tree", "tree", "dest", &copy);
    assert_true(copy.receive_good);
    place_copy_clear(&copy);
    assert_int_equal(place_count("dest"), 1);
    close(spool);
    close(base);
    close(input[0]);
    close(input[1]);
}

static void test_link_table(void **state)
{
    (void)state;
    struct link_table table = {0};
    struct stat file = {.st_dev = 1, .st_ino = 1, .st_nlink = 3, .st_size = 10};
    assert_null(link_table_find(&table, &file));
    assert_true(link_table_add(&table, &file, "first"));
    assert_string_equal(link_table_find(&table, &file), "first");
    struct stat other = file;
    other.st_dev = 2;
    assert_null(link_table_find(&table, &other));
    assert_string_equal(link_table_find(&table, &file), "first");
    assert_int_equal(table.count, 0); /* its last name was found */
    assert_null(link_table_find(&table, &file));
    /* The number of a removed file, used again. */
    assert_true(link_table_add(&table, &file, "first"));
    other = file;
    other.st_ctim.tv_nsec = 1;
    assert_null(link_table_find(&table, &other));
    /* The bound. */
    for (unsigned i = 0; i < ARCHIVE_LINKS_MAX; i++) {
        file.st_ino = 1000 + i;
        assert_true(link_table_add(&table, &file, "name"));
    }
    file.st_ino = 1;
    assert_false(link_table_add(&table, &file, "name"));
    file.st_ino = 1000 + 17;
    assert_string_equal(link_table_find(&table, &file), "name");
    link_table_free(&table);
    assert_int_equal(table.count, 0);
}

#define PLACE_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLACE_TEST(test_tree),
        PLACE_TEST(test_special_bits_are_dropped),
        PLACE_TEST(test_odd_names),
        PLACE_TEST(test_long_and_deep_names),
        PLACE_TEST(test_sparse),
        PLACE_TEST(test_unreadable_and_special),
        PLACE_TEST(test_locked_directories),
        PLACE_TEST(test_named_special_source),
        PLACE_TEST(test_contents_without_a_name),
        PLACE_TEST(test_list),
        PLACE_TEST(test_list_without_an_end),
        PLACE_TEST(test_single_file),
        PLACE_TEST(test_file_to_a_descriptor),
        PLACE_TEST(test_file_from_a_descriptor),
        PLACE_TEST(test_created_directory_gets_the_source_s),
        PLACE_TEST(test_merge),
        PLACE_TEST(test_file_that_shrinks),
        PLACE_TEST(test_file_that_grows),
        PLACE_TEST(test_progress),
        PLACE_TEST(test_cancel),
        PLACE_TEST(test_reader_that_goes_away),
        PLACE_TEST(test_killed_receiver),
        cmocka_unit_test(test_link_table),
    };
    return cmocka_run_group_tests_name("archive copies", tests, NULL, NULL);
}
