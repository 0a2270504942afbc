/* What the global options and -o say, for the one command that a process runs. */
#ifndef CLIENT_SETTINGS_H
#define CLIENT_SETTINGS_H

#include <stdbool.h>

#include "client/options.h"

enum output_format { OUTPUT_TABLE, OUTPUT_YAML, OUTPUT_JSON };
enum colour_choice { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

struct settings {
    const char *gateway;          /* NULL: not chosen */
    const char *gateway_endpoint; /* NULL: from the gateway's metadata */
    bool gateway_insecure;
    const char *workspace; /* never NULL */
    int verbosity;
    int colour; /* enum colour_choice */
    int output; /* enum output_format */
    bool help;
    bool version;
    long long own_exit_code; /* for failures of the tool itself (decision P16); -1: as always */
};

extern struct settings settings;

/* The global options (command-line reference 1.1). They are accepted before the group, between
 * group and verb, and after the verb; the front-end passes them on by environment. */
extern const struct option global_options[];

/* Entries that several commands have in their tables. */
#define OPTION_OUTPUT                                                                              \
    {                                                                                              \
        .type = OPTION_CHOICE, .letter = 'o', .name = "output", .value = &settings.output,         \
        .metavar = "FORMAT", .help = "How to print the result", .choices = "table yaml json",      \
        .fallback = "table"                                                                        \
    }

#define OPTION_OWN_EXIT_CODE                                                                       \
    {                                                                                              \
        .type = OPTION_NUMBER, .name = "own-exit-code", .value = &settings.own_exit_code,          \
        .metavar = "N", .minimum = 0, .maximum = 255,                                              \
        .help =                                                                                    \
            "Exit with N where OpenShell itself fails, so that a script can tell that from the "   \
            "program's own exit code"                                                              \
    }

#endif
