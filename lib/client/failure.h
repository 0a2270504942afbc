/* Failures that begin on the client's side: their reasons, and what goes with them. */
#ifndef CLIENT_FAILURE_H
#define CLIENT_FAILURE_H

#include <stdbool.h>

#include "base/error.h"

/* ErrorInfo domain of reasons that never cross the wire. explain.c has the words. */
#define CLIENT_DOMAIN "openshell.client"

#define CLIENT_REASON_USAGE "Usage"
#define CLIENT_REASON_TIMED_OUT "TimedOut"
#define CLIENT_REASON_INTERRUPTED "Interrupted"
#define CLIENT_REASON_GATEWAY_UNKNOWN "GatewayUnknown"
#define CLIENT_REASON_GATEWAY_EXISTS "GatewayExists"
#define CLIENT_REASON_GATEWAY_INVALID "GatewayInvalid"
#define CLIENT_REASON_GATEWAY_NOT_RUNNING "GatewayNotRunning"
#define CLIENT_REASON_GATEWAY_START_FAILED "GatewayStartFailed"
#define CLIENT_REASON_CONNECTION_LOST "ConnectionLost"
#define CLIENT_REASON_TRANSPORT_UNSUPPORTED "TransportUnsupported"
#define CLIENT_REASON_NO_SANDBOX_NAMED "NoSandboxNamed"
#define CLIENT_REASON_FROM_INVALID "FromInvalid"
#define CLIENT_REASON_EXIT_UNKNOWN "ExitUnknown"
#define CLIENT_REASON_OUTPUT_FAILED "OutputFailed"
#define CLIENT_REASON_COPY_FAILED "CopyFailed"
#define CLIENT_REASON_COPY_INCOMPLETE "CopyIncomplete"

/* The tool's own exit codes (decision P16). */
enum {
    EXIT_USAGE = 2,
    EXIT_TIMED_OUT = 124,
    EXIT_SIGNALLED = 128, /* plus the signal's number */
};

/* Sets an error of the client's own. Always returns false. */
bool failure_set(struct error *error, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As failure_set with CLIENT_REASON_USAGE. */
bool failure_usage(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What the person can do about it: shown after the message. */
void failure_hint(struct error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Names the sandbox that an error is about, unless its sender did. */
void failure_about(struct error *error, const char *sandbox);

bool failure_is(const struct error *error, const char *reason);

/* The exit code for a failure of the tool: 1, 2 or 124. */
int failure_exit_code(const struct error *error);

#endif
