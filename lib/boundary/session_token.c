#include "boundary/session_token.h"

#include <inttypes.h>
#include <jansson.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/uuid.h"

enum {
    TOKEN_LIMIT = 4096, /* bytes of a compact token */
    SIGNATURE_SIZE = 64,
    LEEWAY_SECONDS = 30,          /* decision P17 */
    LIFETIME_LIMIT_SECONDS = 3600 /* unless it never expires */
};

#define COMPONENT "openshell-supervisor"
#define SUBJECT_PREFIX "spiffe://openshell/sandbox/"

struct session_token_key {
    EVP_PKEY *key;
    char *key_id;
};

/* ---- keys ---- */

static struct session_token_key *wrap(EVP_PKEY *key, const char *key_id)
{
    struct session_token_key *wrapped = memory_new_of(struct session_token_key);
    wrapped->key = key;
    wrapped->key_id = memory_strdup(key_id);
    return wrapped;
}

/* The first 16 bytes of the public key's SHA-256, in hexadecimal: the same key has the same name.
 */
static bool derive_key_id(EVP_PKEY *key, char ret_key_id[33])
{
    unsigned char public_key[32], digest[EVP_MAX_MD_SIZE];
    size_t length = sizeof(public_key);
    if (EVP_PKEY_get_raw_public_key(key, public_key, &length) != 1 ||
        EVP_Digest(public_key, length, digest, NULL, EVP_sha256(), NULL) != 1)
        return false;
    for (size_t i = 0; i < 16; i++)
        snprintf(ret_key_id + 2 * i, 3, "%02x", digest[i]);
    return true;
}

struct session_token_key *session_token_key_generate(struct error *error)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    char key_id[33];
    if (key == NULL || !derive_key_id(key, key_id)) {
        EVP_PKEY_free(key);
        error_set(error, ERROR_INTERNAL, "cannot generate a signing key");
        return NULL;
    }
    return wrap(key, key_id);
}

typedef EVP_PKEY *pem_reader(BIO *bio, EVP_PKEY **key, pem_password_cb *callback, void *argument);

static struct session_token_key *parse(pem_reader *read_pem, const char *what, const char *pem,
                                       const char *key_id, struct error *error)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    if (bio == NULL)
        memory_exhausted();
    EVP_PKEY *key = read_pem(bio, NULL, NULL, NULL);
    BIO_free(bio);
    if (key == NULL || EVP_PKEY_get_base_id(key) != EVP_PKEY_ED25519 || key_id[0] == '\0') {
        EVP_PKEY_free(key);
        error_set(error, ERROR_INVALID_ARGUMENT, "not an Ed25519 %s key in PEM with an identifier",
                  what);
        return NULL;
    }
    return wrap(key, key_id);
}

struct session_token_key *session_token_key_parse_private(const char *pem, const char *key_id,
                                                          struct error *error)
{
    return parse(PEM_read_bio_PrivateKey, "private", pem, key_id, error);
}

struct session_token_key *session_token_key_parse_public(const char *pem, const char *key_id,
                                                         struct error *error)
{
    return parse(PEM_read_bio_PUBKEY, "public", pem, key_id, error);
}

static char *take_text(BIO *bio)
{
    char *data = NULL;
    long length = BIO_get_mem_data(bio, &data);
    char *text = memory_allocate((size_t)length + 1);
    memcpy(text, data, (size_t)length);
    text[length] = '\0';
    memory_wipe(data, (size_t)length);
    BIO_free(bio);
    return text;
}

static BIO *memory_bio(void)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    if (bio == NULL)
        memory_exhausted();
    return bio;
}

char *session_token_key_private_pem(const struct session_token_key *key)
{
    BIO *bio = memory_bio();
    if (PEM_write_bio_PrivateKey(bio, key->key, NULL, NULL, 0, NULL, NULL) != 1)
        memory_exhausted();
    return take_text(bio);
}

char *session_token_key_public_pem(const struct session_token_key *key)
{
    BIO *bio = memory_bio();
    if (PEM_write_bio_PUBKEY(bio, key->key) != 1)
        memory_exhausted();
    return take_text(bio);
}

const char *session_token_key_id(const struct session_token_key *key)
{
    return key->key_id;
}

void session_token_key_free(struct session_token_key *key)
{
    if (key == NULL)
        return;
    EVP_PKEY_free(key->key);
    free(key->key_id);
    free(key);
}

/* ---- what a token says ---- */

static const char *type_of(enum session_token_kind kind)
{
    return kind == SESSION_TOKEN_GATEWAY ? "openshell-gateway-session+jwt"
                                         : "openshell-sandbox-session+jwt";
}

