#include "gateway/options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *options_help(void)
{
    return "Usage: openshell-gateway [OPTIONS]\n"
           "\n"
           "Serves the OpenShell API and runs this user's sandboxes, in the foreground, until\n"
           "SIGTERM or SIGINT. Sandboxes go on running without it.\n"
           "\n"
           "Options:\n"
           "      --socket PATH      Listen on this Unix socket instead of the default one\n"
           "      --log-file PATH    Append the log to this file instead of writing it to stderr\n"
           "      --log-level LEVEL  error, warn, info (default), debug or trace; also from\n"
           "                         OPENSHELL_LOG_LEVEL\n"
           "      --foreground       Stay in the foreground; the default, and the only way\n"
           "      --ready-fd N       Write one byte to this descriptor once calls are accepted\n"
           "  -h, --help             Show this text\n"
           "  -V, --version          Show the version\n"
           "\n"
           "Files: the socket and the lock are in $OPENSHELL_RUN_DIR, else /run/openshell for\n"
           "root, else $XDG_RUNTIME_DIR/openshell; records and keys in "
           "$XDG_STATE_HOME/openshell.\n";
}

enum { OPTION_SOCKET = 256, OPTION_LOG_FILE, OPTION_LOG_LEVEL, OPTION_FOREGROUND, OPTION_READY_FD };

static bool parse_level(const char *text, enum log_level *ret_level, struct error *error)
{
    return log_level_parse(text, ret_level) ||
           error_set(error, ERROR_INVALID_ARGUMENT,
                     "the log level is error, warn, info, debug or trace, not '%.32s'", text);
}

static bool take(int option, struct options *options, struct error *error)
{
    long long number;
    switch (option) {
    case OPTION_SOCKET:
        options->socket = optarg;
        return optarg[0] == '/' ||
               error_set(error, ERROR_INVALID_ARGUMENT, "--socket needs an absolute path");
    case OPTION_LOG_FILE:
        options->log_file = optarg;
        return true;
    case OPTION_LOG_LEVEL:
        return parse_level(optarg, &options->log_level, error);
    case OPTION_FOREGROUND:
        return true;
    case OPTION_READY_FD:
        if (!text_parse_integer(optarg, 3, 1024 * 1024, &number))
            return error_set(error, ERROR_INVALID_ARGUMENT, "--ready-fd needs a descriptor over 2");
        options->ready_descriptor = (int)number;
        return true;
    case 'h':
        options->help = true;
        return true;
    case 'V':
        options->version = true;
        return true;
    case ':':
        return error_set(error, ERROR_INVALID_ARGUMENT, "an option is missing its value");
    default:
        return false;
    }
}

bool options_parse(int argc, char **argv, struct options *ret_options, struct error *error)
{
    static const struct option known[] = {
        {"socket", required_argument, NULL, OPTION_SOCKET},
        {"log-file", required_argument, NULL, OPTION_LOG_FILE},
        {"log-level", required_argument, NULL, OPTION_LOG_LEVEL},
        {"foreground", no_argument, NULL, OPTION_FOREGROUND},
        {"ready-fd", required_argument, NULL, OPTION_READY_FD},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
    };
    struct options options = {.log_level = LOG_LEVEL_INFO, .ready_descriptor = -1};
    const char *level = getenv("OPENSHELL_LOG_LEVEL");
    if (level != NULL && level[0] != '\0' && !parse_level(level, &options.log_level, error)) {
        error_prefix(error, "OPENSHELL_LOG_LEVEL");
        return false;
    }
    opterr = 0;
    for (int before = optind, option; (option = getopt_long(argc, argv, ":hV", known, NULL)) != -1;
         before = optind) {
        if (option == '?')
            return error_set(error, ERROR_INVALID_ARGUMENT,
                             "unknown option '%.64s'; see openshell-gateway --help", argv[before]);
        if (!take(option, &options, error))
            return false;
    }
    if (optind < argc)
        return error_set(error, ERROR_INVALID_ARGUMENT,
                         "unexpected argument '%.64s'; see openshell-gateway --help", argv[optind]);
    *ret_options = options;
    return true;
}
