/* openshell sandbox stop */
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/last_sandbox.h"
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
    if (name == NULL || !sandbox_begin_stop(&connection, name, error))
        return -1;
    const Openshell__V1__Sandbox *sandbox = sandbox_await(&connection, name, error);
    if (sandbox == NULL)
        return -1;
    CLEANUP_FREE char *shown = text_escaped(name);
    int exit_code;
    switch (sandbox_outcome(sandbox, &exit_code)) {
    case SANDBOX_STOPPED:
        printf("Sandbox '%s' is stopped.\n", shown);
        return EXIT_SUCCESS;
    case SANDBOX_ENDED:
        printf("Sandbox '%s' needs no stopping: its main process ended with code %d.\n", shown,
               exit_code);
        return EXIT_SUCCESS;
    case SANDBOX_READY:
    case SANDBOX_UNUSABLE:
        break;
    }
    sandbox_failure(sandbox, error);
    error_prefix(error, "cannot stop");
    return -1;
}

const struct command command_sandbox_stop = {
    .usage = "[OPTIONS] [NAME]",
    .description = "Ends everything that runs in the sandbox and keeps its files. Waits until that "
                   "is\ndone, $OPENSHELL_LIFECYCLE_TIMEOUT seconds at most (300). Without NAME it "
                   "is the\nsandbox that was used last.",
    .examples = "  openshell sandbox stop demo",
    .options = options,
    .most_words = 1,
    .run = run,
};
