/* rpc_scan: what it refuses, what it lets through, and that what it lets through unpacks within
 * the memory that it counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "google/protobuf/struct.pb-c.h"
#include "method_table.h"
#include "openshell.pb-c.h"
#include "rpc/redact.h"
#include "rpc/scan.h"
#include "sandbox.pb-c.h"

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, GROUP_START = 3, GROUP_END = 4, FIXED32 = 5 };

/* ---- wire bytes by hand ---- */

static void put_varint(struct buffer *out, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        assert_true(buffer_append(out, &byte, 1));
        value >>= 7;
    } while (value > 0);
}

static void put_tag(struct buffer *out, uint64_t field, unsigned wire)
{
    put_varint(out, field << 3 | wire);
}

static void put_bytes(struct buffer *out, uint64_t field, const void *data, size_t length)
{
    put_tag(out, field, LENGTH);
    put_varint(out, length);
    if (length > 0)
        assert_true(buffer_append(out, data, length));
}

static void put_text(struct buffer *out, uint64_t field, const char *text)
{
    put_bytes(out, field, text, strlen(text));
}

/* Puts what `inner` holds as a field of `out`, and empties `inner`. */
static void put_inner(struct buffer *out, uint64_t field, struct buffer *inner)
{
    put_bytes(out, field, inner->data, inner->length);
    buffer_free(inner);
    *inner = BUFFER_INIT(0);
}

/* ---- an allocator that counts ---- */

struct counter {
    size_t total; /* bytes ever allocated, 16 more for each allocation as malloc needs them */
};

static void *count_allocate(void *data, size_t size)
{
    struct counter *counter = data;
    counter->total += size + 16;
    return malloc(size);
}

static void count_free(void *data, void *pointer)
{
    (void)data;
    free(pointer);
}

/* Scans and unpacks; NULL when refused. Fails when the unpacker disagrees with the scan, or takes
 * more memory than a scan with that limit lets through. */
static ProtobufCMessage *accept(const ProtobufCMessageDescriptor *descriptor,
                                const struct buffer *wire, struct counter *counter)
{
    struct error error = {0};
    if (!rpc_scan(descriptor, wire->data, wire->length, NULL, &error)) {
        error_clear(&error);
        return NULL;
    }
    ProtobufCAllocator allocator = {count_allocate, count_free, counter};
    ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor, &allocator, wire->length, wire->data);
    assert_non_null(message);
    /* A limit below what was really needed must refuse. */
    struct rpc_scan_limits limits = {.memory_bytes = counter->total - 1};
    assert_false(rpc_scan(descriptor, wire->data, wire->length, &limits, &error));
    error_clear(&error);
    return message;
}

static void assert_accepted(const ProtobufCMessageDescriptor *descriptor, struct buffer *wire)
{
    struct counter counter = {0};
    ProtobufCAllocator allocator = {count_allocate, count_free, &counter};
    ProtobufCMessage *message = accept(descriptor, wire, &counter);
    assert_non_null(message);
    protobuf_c_message_free_unpacked(message, &allocator);
    buffer_free(wire);
    *wire = BUFFER_INIT(0);
}

static void assert_refused_limits(const ProtobufCMessageDescriptor *descriptor, struct buffer *wire,
                                  const struct rpc_scan_limits *limits, const char *field,
                                  const char *part)
{
    struct error error = {0};
    assert_false(rpc_scan(descriptor, wire->data, wire->length, limits, &error));
    assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
    assert_int_equal(error.violation_count, 1);
    assert_string_equal(error.violations[0].field, field);
    assert_non_null(strstr(error.violations[0].description, part));
    error_clear(&error);
    buffer_free(wire);
    *wire = BUFFER_INIT(0);
}

static void assert_refused(const ProtobufCMessageDescriptor *descriptor, struct buffer *wire,
                           const char *field, const char *part)
{
    assert_refused_limits(descriptor, wire, NULL, field, part);
}

