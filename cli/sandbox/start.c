/* openshell sandbox start */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/last_sandbox.h"
#include "client/report.h"
#include "client/sandbox_calls.h"
#include "client/settings.h"

static const struct option options[] = {{0}};

static int run(const struct invocation *invocation, struct error *error)
{
    struct connection connection;
    if (!connection_open(&connection, CONNECTION_START, error))
        return -1;
    char *name = last_sandbox_or(invocation->words != NULL ? invocation->words[0] : NULL,
                                 connection.gateway.name, error);
    if (name == NULL || !sandbox_begin_start(&connection, name, error))
        return -1;
    const Openshell__V1__Sandbox *sandbox = sandbox_await(&connection, name, error);
    if (sandbox == NULL)
        return -1;
    CLEANUP_FREE char *shown = text_escaped(name);
    int exit_code = 0;
    enum sandbox_outcome outcome = sandbox_outcome(sandbox, &exit_code);
    if (outcome == SANDBOX_READY) {
        printf("Sandbox '%s' is ready.\n", shown);
        return EXIT_SUCCESS;
    }
    if (outcome == SANDBOX_ENDED) {
        printf("Sandbox '%s' was started, and its main process ended with code %d.\n", shown,
               exit_code);
        return exit_code == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    sandbox_failure(sandbox, error);
    return -1;
}

const struct command command_sandbox_start = {
    .usage = "[OPTIONS] [NAME]",
    .description = "Starts a sandbox that was stopped, or whose main process ended: with the files "
                   "it\nhad, and its main process from the beginning. Waits until it is ready,\n"
                   "$OPENSHELL_LIFECYCLE_TIMEOUT seconds at most (300). Without NAME it is the\n"
                   "sandbox that was used last.",
    .examples = "  openshell sandbox start demo",
    .options = options,
    .most_words = 1,
    .run = run,
};
