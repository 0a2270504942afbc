/* A policy as its file has it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/document.h"
#include "client/policy_document.h"

#define INIT(name) OPENSHELL__SANDBOX__V1__##name##__INIT

static void expect(const Openshell__Sandbox__V1__SandboxPolicy *policy, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    document_print(policy_document(policy), OUTPUT_YAML, stream);
    fclose(stream);
    assert_string_equal(text, wanted);
    free(text);
}

/* What is absent stays absent; a section that is there and empty stays there. */
static void test_static_sections(void **state)
{
    (void)state;
    Openshell__Sandbox__V1__SandboxPolicy policy = INIT(SANDBOX_POLICY);
    policy.version = 1;
    expect(&policy, "version: 1\n");
    Openshell__Sandbox__V1__FilesystemPolicy filesystem = INIT(FILESYSTEM_POLICY);
    Openshell__Sandbox__V1__LandlockPolicy landlock = INIT(LANDLOCK_POLICY);
    Openshell__Sandbox__V1__ProcessPolicy process = INIT(PROCESS_POLICY);
    policy.filesystem = &filesystem;
    policy.landlock = &landlock;
    policy.process = &process;
    expect(&policy, "version: 1\nfilesystem_policy: {}\nlandlock: {}\nprocess: {}\n");
    char *read_only[] = {(char *)"/usr", (char *)"/with space"};
    char *read_write[] = {(char *)"/tmp"};
    filesystem.include_workdir = true;
    filesystem.n_read_only = 2;
    filesystem.read_only = read_only;
    filesystem.n_read_write = 1;
    filesystem.read_write = read_write;
    landlock.compatibility = (char *)"hard_requirement";
    process.run_as_user = (char *)"1500";
    expect(&policy, "version: 1\n"
                    "filesystem_policy:\n"
                    "  include_workdir: true\n"
                    "  read_only:\n"
                    "  - /usr\n"
                    "  - \"/with space\"\n"
                    "  read_write:\n"
                    "  - /tmp\n"
                    "landlock:\n"
                    "  compatibility: hard_requirement\n"
                    "process:\n"
                    "  run_as_user: \"1500\"\n");
}

/* One rule with one endpoint, which the tests fill in. */
struct fixture {
    Openshell__Sandbox__V1__SandboxPolicy policy;
    Openshell__Sandbox__V1__SandboxPolicy__NetworkPoliciesEntry entry, *entries[1];
    Openshell__Sandbox__V1__NetworkPolicyRule rule;
    Openshell__Sandbox__V1__NetworkEndpoint endpoint, *endpoints[1];
    Openshell__Sandbox__V1__NetworkBinary binary, *binaries[1];
    uint32_t ports[2];
};

static void make(struct fixture *fixture)
{
    openshell__sandbox__v1__sandbox_policy__init(&fixture->policy);
    openshell__sandbox__v1__sandbox_policy__network_policies_entry__init(&fixture->entry);
    openshell__sandbox__v1__network_policy_rule__init(&fixture->rule);
    openshell__sandbox__v1__network_endpoint__init(&fixture->endpoint);
    openshell__sandbox__v1__network_binary__init(&fixture->binary);
    fixture->policy.version = 1;
    fixture->policy.n_network_policies = 1;
    fixture->policy.network_policies = fixture->entries;
    fixture->entries[0] = &fixture->entry;
    fixture->entry.key = (char *)"api";
    fixture->entry.value = &fixture->rule;
    fixture->rule.name = (char *)"api";
    fixture->rule.n_endpoints = fixture->rule.n_binaries = 1;
    fixture->rule.endpoints = fixture->endpoints;
    fixture->rule.binaries = fixture->binaries;
    fixture->endpoints[0] = &fixture->endpoint;
    fixture->binaries[0] = &fixture->binary;
    fixture->binary.path = (char *)"/usr/bin/curl";
    fixture->endpoint.host = (char *)"*.example.com";
    fixture->endpoint.port = fixture->ports[0] = 443;
    fixture->ports[1] = 8443;
    fixture->endpoint.n_ports = 1;
    fixture->endpoint.ports = fixture->ports;
}