#define CREATE (&openshell__v1__create_sandbox_request__descriptor)
#define EXEC (&openshell__v1__exec_sandbox_request__descriptor)
#define VALUE (&google__protobuf__value__descriptor)
#define ENDPOINT (&openshell__sandbox__v1__network_endpoint__descriptor)

static unsigned field_number(const ProtobufCMessageDescriptor *descriptor, const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(descriptor, name);
    assert_non_null(field);
    return field->id;
}

/* ---- refusals ---- */

/* {spec: {environment: [{key: KEY, value: "v"}]}} */
static struct buffer request_with_key(const char *key, size_t length)
{
    struct buffer entry = BUFFER_INIT(0), spec = BUFFER_INIT(0), request = BUFFER_INIT(0);
    put_bytes(&entry, 1, key, length);
    put_text(&entry, 2, "v");
    put_inner(&spec, field_number(&openshell__v1__sandbox_spec__descriptor, "environment"), &entry);
    put_inner(&request, field_number(CREATE, "spec"), &spec);
    return request;
}

static void test_text(void **state)
{
    (void)state;
    struct buffer wire = request_with_key("NAME", 4);
    assert_accepted(CREATE, &wire);
    wire = request_with_key("NA\0E", 4);
    assert_refused(CREATE, &wire, "spec.environment.key", "NUL");
    wire = request_with_key("caf\xC3\xA9", 5);
    assert_accepted(CREATE, &wire);
    static const char *const invalid[] = {
        "\xFF", "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "a\x80",
    };
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
        wire = request_with_key(invalid[i], strlen(invalid[i]));
        assert_refused(CREATE, &wire, "spec.environment.key", "UTF-8");
    }
    /* Bytes may hold anything. */
    put_bytes(&wire, field_number(EXEC, "stdin"), "\0\xFF", 2);
    assert_accepted(EXEC, &wire);
    /* A repeated string is checked each time. */
    put_text(&wire, field_number(EXEC, "command"), "cat");
    put_bytes(&wire, field_number(EXEC, "command"), "\0", 1);
    assert_refused(EXEC, &wire, "command", "NUL");
}

/* A google.protobuf.Value with `levels` lists around a null. */
static struct buffer nested_value(size_t levels)
{
    struct buffer value = BUFFER_INIT(0);
    put_tag(&value, 1, VARINT);
    put_varint(&value, 0);
    for (size_t i = 0; i < levels; i++) {
        struct buffer list = BUFFER_INIT(0), outer = BUFFER_INIT(0);
        put_inner(&list, 1, &value);
        put_inner(&outer, 6, &list);
        value = outer;
    }
    return value;
}

static void test_depth(void **state)
{
    (void)state;
    /* Each list is two messages, and the null's Value is one more. */
    struct buffer wire = nested_value(31);
    assert_accepted(VALUE, &wire);
    struct error error = {0};
    wire = nested_value(32);
    assert_false(rpc_scan(VALUE, wire.data, wire.length, NULL, &error));
    assert_non_null(strstr(error.message, "nested too deeply"));
    error_clear(&error);
    buffer_free(&wire);
    /* The one that ends the unpacker: 33 KB, thousands of levels. */
    wire = nested_value(5000);
    assert_in_range(wire.length, 33000, 64000);
    assert_false(rpc_scan(VALUE, wire.data, wire.length, NULL, &error));
    error_clear(&error);
    /* A caller cannot raise the limit, only lower it. */
    struct rpc_scan_limits limits = {.depth = 1000};
    assert_false(rpc_scan(VALUE, wire.data, wire.length, &limits, &error));
    error_clear(&error);
    buffer_free(&wire);
    wire = nested_value(1);
    limits.depth = 2;
    assert_refused_limits(VALUE, &wire, &limits, "list_value.values", "nested too deeply");
}

