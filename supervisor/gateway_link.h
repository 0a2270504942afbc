/* The supervisor's connection to its gateway: one channel of the moment, and unary calls that are
 * tried again while the failure is one that passes. */
#ifndef SUPERVISOR_GATEWAY_LINK_H
#define SUPERVISOR_GATEWAY_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/reactor.h"
#include "boundary/launch.h"
#include "rpc/rpc.h"

enum {
    GATEWAY_CALL_MILLISECONDS = 10 * 1000, /* each attempt (behaviour reference 3.3) */
    /* Decision P12. */
    GATEWAY_BACKOFF_LEAST_MILLISECONDS = 20,
    GATEWAY_BACKOFF_MOST_MILLISECONDS = 250,
};

struct gateway_link;

/* Everything given outlives the link. Does not connect yet. */
struct gateway_link *gateway_link_new(struct reactor *reactor, struct rpc_runtime *rpc,
                                      const struct launch_supervisor *launch);
void gateway_link_free(struct gateway_link *link);

/* The channel of the moment, connecting when there is none (decision B3). NULL, with an error, when
 * nobody listens. */
struct rpc_channel *gateway_link_channel(struct gateway_link *link, struct error *error);
/* The channel's connection is lost: the next one is a new one. Its calls end. */
void gateway_link_drop(struct gateway_link *link);
/* While a session watches the channel, its end alone drops it. */
void gateway_link_set_watched(struct gateway_link *link, bool watched);

/* Calls as this sandbox. Failures that pass are tried again, on a new connection where the old one
 * was lost, until `give_up` (monotonic milliseconds; 0: for ever). The request lives until `done`
 * was called, the response until it returns. */
void gateway_link_call(struct gateway_link *link, const struct rpc_method *method,
                       const ProtobufCMessage *request, int64_t give_up,
                       void (*done)(const ProtobufCMessage *response, const struct error *error,
                                    void *user),
                       void *user);

/* The pause before attempt number `attempt` (from 1). */
uint64_t gateway_backoff(unsigned attempt);

#endif
