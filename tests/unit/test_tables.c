/* The generated tables: methods with who may call them, and secrets that stay out of text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "method_table.h"
#include "openshell.pb-c.h"
#include "rpc/redact.h"

static void test_redaction(void **state)
{
    (void)state;
    Openshell__V1__RefreshSandboxTokenResponse message =
        OPENSHELL__V1__REFRESH_SANDBOX_TOKEN_RESPONSE__INIT;
    Openshell__V1__ExtensionServiceCredential credential =
        OPENSHELL__V1__EXTENSION_SERVICE_CREDENTIAL__INIT;
    Openshell__V1__ExtensionServiceCredential *credentials[] = {&credential};

    message.token = (char *)"opaque-one";
    message.sandbox_token = (char *)"opaque-two";
    message.session_id = (char *)"a\nb";
    credential.token = (char *)"opaque-three";
    message.extension_credentials = credentials;
    message.n_extension_credentials = 1;
    char *text = redact_text(&message.base);
    assert_null(strstr(text, "opaque"));
    assert_non_null(strstr(text, "token: <secret>"));
    assert_non_null(strstr(text, "session_id: \"a\\nb\""));
    free(text);
    assert_true(redact_is_secret(message.base.descriptor, 1));
    assert_false(redact_is_secret(message.base.descriptor, 6));

    char *long_text = malloc(20000);
    assert_non_null(long_text);
    memset(long_text, 'x', 19999);
    long_text[19999] = '\0';
    message.session_id = long_text;
    text = redact_text(&message.base);
    assert_true(strlen(text) < REDACT_TEXT_MAX);
    assert_string_equal(text + strlen(text) - 3, "...");
    free(text);
    free(long_text);
}

static void test_environment(void **state)
{
    (void)state;
    Openshell__V1__ExecSandboxRequest message = OPENSHELL__V1__EXEC_SANDBOX_REQUEST__INIT;
    Openshell__V1__ExecSandboxRequest__EnvironmentEntry entry =
        OPENSHELL__V1__EXEC_SANDBOX_REQUEST__ENVIRONMENT_ENTRY__INIT;
    Openshell__V1__ExecSandboxRequest__EnvironmentEntry *entries[] = {&entry};

    entry.key = (char *)"API_KEY";
    entry.value = (char *)"opaque";
    message.environment = entries;
    message.n_environment = 1;
    message.stdin.data = (uint8_t *)"opaque";
    message.stdin.len = 6;
    char *text = redact_text(&message.base);
    assert_string_equal(text, "{environment: <1 variables>, stdin: <6 bytes>}");
    free(text);
}

static void test_method_table(void **state)
{
    (void)state;
    assert_int_equal(rpc_service_openshell_v1_OpenShell.method_count, 84);
    for (size_t i = 0; i < rpc_method_count; i++) {
        assert_ptr_equal(rpc_method_find(rpc_methods[i]->path), rpc_methods[i]);
        if (i > 0)
            assert_true(strcmp(rpc_methods[i - 1]->path, rpc_methods[i]->path) < 0);
    }
    assert_null(rpc_method_find("/openshell.v1.OpenShell/Nothing"));
    assert_null(rpc_method_find(""));
    const struct rpc_method *create = rpc_method_find("/openshell.v1.OpenShell/CreateSandbox");
    assert_ptr_equal(create, &rpc_openshell_v1_OpenShell_CreateSandbox);
    assert_int_equal(create->auth_mode, RPC_AUTH_BEARER);
    assert_string_equal(create->workspace_role, "user");
    assert_string_equal(create->scope, "sandbox:write");
    assert_string_equal(create->global_role, "");
    assert_ptr_equal(create->request, &openshell__v1__create_sandbox_request__descriptor);
    assert_false(create->client_streaming || create->server_streaming);
    assert_true(rpc_openshell_v1_OpenShell_ConnectSupervisor.client_streaming);
    assert_true(rpc_openshell_v1_OpenShell_ConnectSupervisor.server_streaming);
    assert_int_equal(rpc_openshell_v1_OpenShell_ConnectSupervisor.auth_mode, RPC_AUTH_SANDBOX);
    assert_int_equal(rpc_openshell_v1_OpenShell_Health.auth_mode, RPC_AUTH_UNAUTHENTICATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_redaction),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_method_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
