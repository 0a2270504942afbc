/* Removing trees whose shape somebody hostile chose. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

enum { DEPTH = 3000, DESCRIPTORS = 64 };

struct tree {
    char *place; /* holds what follows */
    char *path;
    char *outside;
};

static int set_up(void **state)
{
    struct tree *tree = memory_new_of(struct tree);
    const char *parent = getenv("TMPDIR");
    tree->place = memory_printf("%s/file-XXXXXX", parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(tree->place));
    tree->path = memory_printf("%s/tree", tree->place);
    tree->outside = memory_printf("%s/outside", tree->place);
    assert_int_equal(mkdir(tree->path, 0700), 0);
    assert_int_equal(mkdir(tree->outside, 0700), 0);
    *state = tree;
    return 0;
}

static int tear_down(void **state)
{
    struct tree *tree = *state;
    assert_int_equal(rmdir(tree->outside), 0);
    assert_int_equal(rmdir(tree->place), 0);
    free(tree->path);
    free(tree->outside);
    free(tree->place);
    free(tree);
    return 0;
}

static void make_file(int directory, const char *name)
{
    int file = openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    close(file);
}

/* A chain of directories, each with a file in it; every tenth is closed to its owner. */
static void make_chain(const char *path, unsigned depth)
{
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < depth; i++) {
        assert_true(directory >= 0);
        assert_int_equal(mkdirat(directory, "d", 0700), 0);
        make_file(directory, "file");
        int child = openat(directory, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (i % 10 == 1)
            assert_int_equal(fchmod(directory, 0), 0);
        close(directory);
        directory = child;
    }
    close(directory);
}

static void test_a_deep_tree_needs_few_descriptors(void **state)
{
    struct tree *tree = *state;
    make_chain(tree->path, DEPTH);
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit few = {DESCRIPTORS, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    struct error error = {0};
    bool removed = file_remove_tree(tree->path, &error);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_string_equal(error.code == ERROR_OK ? "" : error.message, "");
    assert_true(removed);
    assert_int_equal(access(tree->path, F_OK), -1);
}

/* The names under which lower parts come to the top may be there already. */
static void test_names_at_the_top_are_taken(void **state)
{
    struct tree *tree = *state;
    make_chain(tree->path, 200);
    int top = open(tree->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    make_file(top, ".removed-1");
    assert_int_equal(symlinkat(tree->outside, top, ".removed-2"), 0);
    assert_int_equal(mkdirat(top, ".removed-3", 0700), 0);
    assert_int_equal(mkdirat(top, ".removed-3/x", 0700), 0);
    close(top);
    assert_true(file_remove_tree(tree->path, NULL));
    assert_int_equal(access(tree->path, F_OK), -1);
}

static void test_links_are_not_followed(void **state)
{
    struct tree *tree = *state;
    CLEANUP_FREE char *kept = memory_printf("%s/kept", tree->outside);
    CLEANUP_FREE char *link = memory_printf("%s/link", tree->path);
    CLEANUP_FREE char *top = memory_printf("%s/top", tree->place);
    assert_int_equal(mkdir(kept, 0700), 0);
    assert_int_equal(symlink(tree->outside, link), 0);
    assert_int_equal(symlink(tree->outside, top), 0);
    assert_true(file_remove_tree(tree->path, NULL));
    assert_true(file_remove_tree(top, NULL));
    assert_int_equal(access(tree->path, F_OK), -1);
    assert_int_equal(rmdir(kept), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_a_deep_tree_needs_few_descriptors),
        TEST(test_names_at_the_top_are_taken),
        TEST(test_links_are_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
