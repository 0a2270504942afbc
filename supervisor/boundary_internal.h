/* What boundary.c and boundary_connection.c share. */
#ifndef SUPERVISOR_BOUNDARY_INTERNAL_H
#define SUPERVISOR_BOUNDARY_INTERNAL_H

#include "rpc/tls_stream.h"
#include "supervisor/boundary.h"

/* A handle of any stage. The types differ, so that the compiler keeps the order. */
struct opened_boundary {
    struct boundary *boundary;
};
struct bound_boundary {
    struct boundary *boundary;
};
struct ready_boundary {
    struct boundary *boundary;
};
struct running_boundary {
    struct boundary *boundary;
};

struct handshake {
    struct boundary *boundary;
    struct tls_stream *stream; /* NULL: free place */
};

/* A call of the control service that is under way. */
struct opening {
    struct boundary *boundary; /* NULL: freed meanwhile */
};

struct boundary {
    struct reactor *reactor;
    struct rpc_runtime *rpc;
    const struct launch_supervisor *launch;
    struct boundary_events events;

    int listener;
    struct reactor_watch *listener_watch;
    struct handshake handshakes[BOUNDARY_HANDSHAKES_LIMIT];

    struct tls_stream *stream; /* the connection in use */
    struct rpc_channel *channel;
    struct opening *opening;
    char boundary_id[BOUNDARY_ID_LIMIT + 1];
    bool opened;
    bool landlock_required; /* by the policy that attach carried */

    /* One of each, as an opened boundary is used up by its stages. */
    struct opened_boundary opened_handle;
    struct bound_boundary bound_handle;
    struct ready_boundary ready_handle;
    struct running_boundary running_handle;

    struct control_call *calls;
};

/* boundary_connection.c */
bool boundary_listen(struct boundary *boundary, struct error *error);
void boundary_disconnect(struct boundary *boundary);
/* Reports once, whatever comes later. */
void boundary_report_opened(struct boundary *boundary, const struct error *error);

#endif
