#include "gateway_fixture.h"

#include "policy/policy.h"

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

struct subject {
    struct arena *arena;
    Openshell__Sandbox__V1__SandboxPolicy *policy;
};

static Openshell__Sandbox__V1__SandboxPolicy__NetworkPoliciesEntry *
rule(struct arena *arena, const char *key, const char *host)
{
    Openshell__Sandbox__V1__SandboxPolicy__NetworkPoliciesEntry *entry =
        arena_new_of(arena, Openshell__Sandbox__V1__SandboxPolicy__NetworkPoliciesEntry);
    openshell__sandbox__v1__sandbox_policy__network_policies_entry__init(entry);
    entry->key = arena_strdup(arena, key);
    entry->value = arena_new_of(arena, Openshell__Sandbox__V1__NetworkPolicyRule);
    openshell__sandbox__v1__network_policy_rule__init(entry->value);
    Openshell__Sandbox__V1__NetworkEndpoint *endpoint =
        arena_new_of(arena, Openshell__Sandbox__V1__NetworkEndpoint);
    openshell__sandbox__v1__network_endpoint__init(endpoint);
    endpoint->host = arena_strdup(arena, host);
    endpoint->port = 443;
    entry->value->endpoints =
        arena_memdup(arena, &endpoint, sizeof(Openshell__Sandbox__V1__NetworkEndpoint *));
    entry->value->n_endpoints = 1;
    return entry;
}

/* A policy with a rule for each letter of `order`. */
static Openshell__Sandbox__V1__SandboxPolicy *policy_of(struct arena *arena, const char *order)
{
    Openshell__Sandbox__V1__SandboxPolicy *policy = policy_default(arena);
    policy->n_network_policies = strlen(order);
    policy->network_policies = arena_array_of(
        arena, Openshell__Sandbox__V1__SandboxPolicy__NetworkPoliciesEntry *, strlen(order) + 1);
    for (size_t i = 0; order[i] != '\0'; i++) {
        char key[2] = {order[i], '\0'};
        CLEANUP_FREE char *host = memory_printf("%c.example", order[i]);
        policy->network_policies[i] = rule(arena, key, host);
    }
    return policy;
}

static void expect_hash(struct arena *arena, const Openshell__Sandbox__V1__SandboxPolicy *policy,
                        const Openshell__Sandbox__V1__SandboxPolicy *other, bool same)
{
    char left[POLICY_HASH_SIZE], right[POLICY_HASH_SIZE];
    struct error error = {0};
    assert_true(policy_hash(policy, left, &error));
    assert_true(policy_hash(other, right, &error));
    assert_int_equal(strlen(left), 64);
    assert_int_equal(strspn(left, "0123456789abcdef"), 64);
    assert_int_equal(strcmp(left, right) == 0, same);
    (void)arena;
}

static void test_the_order_of_maps_does_not_count(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    expect_hash(arena, policy_of(arena, "abc"), policy_of(arena, "cab"), true);
    expect_hash(arena, policy_of(arena, "abc"), policy_of(arena, "abd"), false);
    expect_hash(arena, policy_of(arena, "abc"), policy_of(arena, "ab"), false);
    /* Of equal keys the last counts, as in every reader of protobuf. */
    Openshell__Sandbox__V1__SandboxPolicy *twice = policy_of(arena, "bab");
    twice->network_policies[0]->value->endpoints[0]->host = text_of("old.example");
    expect_hash(arena, twice, policy_of(arena, "ab"), true);
    arena_free(arena);
}

static void test_the_order_of_lists_counts(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    Openshell__Sandbox__V1__SandboxPolicy *policy = policy_default(arena);
    char *first = policy->filesystem->read_only[0];
    policy->filesystem->read_only[0] = policy->filesystem->read_only[1];
    policy->filesystem->read_only[1] = first;
    expect_hash(arena, policy, policy_default(arena), false);
    arena_free(arena);
}

static void test_inner_maps_are_sorted_too(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    Openshell__Sandbox__V1__SandboxPolicy *policies[2];
    for (int i = 0; i < 2; i++) {
        policies[i] = policy_of(arena, "a");
        Openshell__Sandbox__V1__L7Allow *allow =
            arena_new_of(arena, Openshell__Sandbox__V1__L7Allow);
        openshell__sandbox__v1__l7_allow__init(allow);
        allow->n_query = 2;
        allow->query = arena_array_of(arena, Openshell__Sandbox__V1__L7Allow__QueryEntry *, 2);
        for (int j = 0; j < 2; j++) {
            Openshell__Sandbox__V1__L7Allow__QueryEntry *entry =
                arena_new_of(arena, Openshell__Sandbox__V1__L7Allow__QueryEntry);
            openshell__sandbox__v1__l7_allow__query_entry__init(entry);
            entry->key = text_of(i == j ? "x" : "y");
            allow->query[j] = entry;
        }
        Openshell__Sandbox__V1__L7Rule *l7_rule =
            arena_new_of(arena, Openshell__Sandbox__V1__L7Rule);
        openshell__sandbox__v1__l7_rule__init(l7_rule);
        l7_rule->allow = allow;
        Openshell__Sandbox__V1__NetworkEndpoint *endpoint =
            policies[i]->network_policies[0]->value->endpoints[0];
        endpoint->n_rules = 1;
        endpoint->rules = arena_memdup(arena, &l7_rule, sizeof(void *));
    }
    expect_hash(arena, policies[0], policies[1], true);
    arena_free(arena);
}

