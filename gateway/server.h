/* The gateway as a whole: opened, served, closed. */
#ifndef GATEWAY_SERVER_H
#define GATEWAY_SERVER_H

#include "base/error.h"
#include "gateway/gateway.h"

/* Takes the lock, opens the records, loads the keys, takes over what runs and listens. FAILED_
 * PRECONDITION names the gateway that holds the lock already. `socket_path` NULL: the default. */
struct gateway *server_open(const char *socket_path, struct error *error);
/* Serves until a signal ends it. */
void server_run(struct gateway *gateway);
/* Stops serving and finishes what is being written. Sandboxes go on running. */
void server_close(struct gateway *gateway);

#endif
