/* Session tokens: the right one is taken, and every other shape is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/memory.h"
#include "boundary/session_token.h"

#define GATEWAY "gateway-1"

static struct session_token_key *key;

static int set_up(void **state)
{
    (void)state;
    key = session_token_key_generate(NULL);
    return key == NULL;
}

static int tear_down(void **state)
{
    (void)state;
    session_token_key_free(key);
    return 0;
}

static struct session_token_claims example(void)
{
    return (struct session_token_claims){
        .sandbox_id = "0b5f6f0e-0000-4000-8000-000000000001",
        .generation = "0b5f6f0e-0000-4000-8000-000000000002",
        .auth_epoch = 7,
    };
}

static int64_t now(void)
{
    return clock_realtime_milliseconds() / 1000;
}

static void test_round_trip(void **state)
{
    (void)state;
    for (int kind = SESSION_TOKEN_GATEWAY; kind <= SESSION_TOKEN_SANDBOX; kind++) {
        struct session_token_claims claims = example(), read = {0};
        char *token = session_token_sign(key, kind, GATEWAY, &claims, NULL);
        assert_non_null(token);
        assert_true(claims.issued_at >= now() - 5);
        assert_int_equal(strlen(claims.token_id), 36);
        struct error error = {0};
        if (!session_token_verify(key, kind, GATEWAY, token, &read, &error))
            fail_msg("%s", error.message);
        assert_string_equal(read.sandbox_id, claims.sandbox_id);
        assert_string_equal(read.generation, claims.generation);
        assert_string_equal(read.token_id, claims.token_id);
        assert_int_equal(read.auth_epoch, 7);
        assert_int_equal(read.expires_at, 0);
        free(token);
    }
}

static void assert_refused_by(const struct session_token_key *by, enum session_token_kind kind,
                              const char *gateway, const char *token)
{
    struct session_token_claims read = {0};
    struct error error = {0};
    assert_false(session_token_verify(by, kind, gateway, token, &read, &error));
    assert_int_equal(error.code, ERROR_UNAUTHENTICATED);
    assert_string_equal(read.sandbox_id, "");
    if (strlen(token) > 8)
        assert_null(strstr(error.message, token));
}

static void test_kind_key_and_gateway_are_pinned(void **state)
{
    (void)state;
    struct session_token_claims claims = example();
    char *token = session_token_sign(key, SESSION_TOKEN_SANDBOX, GATEWAY, &claims, NULL);
    assert_refused_by(key, SESSION_TOKEN_GATEWAY, GATEWAY, token);
    assert_refused_by(key, SESSION_TOKEN_SANDBOX, "gateway-2", token);

    struct session_token_key *other = session_token_key_generate(NULL);
    assert_refused_by(other, SESSION_TOKEN_SANDBOX, GATEWAY, token);
    /* Another key under the same name, and the same key under another name. */
    char *pem = session_token_key_public_pem(other);
    struct session_token_key *posing =
        session_token_key_parse_public(pem, session_token_key_id(key), NULL);
    assert_refused_by(posing, SESSION_TOKEN_SANDBOX, GATEWAY, token);
    free(pem);
    pem = session_token_key_public_pem(key);
    struct session_token_key *renamed = session_token_key_parse_public(pem, "renamed", NULL);
    assert_refused_by(renamed, SESSION_TOKEN_SANDBOX, GATEWAY, token);
    session_token_key_free(renamed);
    session_token_key_free(posing);
    session_token_key_free(other);
    free(pem);
    free(token);

    token = session_token_sign(key, SESSION_TOKEN_GATEWAY, GATEWAY, &claims, NULL);
    assert_refused_by(key, SESSION_TOKEN_SANDBOX, GATEWAY, token);
    free(token);
}

static void test_keys_survive_as_pem(void **state)
{
    (void)state;
    char *private_pem = session_token_key_private_pem(key);
    char *public_pem = session_token_key_public_pem(key);
    const char *id = session_token_key_id(key);
    struct session_token_key *again = session_token_key_parse_private(private_pem, id, NULL);
    struct session_token_key *open = session_token_key_parse_public(public_pem, id, NULL);
    struct session_token_claims claims = example(), read;
    char *token = session_token_sign(again, SESSION_TOKEN_SANDBOX, GATEWAY, &claims, NULL);
    assert_true(session_token_verify(open, SESSION_TOKEN_SANDBOX, GATEWAY, token, &read, NULL));
    free(token);

    struct error error = {0};
    assert_null(session_token_sign(open, SESSION_TOKEN_SANDBOX, GATEWAY, &claims, &error));
    assert_null(session_token_key_parse_private(public_pem, id, &error));
    assert_null(session_token_key_parse_public("nothing", id, &error));
    assert_null(session_token_key_parse_public(public_pem, "", &error));
    session_token_key_free(open);
    session_token_key_free(again);
    memory_wipe(private_pem, strlen(private_pem));
    free(private_pem);
    free(public_pem);
}

