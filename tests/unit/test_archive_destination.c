/* Where a copy goes: the rules as a table, and the places on disk that they lead to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/beneath.h"
#include "archive/blocks.h"
#include "archive/destination.h"
#include "archive/name.h"
#include "archive/remove.h"
#include "base/memory.h"
#include "tests/archive/place.h"

enum {
    UP = ARCHIVE_UPLOAD,
    DOWN = ARCHIVE_DOWNLOAD,
    FILE_KIND = ARCHIVE_KIND_FILE,
    LINK = ARCHIVE_KIND_LINK,
    TREE = ARCHIVE_KIND_DIRECTORY,
    CONTENTS = ARCHIVE_KIND_CONTENTS,
    NOTHING = ARCHIVE_FOUND_NOTHING,
    DIRECTORY = ARCHIVE_FOUND_DIRECTORY,
    OTHER = ARCHIVE_FOUND_OTHER,
};

static const struct {
    int direction, kind;
    const char *name, *dest;
    int found;
    const char *directory; /* NULL: refused */
    const char *final_name;
} RULES[] = {
    /* A file onto a free name, a file, a directory. */
    {UP, FILE_KIND, "m", "/sandbox/w/new", NOTHING, "/sandbox/w", "new"},
    {UP, FILE_KIND, "m", "/sandbox/no/such/new", NOTHING, "/sandbox/no/such", "new"},
    {UP, FILE_KIND, "m", "/sandbox/a.cfg", OTHER, "/sandbox", "a.cfg"},
    {UP, FILE_KIND, "m", "/sandbox/dir", DIRECTORY, "/sandbox/dir", "m"},
    {UP, FILE_KIND, "m", "new", NOTHING, ".", "new"},
    {UP, FILE_KIND, "m", "w/new", NOTHING, "w", "new"},
    {UP, FILE_KIND, "m", "w//new", NOTHING, "w", "new"},
    /* A slash at the end means a directory, whatever is there. */
    {UP, FILE_KIND, "m", "/sandbox/w/new/", NOTHING, "/sandbox/w/new/", "m"},
    {UP, FILE_KIND, "m", "/sandbox/w/new/", DIRECTORY, "/sandbox/w/new/", "m"},
    {UP, FILE_KIND, "m", "/sandbox/w/file/", OTHER, NULL, NULL},
    {UP, FILE_KIND, "m", ".", DIRECTORY, ".", "m"},
    {UP, FILE_KIND, "m", "w/.", NOTHING, "w/.", "m"},
    {UP, FILE_KIND, "m", "..", DIRECTORY, "..", "m"},
    /* Directly below the root a free name is a directory. */
    {UP, FILE_KIND, "m", "/data", NOTHING, "/data", "m"},
    {UP, FILE_KIND, "m", "//data", NOTHING, "//data", "m"},
    {UP, FILE_KIND, "m", "/data", OTHER, "/", "data"},
    {UP, FILE_KIND, "m", "/", DIRECTORY, "/", "m"},
    /* A link is placed like a file. */
    {UP, LINK, "l", "/sandbox/w/new", NOTHING, "/sandbox/w", "new"},
    {UP, LINK, "l", "/sandbox/dir", DIRECTORY, "/sandbox/dir", "l"},
    /* A directory is wrapped in its name, which the entries have already. */
    {UP, TREE, "foo", "/sandbox/dst", NOTHING, "/sandbox/dst", ""},
    {UP, TREE, "foo", "/sandbox/dst", DIRECTORY, "/sandbox/dst", ""},
    {UP, TREE, "foo", "/sandbox/dst/", NOTHING, "/sandbox/dst/", ""},
    {UP, TREE, "foo", "/sandbox/dst", OTHER, NULL, NULL},
    {UP, TREE, "foo", "/data", NOTHING, "/data", ""},
    {UP, CONTENTS, "", "/sandbox/dst", NOTHING, "/sandbox/dst", ""},
    {UP, CONTENTS, "", "/sandbox/dst", DIRECTORY, "/sandbox/dst", ""},
    {UP, CONTENTS, "", "/sandbox/dst", OTHER, NULL, NULL},

    {DOWN, FILE_KIND, "f", ".", DIRECTORY, ".", "f"},
    {DOWN, FILE_KIND, "f", "out", DIRECTORY, "out", "f"},
    {DOWN, FILE_KIND, "f", "out/", NOTHING, "out/", "f"},
    {DOWN, FILE_KIND, "f", "out", NOTHING, ".", "out"},
    {DOWN, FILE_KIND, "f", "out", OTHER, ".", "out"},
    {DOWN, FILE_KIND, "f", "a/b/out", NOTHING, "a/b", "out"},
    {DOWN, FILE_KIND, "f", "/out", NOTHING, "/", "out"},
    {DOWN, FILE_KIND, "f", "out/", OTHER, NULL, NULL},
    {DOWN, FILE_KIND, "--checkpoint=1", ".", DIRECTORY, ".", "--checkpoint=1"},
    {DOWN, FILE_KIND, "a\nb", ".", DIRECTORY, ".", "a\nb"},
    {DOWN, LINK, "l", "out", NOTHING, NULL, NULL},
    {DOWN, LINK, "l", ".", DIRECTORY, NULL, NULL},
    {DOWN, CONTENTS, "", "out", NOTHING, "out", ""},
    {DOWN, CONTENTS, "", "out", DIRECTORY, "out", ""},
    {DOWN, CONTENTS, "", "out/", DIRECTORY, "out/", ""},
    {DOWN, CONTENTS, "", "out", OTHER, NULL, NULL},
    {DOWN, TREE, "d", "out", NOTHING, "out", ""},
    {DOWN, FILE_KIND, "f", "", NOTHING, NULL, NULL},
    {UP, FILE_KIND, "f", "", NOTHING, NULL, NULL},
};

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(RULES) / sizeof(RULES[0]); i++) {
        struct archive_destination destination = {0};
        struct error error = {0};
        bool decided = archive_destination_decide(
            (enum archive_direction)RULES[i].direction, (enum archive_kind)RULES[i].kind,
            RULES[i].name, RULES[i].dest, (enum archive_found)RULES[i].found, &destination, &error);
        if (RULES[i].directory == NULL) {
            assert_false(decided);
            assert_true(error.code == ERROR_FAILED_PRECONDITION ||
                        error.code == ERROR_INVALID_ARGUMENT);
            error_clear(&error);
            continue;
        }
        assert_true(decided);
        assert_string_equal(destination.directory, RULES[i].directory);
        assert_string_equal(destination.final_name, RULES[i].final_name);
    }
    char dest[5000];
    memset(dest, 'x', sizeof(dest));
    dest[300] = '\0';
    struct archive_destination destination;
    struct error error = {0};
    assert_false(archive_destination_decide(ARCHIVE_DOWNLOAD, ARCHIVE_KIND_FILE, "f", dest,
                                            ARCHIVE_FOUND_NOTHING, &destination, &error));
    assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
    dest[300] = 'x';
    dest[4999] = '\0';
    assert_false(archive_destination_decide(ARCHIVE_DOWNLOAD, ARCHIVE_KIND_CONTENTS, "", dest,
                                            ARCHIVE_FOUND_NOTHING, &destination, &error));
    assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
    error_clear(&error);
}

