/* Archives made to do harm, or damaged on the way, against the receiver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/remove.h"
#include "archive/transfer.h"
#include "base/memory.h"
#include "base/text.h"
#include "tests/archive/place.h"
#include "tests/archive/tar_maker.h"

/* "dest" to receive into, beside "outside" that nobody may touch. */
static int set_up(void **state)
{
    if (place_set_up(state) != 0)
        return 1;
    place_directory("dest", 0755);
    place_directory("outside", 0755);
    place_file("outside/victim", "untouched");
    return 0;
}

static int tear_down(void **state)
{
    bool untouched = place_count("outside") == 1 &&
                     strcmp(place_read("outside/victim"), "untouched") == 0 &&
                     place_count(".") == 2;
    int result = place_tear_down(state);
    return untouched ? result : 1;
}

/* Receives with our rules, and frees the archive. */
static bool receive(struct tar_maker *tar, struct archive_summary *summary, struct error *error)
{
    struct archive_receive_options options = place_receive_options();
    bool received = place_receive(tar->data, tar->length, 0, "dest", &options, summary, error);
    tar_free(tar);
    return received;
}

/* Ends the archive properly, and wants exactly these entries refused, the rest received. */
static void expect_refused(struct tar_maker *tar, size_t count, const char *const *names,
                           const char *reason)
{
    struct archive_summary summary;
    struct error error = {0};
    tar_file(tar, "good", "good");
    tar_end(tar);
    bool received = receive(tar, &summary, &error);
    assert_string_equal(error.message, "");
    assert_true(received);
    assert_true(summary.incomplete);
    for (size_t i = 0; i < count; i++) {
        assert_true(place_issue(&summary, ARCHIVE_ISSUE_REFUSED, names[i]));
        if (reason != NULL)
            assert_non_null(strstr(summary.issues[i].reason, reason));
    }
    assert_int_equal(summary.issue_count, count);
    assert_string_equal(place_read("dest/good"), "good");
    archive_summary_clear(&summary);
}

/* Wants the whole archive refused, and nothing placed. */
static void expect_damaged(struct tar_maker *tar)
{
    struct archive_summary summary;
    struct error error = {0};
    assert_false(receive(tar, &summary, &error));
    assert_int_equal(error.code, ERROR_DATA_LOSS);
    assert_int_equal(place_count("dest"), 0);
    archive_summary_clear(&summary);
    error_clear(&error);
}

static void test_traversal(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    static const char *const NAMES[] = {
        "../outside/evil",   "a/../../outside/evil", "..", "x/..",
        "./../outside/evil", "a/b/../../..",
    };
    for (size_t i = 0; i < 6; i++)
        tar_file(&tar, NAMES[i], "evil");
    expect_refused(&tar, 6, NAMES, "..");
    assert_int_equal(place_count("dest"), 1);
    for (size_t i = 0; i < 6; i++)
        tar_directory(&tar, NAMES[i], 0755);
    expect_refused(&tar, 6, NAMES, "..");
    for (size_t i = 0; i < 6; i++)
        tar_symlink(&tar, NAMES[i], "x");
    expect_refused(&tar, 6, NAMES, "..");
    assert_int_equal(place_count("dest"), 1);
}

static void test_absolute(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    char path[4096];
    assert_non_null(getcwd(path, sizeof(path) - 32));
    strcat(path, "/outside/evil");
    const char *const names[] = {path, "/evil-openshell-test", "//evil-openshell-test"};
    for (size_t i = 0; i < 3; i++)
        tar_file(&tar, names[i], "evil");
    expect_refused(&tar, 3, names, "absolute");
    assert_false(place_exists("/evil-openshell-test"));
}

/* The name in an extended header counts, and that is what is checked. */
static void test_name_overrides(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_pax_text(&tar, 'x', "path", "../outside/evil");
    tar_file(&tar, "innocent-1", "evil");
    tar_gnu_long(&tar, 'L', "../outside/evil2", 17);
    tar_file(&tar, "innocent-2", "evil");
    tar_pax_text(&tar, 'x', "GNU.sparse.name", "/evil-openshell-test");
    tar_file(&tar, "innocent-3", "evil");
    /* As if the header were binary, and with the record twice. */
    tar_pax(
        &tar, 'x',
        (struct tar_record[]){{"hdrcharset", "BINARY", 6}, {"path", "fine", 4}, {"path", "..", 2}},
        3);
    tar_file(&tar, "innocent-4", "evil");
    static const char *const NAMES[] = {"../outside/evil", "../outside/evil2", ".."};
    struct archive_summary summary;
    struct error error = {0};
    tar_end(&tar);
    assert_true(receive(&tar, &summary, &error));
    for (size_t i = 0; i < 3; i++)
        assert_true(place_issue(&summary, ARCHIVE_ISSUE_REFUSED, NAMES[i]));
    /* GNU.sparse.name counts only in sparse entries; this one may keep its own name. */
    assert_int_equal(summary.issue_count, 3 + (place_exists("dest/innocent-3") ? 0 : 1));
    assert_false(place_exists("/evil-openshell-test"));
    archive_summary_clear(&summary);
}

