/* Addresses of gateways. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "client/gateway_address.h"

static void test_good(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum gateway_scheme scheme;
        const char *endpoint; /* NULL: ssh */
        const char *user;
        const char *host;
        int port;
        bool loopback;
    } cases[] = {
        {"unix:/run/x.sock", GATEWAY_SCHEME_UNIX, "unix:/run/x.sock", NULL, NULL, 0, true},
        {"unix:///run/x.sock", GATEWAY_SCHEME_UNIX, "unix:/run/x.sock", NULL, NULL, 0, true},
        {"gw.example.com", GATEWAY_SCHEME_HTTPS, "https://gw.example.com", NULL, "gw.example.com",
         443, false},
        {"gw:8443", GATEWAY_SCHEME_HTTPS, "https://gw:8443", NULL, "gw", 8443, false},
        {"HTTPS://gw:8443/", GATEWAY_SCHEME_HTTPS, "https://gw:8443", NULL, "gw", 8443, false},
        {"https://[::1]:17670", GATEWAY_SCHEME_HTTPS, "https://[::1]:17670", NULL, "::1", 17670,
         true},
        {"https://[fd00::2]", GATEWAY_SCHEME_HTTPS, "https://[fd00::2]", NULL, "fd00::2", 443,
         false},
        {"http://localhost:1", GATEWAY_SCHEME_HTTP, "http://localhost:1", NULL, "localhost", 1,
         true},
        {"http://127.0.0.5", GATEWAY_SCHEME_HTTP, "http://127.0.0.5", NULL, "127.0.0.5", 80, true},
        {"http://127.example.com", GATEWAY_SCHEME_HTTP, "http://127.example.com", NULL,
         "127.example.com", 80, false},
        {"ssh://me@box:17670", GATEWAY_SCHEME_SSH, NULL, "me", "box", 17670, false},
        {"ssh://box:17670", GATEWAY_SCHEME_SSH, NULL, NULL, "box", 17670, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gateway_address address;
        struct error error = {0};
        assert_true(gateway_address_parse(cases[i].text, &address, &error));
        assert_int_equal(address.scheme, cases[i].scheme);
        assert_int_equal(address.port, cases[i].port);
        assert_int_equal(address.loopback, cases[i].loopback);
        if (cases[i].endpoint != NULL)
            assert_string_equal(address.endpoint, cases[i].endpoint);
        if (cases[i].user != NULL)
            assert_string_equal(address.user, cases[i].user);
        if (cases[i].host != NULL)
            assert_string_equal(address.host, cases[i].host);
        gateway_address_free(&address);
    }
}

static void test_bad(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        " ",
                                        "unix:",
                                        "unix:relative",
                                        "unix://relative",
                                        "ftp://x",
                                        "https://",
                                        "https://:1",
                                        "https://h:0",
                                        "https://h:65536",
                                        "https://h:x",
                                        "https://h:+1",
                                        "https://h:",
                                        "https://h/p",
                                        "https://h?q",
                                        "https://me@h",
                                        "https://me:pw@h:1",
                                        "https://a b",
                                        "https://[::1",
                                        "https://[h]:1",
                                        "https://[::1]x",
                                        "https://::1",
                                        "https://-h",
                                        "https://h\x1b[2J",
                                        "https://h\xc2\x9b",
                                        "ssh://h",
                                        "ssh://@h:1",
                                        "ssh://-o@h:1",
                                        "ssh://-oProxyCommand:1",
                                        "ssh://a:b@h:1"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct gateway_address address;
        struct error error = {0};
        assert_false(gateway_address_parse(texts[i], &address, &error));
        assert_null(strchr(error.message, '\x1b'));
        assert_null(address.endpoint);
        error_clear(&error);
    }
}

static void test_https(void **state)
{
    (void)state;
    CLEANUP_FREE char *name = gateway_address_https("h", 1);
    CLEANUP_FREE char *address = gateway_address_https("::1", 17670);
    assert_string_equal(name, "https://h:1");
    assert_string_equal(address, "https://[::1]:17670");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_https),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
