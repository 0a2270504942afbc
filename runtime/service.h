/* The runtime's service: one boundary, one supervisor's connection, and the operations asked for
 * over it. Everything runs on the loop. What the files service*.c share is here. */
#ifndef RUNTIME_SERVICE_H
#define RUNTIME_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reactor.h"
#include "base/uuid.h"
#include "boundary/launch.h"
#include "boundary/operations.h"
#include "boundary/session_token.h"
#include "rpc/rpc.h"
#include "rpc/tls_stream.h"
#include "runtime/exec_admission.h"
#include "runtime/maker.h"
#include "runtime/stage.h"

struct service;
struct process;
struct process_table;
struct move;

/* What the service is made of; everything stays the caller's and outlives it. */
struct service_options {
    struct reactor *reactor;
    struct rpc_runtime *rpc;
    struct maker *maker; /* not yet watched */
    const struct launch_runtime *launch;
    const struct session_token_key *key;
    const struct tls_identity *identity;
    int lock; /* for the reason of the end */
};

/* Serves until the end is decided, and returns the process's exit status. The maker is gone then,
 * and with it every process of the sandbox. */
int service_run(const struct service_options *options);

/* ---- shared by service*.c ---- */

/* One physical connection; a later one repeats the handshake (isolation IB-02). */
struct service_link {
    struct tls_stream *stream;
    struct rpc_connection *connection;
    bool negotiated;
    bool opened;
};

struct service {
    struct service_options options;
    struct rpc_server *server;
    struct service_link link;
    struct reactor_signal *terminate_signal;

    enum boundary_stage stage;
    bool moving; /* an operation that changes the stage is under way */
    char boundary_id[UUID_SIZE];
    char supervisor_instance[UUID_SIZE]; /* the first that attached (isolation IB-17); "" before */

    bool root_known;
    struct error root_error; /* ERROR_OK: the root stands */
    struct move *move;       /* what `moving` waits for */
    bool attach_tried;       /* the controls are prepared once */
    bool landlock_required;
    Openshell__Sandbox__Protocol__V1__Attach *attach_request; /* waits for the root */
    struct exchange_stream *attaching;
    struct exchange_stream *terminating;

    struct process_table *processes;
    struct exec_admission *admission;

    char *verified_token; /* the bearer checked last, a secret */
    struct session_token_claims verified_claims;

    bool ending;
    bool maker_gone;
    int exit_status;
    struct reactor_timer *end_timer;
};

/* One Exchange call (decision B2). */
struct exchange_stream {
    struct service *service;
    struct rpc_call *call;
    struct exchange exchange;
    struct process *process;      /* of exec, attach_process, wait and terminate */
    struct exchange_stream *next; /* of the same process and purpose */
    bool writer;                  /* may send input */
    uint64_t sequence;            /* attach_process: the next byte of output to send */
};

/* Decides the end, once: writes the reason into the lock file, ends every process, then the loop.
 * `status` is the exit status. */
void service_end(struct service *service, const char *reason, int status);

/* service_exchange.c */
void exchange_stream_begin(struct rpc_call *call, void *service);
/* Sends a frame that the table allows; one that closes this direction ends the call. False when the
 * peer is gone or the frame was out of place. */
bool exchange_stream_send(struct exchange_stream *stream, const exchange_frame *frame);
void exchange_stream_fail(struct exchange_stream *stream, const struct error *error);

/* service_boundary.c: the operations that move the stage. */
void service_discover_policy(struct exchange_stream *stream);
void service_attach(struct exchange_stream *stream,
                    const Openshell__Sandbox__Protocol__V1__Attach *attach);
void service_confirm(struct exchange_stream *stream);
void service_start_agent(struct exchange_stream *stream,
                         const Openshell__Sandbox__Protocol__V1__StartAgent *start);
void service_terminate(struct exchange_stream *stream,
                       const Openshell__Sandbox__Protocol__V1__TerminateBoundary *terminate);
void service_root_known(struct service *service, const struct error *error);
void service_maker_gone(struct service *service);
void service_stream_gone(struct exchange_stream *stream);

#endif
