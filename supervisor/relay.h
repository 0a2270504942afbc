/* Relays: an exec or an attachment between the gateway's RelayStream and the runtime's Exchange
 * (decisions W3, B2). Each leg is read only as fast as the other takes. */
#ifndef SUPERVISOR_RELAY_H
#define SUPERVISOR_RELAY_H

#include "openshell.pb-c.h"
#include "supervisor/boundary.h"
#include "supervisor/gateway_link.h"

enum {
    RELAYS_LIMIT = 128, /* open at once */
    /* Frames of up to 64 KiB that wait for the other leg: 192 KiB of the 256 that a direction may
     * hold (decision P14); the rest is gRPC's. */
    RELAY_WINDOW_FRAMES = 3,
};

struct relays;

/* What becomes of those who attach to the main process. */
struct relays_events {
    void (*on_attachment)(void *user); /* one was asked for */
    void (*on_progress)(void *user);   /* one took a piece of output */
    /* One ended. `settled`: it got the result or left on purpose; else its client was lost. */
    void (*on_attachment_ended)(bool settled, void *user);
    void *user;
};

/* Everything given outlives it. */
struct relays *relays_new(struct gateway_link *link, const struct launch_supervisor *launch,
                          const char *instance_id, const struct relays_events *events);

/* Opens what the gateway asked for. False, with a text for the gateway, when it cannot be. */
bool relays_open(struct relays *relays, struct running_boundary *running,
                 const Openshell__V1__RelayOpen *open, struct error *error);
/* The gateway does not need it any more; unknown names are fine. */
void relays_drop(struct relays *relays, const char *channel_id);

#endif
