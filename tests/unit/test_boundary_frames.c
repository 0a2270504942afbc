/* The encoding of each frame, held to kept samples: peers of different versions work side by side,
 * so a new frame may come but an existing one may not change (isolation IB-40). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "boundary/protocol.h"

static const struct {
    const char *frame;
    const char *bytes;
} SAMPLES[] = {
#include "boundary_frames.inc"
};

static void fill(struct arena *arena, ProtobufCMessage *message, int depth);

static void fill_value(struct arena *arena, const ProtobufCFieldDescriptor *field, void *member,
                       int depth)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)member = arena_printf(arena, "%s", field->name);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)member =
            (ProtobufCBinaryData){3, arena_memdup(arena, "\0\xff|", 3)};
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)member = 1;
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_INT64:
        *(uint64_t *)member = 1000 + field->id;
        break;
    case PROTOBUF_C_TYPE_MESSAGE: {
        const ProtobufCMessageDescriptor *descriptor = field->descriptor;
        ProtobufCMessage *inner = arena_alloc(arena, descriptor->sizeof_message);
        protobuf_c_message_init(descriptor, inner);
        if (depth < 2)
            fill(arena, inner, depth + 1);
        *(ProtobufCMessage **)member = inner;
        break;
    }
    default: /* 32 bits, numbers and enumerations */
        *(uint32_t *)member = field->type == PROTOBUF_C_TYPE_ENUM ? 1 : 100 + field->id;
        break;
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    default:
        return sizeof(uint32_t);
    }
}

/* Sets a field to a value made from its name and number. */
static void set(struct arena *arena, ProtobufCMessage *message,
                const ProtobufCFieldDescriptor *field, int depth)
{
    char *member = (char *)message + field->offset,
         *quantifier = (char *)message + field->quantifier_offset;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        void *array = arena_alloc(arena, 2 * size_of(field));
        for (size_t i = 0; i < 2; i++)
            fill_value(arena, field, (char *)array + i * size_of(field), depth);
        *(void **)member = array;
        *(size_t *)quantifier = 2;
        return;
    }
    fill_value(arena, field, member, depth);
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        *(uint32_t *)quantifier = field->id;
}

/* Every field; of a oneof the last. */
static void fill(struct arena *arena, ProtobufCMessage *message, int depth)
{
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    for (unsigned i = 0; i < descriptor->n_fields; i++)
        set(arena, message, &descriptor->fields[i], depth);
}

static char *encode(struct arena *arena, const ProtobufCFieldDescriptor *field)
{
    exchange_frame frame = EXCHANGE_FRAME_INIT;
    set(arena, &frame.base, field, 0);
    size_t size = protobuf_c_message_get_packed_size(&frame.base);
    uint8_t *packed = arena_alloc(arena, size + 1);
    protobuf_c_message_pack(&frame.base, packed);
    char *text = arena_alloc(arena, 2 * size + 1);
    for (size_t i = 0; i < size; i++)
        sprintf(text + 2 * i, "%02x", packed[i]);
    return text;
}

static void test_each_frame_encodes_as_kept(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *descriptor =
        &openshell__sandbox__protocol__v1__exchange_frame__descriptor;
    struct arena *arena = arena_new(0);
    bool missing = false;
    for (unsigned i = 0; i < descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
        char *got = encode(arena, field);
        const char *kept = NULL;
        for (size_t j = 0; j < sizeof(SAMPLES) / sizeof(SAMPLES[0]); j++)
            if (strcmp(SAMPLES[j].frame, field->name) == 0)
                kept = SAMPLES[j].bytes;
        if (kept == NULL || strcmp(kept, got) != 0)
            print_message("{\"%s\", \"%s\"},\n", field->name, got);
        missing = missing || kept == NULL || strcmp(kept, got) != 0;
    }
    assert_int_equal(descriptor->n_fields, sizeof(SAMPLES) / sizeof(SAMPLES[0]));
    assert_false(missing);
    arena_free(arena);
}

static void test_each_sample_decodes(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    for (size_t i = 0; i < sizeof(SAMPLES) / sizeof(SAMPLES[0]); i++) {
        size_t size = strlen(SAMPLES[i].bytes) / 2;
        uint8_t *packed = arena_alloc(arena, size + 1);
        for (size_t j = 0; j < size; j++) {
            unsigned value = 0;
            sscanf(SAMPLES[i].bytes + 2 * j, "%2x", &value);
            packed[j] = (uint8_t)value;
        }
        const exchange_frame *frame = openshell__sandbox__protocol__v1__exchange_frame__unpack(
            arena_protobuf_allocator(arena), size, packed);
        assert_non_null(frame);
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(frame->base.descriptor, frame->frame_case);
        assert_string_equal(field->name, SAMPLES[i].frame);
        assert_int_equal(frame->base.n_unknown_fields, 0);
    }
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_frame_encodes_as_kept),
        cmocka_unit_test(test_each_sample_decodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
