/* When an attempt to make a sandbox ready has taken too long (behaviour reference 1.7). */
#ifndef GATEWAY_DEADLINES_H
#define GATEWAY_DEADLINES_H

#include <stdint.h>

#include "gateway/gateway.h"

/* The sandbox's next deadline, milliseconds since the epoch; 0: none any more. */
void deadlines_note(struct gateway *gateway, const char *sandbox_id, int64_t when);

#endif
