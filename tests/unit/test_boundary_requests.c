/* What the runtime makes of requests: which execs are admitted, what a command line may be, and
 * what is kept of main's output. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/uuid.h"
#include "boundary/failure.h"
#include "runtime/exec_admission.h"
#include "runtime/output_ring.h"
#include "runtime/process_spec.h"

/* ---- admission ---- */

#define NOW INT64_C(1800000000000)

static bool admit(struct exec_admission *admission, const char *id, int64_t expiry, int64_t now,
                  enum error_code code)
{
    struct error error = {0};
    bool admitted = exec_admission_admit(admission, id, expiry, now, &error);
    assert_int_equal(error.code, code);
    assert_int_equal(failure_kind_of(&error) != FAILURE_UNKNOWN, !admitted);
    return admitted;
}

static void test_requests_need_a_name_and_an_expiry(void **state)
{
    (void)state;
    struct exec_admission *admission = exec_admission_new();
    char id[UUID_SIZE];
    uuid_generate(id);
    assert_false(admit(admission, "", NOW + 1, NOW, ERROR_INVALID_ARGUMENT));
    assert_false(admit(admission, "name", NOW + 1, NOW, ERROR_INVALID_ARGUMENT));
    assert_false(admit(admission, id, 0, NOW, ERROR_INVALID_ARGUMENT));
    assert_false(admit(admission, id, -1, NOW, ERROR_INVALID_ARGUMENT));
    assert_false(admit(admission, id, NOW, NOW, ERROR_PERMISSION_DENIED));
    assert_false(admit(admission, id, NOW - 1, NOW, ERROR_PERMISSION_DENIED));
    assert_false(admit(admission, id, NOW + EXEC_EXPIRY_AHEAD_LIMIT_MILLISECONDS + 1, NOW,
                       ERROR_INVALID_ARGUMENT));
    assert_true(admit(admission, id, NOW + 1, NOW, ERROR_OK)); /* none of that used the name up */
    exec_admission_free(admission);
}

static void test_a_name_is_admitted_once_until_it_expires(void **state)
{
    (void)state;
    struct exec_admission *admission = exec_admission_new();
    char id[UUID_SIZE], other[UUID_SIZE];
    uuid_generate(id);
    uuid_generate(other);
    assert_true(admit(admission, id, NOW + 1000, NOW, ERROR_OK));
    assert_false(admit(admission, id, NOW + 1000, NOW, ERROR_ALREADY_EXISTS));
    assert_false(admit(admission, id, NOW + 1000, NOW + 999, ERROR_ALREADY_EXISTS));
    assert_false(admit(admission, id, NOW + 1000, NOW + 1000, ERROR_PERMISSION_DENIED));
    /* Setting the clock back revives nothing, though the name was dropped. */
    assert_false(admit(admission, id, NOW + 1000, NOW - 100000, ERROR_PERMISSION_DENIED));
    assert_false(admit(admission, other, NOW + 500, NOW, ERROR_PERMISSION_DENIED));
    assert_true(admit(admission, other, NOW + 2000, NOW, ERROR_OK));
    exec_admission_free(admission);
}

static void test_kept_names_are_bounded(void **state)
{
    (void)state;
    struct exec_admission *admission = exec_admission_new();
    char id[UUID_SIZE];
    for (int i = 0; i < EXEC_ADMITTED_LIMIT; i++) {
        uuid_generate(id);
        assert_true(exec_admission_admit(admission, id, NOW + 1000, NOW, NULL));
    }
    uuid_generate(id);
    assert_false(admit(admission, id, NOW + 1000, NOW, ERROR_RESOURCE_EXHAUSTED));
    assert_true(admit(admission, id, NOW + 3000, NOW + 1000, ERROR_OK));
    exec_admission_free(admission);
}

/* ---- command lines ---- */

static ProtobufCBinaryData bytes(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
}