static void test_through_links(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_symlink(&tar, "x", "../outside");
    tar_file(&tar, "x/evil", "evil");
    tar_symlink(&tar, "y", "/");
    tar_file(&tar, "y/evil-openshell-test", "evil");
    tar_directory(&tar, "x", 0777);
    tar_directory(&tar, "x/sub", 0777);
    tar_symlink(&tar, "x/link", "z");
    tar_file(&tar, "f", "a file");
    tar_file(&tar, "f/below", "evil");
    tar_symlink(&tar, "v", "../outside/victim");
    tar_file(&tar, "v", "evil");
    tar_hard_link(&tar, "h", "v/x");
    tar_hard_link(&tar, "x/h", "f");
    static const char *const NAMES[] = {
        "x/evil", "y/evil-openshell-test", "x", "x/sub", "x/link", "f/below", "v", "h", "x/h"};
    expect_refused(&tar, 9, NAMES, NULL);
    assert_false(place_exists("/evil-openshell-test"));
    struct stat status;
    assert_int_equal(lstat("dest/x", &status), 0);
    assert_true(S_ISLNK(status.st_mode));

    /* A second pass over what the first one left, with real things where the links are. */
    tar_directory(&tar, "x", 0777);
    tar_file(&tar, "x/evil", "evil");
    tar_file(&tar, "v", "a file now");
    tar_directory(&tar, "y", 0777);
    tar_file(&tar, "y/evil-openshell-test", "evil");
    tar_end(&tar);
    struct archive_summary summary;
    assert_true(receive(&tar, &summary, NULL));
    assert_true(summary.incomplete);
    assert_true(place_issue(&summary, ARCHIVE_ISSUE_CONFLICT, "x"));
    assert_true(place_issue(&summary, ARCHIVE_ISSUE_CONFLICT, "y"));
    assert_int_equal(summary.issue_count, 2);
    assert_string_equal(place_read("dest/v"), "a file now");
    assert_false(place_exists("/evil-openshell-test"));
    archive_summary_clear(&summary);
}

static void test_hard_links(void **state)
{
    (void)state;
    char absolute[4096];
    assert_non_null(getcwd(absolute, sizeof(absolute) - 32));
    strcat(absolute, "/outside/victim");
    place_file("dest/already-there", "private");
    struct tar_maker tar = {0};
    tar_hard_link(&tar, "h1", "../outside/victim");
    tar_hard_link(&tar, "h2", absolute);
    tar_hard_link(&tar, "h3", "/etc/passwd");
    tar_hard_link(&tar, "h4", "missing");
    tar_hard_link(&tar, "h5", "already-there"); /* not of this archive */
    tar_directory(&tar, "d", 0755);
    tar_hard_link(&tar, "h6", "d");
    tar_symlink(&tar, "l", "../outside");
    tar_hard_link(&tar, "h7", "l/victim");
    tar_hard_link(&tar, "h8", ".");
    tar_hard_link(&tar, "h9", "h9");
    static const char *const NAMES[] = {"h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8", "h9"};
    tar_file(&tar, "first", "first");
    tar_hard_link(&tar, "d/second", "first");
    tar_hard_link(&tar, "d/second", "first"); /* twice: nothing to do */
    tar_hard_link(&tar, "first", "first");
    tar_hard_link(&tar, "third", "./d/./second");
    /* A file of this name later is a new file: the other names keep the old content. */
    tar_file(&tar, "first", "rewritten");
    expect_refused(&tar, 9, NAMES, NULL);
    struct stat first, second, third, victim;
    assert_int_equal(stat("dest/d/second", &second), 0);
    assert_int_equal(stat("dest/third", &third), 0);
    assert_int_equal(stat("dest/first", &first), 0);
    assert_true(second.st_ino == third.st_ino && first.st_ino != second.st_ino);
    assert_string_equal(place_read("dest/third"), "first");
    assert_string_equal(place_read("dest/first"), "rewritten");
    assert_int_equal(stat("outside/victim", &victim), 0);
    assert_int_equal(victim.st_nlink, 1);
    assert_string_equal(place_read("dest/already-there"), "private");
}

static void test_special_files(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_special(&tar, "character", '3');
    tar_special(&tar, "block", '4');
    tar_special(&tar, "fifo", '6');
    static const char *const NAMES[] = {"character", "block", "fifo"};
    expect_refused(&tar, 3, NAMES, NULL);
    assert_false(place_exists("dest/character"));
    assert_false(place_exists("dest/block"));
    assert_false(place_exists("dest/fifo"));
    /* A regular file with a slash at the end is an old way to write a directory; with data it is
     * none, and a link is no directory either. */
    tar_file(&tar, "old-directory/", "");
    tar_symlink(&tar, "link/", "x");
    static const char *const LINK[] = {"link/"};
    expect_refused(&tar, 1, LINK, NULL);
    struct stat status;
    assert_int_equal(stat("dest/old-directory", &status), 0);
    assert_true(S_ISDIR(status.st_mode));
    assert_int_equal(rmdir("dest/old-directory"), 0);
    assert_int_equal(unlink("dest/good"), 0);
    tar_file(&tar, "file/", "data");
    tar_end(&tar);
    expect_damaged(&tar);
}

