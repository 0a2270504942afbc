/* Log lines: how they look, that nothing in them acts on a terminal, what a listener gets, and that
 * a log file has a limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#include <cmocka.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

static char directory[] = "/tmp/openshell-test-log-XXXXXX";
static char path[64], earlier[64];
static int own_stderr = -1;

static int setup(void **state)
{
    (void)state;
    strcpy(directory + strlen(directory) - 6, "XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/log", directory);
    snprintf(earlier, sizeof(earlier), "%s/log.1", directory);
    own_stderr = dup(STDERR_FILENO);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    assert_true(file >= 0 && dup2(file, STDERR_FILENO) >= 0);
    close(file);
    log_init("tester", LOG_LEVEL_INFO);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    log_set_listener(NULL, NULL);
    dup2(own_stderr, STDERR_FILENO);
    close(own_stderr);
    file_remove_tree(directory, NULL);
    return 0;
}

static void read_log(struct buffer *buffer)
{
    *buffer = BUFFER_INIT(4 * LOG_FILE_LIMIT);
    assert_true(file_read(path, buffer, NULL));
}

static off_t size_of(const char *name)
{
    struct stat status;
    return stat(name, &status) == 0 ? status.st_size : -1;
}

static void test_line(void **state)
{
    (void)state;
    struct buffer buffer;
    const struct log_field fields[] = {{"code", "3"}, {"program", "a\x1b[2Jb"}, {NULL, NULL}};
    log_debug("not enabled");
    log_info("plain");
    log_write_fields(LOG_LEVEL_WARN, "exec", fields, "ended\n%s", "\x1b]52;c;QQ==\a\xff");
    read_log(&buffer);
    const char *text = buffer_text(&buffer);
    assert_null(strstr(text, "not enabled"));
    assert_non_null(strstr(text, "Z INFO  tester: plain\n"));
    assert_non_null(strstr(text, "Z WARN  tester/exec: ended\\n\\x1b]52;c;QQ==\\x07\\xff code=3 "
                                 "program=a\\x1b[2Jb\n"));
    assert_null(strchr(text, '\x1b'));
    buffer_free(&buffer);
}

struct heard {
    size_t count;
    struct log_line line;
    char message[8192];
    char value[1024];
};

static void on_line(const struct log_line *line, void *user)
{
    struct heard *heard = user;
    heard->count++;
    heard->line = *line;
    snprintf(heard->message, sizeof(heard->message), "%s", line->message);
    if (line->field_count > 0)
        snprintf(heard->value, sizeof(heard->value), "%s", line->fields[0].value);
}

static void test_listener(void **state)
{
    (void)state;
    struct heard heard = {0};
    log_set_listener(on_line, &heard);
    char huge[10000];
    memset(huge, '\xfe', sizeof(huge) - 1);
    huge[sizeof(huge) - 1] = '\0';
    const struct log_field fields[] = {{"k", huge}, {NULL, NULL}};
    log_debug("not enabled");
    assert_int_equal(heard.count, 0);
    log_write_fields(LOG_LEVEL_ERROR, NULL, fields, "%s", huge);
    assert_int_equal(heard.count, 1);
    assert_int_equal(heard.line.level, LOG_LEVEL_ERROR);
    assert_string_equal(heard.line.target, "tester");
    assert_int_equal(heard.line.field_count, 1);
    assert_true(heard.line.seconds > 0);
    assert_true(text_is_utf8(heard.message, strlen(heard.message)));
    assert_true(text_is_utf8(heard.value, strlen(heard.value)));
    assert_true(size_of(path) < 16 * 1024);
}

static void test_many_fields(void **state)
{
    (void)state;
    struct heard heard = {0};
    struct log_field fields[LOG_FIELDS_LIMIT + 4] = {{NULL, NULL}};
    for (size_t i = 0; i < LOG_FIELDS_LIMIT + 3; i++)
        fields[i] = (struct log_field){"k", "v"};
    log_set_listener(on_line, &heard);
    log_write_fields(LOG_LEVEL_INFO, NULL, fields, "many");
    assert_int_equal(heard.line.field_count, LOG_FIELDS_LIMIT);
}

static void fill(size_t lines)
{
    for (size_t i = 0; i < lines; i++)
        log_info("line %06zu %0100d", i, 0);
}

/* Two parts, each of the stated size, and the newest lines are there. */
static void test_limit(void **state)
{
    (void)state;
    log_limit_file();
    fill(40000);
    assert_true(size_of(path) <= LOG_FILE_LIMIT + 1024);
    assert_true(size_of(earlier) >= LOG_FILE_LIMIT && size_of(earlier) <= LOG_FILE_LIMIT + 1024);
    struct buffer buffer;
    read_log(&buffer);
    assert_non_null(strstr(buffer_text(&buffer), "line 039999"));
    buffer_free(&buffer);
}

/* A child's lines count, and the child moves nothing. */
static void test_limit_child(void **state)
{
    (void)state;
    log_limit_file();
    pid_t child = fork();
    if (child == 0) {
        fill(12000);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(size_of(path) > LOG_FILE_LIMIT);
    assert_int_equal(size_of(earlier), -1);
    log_info("one more");
    assert_true(size_of(path) < 1024);
    assert_true(size_of(earlier) > LOG_FILE_LIMIT);
}

/* A file that was removed is emptied all the same, and no other takes its place. */
static void test_limit_removed(void **state)
{
    (void)state;
    log_limit_file();
    unlink(path);
    fill(20000);
    struct stat status;
    assert_int_equal(fstat(STDERR_FILENO, &status), 0);
    assert_true(status.st_size <= LOG_FILE_LIMIT + 1024);
    assert_int_equal(size_of(earlier), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_listener, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_fields, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit_child, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limit_removed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