static void test_other_kinds_of_key_are_refused(void **state)
{
    (void)state;
    EVP_PKEY *curve = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    BIO *bio = BIO_new(BIO_s_mem());
    assert_int_equal(PEM_write_bio_PUBKEY(bio, curve), 1);
    char *data = NULL;
    long length = BIO_get_mem_data(bio, &data);
    char *pem = memory_new((size_t)length + 1);
    memcpy(pem, data, (size_t)length);
    assert_null(session_token_key_parse_public(pem, "kid", NULL));
    free(pem);
    BIO_free(bio);
    EVP_PKEY_free(curve);
}

/* Signs what a test wants, which session_token_sign would not. */
static char *forge(json_t *header, json_t *body)
{
    char *header_json = json_dumps(header, JSON_COMPACT);
    char *body_json = json_dumps(body, JSON_COMPACT);
    char *header_text = base64url_encode(header_json, strlen(header_json));
    char *body_text = base64url_encode(body_json, strlen(body_json));
    char *text = memory_printf("%s.%s", header_text, body_text);
    char *pem = session_token_key_private_pem(key);
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *private_key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    unsigned char signature[64];
    size_t length = sizeof(signature);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_DigestSignInit(context, NULL, NULL, NULL, private_key);
    EVP_DigestSign(context, signature, &length, (unsigned char *)text, strlen(text));
    char *signature_text = base64url_encode(signature, length);
    char *token = memory_printf("%s.%s", text, signature_text);
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(private_key);
    BIO_free(bio);
    free(signature_text);
    free(pem);
    free(text);
    free(body_text);
    free(header_text);
    free(body_json);
    free(header_json);
    return token;
}

static json_t *good_header(void)
{
    return json_pack("{s:s,s:s,s:s}", "alg", "EdDSA", "typ", "openshell-sandbox-session+jwt", "kid",
                     session_token_key_id(key));
}

static json_t *good_body(void)
{
    return json_pack("{s:s,s:s,s:s,s:I,s:I,s:s,s:s,s:s,s:I,s:s}", "iss",
                     "openshell-gateway:" GATEWAY, "aud", "openshell-sandbox", "sub",
                     "spiffe://openshell/sandbox/s", "iat", (json_int_t)now(), "exp", (json_int_t)0,
                     "jti", "0b5f6f0e-0000-4000-8000-000000000009", "sandbox_id", "s",
                     "runtime_generation", "g", "auth_epoch", (json_int_t)1, "component",
                     "openshell-supervisor");
}

/* Takes over both; `valid` is what verification must say. */
static void check_forged(json_t *header, json_t *body, bool valid)
{
    char *token = forge(header, body);
    struct session_token_claims read = {0};
    struct error error = {0};
    bool taken = session_token_verify(key, SESSION_TOKEN_SANDBOX, GATEWAY, token, &read, &error);
    if (taken != valid) {
        char *text = json_dumps(body, 0);
        fail_msg("%s: %s (%s)", valid ? "refused" : "taken", text, error.message);
    }
    free(token);
    json_decref(header);
    json_decref(body);
}

static json_t *with(json_t *object, const char *name, json_t *value)
{
    json_object_set_new(object, name, value);
    return object;
}

static json_t *without(json_t *object, const char *name)
{
    assert_int_equal(json_object_del(object, name), 0);
    return object;
}

static void test_header_is_exact(void **state)
{
    (void)state;
    check_forged(good_header(), good_body(), true);
    static const char *const ALGORITHMS[] = {"none",    "NONE",  "HS256", "ES256",
                                             "Ed25519", "eddsa", ""};
    for (size_t i = 0; i < sizeof(ALGORITHMS) / sizeof(ALGORITHMS[0]); i++)
        check_forged(with(good_header(), "alg", json_string(ALGORITHMS[i])), good_body(), false);
    check_forged(with(good_header(), "typ", json_string("JWT")), good_body(), false);
    check_forged(with(good_header(), "kid", json_string("other")), good_body(), false);
    check_forged(with(good_header(), "kid", json_null()), good_body(), false);
    check_forged(with(good_header(), "crit", json_array()), good_body(), false);
    check_forged(with(good_header(), "jwk", json_object()), good_body(), false);
    check_forged(without(good_header(), "alg"), good_body(), false);
    check_forged(without(good_header(), "typ"), good_body(), false);
    check_forged(without(good_header(), "kid"), good_body(), false);
    check_forged(json_array(), good_body(), false);
}

