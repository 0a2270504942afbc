/* What a new gateway makes of the records that an earlier one left (decisions P11, P12, behaviour
 * reference 1.6). */
#ifndef GATEWAY_RECONCILE_H
#define GATEWAY_RECONCILE_H

#include "base/error.h"
#include "gateway/gateway.h"

/* Before the gateway accepts calls: takes over what runs, queues what was cut short, and notes what
 * ended meanwhile. */
bool reconcile(struct gateway *gateway, struct error *error);

#endif
