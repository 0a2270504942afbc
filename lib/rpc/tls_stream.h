/* TLS of our own under gRPC: OpenSSL pumps between a socket and a socket pair whose other end is
 * given to gRPC. TLS 1.3 only, ALPN h2, certificates pinned by their SHA-256 (decision B1). */
#ifndef RPC_TLS_STREAM_H
#define RPC_TLS_STREAM_H

#include <stdbool.h>

#include "base/error.h"
#include "base/reactor.h"

struct tls_identity; /* a certificate with its private key, in memory only */

/* A new Ed25519 key and a self-signed certificate for `common_name`, valid for ten years. */
struct tls_identity *tls_identity_generate(const char *common_name, struct error *error);
/* From PEM text; the text stays the caller's to wipe. */
struct tls_identity *tls_identity_parse(const char *certificate_pem, const char *key_pem,
                                        struct error *error);
/* Newly allocated PEM; the key's is a secret to be wiped by the caller. */
char *tls_identity_certificate_pem(const struct tls_identity *identity);
char *tls_identity_key_pem(const struct tls_identity *identity);
/* SHA-256 of the DER certificate, 64 lowercase hexadecimal digits and NUL. */
void tls_identity_pin(const struct tls_identity *identity, char ret_pin[65]);
void tls_identity_free(struct tls_identity *identity);

/* Loads what a first handshake would load, without configuration files (decision B17). */
void tls_warm_up(void);

struct tls_stream;

struct tls_stream_options {
    bool server;                         /* role in the TLS handshake, whoever dialled */
    const struct tls_identity *identity; /* needed for the server; optional for the client */
    const char *peer_pin;            /* the peer's certificate must have it; the client needs it;
                                        a server with one demands a client certificate */
    unsigned handshake_milliseconds; /* 0: 5,000 (decision P14) */
};

struct tls_stream_events {
    /* The handshake is over: a connected non-blocking socket for gRPC, owned by the callee; or -1
     * and the error, after which the stream is gone. Once. */
    void (*on_ready)(struct tls_stream *stream, int descriptor, const struct error *error,
                     void *user);
    /* The stream ended after on_ready succeeded, and is freed when this returns. May be NULL. */
    void (*on_closed)(struct tls_stream *stream, void *user);
    void *user;
};

/* Takes over the connected non-blocking socket `descriptor`, also when it fails. Between the socket
 * and gRPC at most 64 KiB wait each way. Once one side has ended, the other has five seconds to
 * take something of what is left. */
struct tls_stream *tls_stream_start(struct reactor *reactor, int descriptor,
                                    const struct tls_stream_options *options,
                                    const struct tls_stream_events *events, struct error *error);
/* Ends it at once, without events. */
void tls_stream_close(struct tls_stream *stream);

#endif
