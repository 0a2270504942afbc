/* Fuzzes rpc_scan: what it lets through must unpack, within the memory it counted, and survive
 * being shown and freed.
 *
 * The first byte of an input chooses the message type, the rest is the message. With clang:
 *   clang -fsanitize=fuzzer,address ... tests/fuzz/fuzz_scan.c libproto.a libbase.a -lprotobuf-c
 * Otherwise compile with -DFUZZ_MAIN: the program then runs the files it is given, and for each a
 * fixed sequence of mutations. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "google/protobuf/descriptor.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "google/rpc/status.pb-c.h"
#include "openshell.pb-c.h"
#include "rpc/redact.h"
#include "rpc/scan.h"
#include "sandbox_protocol.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Only ever append: the files of the corpus name types by their place. */
static const ProtobufCMessageDescriptor *const TYPES[] = {
    &google__protobuf__value__descriptor,
    &openshell__v1__create_sandbox_request__descriptor,
    &openshell__v1__exec_sandbox_input__descriptor,
    &openshell__v1__relay_frame__descriptor,
    &openshell__v1__supervisor_message__descriptor,
    &openshell__v1__gateway_message__descriptor,
    &openshell__v1__update_config_request__descriptor,
    &openshell__sandbox__protocol__v1__exchange_frame__descriptor,
    &openshell__sandbox__protocol__v1__mediate_frame__descriptor,
    &google__rpc__status__descriptor,
    &openshell__ext__v1__attach_main_process_request__descriptor,
    &openshell__sandbox__v1__network_endpoint__descriptor,
    /* Of all the field types, some of which no message of ours has. */
    &google__protobuf__source_code_info__location__descriptor,
};

struct meter {
    size_t total;
};

static void *meter_allocate(void *data, size_t size)
{
    struct meter *meter = data;
    meter->total += size + 16;
    if (meter->total > RPC_SCAN_MEMORY_BYTES)
        abort();
    return malloc(size);
}

static void meter_free(void *data, void *pointer)
{
    (void)data;
    free(pointer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {0};
    if (size == 0)
        return 0;
    const ProtobufCMessageDescriptor *type = TYPES[data[0] % (sizeof(TYPES) / sizeof(TYPES[0]))];
    /* An exact copy, so that a read past the end is seen. */
    uint8_t *copy = malloc(size - 1);
    if (copy == NULL)
        return 0;
    if (size > 1)
        memcpy(copy, data + 1, size - 1);
    if (rpc_scan(type, copy, size - 1, NULL, &error)) {
        struct meter meter = {0};
        ProtobufCAllocator allocator = {meter_allocate, meter_free, &meter};
        ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, size - 1, copy);
        if (message == NULL)
            abort();
        free(redact_text(message));
        protobuf_c_message_free_unpacked(message, &allocator);
    } else if (error.code != ERROR_INVALID_ARGUMENT || error.violation_count != 1) {
        abort();
    }
    error_clear(&error);
    free(copy);
    return 0;
}

#ifdef FUZZ_MAIN

enum { INPUT_MAX = 65536, MUTATIONS = 3000 };

static uint64_t random_state = 0x9E3779B97F4A7C15;

static size_t random_below(size_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return limit == 0 ? 0 : random_state % limit;
}

/* Changes a few bytes, or cuts, doubles or inserts a stretch. Returns the new size. */
static size_t mutate(uint8_t *data, size_t size)
{
    static const uint8_t interesting[] = {0x00, 0x01, 0x7F, 0x80, 0xFF, 0x08, 0x0A, 0x12, 0x0B};

    for (size_t count = 1 + random_below(4); count > 0 && size > 1; count--) {
        size_t at = random_below(size), length = 1 + random_below(16);
        if (length > size - at)
            length = size - at;
        switch (random_below(5)) {
        case 0:
            data[at] ^= (uint8_t)(1U << random_below(8));
            break;
        case 1:
            data[at] = interesting[random_below(sizeof(interesting))];
            break;
        case 2:
            data[at] = (uint8_t)random_below(256);
            break;
        case 3:
            memmove(data + at, data + at + length, size - at - length);
            size -= length;
            break;
        default:
            if (size + length > INPUT_MAX)
                break;
            memmove(data + at + length, data + at, size - at);
            size += length;
            break;
        }
    }
    return size;
}

static int run_file(const char *path)
{
    static uint8_t original[INPUT_MAX], changed[INPUT_MAX];
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t size = fread(original, 1, sizeof(original), file);
    fclose(file);
    LLVMFuzzerTestOneInput(original, size);
    size_t changed_size = 0;
    for (unsigned i = 0; i < MUTATIONS; i++) {
        /* Mostly from the original, now and then further along the same way. */
        if (i % 8 == 0 || changed_size == 0) {
            memcpy(changed, original, size);
            changed_size = size;
        }
        changed_size = mutate(changed, changed_size);
        LLVMFuzzerTestOneInput(changed, changed_size);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fputs("usage: fuzz_scan FILE...\n", stderr);
        return 2;
    }
    for (int i = 1; i < argc; i++)
        if (run_file(argv[i]) != 0)
            return 1;
    printf("%d files\n", argc - 1);
    return 0;
}

#endif