static void test_endpoint(void **state)
{
    (void)state;
    struct fixture fixture;
    make(&fixture);
    fixture.rule.name = (char *)"another";
    fixture.endpoint.protocol = (char *)"rest";
    fixture.endpoint.tls = OPENSHELL__SANDBOX__V1__NETWORK_TLS_MODE__NETWORK_TLS_MODE_SKIP;
    fixture.endpoint.enforcement =
        OPENSHELL__SANDBOX__V1__NETWORK_ENFORCEMENT_MODE__NETWORK_ENFORCEMENT_MODE_ENFORCE;
    fixture.endpoint.access =
        OPENSHELL__SANDBOX__V1__NETWORK_ACCESS_PRESET__NETWORK_ACCESS_PRESET_READ_ONLY;
    expect(&fixture.policy, "version: 1\n"
                            "network_policies:\n"
                            "  api:\n"
                            "    name: another\n"
                            "    endpoints:\n"
                            "    - host: \"*.example.com\"\n"
                            "      port: 443\n"
                            "      protocol: rest\n"
                            "      tls: skip\n"
                            "      enforcement: enforce\n"
                            "      access: read-only\n"
                            "    binaries:\n"
                            "    - path: /usr/bin/curl\n");
}

static void test_matchers(void **state)
{
    (void)state;
    struct fixture fixture;
    make(&fixture);
    char *any[] = {(char *)"sum", (char *)"mean"};
    Openshell__Sandbox__V1__L7QueryMatcher glob = INIT(L7_QUERY_MATCHER), list = glob;
    glob.glob = (char *)"lookup_*";
    list.n_any = 2;
    list.any = any;
    Openshell__Sandbox__V1__L7Allow__QueryEntry
        query = OPENSHELL__SANDBOX__V1__L7_ALLOW__QUERY_ENTRY__INIT,
        *queries[] = {&query};
    query.key = (char *)"q";
    query.value = &list;
    Openshell__Sandbox__V1__L7Allow allow = INIT(L7_ALLOW);
    allow.method = (char *)"GET";
    allow.path = (char *)"/v1/**";
    allow.n_query = 1;
    allow.query = queries;
    Openshell__Sandbox__V1__L7Rule rule = INIT(L7_RULE), *rules[] = {&rule};
    rule.allow = &allow;
    Openshell__Sandbox__V1__L7DenyRule__ParamsEntry
        param = OPENSHELL__SANDBOX__V1__L7_DENY_RULE__PARAMS_ENTRY__INIT,
        *params[] = {&param};
    param.key = (char *)"name";
    param.value = &glob;
    Openshell__Sandbox__V1__L7DenyRule deny = INIT(L7_DENY_RULE), *denied[] = {&deny};
    deny.n_params = 1;
    deny.params = params;
    fixture.endpoint.n_ports = 2;
    fixture.endpoint.protocol = (char *)"mcp";
    fixture.endpoint.json_rpc_max_body_bytes = 1024;
    fixture.endpoint.n_rules = fixture.endpoint.n_deny_rules = 1;
    fixture.endpoint.rules = rules;
    fixture.endpoint.deny_rules = denied;
    expect(&fixture.policy, "version: 1\n"
                            "network_policies:\n"
                            "  api:\n"
                            "    endpoints:\n"
                            "    - host: \"*.example.com\"\n"
                            "      ports:\n"
                            "      - 443\n"
                            "      - 8443\n"
                            "      protocol: mcp\n"
                            "      rules:\n"
                            "      - allow:\n"
                            "          method: GET\n"
                            "          path: \"/v1/**\"\n"
                            "          query:\n"
                            "            q:\n"
                            "              any:\n"
                            "              - sum\n"
                            "              - mean\n"
                            "      deny_rules:\n"
                            "      - tool: \"lookup_*\"\n"
                            "      mcp:\n"
                            "        max_body_bytes: 1024\n"
                            "    binaries:\n"
                            "    - path: /usr/bin/curl\n");
    /* Several names are no shorthand. */
    param.value = &list;
    json_t *document = policy_document(&fixture.policy);
    char *text = json_dumps(document, JSON_COMPACT);
    assert_non_null(
        strstr(text, "\"deny_rules\":[{\"params\":{\"name\":{\"any\":[\"sum\",\"mean\"]}}}]"));
    free(text);
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_static_sections),
        cmocka_unit_test(test_endpoint),
        cmocka_unit_test(test_matchers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