static void test_top_is_only_a_directory(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_directory(&tar, "./", 0000);
    tar_file(&tar, ".", "evil");
    tar_symlink(&tar, "././.", "x");
    tar_hard_link(&tar, ".", "good");
    static const char *const NAMES[] = {".", "././.", "."};
    expect_refused(&tar, 3, NAMES, NULL);
    struct stat status;
    assert_int_equal(stat("dest", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0755);
}

static void test_duplicates(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_file(&tar, "f", "first");
    tar_file(&tar, "./f", "last");
    tar_directory(&tar, "d", 0700);
    tar_file(&tar, "d/x", "x");
    tar_directory(&tar, "d", 0711); /* the last word on permissions; what is in it stays */
    tar_file(&tar, "d", "a file over a directory");
    tar_directory(&tar, "f", 0755);
    tar_symlink(&tar, "l", "x");
    tar_symlink(&tar, "l", "y");
    tar_symlink(&tar, "f", "y");
    static const char *const NAMES[] = {"d", "f", "l", "f"};
    expect_refused(&tar, 4, NAMES, "another entry of this name");
    assert_string_equal(place_read("dest/f"), "last");
    assert_string_equal(place_read("dest/d/x"), "x");
    struct stat status;
    assert_int_equal(stat("dest/d", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0711);
    char target[8] = "";
    assert_int_equal(readlink("dest/l", target, sizeof(target)), 1);
    assert_string_equal(target, "x");
}

static void test_nul_and_odd_names(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_pax(&tar, 'x', &(struct tar_record){"path", "a\0b", 3}, 1);
    tar_file(&tar, "n1", "x");
    tar_gnu_long(&tar, 'L', "c\0d", 4);
    tar_file(&tar, "n2", "x");
    tar_pax(&tar, 'x', &(struct tar_record){"linkpath", "good\0/../x", 10}, 1);
    tar_hard_link(&tar, "n3", "good");
    static const char *const NAMES[] = {"a", "c", "n3"};
    tar_file(&tar, "line\nbreak", "1");
    tar_file(&tar, "\x1b[31mred", "2");
    tar_file(&tar, "\xFF\xFE", "3");
    tar_file(&tar, "-rf", "4");
    expect_refused(&tar, 3, NAMES, "NUL");
    assert_string_equal(place_read("dest/line\nbreak"), "1");
    assert_string_equal(place_read("dest/\x1b[31mred"), "2");
    assert_string_equal(place_read("dest/\xFF\xFE"), "3");
    assert_string_equal(place_read("dest/-rf"), "4");
    assert_false(place_exists("dest/a"));
    assert_false(place_exists("dest/c"));
    assert_false(place_exists("dest/n3"));
}

/* Names in the summary cannot act on a terminal. */
static void test_names_are_escaped(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_file(&tar, "../\x1b]0;title\a\n", "x");
    char *shown = text_escaped("../\x1b]0;title\a\n");
    assert_null(strchr(shown, '\x1b'));
    const char *const names[] = {shown};
    expect_refused(&tar, 1, names, NULL);
    free(shown);
}

static void test_long_names(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    char *name = memory_new(100001);
    memset(name, 'n', 100000);
    static const size_t LENGTHS[] = {255, 256, 4095, 4096, 60000};
    for (size_t i = 0; i < 5; i++) {
        tar_pax(&tar, 'x', &(struct tar_record){"path", name, LENGTHS[i]}, 1);
        tar_file(&tar, "long", "x");
    }
    tar_gnu_long(&tar, 'L', name, 50001);
    tar_file(&tar, "long", "x");
    tar_end(&tar);
    struct archive_summary summary;
    assert_true(receive(&tar, &summary, NULL));
    assert_int_equal(summary.issue_count, 5);
    assert_int_equal(place_count("dest"), 1);
    name[255] = '\0';
    char *path = memory_printf("dest/%s", name);
    assert_string_equal(place_read(path), "x");
    free(path);
    archive_summary_clear(&summary);

    /* 4,095 bytes of components that are good; and one component more than is allowed. */
    for (size_t i = 0; i < 4096; i++)
        name[i] = i % 30 == 29 ? '/' : 'c';
    name[4094] = 'c';
    tar_pax(&tar, 'x', &(struct tar_record){"path", name, 4095}, 1);
    tar_file(&tar, "long", "far");
    for (size_t i = 0; i < 2 * ARCHIVE_DEPTH_MAX + 2; i++)
        name[i] = i % 2 == 1 ? '/' : 'z';
    tar_pax(&tar, 'x', &(struct tar_record){"path", name, 2 * ARCHIVE_DEPTH_MAX - 1}, 1);
    tar_file(&tar, "deep", "deep");
    name[0] = 'y';
    tar_pax(&tar, 'x', &(struct tar_record){"path", name, 2 * ARCHIVE_DEPTH_MAX + 1}, 1);
    tar_file(&tar, "deeper", "too deep");
    tar_end(&tar);
    assert_true(receive(&tar, &summary, NULL));
    assert_int_equal(summary.issue_count, 1);
    assert_non_null(strstr(summary.issues[0].reason, "deep"));
    assert_false(place_exists("dest/y"));
    archive_summary_clear(&summary);
    free(name);
}

static void test_huge_headers(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    char *value = memory_allocate(200000);
    memset(value, 'v', 200000);
    tar_pax(&tar, 'x', (struct tar_record[]){{"comment", value, 100000}, {"path", "x\0y", 3}}, 2);
    tar_file(&tar, "x", "x");
    static const char *const NAMES[] = {"x"};
    expect_refused(&tar, 1, NAMES, NULL); /* a NUL cannot hide behind it */
    assert_false(place_exists("dest/x"));

    /* Libarchive gives up on a really large one; it must not take the memory. */
    char *huge = memory_new(64 << 20);
    tar_pax(&tar, 'x', &(struct tar_record){"comment", huge, 64 << 20}, 1);
    tar_file(&tar, "y", "y");
    tar_end(&tar);
    struct archive_summary summary;
    bool received = receive(&tar, &summary, NULL);
    assert_true(!received || !place_exists("dest/y") || summary.incomplete);
    archive_summary_clear(&summary);
    free(huge);
    free(value);
}

static void test_size_fields(void **state)
{
    (void)state;
    static const char *const SIZES[] = {
        "77777777777\0",                                    /* 8 GiB that do not follow */
        "\x80\x00\x00\x00\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", /* base 256: 2^63 - 1 */
        "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", /* base 256: -1 */
        "\xFF\xFF\xFF\xFF\x80\x00\x00\x00\x00\x00\x00\x00", /* base 256: -2^63 */
        "\x80\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", /* more than 64 bits */
        "-0000000001\0",
    };
    for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
        struct tar_maker tar = {0};
        tar_header(&tar, &(struct tar_header){.name = "big", .raw_size = SIZES[i]});
        tar_raw(&tar, "data", 4);
        tar_pad(&tar);
        tar_end(&tar);
        struct archive_summary summary;
        struct error error = {0};
        bool received = receive(&tar, &summary, &error);
        /* "-0000000001" may be read as nothing at all; the count of entries then differs. */
        assert_true(!received || summary.incomplete || !place_exists("dest/big"));
        if (!received)
            assert_int_equal(place_count("dest"), 0);
        archive_summary_clear(&summary);
        error_clear(&error);
    }
    static const char *const RECORDS[] = {"-1", "9223372036854775807", "99999999999999999999", "x",
                                          "-9223372036854775808"};
    for (size_t i = 0; i < sizeof(RECORDS) / sizeof(RECORDS[0]); i++) {
        struct tar_maker tar = {0};
        tar_pax_text(&tar, 'x', "size", RECORDS[i]);
        tar_file(&tar, "big", "data");
        tar_end(&tar);
        expect_damaged(&tar);
    }
}

static void test_limits(void **state)
{
    (void)state;
    struct archive_receive_options options = place_receive_options();
    struct archive_summary summary;
    struct error error = {0};
    struct tar_maker tar = {0};
    tar_file(&tar, "a", "12345");
    tar_file(&tar, "b", "12345");
    tar_file(&tar, "c", "");
    tar_end(&tar);
    options.bytes_max = 9;
    assert_false(place_receive(tar.data, tar.length, 0, "dest", &options, &summary, &error));
    assert_int_equal(error.code, ERROR_RESOURCE_EXHAUSTED);
    assert_int_equal(place_count("dest"), 0);
    archive_summary_clear(&summary);
    options.bytes_max = 0;
    options.entries_max = 2;
    assert_false(place_receive(tar.data, tar.length, 0, "dest", &options, &summary, &error));
    assert_int_equal(error.code, ERROR_RESOURCE_EXHAUSTED);
    assert_int_equal(place_count("dest"), 0);
    archive_summary_clear(&summary);
    options.entries_max = 3;
    options.bytes_max = 10;
    assert_true(place_receive(tar.data, tar.length, 0, "dest", &options, &summary, &error));
    assert_int_equal(place_count("dest"), 3);
    archive_summary_clear(&summary);
    tar_free(&tar);
    error_clear(&error);
}

/* A sparse entry in the pax 1.0 format: the map stands in front of the data. */
static void sparse_file(struct tar_maker *tar, const char *name, const char *real_size,
                        const char *map, const char *data)
{
    tar_pax(tar, 'x',
            (struct tar_record[]){{"GNU.sparse.major", "1", 1},
                                  {"GNU.sparse.minor", "0", 1},
                                  {"GNU.sparse.name", name, strlen(name)},
                                  {"GNU.sparse.realsize", real_size, strlen(real_size)}},
            4);
    char *content = memory_new(512 + strlen(map) / 512 * 512 + strlen(data) + 1);
    size_t blocks = (strlen(map) + 511) / 512;
    memcpy(content, map, strlen(map));
    memcpy(content + blocks * 512, data, strlen(data));
    tar_file_bytes(tar, "GNUSparseFile.0/x", content, blocks * 512 + strlen(data));
    free(content);
}

static void test_sparse_bombs(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    /* A good one, then eight exabytes of nothing: it takes no space, or is refused. */
    sparse_file(&tar, "good-sparse", "100000", "2\n10\n4\n99996\n4\n", "abcdefgh");
    sparse_file(&tar, "bomb", "9223372036854775807", "1\n9223372036854775803\n4\n", "boom");
    tar_end(&tar);
    struct archive_summary summary;
    struct error error = {0};
    bool received = receive(&tar, &summary, &error);
    if (received) {
        struct stat status;
        assert_int_equal(stat("dest/good-sparse", &status), 0);
        assert_int_equal(status.st_size, 100000);
        if (stat("dest/bomb", &status) == 0)
            assert_true(status.st_blocks < 1000);
        else
            assert_true(summary.incomplete);
        assert_int_equal(unlink("dest/good-sparse"), 0);
        (void)unlink("dest/bomb");
    }
    archive_summary_clear(&summary);
    error_clear(&error);

    /* The size counts for the limit, holes and all. */
    sparse_file(&tar, "bomb", "1000000000000", "1\n0\n4\n", "boom");
    tar_end(&tar);
    struct archive_receive_options options = place_receive_options();
    options.bytes_max = 1 << 20;
    assert_false(place_receive(tar.data, tar.length, 0, "dest", &options, &summary, &error));
    assert_int_equal(error.code, ERROR_RESOURCE_EXHAUSTED);
    archive_summary_clear(&summary);
    error_clear(&error);
    tar_free(&tar);

    /* Maps that overlap, go back, leave the file, or are none. */
    static const char *const MAPS[] = {
        "2\n10\n4\n8\n4\n",
        "2\n10\n4\n0\n4\n",
        "1\n99998\n8\n",
        "1\n-5\n4\n",
        "1\n10\n-4\n",
        "5000000000\n1\n1\n",
        "2\n1\n",
        "1\n9223372036854775807\n4\n",
        "hello",
        "1\n9223372036854775806\n9223372036854775806\n",
    };
    for (size_t i = 0; i < sizeof(MAPS) / sizeof(MAPS[0]); i++) {
        sparse_file(&tar, "s", "100000", MAPS[i], "abcdefgh");
        tar_end(&tar);
        bool good = receive(&tar, &summary, &error);
        struct stat status;
        if (good && stat("dest/s", &status) == 0) {
            assert_int_equal(status.st_size, 100000);
            assert_int_equal(unlink("dest/s"), 0);
        }
        assert_int_equal(place_count("dest"), 0);
        archive_summary_clear(&summary);
        error_clear(&error);
    }
}

static void test_global_headers(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_pax_text(&tar, 'g', "path", "../outside/evil");
    tar_pax_text(&tar, 'g', "comment", "as git archive writes it");
    tar_file(&tar, "innocent", "fine");
    tar_pax_text(&tar, 'g', "linkpath", "/etc/passwd");
    tar_pax_text(&tar, 'g', "size", "1000000");
    tar_trailer(&tar, 1); /* a count that is not at the end is none */
    tar_file(&tar, "innocent2", "fine");
    tar_end(&tar);
    struct archive_summary summary;
    struct error error = {0};
    assert_true(receive(&tar, &summary, &error));
    assert_false(summary.incomplete);
    assert_string_equal(place_read("dest/innocent"), "fine");
    assert_string_equal(place_read("dest/innocent2"), "fine");
    assert_int_equal(place_count("dest"), 2);
    archive_summary_clear(&summary);
    assert_int_equal(unlink("dest/innocent") + unlink("dest/innocent2"), 0);

    tar_file(&tar, "a", "a");
    tar_trailer(&tar, 1);
    tar_trailer(&tar, 1);
    tar_zeros(&tar, 2);
    expect_damaged(&tar);
    tar_file(&tar, "a", "a");
    tar_pax(&tar, 'g', (struct tar_record[]){{"OPENSHELL.entries", "1", 1}, {"comment", "x", 1}},
            2);
    tar_zeros(&tar, 2);
    expect_damaged(&tar);
}

static void test_wrong_counts(void **state)
{
    (void)state;
    static const char *const COUNTS[] = {"0",  "1",  "3", "-2", "2x", "", "99999999999999999999",
                                         " 2", "0x2"};
    for (size_t i = 0; i < sizeof(COUNTS) / sizeof(COUNTS[0]); i++) {
        struct tar_maker tar = {0};
        tar_file(&tar, "a", "a");
        tar_file(&tar, "b", "b");
        tar_pax_text(&tar, 'g', "OPENSHELL.entries", COUNTS[i]);
        tar_zeros(&tar, 2);
        expect_damaged(&tar);
    }
    struct tar_maker tar = {0};
    tar_file(&tar, "a", "a");
    tar_zeros(&tar, 2);
    expect_damaged(&tar); /* no count at all */
}

static void test_garbage(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    expect_damaged(&tar); /* nothing at all */
    tar_raw(&tar, "hello, this is no archive\n", 26);
    expect_damaged(&tar);
    for (int i = 0; i < 5000; i++)
        tar_raw(&tar, &i, sizeof(i));
    expect_damaged(&tar);
    tar_header(&tar, &(struct tar_header){.name = "bad", .bad_checksum = 1});
    tar_end(&tar);
    expect_damaged(&tar);
    tar_file(&tar, "a", "a");
    tar_header(&tar, &(struct tar_header){.name = "bad", .bad_checksum = 1});
    tar_file(&tar, "b", "b");
    tar_end(&tar);
    expect_damaged(&tar);
    /* Something behind the end. */
    tar_file(&tar, "a", "a");
    tar_end(&tar);
    tar_zeros(&tar, 18);
    tar_raw(&tar, "x", 1);
    expect_damaged(&tar);
    tar_file(&tar, "a", "a");
    tar_end(&tar);
    tar_zeros(&tar, 20000);
    expect_damaged(&tar); /* 10 MB of padding */
    tar_file(&tar, "a", "a");
    tar_end(&tar);
    tar_file(&tar, "b", "b");
    tar_end(&tar);
    expect_damaged(&tar);
}

static void add_everything(struct tar_maker *tar)
{
    tar_directory(tar, "./", 0755);
    tar_directory(tar, "d", 0500);
    tar_file(tar, "d/f", "content of a file");
    tar_pax_text(tar, 'x', "path", "d/with-a-long-header");
    tar_file(tar, "x", "more content");
    tar_symlink(tar, "l", "d/f");
    tar_hard_link(tar, "h", "d/f");
    tar_gnu_long(tar, 'L', "d/gnu-long", 11);
    tar_file(tar, "x", "");
}

/* Cut after any number of bytes: an error, and nothing has a final name. */
static void cut_everywhere(bool trailer)
{
    struct tar_maker tar = {0};
    add_everything(&tar);
    if (trailer)
        tar_end(&tar);
    else
        tar_zeros(&tar, 2);
    struct archive_receive_options options = place_receive_options();
    options.trailer_optional = !trailer;
    struct archive_summary summary;
    struct error error = {0};
    for (size_t length = 0; length < tar.length; length++) {
        assert_false(place_receive(tar.data, length, 0, "dest", &options, &summary, &error));
        assert_int_equal(error.code, ERROR_DATA_LOSS);
        assert_int_equal(place_count("dest"), 0);
        archive_summary_clear(&summary);
    }
    /* Whole, in pieces of any size, and with the padding of other writers. */
    tar_zeros(&tar, 20);
    static const size_t PIECES[] = {1, 7, 511, 513, 0};
    for (size_t i = 0; i < 5; i++) {
        assert_true(
            place_receive(tar.data, tar.length, PIECES[i], "dest", &options, &summary, &error));
        assert_false(summary.incomplete);
        assert_string_equal(place_read("dest/d/f"), "content of a file");
        archive_summary_clear(&summary);
    }
    tar_free(&tar);
    error_clear(&error);
}

static void test_cut_at_every_byte(void **state)
{
    (void)state;
    cut_everywhere(true);
}

static void test_plain_tar_cut_at_every_byte(void **state)
{
    (void)state;
    cut_everywhere(false);
}

/* Every bit of a small archive turned over once: an error or a different harmless tree, but nothing
 * outside (tear_down looks). */
static void test_flipped_bits(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_symlink(&tar, "l", "../outside");
    tar_pax_text(&tar, 'x', "path", "d/f");
    tar_file(&tar, "x", "content");
    tar_end(&tar);
    struct archive_receive_options options = place_receive_options();
    options.bytes_max = 1 << 20;
    for (size_t bit = 0; bit < tar.length * 8; bit += 3) {
        tar.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        struct archive_summary summary;
        place_receive(tar.data, tar.length, 0, "dest", &options, &summary, NULL);
        tar.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        archive_summary_clear(&summary);
    }
    tar_free(&tar);
}

static void test_empty_archive(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    tar_end(&tar);
    struct archive_summary summary;
    struct error error = {0};
    bool received = receive(&tar, &summary, &error);
    assert_string_equal(error.message, "");
    assert_true(received);
    assert_int_equal(summary.entries, 0);
    assert_int_equal(place_count("dest"), 0);
}

static void test_times(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    static const char *const TIMES[] = {"-1.5",
                                        "99999999999999999999",
                                        "1e9",
                                        "0.9999999999999",
                                        "9223372036854775807.999999999",
                                        "-9223372036854775808"};
    for (size_t i = 0; i < 6; i++) {
        tar_pax_text(&tar, 'x', "mtime", TIMES[i]);
        char name[8];
        snprintf(name, sizeof(name), "t%zu", i);
        tar_file(&tar, name, "x");
    }
    tar_end(&tar);
    struct archive_summary summary;
    assert_true(receive(&tar, &summary, NULL));
    assert_int_equal(place_count("dest"), 6);
    archive_summary_clear(&summary);
}

/* The links in the destination were planted by somebody else. */
static void test_planted_links(void **state)
{
    (void)state;
    assert_int_equal(symlink("../outside", "dest/d"), 0);
    assert_int_equal(symlink("../outside/victim", "dest/f"), 0);
    assert_int_equal(symlink("../outside/new", "dest/n"), 0);
    struct tar_maker tar = {0};
    tar_directory(&tar, "d", 0777);
    tar_file(&tar, "d/evil", "evil");
    tar_file(&tar, "d/victim", "evil");
    tar_file(&tar, "f", "replaced");
    tar_file(&tar, "n", "replaced too");
    tar_end(&tar);
    struct archive_summary summary;
    assert_true(receive(&tar, &summary, NULL));
    assert_int_equal(summary.issue_count, 1);
    assert_true(place_issue(&summary, ARCHIVE_ISSUE_CONFLICT, "d"));
    assert_string_equal(place_read("dest/f"), "replaced");
    assert_string_equal(place_read("dest/n"), "replaced too");
    archive_summary_clear(&summary);
}

static atomic_bool stop;

/* Exchanges directories of the destination and links to the outside, as fast as it can. */
static void *swap(void *data)
{
    (void)data;
    while (!atomic_load(&stop)) {
        renameat2(AT_FDCWD, "dest/d", AT_FDCWD, "dest/trap", RENAME_EXCHANGE);
        renameat2(AT_FDCWD, "dest/d/e", AT_FDCWD, "dest/d/trap", RENAME_EXCHANGE);
    }
    return NULL;
}

static void test_destination_swapped_meanwhile(void **state)
{
    (void)state;
    place_directory("dest/d", 0755);
    place_directory("dest/d/e", 0755);
    assert_int_equal(symlink("../outside", "dest/trap"), 0);
    assert_int_equal(symlink("../../outside", "dest/d/trap"), 0);
    struct tar_maker tar = {0};
    for (int i = 0; i < 50; i++) {
        char name[32];
        snprintf(name, sizeof(name), "d/evil%d", i);
        tar_file(&tar, name, "evil");
        snprintf(name, sizeof(name), "d/e/evil%d", i);
        tar_file(&tar, name, "evil");
    }
    tar_file(&tar, "d/victim", "evil");
    tar_file(&tar, "d/e/victim", "evil");
    tar_end(&tar);
    struct archive_receive_options options = place_receive_options();
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, swap, NULL), 0);
    int good = 0, refused = 0;
    for (int i = 0; i < 300; i++) {
        struct archive_summary summary;
        assert_true(place_receive(tar.data, tar.length, 0, "dest", &options, &summary, NULL));
        good += summary.issue_count == 0;
        refused += summary.issue_count > 0;
        archive_summary_clear(&summary);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    tar_free(&tar);
    assert_true(good + refused == 300);
}

