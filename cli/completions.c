/* openshell completions: prints the script that a shell completes with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/completion/completion.h"
#include "client/command.h"
#include "client/failure.h"

static const struct option options[] = {{0}};

static const struct {
    const char *name;
    const char *const *script;
    void (*print_tables)(FILE *stream);
} shells[] = {
    {"bash", completion_script_bash, completion_print_bash},
    {"zsh", completion_script_zsh, completion_print_zsh},
    {"fish", completion_script_fish, completion_print_fish},
};

static int run(const struct invocation *invocation, struct error *error)
{
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(shells[i].name, invocation->words[0]) != 0)
            continue;
        for (const char *const *line = shells[i].script; *line != NULL; line++) {
            if (strcmp(*line, "# @TABLES@") == 0)
                shells[i].print_tables(stdout);
            else
                puts(*line);
        }
        return EXIT_SUCCESS;
    }
    char shown[64];
    text_escape(invocation->words[0], shown, sizeof(shown));
    failure_usage(error, "there are no completions for '%s'", shown);
    failure_hint(error, "there are some for bash, zsh and fish");
    return -1;
}

const struct command command_completions = {
    .usage = "bash|zsh|fish",
    .description = "Prints the script that makes a shell complete commands, options, and the names "
                   "of\nsandboxes, gateways and workspaces. 'make install' puts the same scripts "
                   "where the\nshells find them; this is for where they do not.",
    .examples =
        "  openshell completions bash >~/.local/share/bash-completion/completions/openshell",
    .options = options,
    .least_words = 1,
    .most_words = 1,
    .run = run,
};
