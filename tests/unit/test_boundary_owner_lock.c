/* Lock files: who holds one, whether it lives, and how it ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "boundary/owner_lock.h"

static char directory[] = "/tmp/openshell-lock-XXXXXX";
static char path[64];

static int set_up(void **state)
{
    (void)state;
    if (mkdtemp(directory) == NULL)
        return 1;
    snprintf(path, sizeof(path), "%s/lock", directory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return !file_remove_tree(directory, NULL);
}

/* A child that inherits the lock as the driver's children do, claims it and, when told, ends. */
static pid_t start_owner(const char *reason, int *ret_tell)
{
    int descriptor = owner_lock_create(path, NULL), tell[2], ready[2];
    assert_true(descriptor >= 0);
    assert_int_equal(pipe(tell), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        close(tell[1]);
        if (!owner_lock_claim(descriptor, NULL) || write(ready[1], "r", 1) != 1 ||
            read(tell[0], &byte, 1) < 0)
            _exit(1);
        if (reason != NULL)
            owner_lock_end(descriptor, reason);
        _exit(0);
    }
    close(descriptor); /* the lock lasts with the child */
    close(tell[0]);
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    *ret_tell = tell[1];
    return child;
}

static void test_life_of_a_lock(void **state)
{
    (void)state;
    struct owner_lock lock;
    struct error error = {0};
    assert_false(owner_lock_is_held(path));
    assert_false(owner_lock_read(path, &lock, &error));
    assert_int_equal(error.code, ERROR_NOT_FOUND);

    int tell;
    pid_t child = start_owner("failed: line\nbreak\x1b[1m", &tell);
    assert_true(owner_lock_is_held(path));
    assert_int_equal(owner_lock_create(path, &error), -1);
    assert_int_equal(error.code, ERROR_ABORTED);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_true(owner_lock_read(path, &lock, NULL));
    assert_int_equal(lock.process, child);
    assert_string_equal(lock.ended, "");
    int process = owner_lock_open_process(&lock, NULL);
    assert_true(process >= 0);
    close(process);
    lock.start_time++; /* another process that got the number */
    assert_int_equal(owner_lock_open_process(&lock, &error), -1);
    assert_int_equal(error.code, ERROR_NOT_FOUND);

    close(tell);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_false(owner_lock_is_held(path));
    assert_true(owner_lock_read(path, &lock, NULL));
    assert_string_equal(lock.ended, "failed: line break [1m");
    lock.start_time--;
    assert_int_equal(owner_lock_open_process(&lock, &error), -1);
}

static void test_a_killed_owner_leaves_no_reason(void **state)
{
    (void)state;
    int tell;
    pid_t child = start_owner("stopped", &tell);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    struct owner_lock lock;
    assert_false(owner_lock_is_held(path));
    assert_true(owner_lock_read(path, &lock, NULL));
    assert_int_equal(lock.process, child);
    assert_string_equal(lock.ended, "");
    close(tell);
}

static void test_a_long_reason_is_cut(void **state)
{
    (void)state;
    int descriptor = owner_lock_create(path, NULL);
    assert_true(owner_lock_claim(descriptor, NULL));
    char reason[1000];
    memset(reason, 'r', sizeof(reason) - 1);
    reason[sizeof(reason) - 1] = '\0';
    owner_lock_end(descriptor, reason);
    struct owner_lock lock;
    assert_true(owner_lock_read(path, &lock, NULL));
    assert_true(strlen(lock.ended) > 200 && strlen(lock.ended) < sizeof(lock.ended));
    close(descriptor);
}

static void test_text_that_names_nobody(void **state)
{
    (void)state;
    static const char *const TEXTS[] = {"", "12", "12 34", "x 1\n", "-1 5\n", "12 34 56\n", "\n"};
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++) {
        assert_true(file_write_atomic(path, TEXTS[i], strlen(TEXTS[i]), 0600, NULL));
        struct owner_lock lock;
        struct error error = {0};
        assert_false(owner_lock_read(path, &lock, &error));
        assert_int_equal(error.code, ERROR_FAILED_PRECONDITION);
    }
}

static void test_claim_needs_the_lock(void **state)
{
    (void)state;
    int held = owner_lock_create(path, NULL);
    int other = open(path, O_RDWR | O_CLOEXEC);
    assert_false(owner_lock_claim(other, NULL));
    close(other);
    close(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life_of_a_lock),
        cmocka_unit_test(test_a_killed_owner_leaves_no_reason),
        cmocka_unit_test(test_a_long_reason_is_cut),
        cmocka_unit_test(test_text_that_names_nobody),
        cmocka_unit_test(test_claim_needs_the_lock),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
