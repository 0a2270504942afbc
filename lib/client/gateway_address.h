/* What `gateway add` is given, taken apart (command-line reference 2.1). */
#ifndef CLIENT_GATEWAY_ADDRESS_H
#define CLIENT_GATEWAY_ADDRESS_H

#include <stdbool.h>

#include "base/error.h"

enum gateway_scheme {
    GATEWAY_SCHEME_UNIX,  /* unix:PATH */
    GATEWAY_SCHEME_HTTP,  /* http://HOST[:PORT] */
    GATEWAY_SCHEME_HTTPS, /* https://HOST[:PORT], or without a scheme */
    GATEWAY_SCHEME_SSH    /* ssh://[USER@]HOST:PORT */
};

struct gateway_address {
    enum gateway_scheme scheme;
    char *endpoint; /* as it is stored; NULL for ssh, whose host has to be resolved first */
    char *user;     /* ssh; NULL: none was given */
    char *host;     /* without brackets; NULL for unix */
    int port;       /* 443 and 80 where none is given; 0 for unix */
    bool loopback;  /* the host is this machine */
};

/* A usage error says what is wrong with it. Free with gateway_address_free. */
bool gateway_address_parse(const char *text, struct gateway_address *ret_address,
                           struct error *error);
void gateway_address_free(struct gateway_address *address);

/* "https://HOST:PORT", with brackets around an IPv6 address; owned by the caller. */
char *gateway_address_https(const char *host, int port);

#endif
