/* The one place where it is decided what TLS may do: version 1.3, ALPN h2, no resumption, and the
 * peer's certificate has the pin that was asked for. */
#include "rpc/tls_internal.h"

#include <pthread.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>

#include "base/log.h"
#include "base/memory.h"

static const unsigned char ALPN[] = {2, 'h', '2'};

enum { READ_BUFFER = 32 * 1024 };

void tls_initialize(void)
{
    /* The configuration file costs 1 to 3 ms and is the user's, not ours (decision B17). */
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
}

static int choose_protocol(SSL *session, const unsigned char **out, unsigned char *out_length,
                           const unsigned char *in, unsigned in_length, void *argument)
{
    (void)session;
    (void)argument;
    for (unsigned i = 0; i < in_length; i += 1u + in[i]) {
        if (in_length - i >= sizeof(ALPN) && memcmp(in + i, ALPN, sizeof(ALPN)) == 0) {
            *out = in + i + 1;
            *out_length = in[i];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* In the place of OpenSSL's own check of chains, names and dates: the pin says it all. */
static int check_pin(X509_STORE_CTX *store, void *argument)
{
    (void)argument;
    SSL *session = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls_peer_check *check = SSL_get_app_data(session);
    X509 *certificate = X509_STORE_CTX_get0_cert(store);
    char pin[65] = "";
    if (certificate != NULL)
        tls_certificate_pin(certificate, pin);
    if (check->pin[0] == '\0' ||
        (pin[0] != '\0' && CRYPTO_memcmp(pin, check->pin, sizeof(pin)) == 0)) {
        X509_STORE_CTX_set_error(store, X509_V_OK);
        return 1;
    }
    check->refused = true;
    X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
    return 0;
}

static SSL_CTX *make_context(void)
{
    tls_initialize();
    SSL_CTX *context = SSL_CTX_new(TLS_method());
    if (context == NULL || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                          "TLS_CHACHA20_POLY1305_SHA256") != 1 ||
        SSL_CTX_set_alpn_protos(context, ALPN, sizeof(ALPN)) != 0) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, READ_BUFFER);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    SSL_CTX_set_cert_verify_callback(context, check_pin, NULL);
    return context;
}

static SSL_CTX *the_context;

static void set_the_context(void)
{
    the_context = make_context();
}

/* One for both roles, since identities belong to sessions: making one costs 2 to 4 ms. The warm-up
 * may run on another thread. */
static SSL_CTX *shared_context(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_the_context);
    return the_context;
}

static bool set_identity(SSL *session, const struct tls_identity *identity)
{
    return identity == NULL || (SSL_use_certificate(session, identity->certificate) == 1 &&
                                SSL_use_PrivateKey(session, identity->key) == 1);
}

SSL *tls_session_new(const struct tls_stream_options *options, struct tls_peer_check *check,
                     BIO *bio, struct error *error)
{
    SSL_CTX *context = shared_context();
    SSL *session = context == NULL ? NULL : SSL_new(context);
    if (session == NULL || !set_identity(session, options->identity)) {
        BIO_free(bio);
        SSL_free(session);
        tls_error(error, ERROR_INTERNAL, "cannot start TLS");
        return NULL;
    }
    check->refused = false;
    check->pin[0] = '\0';
    if (options->peer_pin != NULL)
        snprintf(check->pin, sizeof(check->pin), "%s", options->peer_pin);
    SSL_set_app_data(session, check);
    SSL_set_bio(session, bio, bio);
    int verify = SSL_VERIFY_NONE;
    if (!options->server || options->peer_pin != NULL)
        verify = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_set_verify(session, verify, NULL);
    if (options->server)
        SSL_set_accept_state(session);
    else
        SSL_set_connect_state(session);
    return session;
}

bool tls_session_is_h2(const SSL *session)
{
    const unsigned char *name = NULL;
    unsigned length = 0;
    SSL_get0_alpn_selected(session, &name, &length);
    return length == ALPN[0] && memcmp(name, ALPN + 1, length) == 0;
}

/* A whole handshake between two sessions in memory. */
static bool rehearse(const struct tls_identity *identity)
{
    char pin[65];
    tls_identity_pin(identity, pin);
    struct tls_stream_options server_options = {.server = true, .identity = identity};
    struct tls_stream_options client_options = {.peer_pin = pin};
    struct tls_peer_check server_check, client_check;
    BIO *server_bio = NULL, *client_bio = NULL;
    if (BIO_new_bio_pair(&server_bio, 0, &client_bio, 0) != 1)
        return false;
    SSL *server = tls_session_new(&server_options, &server_check, server_bio, NULL);
    SSL *client = tls_session_new(&client_options, &client_check, client_bio, NULL);
    bool done = false;
    for (int turn = 0; turn < 8 && !done && server != NULL && client != NULL; turn++) {
        int client_result = SSL_do_handshake(client);
        int server_result = SSL_do_handshake(server);
        done = client_result == 1 && server_result == 1;
    }
    SSL_free(client);
    SSL_free(server);
    ERR_clear_error();
    return done;
}

void tls_warm_up(void)
{
    static bool warm; /* in a fork of who warmed up, too */
    if (warm)
        return;
    warm = true;
    struct tls_identity *identity = tls_identity_generate("warm-up", NULL);
    if (identity == NULL || !rehearse(identity))
        log_warn("cannot rehearse a TLS handshake");
    tls_identity_free(identity);
}