static void test_source_names(void **state)
{
    (void)state;
    static const char *const NAMES[][2] = {
        {"foo", "foo"},   {"./foo", "foo"},  {"./foo/", "foo"}, {"./foo/.", ""},
        {".", ""},        {"..", ""},        {"/", ""},         {"/abs/foo", "foo"},
        {"foo//", "foo"}, {"../foo", "foo"}, {"foo/..", ""},    {"...", "..."},
        {"-rf", "-rf"},   {"a\nb", "a\nb"},  {"./", ""},        {"\xFF", "\xFF"},
        {"//", ""},
    };
    char name[ARCHIVE_COMPONENT_BYTES_MAX + 1];
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        assert_true(archive_source_name(NAMES[i][0], name, NULL));
        assert_string_equal(name, NAMES[i][1]);
    }
    assert_false(archive_source_name("", name, NULL));
}

static void test_name_parse(void **state)
{
    (void)state;
    struct archive_name name;
    static const char *const GOOD[][2] = {
        {"a", "a"},     {"./a//b/.", "a/b"}, {".", ""},
        {"./", ""},     {"a/", "a"},         {"..a/b..", "..a/b.."},
        {"...", "..."}, {"-", "-"},          {"a/./b", "a/b"}};
    for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
        assert_null(archive_name_parse(GOOD[i][0], &name));
        assert_string_equal(name.path, GOOD[i][1]);
        assert_int_equal(name.length, strlen(GOOD[i][1]));
    }
    assert_null(archive_name_parse("one/two/three", &name));
    assert_int_equal(name.depth, 3);
    assert_string_equal(name.path + name.leaf, "three");
    assert_false(name.slash);
    assert_null(archive_name_parse("one/", &name));
    assert_true(name.slash);
    assert_null(archive_name_parse("one/.", &name));
    assert_true(name.slash);
    static const char *const BAD[] = {"", "/", "/a", "..", "a/..", "../a", "a/../b", "./..", "//a"};
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
        assert_non_null(archive_name_parse(BAD[i], &name));
    assert_non_null(archive_name_parse(NULL, &name));
}

