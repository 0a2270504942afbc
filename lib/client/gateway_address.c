#include "client/gateway_address.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/failure.h"
#include "client/gateway.h"

enum { ADDRESS_MAX = 2048, HOST_MAX = 253 };

static bool refuse(const char *text, const char *why, struct error *error)
{
    CLEANUP_FREE char *shown = text_escaped(text);
    failure_usage(error, "'%.200s' is no address of a gateway: %s", shown, why);
    failure_hint(error, "write unix:PATH, https://HOST:PORT, http://HOST:PORT or "
                        "ssh://USER@HOST:PORT");
    return false;
}

static bool is_host(const char *host)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    static const char address[] = "0123456789abcdefABCDEF:.";
    const char *allowed = strchr(host, ':') != NULL ? address : name;
    return host[0] != '\0' && host[0] != '-' && strlen(host) <= HOST_MAX &&
           strspn(host, allowed) == strlen(host);
}

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           (text_has_prefix(host, "127.") && strspn(host, "0123456789.") == strlen(host));
}

/* HOST, HOST:PORT, [HOST] or [HOST]:PORT. */
static bool parse_host(char *text, struct gateway_address *address)
{
    char *port = NULL;
    if (text[0] == '[') {
        char *end = strchr(text, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return false;
        port = end[1] == ':' ? end + 2 : NULL;
        *end = '\0';
        text++;
        if (strchr(text, ':') == NULL)
            return false;
    } else if ((port = strchr(text, ':')) != NULL) {
        *port++ = '\0';
    }
    long long number = 0;
    if (port != NULL && (port[0] == '+' || !text_parse_integer(port, 1, 65535, &number)))
        return false;
    address->port = (int)number;
    address->host = memory_strdup(text);
    address->loopback = is_loopback(text);
    return is_host(text);
}

static bool parse_ssh(const char *text, char *rest, struct gateway_address *address,
                      struct error *error)
{
    char *at = strrchr(rest, '@');
    if (at != NULL) {
        *at = '\0';
        address->user = memory_strdup(rest);
        rest = at + 1;
    }
    if (address->user != NULL && (address->user[0] == '\0' || address->user[0] == '-' ||
                                  strpbrk(address->user, " :/@\"'\\") != NULL))
        return refuse(text, "the user's name is not valid", error);
    if (!parse_host(rest, address))
        return refuse(text, "its host or port is not valid", error);
    if (address->port == 0)
        return refuse(text, "an ssh address needs the port of the gateway", error);
    return true;
}

static bool parse_http(const char *text, char *rest, struct gateway_address *address,
                       struct error *error)
{
    size_t length = strlen(rest);
    if (length > 0 && rest[length - 1] == '/')
        rest[length - 1] = '\0';
    if (strpbrk(rest, "/?#") != NULL)
        return refuse(text, "nothing may follow the host and the port", error);
    if (strchr(rest, '@') != NULL)
        return refuse(text, "a user's name or password is not kept in it", error);
    CLEANUP_FREE char *given = memory_strdup(rest);
    if (!parse_host(rest, address))
        return refuse(text, "its host or port is not valid", error);
    bool secure = address->scheme == GATEWAY_SCHEME_HTTPS;
    address->endpoint = memory_printf("%s://%s", secure ? "https" : "http", given);
    if (address->port == 0)
        address->port = secure ? 443 : 80;
    return true;
}

static bool parse(const char *text, struct gateway_address *address, struct error *error)
{
    static const struct {
        const char *prefix;
        enum gateway_scheme scheme;
    } schemes[] = {{"http://", GATEWAY_SCHEME_HTTP},
                   {"https://", GATEWAY_SCHEME_HTTPS},
                   {"ssh://", GATEWAY_SCHEME_SSH}};
    if (text[0] == '\0' || strlen(text) > ADDRESS_MAX || strpbrk(text, " \t\r\n") != NULL)
        return refuse(text, text[0] == '\0' ? "it is empty" : "it has spaces or is too long",
                      error);
    CLEANUP_FREE char *escaped = text_escaped(text);
    if (strcmp(escaped, text) != 0)
        return refuse(text, "it has characters that are not printable", error);
    if (text_has_prefix(text, "unix:")) {
        const char *path = gateway_unix_path(text);
        address->scheme = GATEWAY_SCHEME_UNIX;
        if (path == NULL)
            return refuse(text, "the path of a socket is absolute", error);
        address->endpoint = memory_printf("unix:%s", path);
        address->loopback = true;
        return true;
    }
    const char *rest = text;
    address->scheme = GATEWAY_SCHEME_HTTPS;
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t length = strlen(schemes[i].prefix);
        if (strncasecmp(text, schemes[i].prefix, length) != 0)
            continue;
        address->scheme = schemes[i].scheme;
        rest = text + length;
    }
    if (rest == text && strstr(text, "://") != NULL)
        return refuse(text, "its scheme is not known", error);
    CLEANUP_FREE char *copy = memory_strdup(rest);
    return address->scheme == GATEWAY_SCHEME_SSH ? parse_ssh(text, copy, address, error)
                                                 : parse_http(text, copy, address, error);
}

bool gateway_address_parse(const char *text, struct gateway_address *ret_address,
                           struct error *error)
{
    *ret_address = (struct gateway_address){0};
    if (parse(text, ret_address, error))
        return true;
    gateway_address_free(ret_address);
    return false;
}

void gateway_address_free(struct gateway_address *address)
{
    free(address->endpoint);
    free(address->user);
    free(address->host);
    *address = (struct gateway_address){0};
}

char *gateway_address_https(const char *host, int port)
{
    bool brackets = strchr(host, ':') != NULL;
    return memory_printf("https://%s%s%s:%d", brackets ? "[" : "", host, brackets ? "]" : "", port);
}
