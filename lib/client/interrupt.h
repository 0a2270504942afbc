/* Ctrl-C and its kind, for commands that have something to say or to end before they go. */
#ifndef CLIENT_INTERRUPT_H
#define CLIENT_INTERRUPT_H

#include "base/error.h"
#include "base/reactor.h"

/* Notes SIGINT, SIGTERM and SIGHUP from now on in place of dying; one that is ignored, as for a
 * job in the background, stays so. A second signal ends the process at once. `function` (may be
 * NULL) is called on the loop for the first. */
bool interrupt_start(struct reactor *reactor, void (*function)(void *argument), void *argument,
                     struct error *error);

/* The signal that came, or 0. */
int interrupt_number(void);

#endif