/* Puts links in the place of directories in every staging directory that it finds. */
static void *swap_staging(void *data)
{
    (void)data;
    int dest = place_open("dest");
    while (!atomic_load(&stop)) {
        DIR *stream = fdopendir(dup(dest));
        rewinddir(stream);
        struct dirent *entry;
        while ((entry = readdir(stream)) != NULL) {
            char path[512], aside[512];
            if (strncmp(entry->d_name, ".openshell-", 11) != 0)
                continue;
            snprintf(path, sizeof(path), "dest/%s/d", entry->d_name);
            snprintf(aside, sizeof(aside), "dest/%s/aside", entry->d_name);
            if (rename(path, aside) == 0 && symlink("../../outside", path) != 0)
                continue;
            snprintf(path, sizeof(path), "dest/%s/aside/e", entry->d_name);
            snprintf(aside, sizeof(aside), "dest/%s/aside/aside", entry->d_name);
            if (rename(path, aside) == 0 && symlink("../../../outside", path) != 0)
                continue;
        }
        closedir(stream);
    }
    close(dest);
    return NULL;
}

static void test_staging_swapped_meanwhile(void **state)
{
    (void)state;
    struct tar_maker tar = {0};
    for (int i = 0; i < 400; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%s%d", i % 2 == 0 ? "d/evil" : "d/e/evil", i);
        tar_file(&tar, name, "evil");
        if (i % 50 == 0) {
            tar_file(&tar, "elsewhere/f", "f");
            tar_hard_link(&tar, "d/hard", "elsewhere/f");
            tar_hard_link(&tar, "hard", "d/victim");
        }
    }
    tar_file(&tar, "d/victim", "evil");
    tar_file(&tar, "d/e/victim", "evil");
    tar_end(&tar);
    struct archive_receive_options options = place_receive_options();
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, swap_staging, NULL), 0);
    int disturbed = 0;
    for (int i = 0; i < 100; i++) {
        struct archive_summary summary;
        assert_true(place_receive(tar.data, tar.length, 0, "dest", &options, &summary, NULL));
        disturbed += summary.issue_count != 8; /* of "hard", which is no file yet */
        archive_summary_clear(&summary);
        int dest = place_open("dest");
        remove_below(dest);
        close(dest);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    tar_free(&tar);
    assert_true(disturbed > 0); /* or the test did not test anything */
}