static void spec_refused(struct process_request *request, const char *words)
{
    struct arena *arena = arena_new(0);
    struct maker_session_spec spec;
    struct error error = {0};
    assert_false(process_spec_make(request, arena, &spec, &error));
    assert_int_equal(failure_kind_of(&error), FAILURE_INVALID);
    if (strstr(error.message, words) == NULL)
        fail_msg("'%s' does not say '%s'", error.message, words);
    arena_free(arena);
}

static void test_command_lines(void **state)
{
    (void)state;
    ProtobufCBinaryData command[] = {bytes("printf"), bytes("\xff\n"), {0, NULL}};
    ProtobufCBinaryData environment[] = {bytes("A_1=x=\xfe"), bytes("_="), bytes("b=\r\n")};
    struct process_request request = {.command_count = 3,
                                      .command = command,
                                      .environment_count = 3,
                                      .environment = environment,
                                      .workdir = "/w",
                                      .columns = 80};
    struct arena *arena = arena_new(0);
    struct maker_session_spec spec;
    assert_true(process_spec_make(&request, arena, &spec, NULL));
    assert_string_equal(spec.argv[1], "\xff\n");
    assert_string_equal(spec.argv[2], "");
    assert_null(spec.argv[3]);
    assert_string_equal(spec.environment[0], "A_1=x=\xfe");
    assert_string_equal(spec.workdir, "/w");
    arena_free(arena);

    command[1] = (ProtobufCBinaryData){3, (uint8_t *)"a\0b"};
    spec_refused(&request, "NUL");
    command[1] = bytes("x");
    command[0] = bytes("");
    spec_refused(&request, "empty");
    command[0] = bytes("printf");
    static const char *const NAMES[] = {"A", "", "=x", "1A=x", "A-B=x", "A B=x", "\xc3\xa4=x"};
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++) {
        environment[1] = bytes(NAMES[i]);
        spec_refused(&request, "identifier");
    }
    environment[1] = (ProtobufCBinaryData){4, (uint8_t *)"A=\0x"};
    spec_refused(&request, "NUL");
    environment[1] = bytes("A=");
    request.workdir = "relative";
    spec_refused(&request, "absolute");
    request.workdir = "";
    request.rows = PROCESS_SPEC_TERMINAL_LIMIT + 1;
    spec_refused(&request, "terminal");
    request.rows = 0;
    request.command_count = PROCESS_SPEC_ENTRIES_LIMIT + 1;
    spec_refused(&request, "more than");
}

/* ---- output ---- */

static void test_ring_keeps_order_and_kind(void **state)
{
    (void)state;
    struct output_ring *ring = output_ring_new();
    uint64_t sequence = 0;
    bool is_error = true;
    const void *data = NULL;
    assert_int_equal(output_ring_read(ring, sequence, 10, &is_error, &data), 0);
    output_ring_append(ring, false, "one", 3);
    output_ring_append(ring, true, "two", 3);
    output_ring_append(ring, false, "three", 5);
    assert_int_equal(output_ring_read(ring, sequence, 2, &is_error, &data), 2);
    assert_memory_equal(data, "on", 2);
    sequence = 2;
    assert_int_equal(output_ring_read(ring, sequence, 10, &is_error, &data), 1);
    assert_false(is_error);
    sequence = 3;
    assert_int_equal(output_ring_read(ring, sequence, 10, &is_error, &data), 3);
    assert_true(is_error);
    sequence = 11;
    assert_int_equal(output_ring_read(ring, sequence, 10, &is_error, &data), 0);
    assert_int_equal(output_ring_next(ring), 11);
    output_ring_free(ring);
}