static void test_trailer(void **state)
{
    (void)state;
    unsigned char block[BLOCKS_TRAILER_BYTES];
    static const uint64_t COUNTS[] = {0, 1, 9, 10, 123456789, (uint64_t)1 << 62};
    uint64_t entries;
    for (size_t i = 0; i < sizeof(COUNTS) / sizeof(COUNTS[0]); i++) {
        blocks_make_trailer(COUNTS[i], block);
        assert_true(blocks_parse_trailer(block, sizeof(block), &entries));
        assert_true(entries == COUNTS[i]);
    }
    /* Every byte that matters matters. */
    for (size_t i = 0; i < BLOCK_BYTES + 30; i++) {
        if (i == 155) /* stands behind the end of the checksum */
            continue;
        block[i] ^= 1;
        assert_true(!blocks_parse_trailer(block, sizeof(block), &entries) || entries != (uint64_t)1
                                                                                            << 62);
        block[i] ^= 1;
    }
    assert_false(blocks_parse_trailer(block, sizeof(block) - 1, &entries));
}

/* The same steps by openat2 and, where that is missing, by hand. */
static void test_beneath(void **state)
{
    (void)state;
    place_directory("in", 0755);
    place_directory("in/d", 0755);
    place_file("in/d/f", "inside");
    place_file("out", "outside");
    assert_int_equal(symlink("d", "in/l"), 0);
    assert_int_equal(symlink("f", "in/d/lf"), 0);
    assert_int_equal(symlink("../../out", "in/d/lo"), 0);
    assert_int_equal(symlink("/proc/self/root", "in/magic"), 0);
    int base = place_open("in");
    int (*const OPEN[])(int, const char *, int, mode_t) = {beneath_open, beneath_open_steps};
    static const char *const GOOD[] = {"d/f", "d//f", "./d/./f"};
    static const char *const DIRECTORIES[] = {"", ".", "d", "d/", "./d/."};
    static const char *const BAD[] = {
        "../out",           "d/../../out", "/etc/passwd", "l/f",  "d/lf", "d/lo",
        "magic/etc/passwd", "d/f/x",       "missing",     "d/f/", "l/"};
    for (size_t way = 0; way < 2; way++) {
        for (size_t i = 0; i < sizeof(GOOD) / sizeof(GOOD[0]); i++) {
            int file = OPEN[way](base, GOOD[i], O_RDONLY, 0);
            char text[8] = "";
            assert_true(file >= 0);
            assert_int_equal(read(file, text, 6), 6);
            assert_string_equal(text, "inside");
            close(file);
        }
        for (size_t i = 0; i < sizeof(DIRECTORIES) / sizeof(DIRECTORIES[0]); i++) {
            int directory = OPEN[way](base, DIRECTORIES[i], O_RDONLY | O_DIRECTORY, 0);
            assert_true(directory >= 0);
            close(directory);
        }
        for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++)
            assert_int_equal(OPEN[way](base, BAD[i], O_RDONLY, 0), -1);
        int created =
            OPEN[way](base, way == 0 ? "d/new0" : "d/new1", O_WRONLY | O_CREAT | O_EXCL, 0600);
        assert_true(created >= 0);
        close(created);
    }
    close(base);
}