/* The source is swapped while it is sent: what is outside never gets into the archive. */
static void *swap_source(void *data)
{
    (void)data;
    while (!atomic_load(&stop)) {
        renameat2(AT_FDCWD, "dest/tree/d", AT_FDCWD, "dest/tree/trap", RENAME_EXCHANGE);
        renameat2(AT_FDCWD, "dest/tree/victim", AT_FDCWD, "dest/tree/link", RENAME_EXCHANGE);
    }
    return NULL;
}

static void test_source_swapped_meanwhile(void **state)
{
    (void)state;
    place_directory("dest/tree", 0755);
    place_directory("dest/tree/d", 0755);
    place_file("dest/tree/d/victim", "inside");
    place_file("dest/tree/victim", "inside");
    assert_int_equal(symlink("../../outside", "dest/tree/trap"), 0);
    assert_int_equal(symlink("../../outside/victim", "dest/tree/link"), 0);
    pthread_t thread;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&thread, NULL, swap_source, NULL), 0);
    for (int i = 0; i < 500; i++) {
        int spool = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        int base = place_open("dest");
        static const char *const PATHS[] = {"tree", "tree/d", "tree/victim", "tree/d/victim"};
        struct archive_send_options send = {
            .base = base, .path = PATHS[i % 4], .name = "x", .control = {.cancel = -1}};
        struct archive_summary summary;
        archive_send(spool, &send, &summary, NULL);
        static char archive[65536];
        ssize_t length = pread(spool, archive, sizeof(archive), 0);
        assert_true(length >= 0 && length < (ssize_t)sizeof(archive));
        assert_null(memmem(archive, (size_t)length, "untouched", 9));
        archive_summary_clear(&summary);
        close(spool);
        close(base);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* The most memory that a child took to receive, in KiB over what it had at the start. */
static long memory_to_receive(const struct tar_maker *tar, uint64_t want_entries)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct archive_receive_options options = place_receive_options();
        struct archive_summary summary;
        bool good = place_receive(tar->data, tar->length, 0, "dest", &options, &summary, NULL);
        _exit(good && summary.entries == want_entries ? 0 : 1);
    }
    int status;
    struct rusage usage;
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_int_equal(status, 0);
    return usage.ru_maxrss;
}