static void test_unknown_fields_do_not_count(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    Openshell__Sandbox__V1__SandboxPolicy *policy = policy_default(arena);
    ProtobufCMessageUnknownField unknown = {
        .tag = 999, .wire_type = PROTOBUF_C_WIRE_TYPE_VARINT, .len = 1, .data = (uint8_t *)"\x01"};
    policy->base.n_unknown_fields = 1;
    policy->base.unknown_fields = &unknown;
    expect_hash(arena, policy, policy_default(arena), true);
    arena_free(arena);
}

static void test_deep_messages_are_refused(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    struct error error = {0};
    Google__Protobuf__Value *value = NULL;
    for (int i = 0; i < 70; i++) {
        Google__Protobuf__Value *outer = arena_new_of(arena, Google__Protobuf__Value);
        google__protobuf__value__init(outer);
        outer->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE;
        outer->list_value = arena_new_of(arena, Google__Protobuf__ListValue);
        google__protobuf__list_value__init(outer->list_value);
        if (value != NULL) {
            outer->list_value->n_values = 1;
            outer->list_value->values = arena_memdup(arena, &value, sizeof(void *));
        }
        value = outer;
    }
    assert_null(policy_canonical_copy(&value->base, arena, &error));
    assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
    error_clear(&error);
    arena_free(arena);
}

/* The bytes are those of a plain encoding where nothing needs sorting: anybody can compute them. */
static void test_the_default_policy(void **state)
{
    (void)state;
    static const char *const read_only[] = {"/bin",         "/usr", "/lib",    "/proc",
                                            "/dev/urandom", "/etc", "/var/log"};
    struct arena *arena = arena_new(0);
    struct error error = {0};
    const Openshell__Sandbox__V1__SandboxPolicy *policy = policy_default(arena);
    assert_int_equal(policy->version, 1);
    assert_true(policy->filesystem->include_workdir);
    assert_int_equal(policy->filesystem->n_read_only, 7);
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(policy->filesystem->read_only[i], read_only[i]);
    assert_int_equal(policy->filesystem->n_read_write, 2);
    assert_string_equal(policy->filesystem->read_write[0], "/tmp");
    assert_string_equal(policy->filesystem->read_write[1], "/dev/null");
    assert_string_equal(policy->landlock->compatibility, "best_effort");
    assert_null(policy->process);
    assert_int_equal(policy->n_network_policies, 0);
    const uint8_t *bytes;
    size_t size;
    assert_true(policy_canonical_bytes(&policy->base, arena, &bytes, &size, &error));
    uint8_t packed[512];
    assert_int_equal(openshell__sandbox__v1__sandbox_policy__get_packed_size(policy), size);
    openshell__sandbox__v1__sandbox_policy__pack(policy, packed);
    assert_memory_equal(packed, bytes, size);
    assert_true(policy_validate_static("policy", policy, &error));
    arena_free(arena);
}

static void test_which_policy_is_in_force(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    const Openshell__Sandbox__V1__SandboxPolicy *global = policy_of(arena, "g");
    const Openshell__Sandbox__V1__SandboxPolicy *own = policy_of(arena, "s");
    const Openshell__Sandbox__V1__SandboxPolicy *image = policy_of(arena, "i");
    Openshell__Sandbox__V1__PolicySource source;
    assert_ptr_equal(policy_effective(global, own, image, arena, &source), global);
    assert_int_equal(source, OPENSHELL__SANDBOX__V1__POLICY_SOURCE__POLICY_SOURCE_GLOBAL);
    assert_ptr_equal(policy_effective(NULL, own, image, arena, &source), own);
    assert_int_equal(source, OPENSHELL__SANDBOX__V1__POLICY_SOURCE__POLICY_SOURCE_SANDBOX);
    assert_ptr_equal(policy_effective(NULL, NULL, image, arena, &source), image);
    expect_hash(arena, policy_effective(NULL, NULL, NULL, arena, &source), policy_default(arena),
                true);
    arena_free(arena);
}

static void test_revisions_tell_configurations_apart(void **state)
{
    (void)state;
    uint64_t one = policy_config_revision("aa", 1, 0);
    assert_true(one != 0);
    assert_true(one == policy_config_revision("aa", 1, 0));
    assert_true(one != policy_config_revision("ab", 1, 0));
    assert_true(one != policy_config_revision("aa", 2, 0));
    assert_true(one != policy_config_revision("aa", 1, 1));
}