static void test_remove_deep_tree(void **state)
{
    (void)state;
    place_directory("tree", 0755);
    int at = place_open("tree"), top = dup(at);
    for (int i = 0; i < 1500; i++) { /* far deeper than PATH_MAX, descriptors or recursion allow */
        assert_int_equal(mkdirat(at, i % 2 == 0 ? "directory" : ".deep-0", 0700), 0);
        int next = openat(at, i % 2 == 0 ? "directory" : ".deep-0", O_RDONLY | O_DIRECTORY);
        assert_int_equal(symlinkat("/", at, "link"), 0);
        if (i % 100 == 7)
            assert_int_equal(fchmod(next, 0700), 0);
        close(at);
        at = next;
    }
    close(at);
    assert_true(remove_below(top));
    close(top);
    assert_int_equal(place_count("tree"), 0);
    place_file("tree/f", "f");
    assert_true(remove_tree_at(AT_FDCWD, "tree"));
    assert_true(remove_tree_at(AT_FDCWD, "tree"));
}

static void test_local_sources(void **state)
{
    (void)state;
    place_directory("real", 0755);
    place_file("real/f", "f");
    assert_int_equal(symlink("real", "ld"), 0);
    assert_int_equal(symlink("/nope", "dl"), 0);
    static const struct {
        const char *path, *sent, *name;
        enum error_code code;
    } CASES[] = {
        {"real", "real", "real", ERROR_OK},
        {"./real/", ".", "real", ERROR_OK},
        {"real/.", ".", "", ERROR_OK},
        {".", ".", "", ERROR_OK},
        {"ld", "ld", "ld", ERROR_OK}, /* the link itself */
        {"ld/", ".", "ld", ERROR_OK}, /* what it leads to */
        {"ld/f", "f", "f", ERROR_OK}, /* through the link that the user wrote */
        {"dl", "dl", "dl", ERROR_OK},
        {"dl/", NULL, NULL, ERROR_NOT_FOUND},
        {"missing", NULL, NULL, ERROR_NOT_FOUND},
        {"missing/x", NULL, NULL, ERROR_NOT_FOUND},
        {"real/f/", NULL, NULL, ERROR_FAILED_PRECONDITION},
        {"", NULL, NULL, ERROR_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct archive_local_source source;
        struct error error = {0};
        bool opened = archive_local_source_open(CASES[i].path, &source, &error);
        assert_int_equal(error.code, CASES[i].code);
        assert_int_equal(opened, CASES[i].code == ERROR_OK);
        if (opened) {
            assert_string_equal(source.path, CASES[i].sent);
            assert_string_equal(source.name, CASES[i].name);
            struct stat status;
            assert_int_equal(fstatat(source.base, source.path, &status, AT_SYMLINK_NOFOLLOW), 0);
            close(source.base);
        }
        error_clear(&error);
    }
}

static void test_inner_sources(void **state)
{
    (void)state;
    char here[3000];
    assert_non_null(getcwd(here, sizeof(here)));
    CLEANUP_FREE char *work = memory_printf("%s/work", here);
    place_directory("work", 0755);
    place_directory("work/d", 0755);
    place_file("work/d/--checkpoint=1", "x");
    place_file("workshop", "beside, not inside");
    place_file("outside", "x");
    assert_int_equal(symlink("../outside", "work/out"), 0);
    assert_int_equal(symlink("d", "work/l"), 0);
    CLEANUP_FREE char *absolute = memory_printf("%s/d/../d/--checkpoint=1", work);
    CLEANUP_FREE char *beside = memory_printf("%s/workshop", here);
    CLEANUP_FREE char *outside = memory_printf("%s/outside", here);
    const struct {
        const char *path, *sent, *name;
        enum error_code code;
    } cases[] = {
        {"d", "d", "", ERROR_OK},
        {"d/", "d/", "", ERROR_OK},
        {".", ".", "", ERROR_OK},
        {work, ".", "", ERROR_OK},
        {"d/--checkpoint=1", "d/--checkpoint=1", "--checkpoint=1", ERROR_OK},
        {absolute, "d/--checkpoint=1", "--checkpoint=1", ERROR_OK},
        {"d/..", ".", "", ERROR_OK},
        {"..", NULL, NULL, ERROR_PERMISSION_DENIED},
        {"../outside", NULL, NULL, ERROR_PERMISSION_DENIED},
        {"d/../../outside", NULL, NULL, ERROR_PERMISSION_DENIED},
        {beside, NULL, NULL, ERROR_PERMISSION_DENIED},
        {outside, NULL, NULL, ERROR_PERMISSION_DENIED},
        {"/etc/passwd", NULL, NULL, ERROR_PERMISSION_DENIED},
        {"", NULL, NULL, ERROR_PERMISSION_DENIED},
        {"l/--checkpoint=1", NULL, NULL, ERROR_FAILED_PRECONDITION},
        {"missing", NULL, NULL, ERROR_NOT_FOUND},
        {"out", "out", "out", ERROR_OK}, /* sent as a link, which a download refuses */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct archive_inner_source source;
        struct error error = {0};
        bool opened = archive_inner_source_open(work, cases[i].path, &source, &error);
        assert_int_equal(error.code, cases[i].code);
        assert_int_equal(opened, cases[i].code == ERROR_OK);
        if (opened) {
            assert_string_equal(source.path, cases[i].sent);
            assert_string_equal(source.name, cases[i].name);
            close(source.base);
        }
        error_clear(&error);
    }
}

/* A whole copy, as the commands make it; the code of the error that ended it. */
static enum error_code copy(const char *source, struct archive_chooser *chooser,
                            bool *ret_incomplete)
{
    struct archive_local_source from;
    struct error error = {0};
    if (!archive_local_source_open(source, &from, &error)) {
        enum error_code code = error.code;
        error_clear(&error);
        return code;
    }
    struct archive_send_options send = {
        .base = from.base, .path = from.path, .name = from.name, .control = {.cancel = -1}};
    struct archive_receive_options receive = place_receive_options();
    receive.choose_place = archive_chooser_place;
    receive.choose_place_data = chooser;
    struct place_copy copied;
    place_copy(&send, NULL, &receive, &copied);
    enum error_code code = copied.receive_error.code;
    if (!copied.receive_good)
        archive_chooser_undo(chooser);
    *ret_incomplete = copied.received.incomplete || copied.sent.incomplete;
    place_copy_clear(&copied);
    close(from.base);
    return code;
}

/* As an upload makes it, into "box" that stands for a sandbox. */
static enum error_code upload(const char *source, const char *dest, bool *ret_incomplete)
{
    char here[3000];
    assert_non_null(getcwd(here, sizeof(here)));
    CLEANUP_FREE char *work = memory_printf("%s/box", here);
    CLEANUP_FREE char *inside = *dest == '/' ? memory_printf("%s%s", work, dest) : strdup(dest);
    struct archive_chooser chooser = {
        .direction = ARCHIVE_UPLOAD, .dest = inside, .working_directory = work, .output = -1};
    return copy(source, &chooser, ret_incomplete);
}

static enum error_code download(const char *source, const char *dest, bool *ret_incomplete)
{
    struct archive_chooser chooser = {.direction = ARCHIVE_DOWNLOAD, .dest = dest, .output = -1};
    return copy(source, &chooser, ret_incomplete);
}

static void expect_upload(const char *source, const char *dest)
{
    bool incomplete = true;
    assert_int_equal(upload(source, dest, &incomplete), ERROR_OK);
    assert_false(incomplete);
}

static void test_uploads(void **state)
{
    (void)state;
    place_directory("box", 0755);
    place_directory("foo", 0755);
    place_file("foo/f", "f");
    place_file("b.cfg", "new");
    assert_int_equal(chmod("b.cfg", 0640), 0);

    /* One rule for every spelling of a directory, the destination there or not. */
    static const char *const SPELLINGS[] = {"foo", "./foo", "./foo/"};
    char here[3000];
    assert_non_null(getcwd(here, sizeof(here)));
    CLEANUP_FREE char *absolute = memory_printf("%s/foo", here);
    for (size_t i = 0; i < 4; i++) {
        const char *source = i < 3 ? SPELLINGS[i] : absolute;
        static const char *const DESTS[] = {"dst", "dst/", "/dst", "/dst/"};
        for (size_t j = 0; j < 4; j++) {
            expect_upload(source, DESTS[j]);
            assert_string_equal(place_read("box/dst/foo/f"), "f");
            expect_upload(source, DESTS[j]); /* there now */
            assert_int_equal(place_count("box/dst"), 1);
            assert_true(remove_tree_at(AT_FDCWD, "box/dst"));
        }
    }
    expect_upload("foo/.", "dst");
    assert_string_equal(place_read("box/dst/f"), "f");
    assert_int_equal(place_count("box/dst"), 1);
    assert_true(remove_tree_at(AT_FDCWD, "box/dst"));
    place_directory("foo/sub", 0755);
    expect_upload("foo/sub/..", "dst");
    assert_string_equal(place_read("box/dst/f"), "f");
    assert_int_equal(place_count("box/dst"), 2);

    /* Onto an existing file: that file, new. */
    place_file("box/a.cfg", "old");
    expect_upload("b.cfg", "/a.cfg");
    struct stat status;
    assert_int_equal(lstat("box/a.cfg", &status), 0);
    assert_true(S_ISREG(status.st_mode));
    assert_int_equal(status.st_mode & 0777, 0640);
    assert_string_equal(place_read("box/a.cfg"), "new");

    /* Onto names that are free, with parents there and not, with a slash at the end. */
    expect_upload("b.cfg", "w/new.txt");
    assert_string_equal(place_read("box/w/new.txt"), "new");
    expect_upload("b.cfg", "no/such/new.txt");
    assert_string_equal(place_read("box/no/such/new.txt"), "new");
    expect_upload("b.cfg", "w/new/");
    assert_string_equal(place_read("box/w/new/b.cfg"), "new");

    /* A link, dangling or not, stays a link; with a slash it is what it leads to. */
    assert_int_equal(symlink("/nope", "dl"), 0);
    assert_int_equal(symlink("foo", "ld"), 0);
    expect_upload("dl", "links/");
    expect_upload("ld", "links/");
    assert_int_equal(lstat("box/links/dl", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(lstat("box/links/ld", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    expect_upload("ld/", "followed");
    assert_string_equal(place_read("box/followed/ld/f"), "f");
}

static void test_upload_through_planted_links(void **state)
{
    (void)state;
    place_directory("box", 0755);
    place_directory("victim", 0755);
    place_file("victim/file", "untouched");
    place_directory("foo", 0755);
    place_file("foo/f", "f");
    place_file("plain", "new");
    assert_int_equal(symlink("../victim", "box/link"), 0);
    assert_int_equal(symlink("../victim/file", "box/to-file"), 0);
    bool incomplete = false;
    assert_int_equal(upload("foo", "link", &incomplete), ERROR_FAILED_PRECONDITION);
    assert_int_equal(upload("foo", "link/sub", &incomplete), ERROR_FAILED_PRECONDITION);
    assert_int_equal(upload("plain", "link/", &incomplete), ERROR_FAILED_PRECONDITION);
    assert_int_equal(upload("plain", "link/x", &incomplete), ERROR_FAILED_PRECONDITION);
    assert_int_equal(upload("plain", "link/../x", &incomplete), ERROR_OK); /* by its letters */
    assert_int_equal(upload("plain", "to-file", &incomplete), ERROR_OK);   /* replaces the link */
    assert_string_equal(place_read("box/to-file"), "new");
    assert_int_equal(upload("plain", "link", &incomplete), ERROR_OK); /* this one, too */
    assert_string_equal(place_read("box/link"), "new");
    assert_string_equal(place_read("victim/file"), "untouched");
    assert_int_equal(place_count("victim"), 1);
}

static void test_downloads(void **state)
{
    (void)state;
    place_directory("box", 0755);
    place_file("box/f", "content");
    place_directory("box/d", 0755);
    place_file("box/d/inner", "inner");
    place_directory("real", 0755);
    assert_int_equal(symlink("real", "lnk"), 0);
    bool incomplete = true;
    /* Through links that the user named, spelt in any way. */
    char here[3000];
    assert_non_null(getcwd(here, sizeof(here)));
    CLEANUP_FREE char *absolute = memory_printf("%s/lnk/f", here);
    const char *const dests[] = {absolute, "lnk/f", "lnk/", "lnk"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(download("box/f", dests[i], &incomplete), ERROR_OK);
        assert_false(incomplete);
        assert_string_equal(place_read("real/f"), "content");
        assert_int_equal(place_count("real"), 1);
        assert_int_equal(unlink("real/f"), 0);
    }
    assert_int_equal(download("box/f", "a/b/c", &incomplete), ERROR_OK);
    assert_string_equal(place_read("a/b/c"), "content");

    /* A directory's contents, into a new and an existing directory, not onto a file. */
    assert_int_equal(download("box/d/.", "new/deep", &incomplete), ERROR_OK);
    assert_string_equal(place_read("new/deep/inner"), "inner");
    assert_int_equal(download("box/d/.", "real", &incomplete), ERROR_OK);
    assert_string_equal(place_read("real/inner"), "inner");
    assert_int_equal(download("box/d/.", "a/b/c", &incomplete), ERROR_FAILED_PRECONDITION);
    assert_string_equal(place_read("a/b/c"), "content");

    /* A file over a directory of that name: refused, and nothing is lost. */
    place_directory("dest", 0755);
    place_directory("dest/f", 0755);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(download("box/f", "dest", &incomplete), ERROR_OK);
        assert_true(incomplete);
        assert_true(place_exists(i == 0 ? "dest/f" : "dest/f/kept"));
        if (i == 0)
            place_file("dest/f/kept", "kept");
    }
    assert_string_equal(place_read("dest/f/kept"), "kept");

    /* A link is refused; what is missing makes no directory. */
    assert_int_equal(symlink("/etc", "box/l"), 0);
    assert_int_equal(download("box/l", "somewhere/new/", &incomplete), ERROR_FAILED_PRECONDITION);
    assert_false(place_exists("somewhere"));
    assert_int_equal(download("box/missing", "somewhere/new/", &incomplete), ERROR_NOT_FOUND);
    assert_false(place_exists("somewhere"));
    assert_int_equal(download("box/f", "a/b/c/d", &incomplete), ERROR_FAILED_PRECONDITION);
}

/* What fails half-way takes the directories away that were made for it. */
static void test_undo(void **state)
{
    (void)state;
    place_directory("kept", 0755);
    for (int inner = 0; inner < 2; inner++) {
        char here[3000];
        assert_non_null(getcwd(here, sizeof(here)));
        struct archive_chooser chooser = {.direction = ARCHIVE_UPLOAD,
                                          .dest = "kept/a/b/c/",
                                          .working_directory = inner == 0 ? NULL : here,
                                          .output = -1};
        struct archive_place place;
        struct error error = {0};
        bool placed = archive_chooser_place(&chooser, ARCHIVE_KIND_DIRECTORY, "x", &place, &error);
        assert_string_equal(error.message, "");
        assert_true(placed);
        assert_true(place.created);
        assert_int_equal(chooser.made, 3);
        assert_true(place_exists("kept/a/b/c"));
        close(place.directory);
        archive_chooser_undo(&chooser);
        assert_int_equal(place_count("kept"), 0);
    }
}

static void test_output(void **state)
{
    (void)state;
    struct archive_chooser chooser = {.direction = ARCHIVE_DOWNLOAD, .dest = "-", .output = 1};
    struct archive_place place;
    struct error error = {0};
    assert_true(archive_chooser_place(&chooser, ARCHIVE_KIND_FILE, "f", &place, &error));
    assert_int_equal(place.output, 1);
    assert_int_equal(place.directory, -1);
    assert_false(archive_chooser_place(&chooser, ARCHIVE_KIND_CONTENTS, "", &place, &error));
    assert_int_equal(error.code, ERROR_FAILED_PRECONDITION);
    error_clear(&error);
}

#define PLACE_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, place_set_up, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),      cmocka_unit_test(test_source_names),
        cmocka_unit_test(test_name_parse), cmocka_unit_test(test_trailer),
        PLACE_TEST(test_beneath),          PLACE_TEST(test_remove_deep_tree),
        PLACE_TEST(test_local_sources),    PLACE_TEST(test_inner_sources),
        PLACE_TEST(test_uploads),          PLACE_TEST(test_upload_through_planted_links),
        PLACE_TEST(test_downloads),        PLACE_TEST(test_undo),
        cmocka_unit_test(test_output),
    };
    return cmocka_run_group_tests_name("destinations of copies", tests, NULL, NULL);
}
