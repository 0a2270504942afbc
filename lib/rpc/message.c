/* Messages between protobuf-c and gRPC. */
#include "rpc/internal.h"

#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/slice.h>

#include "rpc/scan.h"

grpc_byte_buffer *rpc_message_pack(const ProtobufCMessage *message)
{
    grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));
    protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
    grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
    grpc_slice_unref(slice);
    return buffer;
}

static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *descriptor, const void *data,
                                size_t length, struct arena *arena, struct error *error)
{
    if (!rpc_scan(descriptor, data, length, NULL, error))
        return NULL;
    ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor, arena_protobuf_allocator(arena), length, data);
    if (message == NULL)
        error_set(error, ERROR_INVALID_ARGUMENT, "cannot read a message of type %s",
                  descriptor->name);
    return message;
}

ProtobufCMessage *rpc_message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                     grpc_byte_buffer *buffer, struct arena *arena,
                                     struct error *error)
{
    grpc_byte_buffer_reader reader;
    ProtobufCMessage *message = NULL;
    if (!grpc_byte_buffer_reader_init(&reader, buffer)) {
        error_set(error, ERROR_INTERNAL, "cannot read a message of type %s", descriptor->name);
    } else {
        grpc_slice whole = grpc_byte_buffer_reader_readall(&reader);
        message =
            unpack(descriptor, GRPC_SLICE_START_PTR(whole), GRPC_SLICE_LENGTH(whole), arena, error);
        grpc_slice_unref(whole);
        grpc_byte_buffer_reader_destroy(&reader);
    }
    grpc_byte_buffer_destroy(buffer);
    return message;
}
