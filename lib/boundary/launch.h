/* What the local driver hands to a supervisor and a runtime when it starts them, as JSON over an
 * inherited pipe (decision P19): secrets are never in argv, an environment or a file. */
#ifndef BOUNDARY_LAUNCH_H
#define BOUNDARY_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

enum { LAUNCH_BUNDLE_LIMIT = 1024 * 1024 };

/* Descriptors that the driver gives to both children. */
enum {
    LAUNCH_CONFIG_DESCRIPTOR = 3, /* a pipe: the bundle; for the runtime only what is not secret */
    LAUNCH_SECRET_DESCRIPTOR =
        4,                      /* runtime: a pipe with its key, read after the process-maker was
                                   forked; supervisor: the listening Unix socket for the runtime */
    LAUNCH_LOCK_DESCRIPTOR = 5, /* an open lock file, held by flock as long as the process lives,
                                   to which it writes "PID START_TIME\n" first (decision P12) */
};

/* The main process as the sandbox's record has it. Bytes but NUL. */
struct launch_main {
    char **command;     /* NULL-terminated; empty: login shell */
    char **environment; /* NAME=VALUE, NULL-terminated */
    bool terminal;
    uint32_t columns, rows; /* of the terminal, until somebody attaches from another one */
    bool await_attachment;  /* its result is kept for a client that announced that it attaches */
};

/* For openshell-supervisor. All strings owned by the structure. */
struct launch_supervisor {
    char *sandbox_id;
    char *sandbox_name;
    char *generation; /* UUID, new at each start; also the session id of the launch */
    uint64_t auth_epoch;
    char *gateway_id;
    char *gateway_socket;    /* path */
    char *gateway_token;     /* secret */
    char *sandbox_token;     /* secret */
    char *runtime_pin;       /* SHA-256 of the runtime's certificate, hexadecimal */
    char *backend_name;      /* "openshell-sandbox" */
    char *driver_descriptor; /* opaque to the supervisor; crosses OpenBoundary unchanged */
    struct launch_main main;
    uint32_t stop_grace_milliseconds;
};

/* For openshell-sandbox: what is not secret. */
struct launch_runtime {
    char *sandbox_id;
    char *sandbox_name;
    char *generation;
    uint64_t auth_epoch;
    char *gateway_id;
    char *supervisor_socket; /* path to dial */
    char *verification_key_id;
    char *verification_key_pem; /* the gateway's public key for sandbox tokens */
    char *driver_descriptor;    /* what OpenBoundary must name */
    char *state_directory;
    char *cache_directory;
    char *from_directory; /* NULL: composed root */
    uint32_t host_id_base;
    uint32_t process_limit;
};

/* For openshell-sandbox: its TLS identity of this generation. */
struct launch_runtime_secret {
    char *certificate_pem;
    char *key_pem; /* secret */
};

/* Reads a bundle from its pipe up to the end, without leaving copies. On success the caller owns
 * `ret_bundle` and wipes it. */
bool launch_read(int descriptor, struct buffer *ret_bundle, struct error *error);

/* Encoding appends to `buffer`, which the caller wipes. Decoding refuses unknown and missing keys,
 * naming them, and needs a freeing call only on success. */
bool launch_supervisor_encode(const struct launch_supervisor *launch, struct buffer *buffer,
                              struct error *error);
bool launch_supervisor_decode(const char *json, size_t length, struct launch_supervisor *ret_launch,
                              struct error *error);
void launch_supervisor_free(struct launch_supervisor *launch); /* wipes secrets */

bool launch_runtime_encode(const struct launch_runtime *launch, struct buffer *buffer,
                           struct error *error);
bool launch_runtime_decode(const char *json, size_t length, struct launch_runtime *ret_launch,
                           struct error *error);
void launch_runtime_free(struct launch_runtime *launch);

bool launch_runtime_secret_encode(const struct launch_runtime_secret *secret, struct buffer *buffer,
                                  struct error *error);
bool launch_runtime_secret_decode(const char *json, size_t length,
                                  struct launch_runtime_secret *ret_secret, struct error *error);
void launch_runtime_secret_free(struct launch_runtime_secret *secret); /* wipes */

#endif
