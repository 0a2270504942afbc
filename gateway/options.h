/* The command line of openshell-gateway. */
#ifndef GATEWAY_OPTIONS_H
#define GATEWAY_OPTIONS_H

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"

struct options {
    const char *socket;   /* NULL: gateway.sock in the run directory */
    const char *log_file; /* NULL: stderr as it is */
    enum log_level log_level;
    int ready_descriptor; /* -1: none */
    bool help;
    bool version;
};

/* Strings point into argv. INVALID_ARGUMENT says what is wrong and how to see what is right. */
bool options_parse(int argc, char **argv, struct options *ret_options, struct error *error);
/* The text of --help; a constant. */
const char *options_help(void);

#endif
