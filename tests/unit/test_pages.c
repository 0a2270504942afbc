#include "gateway_fixture.h"

#include "gateway/pages.h"

struct subject {
    struct arena *arena;
    struct pages_key key;
    Openshell__V1__ListSandboxesRequest request;
    Openshell__Datamodel__V1__WorkspaceSelector scope;
    struct pages_position position;
    struct error error;
};

static char *text_of(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void begin(struct subject *subject)
{
    *subject = (struct subject){.arena = arena_new(0), .key = {"a key"}};
    openshell__v1__list_sandboxes_request__init(&subject->request);
    openshell__datamodel__v1__workspace_selector__init(&subject->scope);
    subject->scope.selection_case =
        OPENSHELL__DATAMODEL__V1__WORKSPACE_SELECTOR__SELECTION_WORKSPACE;
    subject->scope.workspace = text_of("default");
    subject->request.workspace_scope = &subject->scope;
    subject->request.label_selector = text_of("a=b");
}

static char *make(struct subject *subject)
{
    struct pages_position position = {"default", "quiet-otter"};
    return pages_make(&subject->key, &subject->request.base, &position, subject->arena);
}

static bool parse(struct subject *subject, const char *token)
{
    error_clear(&subject->error);
    subject->request.page_token = text_of(token);
    return pages_parse(&subject->key, &subject->request.base, subject->arena, &subject->position,
                       &subject->error);
}

static void expect_refused(struct subject *subject, const char *token)
{
    if (parse(subject, token))
        fail_msg("'%s' was taken", token);
    assert_int_equal(subject->error.code, ERROR_INVALID_ARGUMENT);
    assert_true(fixture_has_violation(&subject->error, "page_token"));
    assert_null(subject->position.name);
}

static void end(struct subject *subject)
{
    error_clear(&subject->error);
    arena_free(subject->arena);
}

static void test_a_token_comes_back(void **state)
{
    (void)state;
    struct subject subject;
    begin(&subject);
    const char *token = make(&subject);
    assert_true(strlen(token) > 0 && strlen(token) <= PAGES_TOKEN_MAX);
    assert_int_equal(strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                   "-_"),
                     strlen(token));
    subject.request.page_size = 7; /* may change from page to page */
    assert_true(parse(&subject, token));
    assert_string_equal(subject.position.workspace, "default");
    assert_string_equal(subject.position.name, "quiet-otter");
    /* The token does not depend on the one before. */
    assert_string_equal(make(&subject), token);
    assert_true(parse(&subject, ""));
    assert_null(subject.position.name);
    end(&subject);
}

static void test_a_token_is_bound_to_its_parameters(void **state)
{
    (void)state;
    struct subject subject;
    begin(&subject);
    const char *token = make(&subject);
    subject.request.label_selector = text_of("a=c");
    expect_refused(&subject, token);
    subject.request.label_selector = text_of("a=b");
    subject.scope.workspace = text_of("other");
    expect_refused(&subject, token);
    subject.request.workspace_scope = NULL;
    expect_refused(&subject, token);
    subject.request.workspace_scope = &subject.scope;
    subject.scope.workspace = text_of("default");
    subject.key.bytes[31] ^= 1;
    expect_refused(&subject, token);
    subject.key.bytes[31] ^= 1;
    assert_true(parse(&subject, token));
    /* The same parameters of another RPC. */
    Openshell__V1__ListProvidersRequest providers = OPENSHELL__V1__LIST_PROVIDERS_REQUEST__INIT;
    providers.workspace_scope = &subject.scope;
    providers.page_token = text_of(token);
    error_clear(&subject.error);
    assert_false(pages_parse(&subject.key, &providers.base, subject.arena, &subject.position,
                             &subject.error));
    end(&subject);
}

static void test_garbage_is_refused(void **state)
{
    (void)state;
    struct subject subject;
    begin(&subject);
    char *token = make(&subject);
    static const char *const garbage[] = {"x", "AQ", "====", "not a token",
                                          "AQAAAAAAAAAAAAAAAAAAAAA"};
    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
        expect_refused(&subject, garbage[i]);
    for (size_t i = 0; token[i] != '\0'; i++) {
        char kept = token[i];
        token[i] = kept == 'A' ? 'B' : 'A';
        expect_refused(&subject, token);
        token[i] = kept;
    }
    for (size_t length = strlen(token) - 1; length > 0; length--) {
        CLEANUP_FREE char *cut = memory_strdup(token);
        cut[length] = '\0';
        expect_refused(&subject, cut);
    }
    char *long_token = memory_new(PAGES_TOKEN_MAX + 2);
    memset(long_token, 'A', PAGES_TOKEN_MAX + 1);
    expect_refused(&subject, long_token);
    free(long_token);
    end(&subject);
}

static void test_page_sizes(void **state)
{
    (void)state;
    static const struct {
        int32_t asked;
        size_t given;
    } sizes[] = {{0, 100}, {1, 1}, {1000, 1000}, {1001, 1000}, {INT32_MAX, 1000}};
    struct error error = {0};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = 0;
        assert_true(pages_size(sizes[i].asked, &size, &error));
        assert_int_equal(size, sizes[i].given);
    }
    size_t size;
    assert_false(pages_size(-1, &size, &error));
    assert_int_equal(error.code, ERROR_INVALID_ARGUMENT);
    assert_true(fixture_has_violation(&error, "page_size"));
    error_clear(&error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_token_comes_back),
        cmocka_unit_test(test_a_token_is_bound_to_its_parameters),
        cmocka_unit_test(test_garbage_is_refused),
        cmocka_unit_test(test_page_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
