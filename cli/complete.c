/* openshell __complete: prints the names that a shell offers. Somebody waits with a finger on the
 * key: it starts no gateway, says nothing when something is wrong, and takes no longer than the
 * deadline. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "client/command.h"
#include "client/connection.h"
#include "client/settings.h"
#include "proto/method_table.h"
#include "proto/openshell.pb-c.h"

enum {
    DEADLINE = 80,      /* milliseconds for the calls together */
    LAST_DEADLINE = 90, /* milliseconds for everything, as a gateway that accepts nobody */
    PAGE_SIZE = 1000,
    NAMES_MAX = 10000,
    OUTPUT_MAX = 1024 * 1024, /* bytes that are kept until all of them are written at once */
};

static const struct option options[] = {{0}};

static void on_alarm(int number)
{
    (void)number;
    _exit(EXIT_SUCCESS);
}

static void limit_time(int milliseconds)
{
    struct itimerval timer = {.it_value.tv_usec = milliseconds * 1000};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void be_silent(void)
{
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing >= 0)
        dup2(nothing, STDERR_FILENO);
}

/* A name that a shell would have to quote, or that does not stand in one line, is not offered. */
static void print_name(const char *name)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    if (name[0] != '\0' && name[0] != '-' && strspn(name, plain) == strlen(name))
        puts(name);
}

/* What the line that is being completed chooses. */
static void read_line(char *const *line)
{
    const char *gateway = options_peek(line, 'g', "gateway");
    const char *endpoint = options_peek(line, 0, "gateway-endpoint");
    const char *workspace = options_peek(line, 0, "workspace");
    if (gateway != NULL && gateway[0] != '\0')
        settings.gateway = gateway;
    if (endpoint != NULL && endpoint[0] != '\0')
        settings.gateway_endpoint = endpoint;
    if (workspace != NULL && workspace[0] != '\0')
        settings.workspace = workspace;
}

static void print_gateways(void)
{
    struct gateway *gateways;
    size_t count;
    if (!gateway_list(&gateways, &count, NULL))
        return;
    for (size_t i = 0; i < count; i++)
        print_name(gateways[i].name);
    gateway_list_free(gateways, count);
}

/* One page; NULL when the time is over or the gateway does not answer. */
static const void *call(struct connection *connection, const struct rpc_method *method,
                        const ProtobufCMessage *request, int64_t until)
{
    int64_t left = until - clock_monotonic_milliseconds();
    if (left <= 0)
        return NULL;
    const struct rpc_call_options limit = {.deadline = left};
    return rpc_unary_wait(connection->channel, method, &limit, request, connection->arena, NULL);
}

static void print_sandboxes(struct connection *connection, int64_t until)
{
    Openshell__V1__ListSandboxesRequest request = OPENSHELL__V1__LIST_SANDBOXES_REQUEST__INIT;
    request.workspace_scope = &connection->workspace;
    request.page_size = PAGE_SIZE;
    for (size_t printed = 0; printed < NAMES_MAX;) {
        const Openshell__V1__ListSandboxesResponse *page =
            call(connection, &rpc_openshell_v1_OpenShell_ListSandboxes, &request.base, until);
        if (page == NULL)
            return;
        for (size_t i = 0; i < page->n_sandboxes; i++)
            if (page->sandboxes[i]->metadata != NULL)
                print_name(page->sandboxes[i]->metadata->name);
        printed += page->n_sandboxes;
        request.page_token = page->next_page_token;
        if (request.page_token[0] == '\0' || page->n_sandboxes == 0)
            return;
    }
}

static void print_workspaces(struct connection *connection, int64_t until)
{
    Openshell__V1__ListWorkspacesRequest request = OPENSHELL__V1__LIST_WORKSPACES_REQUEST__INIT;
    request.page_size = PAGE_SIZE;
    for (size_t printed = 0; printed < NAMES_MAX;) {
        const Openshell__V1__ListWorkspacesResponse *page =
            call(connection, &rpc_openshell_v1_OpenShell_ListWorkspaces, &request.base, until);
        if (page == NULL)
            return;
        for (size_t i = 0; i < page->n_workspaces; i++)
            if (page->workspaces[i]->metadata != NULL)
                print_name(page->workspaces[i]->metadata->name);
        printed += page->n_workspaces;
        request.page_token = page->next_page_token;
        if (request.page_token[0] == '\0' || page->n_workspaces == 0)
            return;
    }
}

static int run(const struct invocation *invocation, struct error *error)
{
    int64_t until = clock_monotonic_milliseconds() + DEADLINE;
    static char output[OUTPUT_MAX];
    setvbuf(stdout, output, _IOFBF, sizeof(output));
    struct connection connection;
    const char *kind = invocation->words[0];
    limit_time(LAST_DEADLINE);
    be_silent();
    if (invocation->trailing != NULL)
        read_line(invocation->trailing);
    if (strcmp(kind, "gateways") == 0)
        print_gateways();
    else if (connection_open(&connection, CONNECTION_NO_START, error)) {
        if (strcmp(kind, "sandboxes") == 0)
            print_sandboxes(&connection, until);
        else if (strcmp(kind, "workspaces") == 0)
            print_workspaces(&connection, until);
    }
    limit_time(0); /* half a name would be a wrong one */
    return EXIT_SUCCESS;
}

const struct command command_complete = {
    .usage = "sandboxes|gateways|workspaces [-- WORDS]",
    .description = "Prints names, one a line, for the completions of a shell: none, and no error, "
                   "where\nthe gateway is away. WORDS are those of the line that is completed: its "
                   "options choose\nthe gateway and the workspace.",
    .options = options,
    .least_words = 1,
    .most_words = 1,
    .trailing = true,
    .run = run,
};