static char *issuer_of(const char *gateway_id)
{
    return memory_printf("openshell-gateway:%s", gateway_id);
}

static const char *audience_of(enum session_token_kind kind, const char *issuer)
{
    return kind == SESSION_TOKEN_GATEWAY ? issuer : "openshell-sandbox";
}

/* ---- signing ---- */

/* Base64url of the JSON text; takes over `json`. */
static char *encode_json(json_t *json)
{
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (text == NULL)
        memory_exhausted();
    char *encoded = base64url_encode(text, strlen(text));
    free(text);
    return encoded;
}

static bool sign_bytes(EVP_PKEY *key, const char *text, unsigned char signature[SIGNATURE_SIZE])
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t length = SIGNATURE_SIZE;
    bool done = context != NULL && EVP_DigestSignInit(context, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestSign(context, signature, &length, (const unsigned char *)text,
                               strlen(text)) == 1 &&
                length == SIGNATURE_SIZE;
    EVP_MD_CTX_free(context);
    return done;
}

static bool check_claims(const struct session_token_claims *claims, struct error *error)
{
    if (claims->sandbox_id[0] == '\0' || claims->generation[0] == '\0' || claims->auth_epoch < 1 ||
        claims->auth_epoch > INT64_MAX)
        return error_set(error, ERROR_INVALID_ARGUMENT,
                         "a session token needs a sandbox, a generation and an epoch");
    int64_t lifetime = claims->expires_at - claims->issued_at;
    if (claims->expires_at != 0 && (lifetime <= 0 || lifetime > LIFETIME_LIMIT_SECONDS))
        return error_set(error, ERROR_INVALID_ARGUMENT,
                         "a session token lives up to %d seconds or for ever",
                         LIFETIME_LIMIT_SECONDS);
    return true;
}

char *session_token_sign(const struct session_token_key *key, enum session_token_kind kind,
                         const char *gateway_id, struct session_token_claims *claims,
                         struct error *error)
{
    if (claims->issued_at == 0)
        claims->issued_at = clock_realtime_milliseconds() / 1000;
    if (claims->token_id[0] == '\0')
        uuid_generate(claims->token_id);
    if (!check_claims(claims, error))
        return NULL;
    CLEANUP_FREE char *issuer = issuer_of(gateway_id);
    CLEANUP_FREE char *subject = memory_printf(SUBJECT_PREFIX "%s", claims->sandbox_id);
    CLEANUP_FREE char *header = encode_json(
        json_pack("{s:s,s:s,s:s}", "alg", "EdDSA", "typ", type_of(kind), "kid", key->key_id));
    CLEANUP_FREE char *body = encode_json(
        json_pack("{s:s,s:s,s:s,s:I,s:I,s:s,s:s,s:s,s:I,s:s}", "iss", issuer, "aud",
                  audience_of(kind, issuer), "sub", subject, "iat", (json_int_t)claims->issued_at,
                  "exp", (json_int_t)claims->expires_at, "jti", claims->token_id, "sandbox_id",
                  claims->sandbox_id, "runtime_generation", claims->generation, "auth_epoch",
                  (json_int_t)claims->auth_epoch, "component", COMPONENT));
    CLEANUP_FREE char *text = memory_printf("%s.%s", header, body);
    unsigned char signature[SIGNATURE_SIZE];
    if (!sign_bytes(key->key, text, signature)) {
        error_set(error, ERROR_INTERNAL, "cannot sign a session token");
        return NULL;
    }
    CLEANUP_FREE char *encoded = base64url_encode(signature, sizeof(signature));
    char *token = memory_printf("%s.%s", text, encoded);
    memory_wipe(encoded, strlen(encoded));
    if (strlen(token) > TOKEN_LIMIT) {
        memory_wipe(token, strlen(token));
        free(token);
        error_set(error, ERROR_INVALID_ARGUMENT, "the session token would pass %d bytes",
                  TOKEN_LIMIT);
        return NULL;
    }
    return token;
}

/* ---- verifying ---- */

static bool refuse(struct error *error, const char *why)
{
    return error_set(error, ERROR_UNAUTHENTICATED, "the session token %s", why);
}

static json_t *decode_json(const char *text, size_t length)
{
    size_t size = 0;
    unsigned char *bytes = base64url_decode(text, length, &size);
    if (bytes == NULL)
        return NULL;
    json_t *json = json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES, NULL);
    memory_wipe(bytes, size);
    free(bytes);
    return json;
}

static bool member_is(const json_t *json, const char *key, const char *expected)
{
    const char *value = json_string_value(json_object_get(json, key));
    return value != NULL && strcmp(value, expected) == 0;
}

