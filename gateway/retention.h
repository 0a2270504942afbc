/* Sandboxes that are not kept: the annotation openshell.nvidia.com/retention=ephemeral (behaviour
 * reference 1.6). They are deleted once their main process has a result and nobody watches them any
 * more; one that failed before that is kept, so that somebody can see why. */
#ifndef GATEWAY_RETENTION_H
#define GATEWAY_RETENTION_H

#include "gateway/gateway.h"
#include "openshell.pb-c.h"

#define RETENTION_ANNOTATION "openshell.nvidia.com/retention"
#define RETENTION_EPHEMERAL "ephemeral"

enum {
    /* How long the result of an ephemeral sandbox can be read at least: its supervisor finalizes it
     * meanwhile, and a command that waits for the end deletes it by itself. */
    RETENTION_MILLISECONDS = 2000,
};

/* Looks at a record that was changed, or was found at the start. */
void retention_consider(struct gateway *gateway, const Openshell__V1__Sandbox *sandbox);

#endif
