/* What tls_identity.c, tls_context.c and tls_stream.c share. */
#ifndef RPC_TLS_INTERNAL_H
#define RPC_TLS_INTERNAL_H

#include <stdio.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "rpc/tls_stream.h"

struct tls_identity {
    X509 *certificate;
    EVP_PKEY *key;
};

/* What the verification needs to know of one TLS session. */
struct tls_peer_check {
    char pin[65]; /* "": anybody */
    bool refused; /* the peer's certificate was another one */
};

/* Starts OpenSSL without configuration files, once. */
void tls_initialize(void);
/* "what: reason", the reason from OpenSSL's queue, which is emptied. Returns false. */
bool tls_error(struct error *error, enum error_code code, const char *what);
/* "" when it cannot be computed. */
void tls_certificate_pin(const X509 *certificate, char ret_pin[65]);

/* A session over `bio`, which it takes over; `check` must outlive it. NULL and the error. */
SSL *tls_session_new(const struct tls_stream_options *options, struct tls_peer_check *check,
                     BIO *bio, struct error *error);
/* Whether the session agreed on HTTP/2. */
bool tls_session_is_h2(const SSL *session);

#endif
