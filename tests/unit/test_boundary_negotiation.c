/* Negotiation between supervisor and runtime, and the failures they tell each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "boundary/failure.h"
#include "boundary/negotiation.h"

static void refused(const peer_metadata *ours, const peer_metadata *theirs, const char *words)
{
    struct error error = {0};
    assert_false(negotiation_check(ours, theirs, &error));
    assert_int_equal(failure_kind_of(&error), FAILURE_UNSUPPORTED);
    if (strstr(error.message, words) == NULL)
        fail_msg("'%s' does not say '%s'", error.message, words);
}

static void test_ours_understand_each_other(void **state)
{
    (void)state;
    struct error error = {0};
    if (!negotiation_check(negotiation_supervisor(), negotiation_runtime(), &error) ||
        !negotiation_check(negotiation_runtime(), negotiation_supervisor(), &error))
        fail_msg("%s", error.message);
    assert_true(negotiation_shared(negotiation_supervisor(), negotiation_runtime(),
                                   CAPABILITY_SANDBOX_PROTOCOL));
    /* The supervisor could, this runtime cannot: nobody may send it. */
    assert_false(negotiation_shared(negotiation_supervisor(), negotiation_runtime(),
                                    CAPABILITY_SUSPEND_RESUME));
}

static void test_versions(void **state)
{
    (void)state;
    refused(negotiation_supervisor(), NULL, "does not say");
    peer_metadata peer = *negotiation_runtime();
    Openshell__Extension__V1__ProtocolVersion version = *peer.protocol_version;
    peer.protocol_version = NULL;
    refused(negotiation_supervisor(), &peer, "does not say");
    peer.protocol_version = &version;
    version.minor = 7; /* newer minors only add */
    assert_true(negotiation_check(negotiation_supervisor(), &peer, NULL));
    version.major = 2;
    refused(negotiation_supervisor(), &peer, "2.7");
    version.major = 0;
    refused(negotiation_supervisor(), &peer, "0.7");
}

static void test_required_capabilities_on_both_sides(void **state)
{
    (void)state;
    peer_metadata peer = *negotiation_runtime();
    peer.n_supported_capabilities = 0;
    peer.n_required_capabilities = 0;
    refused(negotiation_supervisor(), &peer, CAPABILITY_SANDBOX_PROTOCOL);

    char *required[] = {(char *)CAPABILITY_SANDBOX_PROTOCOL, (char *)"openshell.sandbox.later"};
    peer = *negotiation_runtime();
    peer.required_capabilities = required;
    peer.n_required_capabilities = 2;
    refused(negotiation_supervisor(), &peer, "openshell.sandbox.later");

    /* Supporting more is no obstacle. */
    peer = *negotiation_runtime();
    peer.supported_capabilities = required;
    peer.n_supported_capabilities = 2;
    assert_true(negotiation_check(negotiation_supervisor(), &peer, NULL));
}

static void test_malformed_capabilities(void **state)
{
    (void)state;
    static const char *const BAD[] = {"",
                                      "openshell",
                                      "openshell.sandbox",
                                      "openshell..protocol",
                                      "openshell.sandbox.",
                                      "other.sandbox.protocol",
                                      "openshell.sandbox.Protocol",
                                      "openshell.sandbox.-protocol",
                                      "openshell.sandbox.protocol-",
                                      "openshell.sandbox.pro tocol"};
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        char *list[] = {(char *)CAPABILITY_SANDBOX_PROTOCOL, (char *)BAD[i]};
        peer_metadata peer = *negotiation_runtime();
        peer.supported_capabilities = list;
        peer.n_supported_capabilities = 2;
        refused(negotiation_supervisor(), &peer, "malformed");
    }
    char *twice[] = {(char *)CAPABILITY_SANDBOX_PROTOCOL, (char *)CAPABILITY_SANDBOX_PROTOCOL};
    peer_metadata peer = *negotiation_runtime();
    peer.supported_capabilities = twice;
    peer.n_supported_capabilities = 2;
    refused(negotiation_supervisor(), &peer, "twice");

    char *many[NEGOTIATION_CAPABILITIES_LIMIT + 1];
    for (size_t i = 0; i <= NEGOTIATION_CAPABILITIES_LIMIT; i++)
        many[i] = (char *)CAPABILITY_SANDBOX_PROTOCOL;
    peer.supported_capabilities = many;
    peer.n_supported_capabilities = NEGOTIATION_CAPABILITIES_LIMIT + 1;
    refused(negotiation_supervisor(), &peer, "more than");
}

static void test_failures_cross_the_wire(void **state)
{
    (void)state;
    for (int kind = FAILURE_DENIED; kind <= FAILURE_INVALID; kind++) {
        struct error error = {0}, back = {0};
        assert_false(failure_set(&error, kind, "why %d", kind));
        failure_message message;
        failure_encode(&error, &message);
        assert_int_equal(message.kind, kind);
        assert_int_equal(message.code, 0);
        assert_false(failure_decode(&message, &back));
        assert_int_equal(failure_kind_of(&back), kind);
        assert_int_equal(back.code, error.code);
        assert_string_equal(back.message, error.message);
    }
    struct error error = {0}, back = {0};
    error_set(&error, ERROR_RESOURCE_EXHAUSTED, "too many");
    assert_int_equal(failure_kind_of(&error), FAILURE_UNKNOWN);
    failure_classify(&error, FAILURE_PROCESS);
    failure_message message;
    failure_encode(&error, &message);
    failure_decode(&message, &back);
    assert_int_equal(failure_kind_of(&back), FAILURE_PROCESS);
    assert_int_equal(back.code, ERROR_RESOURCE_EXHAUSTED);
    message.kind = 99; /* a newer peer */
    message.code = 99;
    failure_decode(&message, &back);
    assert_int_equal(failure_kind_of(&back), FAILURE_UNKNOWN);
    assert_int_equal(back.code, ERROR_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ours_understand_each_other),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_required_capabilities_on_both_sides),
        cmocka_unit_test(test_malformed_capabilities),
        cmocka_unit_test(test_failures_cross_the_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