static void test_each_claim_is_needed_and_no_other(void **state)
{
    (void)state;
    json_t *body = good_body();
    const char *name;
    json_t *value;
    json_object_foreach(body, name, value)
    {
        check_forged(good_header(), without(good_body(), name), false);
        check_forged(good_header(), with(good_body(), name, json_null()), false);
        check_forged(good_header(), with(good_body(), name, json_string("other")),
                     strcmp(name, "runtime_generation") == 0);
    }
    json_decref(body);
    check_forged(good_header(), with(good_body(), "extra", json_integer(1)), false);
    check_forged(good_header(), with(good_body(), "nbf", json_integer(1)), false);
    check_forged(good_header(), with(good_body(), "auth_epoch", json_integer(0)), false);
    check_forged(good_header(), with(good_body(), "auth_epoch", json_real(1.0)), false);
    check_forged(good_header(), with(good_body(), "aud", json_pack("[s]", "openshell-sandbox")),
                 false);
    check_forged(good_header(), with(good_body(), "component", json_string("openshell-sandbox")),
                 false);
    check_forged(good_header(), json_array(), false);
}

static void test_times(void **state)
{
    (void)state;
    struct {
        int64_t issued, expires; /* from now; expires 0: never */
        bool valid;
    } cases[] = {
        {0, 60, true},     {-60, -20, true}, {-60, -40, false},   {20, 60, true},
        {40, 60, false},   {40, 0, false},   {-100, 3500, true},  {-100, 3501, false},
        {-10, -10, false}, {0, -1, false},   {-1000000, 0, true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        json_t *body = good_body();
        json_object_set_new(body, "iat", json_integer(now() + cases[i].issued));
        json_object_set_new(body, "exp",
                            json_integer(cases[i].expires == 0 ? 0 : now() + cases[i].expires));
        check_forged(good_header(), body, cases[i].valid);
    }
    check_forged(good_header(), with(good_body(), "exp", json_integer(-1)), false);

    struct session_token_claims claims = example();
    claims.expires_at = now() + 3700;
    assert_null(session_token_sign(key, SESSION_TOKEN_SANDBOX, GATEWAY, &claims, NULL));
}

static void test_shapes_that_are_no_token(void **state)
{
    (void)state;
    struct session_token_claims claims = example();
    char *token = session_token_sign(key, SESSION_TOKEN_SANDBOX, GATEWAY, &claims, NULL);
    static const char *const TEXTS[] = {"", ".", "..", "...", "a.b", "a.b.c", "a.b.c.d"};
    for (size_t i = 0; i < sizeof(TEXTS) / sizeof(TEXTS[0]); i++)
        assert_refused_by(key, SESSION_TOKEN_SANDBOX, GATEWAY, TEXTS[i]);

    char *more = memory_printf("%s.x", token);
    assert_refused_by(key, SESSION_TOKEN_SANDBOX, GATEWAY, more);
    free(more);
    more = memory_printf("%s=", token);
    assert_refused_by(key, SESSION_TOKEN_SANDBOX, GATEWAY, more);
    free(more);
    char *unsigned_token = memory_strdup(token);
    strrchr(unsigned_token, '.')[1] = '\0';
    assert_refused_by(key, SESSION_TOKEN_SANDBOX, GATEWAY, unsigned_token);
    free(unsigned_token);
    /* Every byte counts. */
    for (size_t i = 0; i < strlen(token); i++) {
        char *changed = memory_strdup(token);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        assert_refused_by(key, SESSION_TOKEN_SANDBOX, GATEWAY, changed);
        free(changed);
    }
    char *large = memory_allocate(8192);
    memset(large, 'a', 8191);
    large[10] = large[20] = '.';
    large[8191] = '\0';
    assert_refused_by(key, SESSION_TOKEN_SANDBOX, GATEWAY, large);
    free(large);
    free(token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_kind_key_and_gateway_are_pinned),
        cmocka_unit_test(test_keys_survive_as_pem),
        cmocka_unit_test(test_other_kinds_of_key_are_refused),
        cmocka_unit_test(test_header_is_exact),
        cmocka_unit_test(test_each_claim_is_needed_and_no_other),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_shapes_that_are_no_token),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