static void test_varints(void **state)
{
    (void)state;
    unsigned rows = field_number(EXEC, "rows");
    struct buffer wire = BUFFER_INIT(0);

    put_tag(&wire, rows, VARINT);
    put_varint(&wire, UINT64_MAX); /* ten bytes */
    assert_accepted(EXEC, &wire);
    put_tag(&wire, rows, VARINT);
    assert_refused(EXEC, &wire, "rows", "cut short");
    put_tag(&wire, rows, VARINT);
    buffer_append(&wire, "\x80\x80", 2);
    assert_refused(EXEC, &wire, "rows", "cut short");
    put_tag(&wire, rows, VARINT);
    buffer_append(&wire, "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11);
    assert_refused(EXEC, &wire, "rows", "too long");
    put_tag(&wire, rows, VARINT);
    buffer_append(&wire, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02", 10);
    assert_refused(EXEC, &wire, "rows", "too long");
    /* The tag itself. */
    buffer_append(&wire, "\x80\x80\x80\x80\x80\x01", 6);
    assert_refused(EXEC, &wire, "ExecSandboxRequest", "field number");
    buffer_append(&wire, "\x80", 1);
    assert_refused(EXEC, &wire, "ExecSandboxRequest", "field number");
}

static void test_field_numbers(void **state)
{
    (void)state;
    struct buffer wire = BUFFER_INIT(0);

    put_tag(&wire, 0, VARINT);
    put_varint(&wire, 1);
    assert_refused(EXEC, &wire, "ExecSandboxRequest", "does not exist");
    put_tag(&wire, 536870911, VARINT);
    put_varint(&wire, 1);
    assert_accepted(EXEC, &wire);
    put_tag(&wire, 536870912, VARINT);
    put_varint(&wire, 1);
    assert_refused(EXEC, &wire, "ExecSandboxRequest", "does not exist");
}

static void test_wire_types(void **state)
{
    (void)state;
    unsigned rows = field_number(EXEC, "rows"), sandbox = field_number(EXEC, "sandbox");
    struct buffer wire = BUFFER_INIT(0), scope = BUFFER_INIT(0);

    for (unsigned wire_type = FIXED64; wire_type < 8; wire_type++) {
        bool unsupported = wire_type == GROUP_START || wire_type == GROUP_END || wire_type > 5;
        put_tag(&wire, rows, wire_type);
        assert_refused(EXEC, &wire, unsupported ? "ExecSandboxRequest" : "rows",
                       unsupported ? "not supported" : "wrong wire type");
    }
    put_tag(&wire, sandbox, VARINT);
    put_varint(&wire, 3);
    assert_refused(EXEC, &wire, "sandbox", "wrong wire type");
    put_tag(&wire, field_number(EXEC, "command"), FIXED32);
    buffer_append(&wire, "abcd", 4);
    assert_refused(EXEC, &wire, "command", "wrong wire type");
    put_tag(&scope, 1, FIXED64);
    buffer_append(&scope, "abcdefgh", 8);
    put_inner(&wire, field_number(EXEC, "workspace_scope"), &scope);
    assert_refused(EXEC, &wire, "workspace_scope.workspace", "wrong wire type");
    /* A group of a field that nobody knows. */
    put_tag(&wire, 400, GROUP_START);
    put_tag(&wire, 400, GROUP_END);
    assert_refused(EXEC, &wire, "ExecSandboxRequest", "not supported");
}

static void test_lengths(void **state)
{
    (void)state;
    unsigned sandbox = field_number(EXEC, "sandbox");
    struct buffer wire = BUFFER_INIT(0), scope = BUFFER_INIT(0);

    put_tag(&wire, sandbox, LENGTH);
    put_varint(&wire, 5);
    buffer_append(&wire, "four", 4);
    assert_refused(EXEC, &wire, "sandbox", "cut short");
    put_tag(&wire, sandbox, LENGTH);
    assert_refused(EXEC, &wire, "sandbox", "cut short");
    static const uint64_t lengths[] = {INT32_MAX, UINT32_MAX, UINT64_C(0x7FFFFFFFF), UINT64_MAX};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        put_tag(&wire, sandbox, LENGTH);
        put_varint(&wire, lengths[i]);
        assert_refused(EXEC, &wire, "sandbox", "cut short");
    }
    /* A value may not reach past the end of the message it is in, even inside the outer one. */
    put_tag(&scope, 1, LENGTH);
    put_varint(&scope, 10);
    put_inner(&wire, field_number(EXEC, "workspace_scope"), &scope);
    put_text(&wire, sandbox, "enough bytes to reach");
    assert_refused(EXEC, &wire, "workspace_scope.workspace", "cut short");
}

static void test_unknown_fields(void **state)
{
    (void)state;
    struct buffer wire = BUFFER_INIT(0);

    put_bytes(&wire, 900, "\0\xFF", 2);
    put_tag(&wire, 901, VARINT);
    put_varint(&wire, 300);
    put_tag(&wire, 902, FIXED32);
    buffer_append(&wire, "abcd", 4);
    put_tag(&wire, 903, FIXED64);
    buffer_append(&wire, "abcdefgh", 8);
    assert_accepted(EXEC, &wire);
    put_tag(&wire, 902, FIXED32);
    buffer_append(&wire, "abc", 3);
    assert_refused(EXEC, &wire, "ExecSandboxRequest", "cut short");
    put_tag(&wire, 903, FIXED64);
    buffer_append(&wire, "abcdefg", 7);
    assert_refused(EXEC, &wire, "ExecSandboxRequest", "cut short");
    put_tag(&wire, 900, LENGTH);
    put_varint(&wire, 3);
    buffer_append(&wire, "ab", 2);
    assert_refused(EXEC, &wire, "ExecSandboxRequest", "cut short");
    for (size_t i = 0; i <= RPC_SCAN_ELEMENTS; i++)
        put_bytes(&wire, 900, "", 0);
    assert_refused(EXEC, &wire, "ExecSandboxRequest", "too many");
}

static void test_packed(void **state)
{
    (void)state;
    unsigned ports = field_number(ENDPOINT, "ports");
    struct buffer wire = BUFFER_INIT(0), packed = BUFFER_INIT(0);

    put_varint(&packed, 80);
    put_varint(&packed, 443);
    put_inner(&wire, ports, &packed);
    put_tag(&wire, ports, VARINT); /* and one by itself */
    put_varint(&wire, 8080);
    assert_accepted(ENDPOINT, &wire);
    put_bytes(&wire, ports, "", 0);
    assert_accepted(ENDPOINT, &wire);
    put_bytes(&wire, ports, "\x50\x80", 2);
    assert_refused(ENDPOINT, &wire, "ports", "cut short");
    /* 100 KB that would be 400 KB, and with every byte of a message 16 MB. */
    char *zeros = calloc(1, RPC_SCAN_ELEMENTS + 1);
    assert_non_null(zeros);
    put_bytes(&wire, ports, zeros, RPC_SCAN_ELEMENTS - 1);
    assert_accepted(ENDPOINT, &wire);
    put_bytes(&wire, ports, zeros, RPC_SCAN_ELEMENTS);
    assert_refused(ENDPOINT, &wire, "ports", "too many");
    /* The budget is one for the whole message. */
    put_bytes(&wire, ports, zeros, RPC_SCAN_ELEMENTS / 2);
    put_bytes(&wire, ports, zeros, RPC_SCAN_ELEMENTS / 2);
    assert_refused(ENDPOINT, &wire, "ports", "too many");
    free(zeros);
}

static void test_budgets(void **state)
{
    (void)state;
    unsigned command = field_number(EXEC, "command");
    struct buffer wire = BUFFER_INIT(0);
    struct rpc_scan_limits limits = {.text_bytes = 8};

    put_text(&wire, command, "12345678");
    struct error error = {0};
    assert_true(rpc_scan(EXEC, wire.data, wire.length, &limits, &error));
    put_text(&wire, command, "9");
    assert_refused_limits(EXEC, &wire, &limits, "command", "too many bytes");
    limits = (struct rpc_scan_limits){.elements = 2};
    put_text(&wire, command, "a");
    put_text(&wire, command, "b");
    assert_true(rpc_scan(EXEC, wire.data, wire.length, &limits, &error));
    put_text(&wire, command, "c");
    assert_refused_limits(EXEC, &wire, &limits, "command", "too many fields");
}

/* Empty sandboxes in a list cost two bytes each on the wire and hundreds in memory. */
static void test_memory(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *list = &openshell__v1__list_sandboxes_response__descriptor;
    unsigned sandboxes = field_number(list, "sandboxes");
    unsigned spec = field_number(&openshell__v1__sandbox__descriptor, "spec");
    struct buffer wire = BUFFER_INIT(0);

    for (size_t i = 0; i < RPC_SCAN_ELEMENTS / 3; i++) {
        struct buffer sandbox = BUFFER_INIT(0);
        put_bytes(&sandbox, spec, "", 0);
        put_inner(&wire, sandboxes, &sandbox);
    }
    struct rpc_scan_limits limits = {.memory_bytes = 8 * 1024 * 1024};
    struct error error = {0};
    assert_false(rpc_scan(list, wire.data, wire.length, &limits, &error));
    assert_non_null(strstr(error.message, "memory"));
    error_clear(&error);
    buffer_free(&wire);
}

static void test_repeated_single_message(void **state)
{
    (void)state;
    unsigned scope = field_number(EXEC, "workspace_scope");
    struct buffer wire = BUFFER_INIT(0);

    put_bytes(&wire, scope, "", 0);
    put_bytes(&wire, scope, "", 0);
    assert_refused(EXEC, &wire, "workspace_scope", "more than once");
    /* A plain value may come again; the last one counts. */
    put_text(&wire, field_number(EXEC, "sandbox"), "one");
    put_text(&wire, field_number(EXEC, "sandbox"), "two");
    struct counter counter = {0};
    ProtobufCAllocator allocator = {count_allocate, count_free, &counter};
    ProtobufCMessage *message = accept(EXEC, &wire, &counter);
    assert_non_null(message);
    assert_string_equal(((Openshell__V1__ExecSandboxRequest *)message)->sandbox, "two");
    protobuf_c_message_free_unpacked(message, &allocator);
    buffer_free(&wire);
}

static void test_empty(void **state)
{
    (void)state;
    assert_true(rpc_scan(EXEC, NULL, 0, NULL, NULL));
    assert_true(rpc_scan(EXEC, "", 0, NULL, NULL));
    assert_false(rpc_scan(EXEC, "", 1, NULL, NULL));
}

/* ---- every message of every method, filled ---- */

enum { FILL_DEPTH = 5 };

static ProtobufCMessage *fill(const ProtobufCMessageDescriptor *descriptor, struct arena *arena,
                              unsigned choice, unsigned depth);

static void fill_value(const ProtobufCFieldDescriptor *field, void *value, struct arena *arena,
                       unsigned choice, unsigned depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_FIXED64:
        *(uint64_t *)value = UINT64_MAX - field->id;
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)value = 1.5;
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)value = 2.5F;
        break;
    case PROTOBUF_C_TYPE_STRING:
        *(char **)value = arena_strdup(arena, "text \xE2\x82\xAC");
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)value =
            (ProtobufCBinaryData){.len = 3, .data = (uint8_t *)arena_strdup(arena, "\xFF\x01z")};
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)value = fill(field->descriptor, arena, choice, depth + 1);
        break;
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
        *(int32_t *)value = -(int32_t)field->id;
        break;
    default:
        *(uint32_t *)value = 1;
        break;
    }
}