/* ---- static sections ---- */

static void expect_static(const Openshell__Sandbox__V1__SandboxPolicy *policy, const char *field)
{
    struct error error = {0};
    bool valid = policy_validate_static("policy", policy, &error);
    if (field == NULL ? !valid : valid || !fixture_has_violation(&error, field))
        fail_msg("'%s': %s", field != NULL ? field : "valid", error.message);
    error_clear(&error);
}

static void test_paths(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    Openshell__Sandbox__V1__SandboxPolicy *policy = policy_default(arena);
    static const char *const bad[] = {"", "relative", "./a", "/a/../b", "/..", "..", "/a/.."};
    static const char *const good[] = {"/", "/a..b", "/...", "/a/./b", "/ "};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        policy->filesystem->read_only[3] = text_of(bad[i]);
        expect_static(policy, "policy.filesystem.read_only[3]");
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        policy->filesystem->read_only[3] = text_of(good[i]);
        expect_static(policy, NULL);
    }
    static const char *const broad[] = {"/", "//", "///", "/./", "/."};
    for (size_t i = 0; i < sizeof(broad) / sizeof(broad[0]); i++) {
        policy->filesystem->read_write[0] = text_of(broad[i]);
        expect_static(policy, "policy.filesystem.read_write[0]");
    }
    char *long_path = memory_new(4098);
    memset(long_path, '/', 4097);
    policy->filesystem->read_write[0] = long_path;
    expect_static(policy, "policy.filesystem.read_write[0]");
    policy->filesystem->read_write[0] = text_of("/a");
    long_path[4096] = '\0';
    policy->filesystem->read_only[0] = long_path;
    expect_static(policy, NULL);
    free(long_path);
    char *many[257];
    for (size_t i = 0; i < 257; i++)
        many[i] = text_of("/a");
    policy->filesystem->read_only = many;
    policy->filesystem->n_read_only = 254;
    expect_static(policy, NULL);
    policy->filesystem->n_read_only = 255;
    expect_static(policy, "policy.filesystem");
    arena_free(arena);
}

static void test_identities_and_words(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    Openshell__Sandbox__V1__SandboxPolicy *policy = policy_default(arena);
    Openshell__Sandbox__V1__ProcessPolicy process = OPENSHELL__SANDBOX__V1__PROCESS_POLICY__INIT;
    policy->process = &process;
    static const char *const good[] = {"", "sandbox", "1", "1000", "4294967294"};
    static const char *const bad[] = {"0",  "root", "4294967295", "-1",   "01",
                                      " 1", "1 ",   "+1",         "0x10", "18446744073709551617"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        process.run_as_user = process.run_as_group = text_of(good[i]);
        expect_static(policy, NULL);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        process.run_as_user = text_of(bad[i]);
        process.run_as_group = text_of("");
        expect_static(policy, "policy.process.run_as_user");
        process.run_as_user = text_of("");
        process.run_as_group = text_of(bad[i]);
        expect_static(policy, "policy.process.run_as_group");
    }
    process.run_as_group = text_of("");
    policy->landlock->compatibility = text_of("hard_requirement");
    expect_static(policy, NULL);
    policy->landlock->compatibility = text_of("BEST_EFFORT");
    expect_static(policy, "policy.landlock.compatibility");
    policy->landlock->compatibility = text_of("");
    policy->version = 2;
    expect_static(policy, "policy.version");
    policy->version = 0;
    expect_static(policy, "policy.version");
    arena_free(arena);
}

static void test_reserved_keys_and_size(void **state)
{
    (void)state;
    struct arena *arena = arena_new(0);
    Openshell__Sandbox__V1__SandboxPolicy *policy = policy_of(arena, "a");
    policy->network_policies[0]->key = text_of("_provider_x");
    expect_static(policy, "policy.network_policies");
    policy->network_policies[0]->key = text_of("provider_x");
    expect_static(policy, NULL);
    char *big = memory_new(POLICY_ENCODED_MAX + 1);
    memset(big, 'a', POLICY_ENCODED_MAX);
    policy->network_policies[0]->value->name = big;
    expect_static(policy, "policy");
    free(big);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_order_of_maps_does_not_count),
        cmocka_unit_test(test_the_order_of_lists_counts),
        cmocka_unit_test(test_inner_maps_are_sorted_too),
        cmocka_unit_test(test_unknown_fields_do_not_count),
        cmocka_unit_test(test_deep_messages_are_refused),
        cmocka_unit_test(test_the_default_policy),
        cmocka_unit_test(test_which_policy_is_in_force),
        cmocka_unit_test(test_revisions_tell_configurations_apart),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_identities_and_words),
        cmocka_unit_test(test_reserved_keys_and_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
