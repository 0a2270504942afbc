/* Whether two peers understand each other: the one negotiation of the isolation control service
 * (isolation IB-06, behaviour reference 7.3), used by both sides. */
#ifndef BOUNDARY_NEGOTIATION_H
#define BOUNDARY_NEGOTIATION_H

#include <stdbool.h>

#include "base/error.h"
#include "extension.pb-c.h"

#define CAPABILITY_SANDBOX_PROTOCOL "openshell.sandbox.protocol"
#define CAPABILITY_SUSPEND_RESUME "openshell.sandbox.suspend-resume"
#define CAPABILITY_SUPERVISOR_TAKEOVER "openshell.sandbox.supervisor-takeover"

enum {
    NEGOTIATION_MAJOR = 1,
    NEGOTIATION_MINOR = 0,
    NEGOTIATION_CAPABILITIES_LIMIT = 64, /* in each list */
};

typedef Openshell__Extension__V1__PeerMetadata peer_metadata;

/* What our supervisor and our runtime say about themselves. */
const peer_metadata *negotiation_supervisor(void);
const peer_metadata *negotiation_runtime(void);

/* FAILED_PRECONDITION, kind Unsupported, naming what the peer lacks or does wrong: metadata or a
 * version that is missing, another major version, a malformed or repeated capability, a required
 * capability that the other side does not support, or a peer that lacks the protocol's own. */
bool negotiation_check(const peer_metadata *ours, const peer_metadata *theirs, struct error *error);

/* Whether both sides support a capability: only then may its operations be sent. */
bool negotiation_shared(const peer_metadata *ours, const peer_metadata *theirs,
                        const char *capability);

#endif
