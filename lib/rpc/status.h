/* An error on the wire: grpc-status, grpc-message and grpc-status-details-bin, which holds a
 * google.rpc.Status with ErrorInfo and BadRequest (behaviour reference 4.0). */
#ifndef RPC_STATUS_H
#define RPC_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

enum {
    /* Bytes of details that are sent. Other implementations take 8 KiB of trailers in all, where
     * details grow by a third and a message's bytes may triple. */
    STATUS_DETAILS_SEND_LIMIT = 3 * 1024,
    STATUS_DETAILS_READ_LIMIT = 64 * 1024,
};

/* The value of grpc-status-details-bin in `arena`, or NULL when the error has neither reason nor
 * violations. Violations that do not fit are dropped from the end; the message still has them. */
const uint8_t *status_encode(const struct error *error, struct arena *arena, size_t *ret_size);

/* Makes the error from what arrived. `details` may be NULL; details that cannot be read, or that
 * contradict code or message, are ignored. */
void status_decode(int code, const char *message, const uint8_t *details, size_t size,
                   struct error *error);

#endif
