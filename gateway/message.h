/* Small things about protobuf messages. */
#ifndef GATEWAY_MESSAGE_H
#define GATEWAY_MESSAGE_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"

/* A deep copy that lives in the arena. */
void *message_copy(struct arena *arena, const ProtobufCMessage *message);

#endif