static void test_memory_of_many_entries(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    struct tar_maker few = {0}, many = {0};
    for (int i = 0; i < MANY; i++) {
        char name[64];
        snprintf(name, sizeof(name), "d%d/e%d/f%d", i % 97, i % 1000, i);
        if (i % 10 == 0)
            tar_directory(&many, name, 0500);
        else
            tar_header(&many, &(struct tar_header){.name = name});
    }
    tar_end(&many);
    /* As large, with few entries: the archive itself is memory of the child. */
    char *data = memory_new(many.length);
    tar_file_bytes(&few, "f", data, many.length - 2560);
    free(data);
    tar_end(&few);
    long base = memory_to_receive(&few, 1);
    assert_int_equal(unlink("dest/f"), 0);
    long most = memory_to_receive(&many, MANY);
#ifndef __SANITIZE_ADDRESS__ /* it keeps what was freed for a while */
    assert_true(most - base < 2048);
#else
    assert_true(most > 0 && base > 0);
#endif
    assert_int_equal(place_count("dest"), 97);
    tar_free(&few);
    tar_free(&many);
}

#define HOSTILE_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOSTILE_TEST(test_traversal),
        HOSTILE_TEST(test_absolute),
        HOSTILE_TEST(test_name_overrides),
        HOSTILE_TEST(test_through_links),
        HOSTILE_TEST(test_hard_links),
        HOSTILE_TEST(test_special_files),
        HOSTILE_TEST(test_top_is_only_a_directory),
        HOSTILE_TEST(test_duplicates),
        HOSTILE_TEST(test_nul_and_odd_names),
        HOSTILE_TEST(test_names_are_escaped),
        HOSTILE_TEST(test_long_names),
        HOSTILE_TEST(test_huge_headers),
        HOSTILE_TEST(test_size_fields),
        HOSTILE_TEST(test_limits),
        HOSTILE_TEST(test_sparse_bombs),
        HOSTILE_TEST(test_global_headers),
        HOSTILE_TEST(test_wrong_counts),
        HOSTILE_TEST(test_garbage),
        HOSTILE_TEST(test_cut_at_every_byte),
        HOSTILE_TEST(test_plain_tar_cut_at_every_byte),
        HOSTILE_TEST(test_flipped_bits),
        HOSTILE_TEST(test_empty_archive),
        HOSTILE_TEST(test_times),
        HOSTILE_TEST(test_planted_links),
        HOSTILE_TEST(test_destination_swapped_meanwhile),
        HOSTILE_TEST(test_staging_swapped_meanwhile),
        HOSTILE_TEST(test_source_swapped_meanwhile),
        HOSTILE_TEST(test_memory_of_many_entries),
    };
    return cmocka_run_group_tests_name("hostile archives", tests, NULL, NULL);
}
