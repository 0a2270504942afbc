/* Certificates with their keys, in memory only. */
#include "rpc/tls_internal.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "base/memory.h"

enum {
    VALID_SECONDS = 10 * 365 * 24 * 3600,
    BEFORE_SECONDS = 24 * 3600, /* clocks of two machines differ */
    SERIAL_BYTES = 16,
    PEM_LIMIT = 64 * 1024,
};

bool tls_error(struct error *error, enum error_code code, const char *what)
{
    char reason[128] = "unknown reason";
    unsigned long number = ERR_peek_last_error();
    if (number != 0)
        ERR_error_string_n(number, reason, sizeof(reason));
    ERR_clear_error();
    return error_set(error, code, "%s: %s", what, reason);
}

void tls_certificate_pin(const X509 *certificate, char ret_pin[65])
{
    unsigned char digest[32] = {0};
    unsigned length = sizeof(digest);
    ret_pin[0] = '\0';
    if (X509_digest(certificate, EVP_sha256(), digest, &length) != 1 || length != sizeof(digest))
        return;
    for (size_t i = 0; i < sizeof(digest); i++)
        snprintf(ret_pin + 2 * i, 3, "%02x", digest[i]);
}

static bool set_serial(X509 *certificate)
{
    unsigned char bytes[SERIAL_BYTES];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] &= 0x7F;
    BIGNUM *number = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool result =
        number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    BN_free(number);
    return result;
}

static bool fill_certificate(X509 *certificate, EVP_PKEY *key, const char *common_name)
{
    X509_NAME *name = X509_get_subject_name(certificate);
    return X509_set_version(certificate, X509_VERSION_3) == 1 && set_serial(certificate) &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), -BEFORE_SECONDS) != NULL &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), VALID_SECONDS) != NULL &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)common_name,
                                      -1, -1, 0) == 1 &&
           X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
           X509_sign(certificate, key, NULL) > 0;
}

struct tls_identity *tls_identity_generate(const char *common_name, struct error *error)
{
    tls_initialize();
    struct tls_identity *identity = memory_new_of(struct tls_identity);
    identity->key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    identity->certificate = X509_new();
    if (identity->key == NULL || identity->certificate == NULL ||
        !fill_certificate(identity->certificate, identity->key, common_name)) {
        tls_error(error, ERROR_INTERNAL, "cannot make a certificate");
        tls_identity_free(identity);
        return NULL;
    }
    return identity;
}

static int no_password(char *buffer, int size, int writing, void *user)
{
    (void)buffer;
    (void)size;
    (void)writing;
    (void)user;
    return -1;
}

static BIO *open_text(const char *text)
{
    size_t length = strnlen(text, PEM_LIMIT + 1);
    return length > PEM_LIMIT ? NULL : BIO_new_mem_buf(text, (int)length);
}

struct tls_identity *tls_identity_parse(const char *certificate_pem, const char *key_pem,
                                        struct error *error)
{
    tls_initialize();
    struct tls_identity *identity = memory_new_of(struct tls_identity);
    BIO *certificate = open_text(certificate_pem);
    BIO *key = open_text(key_pem);
    if (certificate != NULL && key != NULL) {
        identity->certificate = PEM_read_bio_X509(certificate, NULL, no_password, NULL);
        identity->key = PEM_read_bio_PrivateKey(key, NULL, no_password, NULL);
    }
    BIO_free(certificate);
    BIO_free(key);
    if (identity->certificate == NULL || identity->key == NULL ||
        X509_check_private_key(identity->certificate, identity->key) != 1) {
        tls_error(error, ERROR_INVALID_ARGUMENT, "cannot read the certificate and its key");
        tls_identity_free(identity);
        return NULL;
    }
    return identity;
}

static char *take_text(BIO *bio)
{
    char *data = NULL;
    long length = BIO_get_mem_data(bio, &data);
    char *text = memory_new((size_t)length + 1);
    if (length > 0)
        memcpy(text, data, (size_t)length);
    return text;
}

char *tls_identity_certificate_pem(const struct tls_identity *identity)
{
    BIO *bio = BIO_new(BIO_s_mem());
    if (bio == NULL || PEM_write_bio_X509(bio, identity->certificate) != 1)
        memory_exhausted();
    char *text = take_text(bio);
    BIO_free(bio);
    return text;
}

char *tls_identity_key_pem(const struct tls_identity *identity)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    if (bio == NULL || PEM_write_bio_PrivateKey(bio, identity->key, NULL, NULL, 0, NULL, NULL) != 1)
        memory_exhausted();
    char *text = take_text(bio);
    BIO_free(bio); /* overwrites its memory */
    return text;
}

void tls_identity_pin(const struct tls_identity *identity, char ret_pin[65])
{
    tls_certificate_pin(identity->certificate, ret_pin);
}

void tls_identity_free(struct tls_identity *identity)
{
    if (identity == NULL)
        return;
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key); /* overwrites the key */
    free(identity);
}
