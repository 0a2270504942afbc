/* openshell gateway remove */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/failure.h"
#include "client/gateway_store.h"
#include "client/local_gateway.h"
#include "client/report.h"
#include "client/settings.h"

static const struct option options[] = {{0}};

/* A running one writes its entry again when it is started anew. */
static void warn_if_running(const char *name)
{
    if (strcmp(name, GATEWAY_LOCAL_NAME) != 0)
        return;
    pid_t process;
    int descriptor = local_gateway_find(&process, NULL);
    if (descriptor < 0)
        return;
    close(descriptor);
    report_notice("it still runs; stop it with: openshell gateway stop");
}

static int run(const struct invocation *invocation, struct error *error)
{
    CLEANUP_FREE char *active = gateway_store_active();
    const char *name = invocation->word_count > 0 ? invocation->words[0]
                       : settings.gateway != NULL ? settings.gateway
                                                  : active;
    if (name == NULL) {
        failure_set(error, CLIENT_REASON_GATEWAY_UNKNOWN,
                    "no gateway is named, and none is chosen");
        return -1;
    }
    CLEANUP_FREE char *shown = text_escaped(name);
    enum gateway_source source =
        gateway_name_valid(name) ? gateway_find(name) : GATEWAY_SOURCE_NONE;
    if (source == GATEWAY_SOURCE_NONE) {
        failure_set(error, CLIENT_REASON_GATEWAY_UNKNOWN, "there is no gateway '%s'", shown);
        return -1;
    }
    if (source == GATEWAY_SOURCE_SYSTEM) {
        failure_set(error, CLIENT_REASON_GATEWAY_INVALID,
                    "gateway '%s' is part of this system's configuration, which is not yours",
                    shown);
        failure_hint(error, "use another one with: openshell gateway select");
        return -1;
    }
    if (!gateway_store_remove(name, error))
        return -1;
    report_notice("gateway '%s' is removed%s", name,
                  active != NULL && strcmp(active, name) == 0
                      ? "; the one of this machine is used from now on"
                      : "");
    warn_if_running(name);
    return EXIT_SUCCESS;
}

const struct command command_gateway_remove = {
    .usage = "[OPTIONS] [NAME]",
    .description = "Forgets a gateway with everything that is kept about it here, as certificates "
                   "and\ntokens; the gateway itself goes on. Without NAME it is the one in use.",
    .examples = "  openshell gateway remove lab",
    .options = options,
    .completes = "gateways",
    .most_words = 1,
    .run = run,
};