static void test_ring_drops_the_oldest(void **state)
{
    (void)state;
    struct output_ring *ring = output_ring_new();
    char block[10000];
    for (int i = 0; i < 300; i++) {
        memset(block, 'a' + i % 26, sizeof(block));
        output_ring_append(ring, false, block, sizeof(block));
    }
    assert_int_equal(output_ring_next(ring), 3000000);
    uint64_t first = output_ring_first(ring), sequence = first;
    assert_true(3000000 - first <= OUTPUT_RING_LIMIT);
    assert_true(3000000 - first > OUTPUT_RING_LIMIT - 32 * 1024);
    bool is_error = false;
    const void *data = NULL;
    uint64_t total = 0;
    for (size_t length; (length = output_ring_read(ring, sequence, 4096, &is_error, &data)) > 0;
         sequence += length) {
        assert_int_equal(*(const char *)data, 'a' + (int)(sequence / 10000 % 26));
        total += length;
    }
    assert_int_equal(total, 3000000 - first);
    assert_int_equal(output_ring_read(ring, first - 1, 4096, &is_error, &data), 0);
    output_ring_free(ring);
}

/* A process that writes a byte here and a byte there cannot make the ring cost more. */
static void test_ring_is_bounded_by_its_memory(void **state)
{
    (void)state;
    struct output_ring *ring = output_ring_new();
    for (int i = 0; i < 400000; i++)
        output_ring_append(ring, i % 2 == 1, "x", 1);
    uint64_t kept = output_ring_next(ring) - output_ring_first(ring);
    assert_int_equal(output_ring_next(ring), 400000);
    assert_true(kept > 8 * 1024);
    assert_true(kept < OUTPUT_RING_LIMIT / 16);
    bool is_error = false;
    const void *data = NULL;
    for (uint64_t at = output_ring_first(ring); at < output_ring_next(ring); at++) {
        assert_int_equal(output_ring_read(ring, at, 100, &is_error, &data), 1);
        assert_int_equal(is_error, at % 2 == 1);
    }
    output_ring_free(ring);
}

/* Small pieces and large ones, of both kinds: what is kept is what was written. */
static void test_ring_keeps_what_was_written(void **state)
{
    (void)state;
    struct output_ring *ring = output_ring_new();
    static unsigned char block[70000];
    uint64_t written = 0;
    unsigned seed = 7;
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1103515245 + 12345;
        size_t length = (seed >> 16) % (i % 100 == 0 ? sizeof(block) : 900) + 1;
        for (size_t j = 0; j < length; j++)
            block[j] = (unsigned char)((written + j) % 251);
        output_ring_append(ring, (seed >> 8) % 3 == 0, block, length);
        written += length;
    }
    bool is_error = false;
    const void *data = NULL;
    uint64_t at = output_ring_first(ring);
    for (size_t length; (length = output_ring_read(ring, at, 65536, &is_error, &data)) > 0;
         at += length)
        for (size_t i = 0; i < length; i++)
            assert_int_equal(((const unsigned char *)data)[i], (at + i) % 251);
    assert_int_equal(at, written);
    output_ring_free(ring);
}

static void test_copies_have_a_path_and_no_terminal(void **state)
{
    (void)state;
    ProtobufCBinaryData command[] = {bytes("tar"), bytes("-")};
    struct process_request request = {
        .command_count = 2, .command = command, .workdir = "", .helper = COPY_SEND};
    struct arena *arena = arena_new(0);
    struct maker_session_spec spec;
    assert_true(process_spec_make(&request, arena, &spec, NULL));
    assert_int_equal(spec.helper, COPY_SEND);
    arena_free(arena);
    request.terminal = true;
    spec_refused(&request, "no terminal");
    request.terminal = false;
    request.command_count = 0;
    spec_refused(&request, "path");
    request.command_count = 2;
    request.helper = COPY_SEND + 1;
    spec_refused(&request, "3 is no helper");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_need_a_name_and_an_expiry),
        cmocka_unit_test(test_a_name_is_admitted_once_until_it_expires),
        cmocka_unit_test(test_kept_names_are_bounded),
        cmocka_unit_test(test_command_lines),
        cmocka_unit_test(test_ring_keeps_order_and_kind),
        cmocka_unit_test(test_ring_drops_the_oldest),
        cmocka_unit_test(test_ring_is_bounded_by_its_memory),
        cmocka_unit_test(test_ring_keeps_what_was_written),
        cmocka_unit_test(test_copies_have_a_path_and_no_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
