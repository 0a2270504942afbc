#include "gateway/message.h"

#include <stdlib.h>

#include "base/memory.h"

void *message_copy(struct arena *arena, const ProtobufCMessage *message)
{
    CLEANUP_FREE uint8_t *packed = memory_allocate(protobuf_c_message_get_packed_size(message));
    size_t size = protobuf_c_message_pack(message, packed);
    void *copy = protobuf_c_message_unpack(message->descriptor, arena_protobuf_allocator(arena),
                                           size, packed);
    if (copy == NULL)
        memory_exhausted(); /* what was just packed can be unpacked */
    return copy;
}