/* Two elements, in room that is wide enough for any type. */
static void fill_repeated(const ProtobufCFieldDescriptor *field, char *base, struct arena *arena,
                          unsigned choice, unsigned depth)
{
    enum { COUNT = 2 };
    bool wide = field->type == PROTOBUF_C_TYPE_BYTES;
    bool narrow = field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_INT32 ||
                  field->type == PROTOBUF_C_TYPE_ENUM || field->type == PROTOBUF_C_TYPE_BOOL;
    size_t size = wide ? sizeof(ProtobufCBinaryData) : narrow ? 4 : 8;
    char *elements = arena_alloc(arena, COUNT * size);

    for (size_t i = 0; i < COUNT; i++)
        fill_value(field, elements + i * size, arena, choice, depth);
    *(void **)(base + field->offset) = elements;
    *(size_t *)(base + field->quantifier_offset) = COUNT;
}

/* `choice` says which member of each oneof is taken. */
static ProtobufCMessage *fill(const ProtobufCMessageDescriptor *descriptor, struct arena *arena,
                              unsigned choice, unsigned depth)
{
    ProtobufCMessage *message = arena_alloc(arena, descriptor->sizeof_message);
    char *base = (char *)message;

    protobuf_c_message_init(descriptor, message);
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && depth >= FILL_DEPTH)
            continue;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            fill_repeated(field, base, arena, choice, depth);
        } else if ((field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0) {
            uint32_t *member = (uint32_t *)(base + field->quantifier_offset);
            if (*member != 0 && (i + choice) % 3 != 0)
                continue;
            *member = field->id;
            fill_value(field, base + field->offset, arena, choice, depth);
        } else {
            fill_value(field, base + field->offset, arena, choice, depth);
        }
    }
    return message;
}