/* Algorithm, type and key are pinned: nothing in the header selects how the token is checked. */
static bool header_valid(const char *text, size_t length, enum session_token_kind kind,
                         const char *key_id)
{
    json_t *header = decode_json(text, length);
    bool valid = json_object_size(header) == 3 && member_is(header, "alg", "EdDSA") &&
                 member_is(header, "typ", type_of(kind)) && member_is(header, "kid", key_id);
    json_decref(header);
    return valid;
}

static bool signature_valid(EVP_PKEY *key, const char *token, const char *last_dot)
{
    size_t length = 0;
    unsigned char *signature = base64url_decode(last_dot + 1, strlen(last_dot + 1), &length);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool valid = signature != NULL && length == SIGNATURE_SIZE && context != NULL &&
                 EVP_DigestVerifyInit(context, NULL, NULL, NULL, key) == 1 &&
                 EVP_DigestVerify(context, signature, length, (const unsigned char *)token,
                                  (size_t)(last_dot - token)) == 1;
    EVP_MD_CTX_free(context);
    free(signature);
    return valid;
}

static bool read_text(const json_t *body, const char *key, char *buffer, size_t size)
{
    const json_t *value = json_object_get(body, key);
    size_t length = json_string_length(value);
    if (!json_is_string(value) || length == 0 || length >= size)
        return false;
    memcpy(buffer, json_string_value(value), length + 1);
    return true;
}

static bool read_integer(const json_t *body, const char *key, int64_t *ret_value)
{
    const json_t *value = json_object_get(body, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *ret_value = json_integer_value(value);
    return true;
}

static bool read_claims(const json_t *body, struct session_token_claims *claims)
{
    int64_t epoch = 0;
    if (json_object_size(body) != 10 || !member_is(body, "component", COMPONENT) ||
        !read_text(body, "sandbox_id", claims->sandbox_id, sizeof(claims->sandbox_id)) ||
        !read_text(body, "runtime_generation", claims->generation, sizeof(claims->generation)) ||
        !read_text(body, "jti", claims->token_id, sizeof(claims->token_id)) ||
        !uuid_valid(claims->token_id) || !read_integer(body, "auth_epoch", &epoch) || epoch < 1 ||
        !read_integer(body, "iat", &claims->issued_at) ||
        !read_integer(body, "exp", &claims->expires_at))
        return false;
    claims->auth_epoch = (uint64_t)epoch;
    char subject[sizeof(SUBJECT_PREFIX) + sizeof(claims->sandbox_id)];
    snprintf(subject, sizeof(subject), SUBJECT_PREFIX "%s", claims->sandbox_id);
    return member_is(body, "sub", subject);
}

bool session_token_times_hold(const struct session_token_claims *claims, struct error *error)
{
    int64_t now = clock_realtime_milliseconds() / 1000;
    if (claims->issued_at > now + LEEWAY_SECONDS)
        return refuse(error, "was issued in the future; are the clocks synchronised?");
    if (claims->expires_at == 0)
        return true; /* decision P19 */
    if (claims->expires_at <= claims->issued_at ||
        claims->expires_at - claims->issued_at > LIFETIME_LIMIT_SECONDS)
        return refuse(error, "has a lifetime that is not allowed");
    if (now >= claims->expires_at + LEEWAY_SECONDS)
        return refuse(error, "has expired");
    return true;
}

bool session_token_verify(const struct session_token_key *key, enum session_token_kind kind,
                          const char *gateway_id, const char *token,
                          struct session_token_claims *ret_claims, struct error *error)
{
    const char *first_dot = strchr(token, '.');
    const char *last_dot = first_dot == NULL ? NULL : strchr(first_dot + 1, '.');
    if (strlen(token) > TOKEN_LIMIT || last_dot == NULL)
        return refuse(error, "is not a compact JWT");
    if (!header_valid(token, (size_t)(first_dot - token), kind, key->key_id))
        return refuse(error, "is of another kind or key");
    if (!signature_valid(key->key, token, last_dot))
        return refuse(error, "has a wrong signature");

    json_t *body = decode_json(first_dot + 1, (size_t)(last_dot - first_dot - 1));
    CLEANUP_FREE char *issuer = issuer_of(gateway_id);
    struct session_token_claims claims = {0};
    bool valid = member_is(body, "iss", issuer) &&
                 member_is(body, "aud", audience_of(kind, issuer)) && read_claims(body, &claims);
    json_decref(body);
    if (!valid)
        return refuse(error, "has claims other than the expected");
    if (!session_token_times_hold(&claims, error))
        return false;
    *ret_claims = claims;
    return true;
}
