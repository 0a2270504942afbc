/* One ExecSandboxInteractive call, with descriptors for the input and the output of what runs in
 * the sandbox: a program (sandbox exec) or the other end of a copy.
 *
 * It ends when the remote program has ended, whatever the input does meanwhile. Input is read only
 * when the piece before was taken, and a message only when the output before was written, so that
 * a slow side slows the other down. */
#ifndef CLIENT_EXEC_SESSION_H
#define CLIENT_EXEC_SESSION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "client/connection.h"
#include "client/streams.h"
#include "proto/openshell.pb-c.h"

/* Zero-initialise, then set what stands above the line. */
struct exec_session {
    int input_descriptor;
    int output_descriptor;
    /* Takes the remote standard error in place of this process's own. */
    void (*take_errors)(const void *data, size_t length, void *user);
    /* Asked when the input ended: false cancels the call, so that what was sent so far is never
     * taken for the whole. NULL: it is the whole. */
    bool (*input_is_whole)(void *user);
    void *user;
    /* ---- */
    struct connection *connection;
    struct rpc_call *call;
    struct input_stream *input;
    struct output_stream *output;
    struct output_stream *errors;
    bool errors_lost;  /* standard error cannot be written to: the rest of it is dropped */
    bool writing;      /* a piece of output is not written yet */
    int output_failed; /* errno of the output, or 0 */
    bool exited;
    int exit_code;
    bool done;
    struct error status;
};

/* Opens the streams, and notes signals that end the call (client/interrupt.h). */
bool exec_session_open(struct exec_session *session, struct connection *connection,
                       struct error *error);

/* Makes the call and returns when it is over and its output is written. */
void exec_session_run(struct exec_session *session, Openshell__V1__ExecSandboxRequest *start);

/* The remote program's exit code, 128+N after a signal to this process, or -1 with the reason why
 * there is none. */
int exec_session_result(struct exec_session *session, const char *sandbox, struct error *error);

#endif