static void assert_round_trip(const ProtobufCMessageDescriptor *descriptor)
{
    for (unsigned choice = 0; choice < 3; choice++) {
        struct arena *arena = arena_new(0);
        ProtobufCMessage *message = fill(descriptor, arena, choice, 0);
        struct buffer wire = BUFFER_INIT(0);
        size_t length = protobuf_c_message_get_packed_size(message);
        uint8_t *packed = arena_alloc(arena, length + 1);
        protobuf_c_message_pack(message, packed);
        buffer_append(&wire, packed, length);

        struct counter counter = {0};
        ProtobufCAllocator allocator = {count_allocate, count_free, &counter};
        ProtobufCMessage *unpacked = accept(descriptor, &wire, &counter);
        assert_non_null(unpacked);
        uint8_t *repacked = arena_alloc(arena, length + 1);
        assert_int_equal(protobuf_c_message_get_packed_size(unpacked), length);
        protobuf_c_message_pack(unpacked, repacked);
        assert_memory_equal(packed, repacked, length);

        char *text = redact_text(unpacked);
        assert_true(strlen(text) < REDACT_TEXT_MAX);
        free(text);
        protobuf_c_message_free_unpacked(unpacked, &allocator);
        /* Cut anywhere, it is refused or still unpacks. */
        for (size_t cut = 0; cut < length; cut += 1 + length / 64) {
            struct buffer part = {.data = wire.data, .length = cut};
            struct counter ignored = {0};
            ProtobufCAllocator other = {count_allocate, count_free, &ignored};
            unpacked = accept(descriptor, &part, &ignored);
            if (unpacked != NULL)
                protobuf_c_message_free_unpacked(unpacked, &other);
        }
        buffer_free(&wire);
        arena_free(arena);
    }
}

static void test_every_message(void **state)
{
    (void)state;
    assert_true(rpc_method_count > 84);
    for (size_t i = 0; i < rpc_method_count; i++) {
        assert_round_trip(rpc_methods[i]->request);
        assert_round_trip(rpc_methods[i]->response);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_varints),
        cmocka_unit_test(test_field_numbers),
        cmocka_unit_test(test_wire_types),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_unknown_fields),
        cmocka_unit_test(test_packed),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_repeated_single_message),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_every_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
