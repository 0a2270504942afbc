/* openshell gateway start */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/command.h"
#include "client/local_gateway.h"

static struct {
    bool foreground;
} given;

static const struct option options[] = {
    {.type = OPTION_FLAG,
     .name = "foreground",
     .value = &given.foreground,
     .help = "Stay in front, with the log on standard error, until it is stopped"},
    {0},
};

static int run(const struct invocation *invocation, struct error *error)
{
    (void)invocation;
    if (given.foreground) {
        local_gateway_run(error);
        return -1;
    }
    bool started;
    int descriptor = local_gateway_start(&started, error);
    if (descriptor < 0)
        return -1;
    close(descriptor);
    printf(started ? "The gateway is started.\n" : "The gateway runs already.\n");
    return EXIT_SUCCESS;
}

const struct command command_gateway_start = {
    .usage = "[OPTIONS]",
    .description = "Starts the gateway of this user on this machine. There is seldom a need to: "
                   "the\nfirst command that wants it starts it too.",
    .examples = "  openshell gateway start\n"
                "  openshell gateway start --foreground",
    .options = options,
    .run = run,
};
