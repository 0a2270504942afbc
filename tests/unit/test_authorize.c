/* Who may call what: every method of the published service, for every kind of caller. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/auth/authorize.h"
#include "gateway/auth/peer.h"
#include "proto/method_table.h"

static const struct principal nobody = {.kind = PRINCIPAL_NONE};
static const struct principal user = {.kind = PRINCIPAL_USER};
static const struct principal sandbox = {.kind = PRINCIPAL_SANDBOX, .sandbox_id = "id"};

static enum error_code answer(const struct rpc_method *method, const struct principal *principal)
{
    struct error error = {0};
    bool allowed = authorize_method(method, principal, &error);
    enum error_code code = error.code;
    assert_int_equal(allowed, code == ERROR_OK);
    error_clear(&error);
    return code;
}

/* The codes for nobody, a user and a sandbox. */
static void expect(const struct rpc_method *method, enum error_code for_nobody,
                   enum error_code for_user, enum error_code for_sandbox)
{
    assert_int_equal(answer(method, &nobody), for_nobody);
    assert_int_equal(answer(method, &user), for_user);
    assert_int_equal(answer(method, &sandbox), for_sandbox);
}

static void expect_mode(const struct rpc_method *method)
{
    switch (method->auth_mode) {
    case RPC_AUTH_UNAUTHENTICATED:
        expect(method, ERROR_OK, ERROR_OK, ERROR_OK);
        break;
    case RPC_AUTH_BEARER:
    case RPC_AUTH_OPERATOR:
        expect(method, ERROR_UNAUTHENTICATED, ERROR_OK, ERROR_PERMISSION_DENIED);
        break;
    case RPC_AUTH_SANDBOX:
        expect(method, ERROR_UNAUTHENTICATED, ERROR_PERMISSION_DENIED, ERROR_OK);
        break;
    case RPC_AUTH_DUAL:
        expect(method, ERROR_UNAUTHENTICATED, ERROR_OK, ERROR_OK);
        break;
    case RPC_AUTH_PEER:
        expect(method, ERROR_UNAUTHENTICATED, ERROR_PERMISSION_DENIED, ERROR_PERMISSION_DENIED);
        break;
    case RPC_AUTH_NONE_DECLARED:
        fail_msg("%s declares nobody", method->path);
    }
}

static void test_every_method(void **state)
{
    (void)state;
    size_t published = 0;
    for (size_t i = 0; i < rpc_method_count; i++) {
        const struct rpc_method *method = rpc_methods[i];
        if (strcmp(method->service, "openshell.v1.OpenShell") != 0)
            continue;
        published++;
        expect_mode(method);
    }
    assert_int_equal(published, 84);
}

/* The table itself is generated; these rows are the contract's. */
static void test_rows_of_the_contract(void **state)
{
    (void)state;
    assert_int_equal(rpc_openshell_v1_OpenShell_Health.auth_mode, RPC_AUTH_UNAUTHENTICATED);
    assert_int_equal(rpc_openshell_v1_OpenShell_CreateSandbox.auth_mode, RPC_AUTH_BEARER);
    assert_int_equal(rpc_openshell_v1_OpenShell_ConnectSupervisor.auth_mode, RPC_AUTH_SANDBOX);
    assert_int_equal(rpc_openshell_v1_OpenShell_RelayStream.auth_mode, RPC_AUTH_SANDBOX);
    assert_int_equal(rpc_openshell_v1_OpenShell_GetSandboxConfig.auth_mode, RPC_AUTH_DUAL);
    assert_int_equal(rpc_openshell_v1_OpenShell_PeerRelay.auth_mode, RPC_AUTH_PEER);
    assert_int_equal(rpc_openshell_v1_OpenShell_GetProviderCredentials.auth_mode,
                     RPC_AUTH_OPERATOR);
}

/* A method that declares nothing belongs to another kind of server. */
static void test_undeclared_is_nobody(void **state)
{
    (void)state;
    struct rpc_method method = rpc_openshell_v1_OpenShell_Health;
    method.auth_mode = RPC_AUTH_NONE_DECLARED;
    expect(&method, ERROR_PERMISSION_DENIED, ERROR_PERMISSION_DENIED, ERROR_PERMISSION_DENIED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_method),
        cmocka_unit_test(test_rows_of_the_contract),
        cmocka_unit_test(test_undeclared_is_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
